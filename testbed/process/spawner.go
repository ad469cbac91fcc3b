// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"runtime"
	"sync"
)

// Linux ties the death signal of a child to the thread that started it, not to the process. All children are therefore
// started from one thread that lives as long as the program.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// OnSpawner runs f, which starts a child that must die with this program, on the thread that owns all children. It
// returns what f returns.
func OnSpawner(f func() error) error {
	result := make(chan error, 1)
	spawner() <- func() { result <- f() }
	return <-result
}
