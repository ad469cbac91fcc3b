// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
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
		"one that catches up is none either": {
			[]sight{{renewed(agent, "9"), 0, true}, {renewed(agent.Add(-2*time.Second), "7"), time.Minute, true},
				{renewed(agent.Add(-time.Second), "8"), 2 * time.Minute, true},
				{renewed(agent, "9"), 3 * time.Minute, true}},
			start,
		},
		"two renewals after a restore of etcd": {
			[]sight{{renewed(agent, "9000"), 0, true}, {renewed(agent.Add(time.Second), "12"), time.Minute, true},
				{renewed(agent.Add(2*time.Second), "15"), 2 * time.Minute, true}}, start.Add(2 * time.Minute),
		},
		"one renewal after a restore": {
			[]sight{{renewed(agent, "9000"), 0, true}, {renewed(agent.Add(time.Second), "12"), time.Minute, true},
				{renewed(agent.Add(time.Second), "14"), 2 * time.Minute, true}}, start,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var l liveness
			var got time.Time
			for _, s := range test.sights {
				got, _ = l.observe("c", s.lease, start.Add(s.after), s.witnessed)
			}
			if !got.Equal(test.want) {
				t.Errorf("seen at %s, want %s", got, test.want)
			}
			if last := l.periodStart("c"); !last.Equal(test.want) {
				t.Errorf("last seen at %s, want %s", last, test.want)
			}
		})
	}
}

func TestLivenessOfABlindHub(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	var l liveness
	l.recordLiveRead("unknown", start, true)
	if got := l.periodStart("unknown"); !got.IsZero() {
		t.Errorf("a cluster that was never seen got a sighting at %s", got)
	}
	l.observe("c", &coordinationv1.Lease{}, start, true)
	l.recordLiveRead("c", start.Add(time.Minute), true)
	for _, again := range []string{"at once", "and later"} {
		seen, validFrom := l.observe("c", &coordinationv1.Lease{}, start.Add(time.Hour), true)
		if want := start.Add(time.Minute); !seen.Equal(start) || !validFrom.Equal(want) {
			t.Errorf("%s: seen at %s, want %s; valid from %s, want %s", again, seen, start, validFrom, want)
		}
	}
	if got, want := l.periodStart("c"), start.Add(time.Minute); !got.Equal(want) {
		t.Errorf("valid from %s, want %s", got, want)
	}
	renewed := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: start}}}
	if seen, _ := l.observe("c", renewed, start.Add(time.Hour), true); !seen.Equal(start.Add(time.Hour)) {
		t.Errorf("the next renewal was seen at %s", seen)
	}
	l.forget("c")
	if got := l.periodStart("c"); !got.IsZero() {
		t.Errorf("forgotten cluster was seen at %s", got)
	}
}

func TestRequestFor(t *testing.T) {
	for namespace, want := range map[string]string{"bellwether-prod": "prod", "bellwether-": "", "default": ""} {
		got := ""
		if requests := newRequests(namespace); len(requests) == 1 {
			got = requests[0].Name
		}
		if got != want {
			t.Errorf("request for namespace %q = %q, want %q", namespace, got, want)
		}
	}
}

// TestRenewalsWakeNobody renews the Leases of a fleet, and then adds new
// information to one Lease.
func TestRenewalsWakeNobody(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	r := &Reconciler{Now: func() time.Time { return now }}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	handler := r.newLeaseHandler()
	seconds := int32(90)
	leaseOf := func(cluster int) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.ClusterNamespace(strconv.Itoa(cluster)), Name: v1alpha1.LeaseName,
			Annotations: map[string]string{v1alpha1.AnnotationOLMVersion: "0.46.0"}},
			Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: now}}}
	}
	const clusters = 50
	leases := make([]*coordinationv1.Lease, clusters)
	for c := range leases {
		leases[c] = leaseOf(c)
		handler.Create(t.Context(), event.CreateEvent{Object: leases[c]}, queue)
	}
	for queue.Len() > 0 { // that there is a Lease is news
		request, _ := queue.Get()
		queue.Done(request)
	}
	renew := func(c int, change func(*coordinationv1.Lease)) {
		next := leaseOf(c)
		change(next)
		handler.Update(t.Context(), event.UpdateEvent{ObjectOld: leases[c], ObjectNew: next}, queue)
		leases[c] = next
	}
	for range 20 {
		now = now.Add(30 * time.Second)
		for c := range leases {
			renew(c, func(*coordinationv1.Lease) {})
		}
	}
	if n := queue.Len(); n != 0 {
		t.Errorf("%d clusters are reconciled for %d renewals that tell nothing new", n, 20*clusters)
	}
	shorter := int32(20)
	for what, change := range map[string]func(*coordinationv1.Lease){
		"another version of OLM": func(l *coordinationv1.Lease) { l.Annotations[v1alpha1.AnnotationOLMVersion] = "0.47.0" },
		"a shorter Lease":        func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = &shorter },
	} {
		leases[7] = leaseOf(7)
		renew(7, change)
		if n := queue.Len(); n != 1 {
			t.Fatalf("%s of cluster 7: %d clusters are reconciled", what, n)
		}
		request, _ := queue.Get()
		if queue.Done(request); request.Name != "7" {
			t.Errorf("%s of cluster 7 reconciles %s", what, request.Name)
		}
	}
}

// TestPowerStateOfTheSourceIsNoticed has updates of a FleetCluster by the discovery controller.
func TestPowerStateOfTheSourceIsNoticed(t *testing.T) {
	source := func(power v1alpha1.ClusterPowerState, since int64) *v1alpha1.ClusterSource {
		return &v1alpha1.ClusterSource{PowerState: power, PowerStateSince: &metav1.Time{Time: time.Unix(since, 0)}}
	}
	for name, test := range map[string]struct {
		before, after *v1alpha1.ClusterSource
		want          bool
	}{
		"no source":           {nil, nil, false},
		"the same":            {source(v1alpha1.PowerRunning, 1), source(v1alpha1.PowerRunning, 1), false},
		"a source appears":    {nil, source(v1alpha1.PowerRunning, 1), true},
		"a source goes":       {source(v1alpha1.PowerRunning, 1), nil, true},
		"another power state": {source(v1alpha1.PowerRunning, 1), source(v1alpha1.PowerStopping, 1), true},
		"the same, anew":      {source(v1alpha1.PowerStopping, 1), source(v1alpha1.PowerStopping, 2), true},
	} {
		cluster := func(s *v1alpha1.ClusterSource) *v1alpha1.FleetCluster {
			return &v1alpha1.FleetCluster{Status: v1alpha1.FleetClusterStatus{Source: s}}
		}
		update := event.UpdateEvent{ObjectOld: cluster(test.before), ObjectNew: cluster(test.after)}
		if got := powerStateChanged.Update(update); got != test.want {
			t.Errorf("%s: reconciled is %v, want %v", name, got, test.want)
		}
	}
}
