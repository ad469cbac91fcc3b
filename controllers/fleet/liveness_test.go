// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLivenessTrustsOnlyWhatTheHubSaw(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	renewed := func(at time.Time, version ...string) *coordinationv1.Lease {
		lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: at}}}
		lease.ResourceVersion = strings.Join(version, "")
		return lease
	}
	type sight struct {
		lease     *coordinationv1.Lease
		after     time.Duration
		witnessed bool
	}
	// The agent's clock is a year ahead: it must not matter.
	agent := start.AddDate(1, 0, 0)
	tests := map[string]struct {
		sights []sight
		want   time.Time
	}{
		"a Lease found at start says nothing":  {[]sight{{renewed(agent), 0, false}}, time.Time{}},
		"one found at start by who was online": {[]sight{{renewed(agent), 0, true}}, start},
		"a renewal after the start": {[]sight{{renewed(agent), 0, false},
			{renewed(agent.Add(time.Second)), time.Second, false}}, start.Add(time.Second)},
		"the same renewal does not count twice": {
			[]sight{{renewed(agent), 0, true}, {renewed(agent), time.Minute, true}}, start,
		},
		"a clock that goes back is a renewal as well": {
			[]sight{{renewed(agent), 0, true}, {renewed(agent.Add(-time.Hour)), time.Minute, true}},
			start.Add(time.Minute),
		},
		"a cache that lags is no renewal": {
			[]sight{{renewed(agent, "9"), 0, true}, {renewed(agent.Add(-time.Second), "8"), time.Minute, true}}, start,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var l liveness
			var got time.Time
			for _, s := range test.sights {
				got = l.observe("c", s.lease, start.Add(s.after), s.witnessed)
			}
			if !got.Equal(test.want) {
				t.Errorf("seen at %s, want %s", got, test.want)
			}
			if last := l.last("c"); !last.Equal(test.want) {
				t.Errorf("last seen at %s, want %s", last, test.want)
			}
		})
	}
}

func TestLivenessRestart(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	var l liveness
	l.restart("unknown", start)
	if got := l.last("unknown"); !got.IsZero() {
		t.Errorf("a cluster that was never seen got a sighting at %s", got)
	}
	l.observe("c", &coordinationv1.Lease{}, start, true)
	l.restart("c", start.Add(time.Minute))
	if got, want := l.last("c"), start.Add(time.Minute); !got.Equal(want) {
		t.Errorf("seen at %s, want %s", got, want)
	}
	l.forget("c")
	if got := l.last("c"); !got.IsZero() {
		t.Errorf("forgotten cluster was seen at %s", got)
	}
}

func TestRequestFor(t *testing.T) {
	for namespace, want := range map[string]string{"bellwether-prod": "prod", "bellwether-": "", "default": ""} {
		got := ""
		if requests := requestFor(namespace); len(requests) == 1 {
			got = requests[0].Name
		}
		if got != want {
			t.Errorf("request for namespace %q = %q, want %q", namespace, got, want)
		}
	}
}
