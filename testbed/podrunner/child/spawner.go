// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"runtime"
	"sync"
)

// Linux ties the death signal of a child to the thread that started it. All
// children are therefore started from one thread that lives as long as the program.
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

func onSpawner(f func() error) error {
	result := make(chan error, 1)
	spawner() <- func() { result <- f() }
	return <-result
}
