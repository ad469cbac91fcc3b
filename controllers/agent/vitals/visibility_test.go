// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// filling is a cache that is filled or not.
type filling struct {
	cache.Informer
	synced bool
}

func (f filling) HasSynced() bool { return f.synced }

// TestVisibility checks that only current knowledge is reported.
func TestVisibility(t *testing.T) {
	filled, empty := filling{synced: true}, filling{}
	for name, tc := range map[string]struct {
		change func(*cacheWatcher)
		olm    func() (served, known bool)
		want   Visibility
	}{
		"everything is readable": {want: Visibility{Hub: true, Cluster: true, OLM: true, Conditions: true}},
		"the hub was not reached yet": {change: func(s *cacheWatcher) { s.installs = nil },
			want: Visibility{Cluster: true, OLM: true, Conditions: true}},
		"the hub's cache is not filled yet": {change: func(s *cacheWatcher) { s.installs = empty },
			want: Visibility{Cluster: true, OLM: true, Conditions: true}},
		"a cluster's cache is not filled yet": {change: func(s *cacheWatcher) { s.objects = append(s.objects, empty) },
			want: Visibility{Hub: true, OLM: true, Conditions: true}},
		"no cache yet": {change: func(s *cacheWatcher) { s.objects = nil },
			want: Visibility{Hub: true, OLM: true, Conditions: true}},
		"the API server has not answered for " +
			"long": {change: func(s *cacheWatcher) { s.reachedAt = now.Add(-staleAfter) },
			want: Visibility{Hub: true, OLM: true, Conditions: true}},
		"the API server has not answered for a short " +
			"time": {change: func(s *cacheWatcher) { s.reachedAt = now.Add(time.Second - staleAfter) },
			want: Visibility{Hub: true, Cluster: true, OLM: true, Conditions: true}},
		"an OLM without conditions": {change: func(s *cacheWatcher) { s.conditions = nil },
			want: Visibility{Hub: true, Cluster: true, OLM: true}},
		"no OLM": {olm: func() (bool, bool) { return false, true },
			change: func(s *cacheWatcher) { s.objects = nil }, want: Visibility{Hub: true, Cluster: true}},
		"OLM was removed": {olm: func() (bool, bool) { return false, true },
			want: Visibility{Hub: true, Cluster: true}},
		"not yet known whether there is OLM": {olm: func() (bool, bool) { return false, false },
			want: Visibility{Hub: true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &cacheWatcher{
				olm: func() (bool, bool) { return true, true }, now: func() time.Time { return now }, reachedAt: now,
				installs: filled, objects: []cache.Informer{filled, filled}, conditions: filled,
			}
			if tc.olm != nil {
				s.olm = tc.olm
			}
			if tc.change != nil {
				tc.change(s)
			}
			if got := s.visibility(); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
