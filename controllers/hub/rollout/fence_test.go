// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

// TestFenceReadsAfterItWasAsked has many actions that check the fence during a read that started
// earlier. That read must not answer them, and one later read must answer all of them.
func TestFenceReadsAfterItWasAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		changed := errors.New("changed")
		proceed := make(chan struct{})
		var reads int
		var state error
		f := fence{read: func() error {
			reads++
			seen := state // what the API server has when the read begins
			<-proceed
			return seen
		}}
		var group sync.WaitGroup
		group.Go(func() {
			if err := f.check(); err != nil {
				t.Errorf("the first action: %v", err)
			}
		})
		synctest.Wait() // the first read is under way
		state = changed
		for range 20 {
			group.Go(func() {
				if err := f.check(); !errors.Is(err, changed) {
					t.Errorf("an action that asked after the change got the answer of an earlier read: %v", err)
				}
			})
		}
		synctest.Wait()
		proceed <- struct{}{}
		synctest.Wait()
		proceed <- struct{}{}
		group.Wait()
		if reads != 2 {
			t.Errorf("%d reads, want 2", reads)
		}
		state = nil
		group.Go(func() {
			if err := f.check(); err != nil {
				t.Errorf("an action of later: %v", err)
			}
		})
		synctest.Wait()
		proceed <- struct{}{}
		group.Wait()
	})
}
