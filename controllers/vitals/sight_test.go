// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// filling is the cache of a kind, filled or not yet.
type filling struct {
	cache.Informer
	synced bool
}

func (f filling) HasSynced() bool { return f.synced }

// TestLook: only what is known, and still so, is seen.
func TestLook(t *testing.T) {
	filled, empty := filling{synced: true}, filling{}
	for name, tc := range map[string]struct {
		change func(*sight)
		olm    func() (served, known bool)
		want   Sight
	}{
		"all is well": {want: Sight{Hub: true, Cluster: true, OLM: true, Conditions: true}},
		"the hub is not reached yet": {change: func(s *sight) { s.installs = nil },
			want: Sight{Cluster: true, OLM: true, Conditions: true}},
		"its cache is being filled": {change: func(s *sight) { s.installs = empty },
			want: Sight{Cluster: true, OLM: true, Conditions: true}},
		"a cache is being filled": {change: func(s *sight) { s.objects = append(s.objects, empty) },
			want: Sight{Hub: true, OLM: true, Conditions: true}},
		"no cache yet": {change: func(s *sight) { s.objects = nil },
			want: Sight{Hub: true, OLM: true, Conditions: true}},
		"the API server was silent": {change: func(s *sight) { s.reached = now.Add(-staleAfter) },
			want: Sight{Hub: true, OLM: true, Conditions: true}},
		"it is silent for a moment": {change: func(s *sight) { s.reached = now.Add(time.Second - staleAfter) },
			want: Sight{Hub: true, Cluster: true, OLM: true, Conditions: true}},
		"an OLM without conditions": {change: func(s *sight) { s.conditions = nil },
			want: Sight{Hub: true, Cluster: true, OLM: true}},
		"no OLM": {olm: func() (bool, bool) { return false, true },
			change: func(s *sight) { s.objects = nil }, want: Sight{Hub: true, Cluster: true}},
		"OLM was taken off": {olm: func() (bool, bool) { return false, true },
			want: Sight{Hub: true, Cluster: true}},
		"OLM was not looked for so far": {olm: func() (bool, bool) { return false, false }, want: Sight{Hub: true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sight{
				olm: func() (bool, bool) { return true, true }, now: func() time.Time { return now }, reached: now,
				installs: filled, objects: []cache.Informer{filled, filled}, conditions: filled,
			}
			if tc.olm != nil {
				s.olm = tc.olm
			}
			if tc.change != nil {
				tc.change(s)
			}
			if got := s.look(); got != tc.want {
				t.Errorf("sees %+v, want %+v", got, tc.want)
			}
		})
	}
}
