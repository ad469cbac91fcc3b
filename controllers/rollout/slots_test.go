// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

// TestRolloutsShareWriters has many more writes at a time than the API server is given.
func TestRolloutsShareWriters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s slots
		var group sync.WaitGroup
		begun := make(chan struct{}, 3*writers)
		proceed := make(chan struct{})
		for range 3 * writers {
			group.Go(func() {
				err := s.do(t.Context(), func() error { begun <- struct{}{}; <-proceed; return nil })
				if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := len(begun); n != writers {
			t.Errorf("%d at a time, want %d", n, writers)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.do(ended, func() error { t.Error("it was done"); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("one that waits for too long: %v", err)
		}
		close(proceed)
		group.Wait()
		if n := len(begun); n != 3*writers {
			t.Errorf("%d were done, want %d", n, 3*writers)
		}
	})
}
