// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"sync"
)

// slots bound how many things are done at a time, to writers. The zero value has all of them free.
type slots struct {
	once  sync.Once
	taken chan struct{}
}

// do calls f once a slot is free, and returns its error; that of the context where it ends before.
func (s *slots) do(ctx context.Context, f func() error) error {
	s.once.Do(func() { s.taken = make(chan struct{}, writers) })
	select {
	case s.taken <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.taken }()
	return f()
}
