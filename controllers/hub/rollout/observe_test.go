// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// TestCacheIsNotOlderThanWhatItEquals: the resource version of a list is newer than that of each of its objects.
func TestCacheIsNotOlderThanWhatItEquals(t *testing.T) {
	const list = "900"
	live := installView{count: 3, newestVersion: "120"}
	tests := map[string]struct {
		live, cached  installView
		reached, want string
	}{
		"the same":                            {live, live, "120", "120"},
		"the cache has newer ones of another": {live, live, "150", "150"},
		"the cache lacks the newest":          {live, installView{3, "119"}, "150", list},
		"the cache has one that is gone":      {live, installView{4, "120"}, "120", list},
		"the cache lacks one":                 {live, installView{2, "110"}, "110", list},
		"there are none":                      {installView{}, installView{}, "", list},
		"there are none, but of others":       {installView{}, installView{}, "150", "150"},
		"the cache is ahead, as one is gone":  {live, installView{4, "130"}, "130", list},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.live.resolveVersion(test.cached, test.reached, list); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestProgressOfTheCache verifies that every change of an install advances the recorded version,
// and that no change moves it back.
func TestProgressOfTheCache(t *testing.T) {
	var p cacheProgress
	at := func(version string) *v1alpha1.OperatorInstall {
		return &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	}
	all := p.newPredicate()
	for _, step := range []struct {
		passes bool
		want   string
	}{
		{all.Create(event.CreateEvent{Object: at("100")}), "100"},
		{all.Update(event.UpdateEvent{ObjectOld: at("100"), ObjectNew: at("120")}), "120"},
		{all.Delete(event.DeleteEvent{Object: at("130")}), "130"},
		{all.Delete(event.DeleteEvent{Object: at("90"), DeleteStateUnknown: true}), "130"},
	} {
		if !step.passes {
			t.Errorf("a change to %s is held up", step.want)
		}
	}
	if got := p.loadVersion(); got != "130" {
		t.Errorf("the cache has reached %s, want 130", got)
	}
}

// slow answers lists once it may.
type slow struct {
	client.Reader
	proceed chan struct{}
	lists   int
}

func (s *slow) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if clusters, ok := list.(*v1alpha1.FleetClusterList); ok {
		s.lists++
		<-s.proceed
		clusters.Items = []v1alpha1.FleetCluster{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}
	}
	return nil
}

// TestRolloutsShareLiveReads has many rollouts that read the fleet's state at the same time. The
// holds that one rollout sets on a cluster must not appear in another rollout.
func TestRolloutsShareLiveReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &slow{proceed: make(chan struct{})}
		r := &Reconciler{Live: api}
		var group sync.WaitGroup
		look := func() {
			around, err := r.readLiveFleetState(t.Context())
			if err != nil || len(around.clusters) != 1 || around.clusters[0].Holds != nil {
				t.Errorf("%+v, %v", around, err)
				return
			}
			around.clusters[0].Holds = []rollouts.Hold{{Reason: v1alpha1.ReasonPaused}}
		}
		group.Go(look)
		synctest.Wait()
		for range 20 {
			group.Go(look)
		}
		synctest.Wait()
		close(api.proceed)
		group.Wait()
		if api.lists != 2 {
			t.Errorf("%d lists, want 2", api.lists)
		}
	})
}
