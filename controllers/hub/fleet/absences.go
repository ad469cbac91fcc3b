// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/fleet"
)

// absences records since when ServiceAccounts of agents are missing, by the hub's clock.
// It is in memory only: after a restart, the hub counts from its first observation of
// the absence, which is later.
type absences struct {
	mu        sync.Mutex
	byCluster map[string]absence
}

// absence is the state of a missing ServiceAccount.
type absence struct {
	since time.Time
	// released is set when the cluster has left the fleet. A cluster with the
	// same name can join again.
	released bool
}

// observe returns since when the ServiceAccount of a cluster is missing: now, if this is the
// first observation. A new cluster has no ServiceAccount yet, so the result is zero and nothing
// is recorded, unless a cluster with the same name has left the fleet.
func (a *absences) observe(cluster string, isNew bool, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.byCluster[cluster]; !known && isNew {
		return time.Time{}
	}
	return a.record(cluster, false, now)
}

// record stores an absence, and returns since when it is known. The caller holds the lock.
func (a *absences) record(cluster string, released bool, now time.Time) time.Time {
	since := now
	if previous, known := a.byCluster[cluster]; known {
		since = previous.since
	}
	if a.byCluster == nil {
		a.byCluster = map[string]absence{}
	}
	a.byCluster[cluster] = absence{since, released}
	return since
}

// forget removes the absence of a cluster whose ServiceAccount exists.
func (a *absences) forget(cluster string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byCluster, cluster)
}

// release records that a cluster has left the fleet, even if the cache still has its
// ServiceAccount. It removes clusters that left at least fleet.AccountPause ago.
func (a *absences) release(cluster string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record(cluster, true, now)
	maps.DeleteFunc(a.byCluster, func(_ string, s absence) bool {
		return s.released && now.Sub(s.since) >= fleet.AccountPause
	})
}

// observeMissingAccount returns when the ServiceAccount of a cluster was first observed to
// be missing, and records the observation. The result is zero if the ServiceAccount exists,
// or if the cluster is new.
func (r *Reconciler) observeMissingAccount(cluster *v1alpha1.FleetCluster, namespace fleet.NamespaceState,
	observed access) time.Time {
	if observed.account != nil {
		r.absences.forget(cluster.Name)
		return time.Time{}
	}
	isNew := namespace == fleet.NamespaceAbsent && !slices.Contains(cluster.Finalizers, v1alpha1.FinalizerHub)
	return r.absences.observe(cluster.Name, isNew, r.Now())
}
