// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/fleet/plan"
)

// absences remembers since when ServiceAccounts of agents are gone, by the hub's own clock. It is an observation
// and not state: a hub that starts anew begins to count when it first sees that one is gone, which is later.
type absences struct {
	mu   sync.Mutex
	seen map[string]absence
}

type absence struct {
	since time.Time
	// released is set once the cluster has left the fleet. It may join again under the same name.
	released bool
}

// observe returns since when the ServiceAccount of a cluster is gone: now, if this is the first look. A new cluster has
// none yet and is not remembered, unless one of that name left the fleet.
func (a *absences) observe(cluster string, isNew bool, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.seen[cluster]; !known && isNew {
		return time.Time{}
	}
	return a.note(cluster, false, now)
}

// note remembers an absence, and returns since when it is known. The caller has the lock.
func (a *absences) note(cluster string, released bool, now time.Time) time.Time {
	since := now
	if last, known := a.seen[cluster]; known {
		since = last.since
	}
	if a.seen == nil {
		a.seen = map[string]absence{}
	}
	a.seen[cluster] = absence{since, released}
	return since
}

// forget notes that a ServiceAccount is there.
func (a *absences) forget(cluster string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.seen, cluster)
}

// release notes that a cluster has left the fleet, and forgets those that left long ago. What the cache still has of
// its ServiceAccount does not count.
func (a *absences) release(cluster string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(cluster, true, now)
	maps.DeleteFunc(a.seen, func(_ string, s absence) bool {
		return s.released && now.Sub(s.since) >= plan.AccountPause
	})
}

// accountGoneAt returns when the ServiceAccount of a cluster was first seen to be gone. Zero: there is one, or there
// was none before.
func (r *Reconciler) accountGoneAt(cluster *v1alpha1.FleetCluster, namespace plan.NamespaceState,
	seen access) time.Time {
	if seen.account != nil {
		r.gone.forget(cluster.Name)
		return time.Time{}
	}
	isNew := namespace == plan.NamespaceAbsent && !slices.Contains(cluster.Finalizers, v1alpha1.FinalizerHub)
	return r.gone.observe(cluster.Name, isNew, r.Now())
}
