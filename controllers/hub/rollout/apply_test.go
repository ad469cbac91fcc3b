// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

var errBusy = errors.New("busy")

// busy has the rollouts as they were read, and fails reads of OperatorInstalls once it may.
type busy struct {
	client.Client
	begun, proceed chan struct{}
}

func (b busy) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if _, ok := o.(*v1alpha1.OperatorInstall); !ok {
		return nil
	}
	b.begun <- struct{}{}
	<-b.proceed
	return errBusy
}

// TestRolloutsShareWriters has three rollouts act on many more clusters at a time than the API server is given.
func TestRolloutsShareWriters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const clusters = maxWriters
		// Each action reads its install twice, as the first read fails.
		api := busy{begun: make(chan struct{}, 2*3*clusters), proceed: make(chan struct{})}
		r := &Reconciler{Client: api, Live: api, Now: time.Now}
		var actions []rollouts.Action
		for i := range clusters {
			actions = append(actions, rollouts.Action{Kind: rollouts.ActionAssign, Cluster: strconv.Itoa(i)})
		}
		pass := func(ctx context.Context) error {
			return r.apply(ctx, rollouts.Input{Rollout: &v1alpha1.OperatorRollout{}}, actions)
		}
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				if err := pass(t.Context()); !errors.Is(err, errBusy) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := len(api.begun); n != maxWriters {
			t.Errorf("%d at a time, want %d", n, maxWriters)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := pass(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("one that waits for too long: %v", err)
		}
		close(api.proceed)
		group.Wait()
		if n := len(api.begun); n != 2*3*clusters {
			t.Errorf("%d reads, want %d", n, 2*3*clusters)
		}
	})
}
