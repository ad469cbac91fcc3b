// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// liveness records when the hub saw each Lease change, by the hub's clock. It is in memory only:
// after a restart, the hub starts with the condition Online that was last written.
type liveness struct {
	mu        sync.Mutex
	byCluster map[string]leaseState
}

// leaseState is the last observed state of a cluster's Lease.
type leaseState struct {
	renewal string
	// version is the resource version of the Lease with that renewal.
	version string
	seenAt  time.Time
	// extendedAt is when the hub last gave the agent a whole new period, because the hub could
	// not read the Lease. It does not show that the agent is alive.
	extendedAt time.Time
	// renewTime is the time of the renewal by the agent's clock.
	renewTime time.Time
	// restoredRenewal is a later renewal in an earlier resource version; empty if there is none.
	restoredRenewal string
	// readFailed is set if the last live read failed.
	readFailed bool
}

// periodStart returns when the current period started. The agent counts as offline
// when the period has expired.
func (l leaseState) periodStart() time.Time {
	if l.extendedAt.After(l.seenAt) {
		return l.extendedAt
	}
	return l.seenAt
}

// isBehind reports whether a Lease is older than the recorded Lease. A cache can be older than a
// live read, and an older Lease is not a renewal.
func (l leaseState) isBehind(lease *coordinationv1.Lease) bool {
	order, err := resourceversion.CompareResourceVersion(lease.ResourceVersion, l.version)
	return err == nil && order < 0
}

// isRestored reports whether an older Lease shows that the resource versions themselves went
// back, for example after etcd was restored from a backup: the agent has renewed the Lease
// twice since, by its own clock.
func (l leaseState) isRestored(lease *coordinationv1.Lease) bool {
	return l.restoredRenewal != "" && l.restoredRenewal != identifyRenewal(lease) && l.hasLaterRenewal(lease)
}

// hasLaterRenewal reports whether the Lease was renewed after the recorded
// renewal, by the agent's clock.
func (l leaseState) hasLaterRenewal(lease *coordinationv1.Lease) bool {
	return lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(l.renewTime)
}

// identifyRenewal returns a string that identifies one renewal of a Lease. The resource version
// cannot be used, because each write changes it.
func identifyRenewal(lease *coordinationv1.Lease) string {
	text := string(lease.UID)
	if lease.Spec.HolderIdentity != nil {
		text += "/" + *lease.Spec.HolderIdentity
	}
	if lease.Spec.RenewTime != nil {
		text += "/" + lease.Spec.RenewTime.Format(time.RFC3339Nano)
	}
	return text
}

// observe records a Lease and returns when its last renewal was seen, and when the current
// period started. The first observation of a Lease counts as a renewal only if witnessed is set:
// the hub saw the change itself, or the cluster was online before.
func (l *liveness) observe(cluster string, lease *coordinationv1.Lease, now time.Time,
	witnessed bool) (seenAt, periodStart time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byCluster == nil {
		l.byCluster = map[string]leaseState{}
	}
	next := leaseState{renewal: identifyRenewal(lease), version: lease.ResourceVersion}
	if lease.Spec.RenewTime != nil {
		next.renewTime = lease.Spec.RenewTime.Time
	}
	last, known := l.byCluster[cluster]
	// A renewal that was recorded without a period counts as new when it is witnessed.
	keepsPeriod := !last.periodStart().IsZero() || !witnessed
	isRecorded := known && last.renewal == next.renewal && keepsPeriod
	switch {
	case known && last.isBehind(lease) && !last.isRestored(lease): // an outdated Lease is no renewal
		if last.restoredRenewal == "" && last.hasLaterRenewal(lease) {
			last.restoredRenewal = next.renewal
			l.byCluster[cluster] = last
		}
		return last.seenAt, last.periodStart()
	case isRecorded:
		next.seenAt, next.extendedAt, next.readFailed = last.seenAt, last.extendedAt, last.readFailed
	case known || witnessed:
		next.seenAt = now
	}
	l.byCluster[cluster] = next
	return next.seenAt, next.periodStart()
}

// recordLiveRead records whether a live read of the Lease failed. While reads fail, and at
// the first successful read after that, it starts a new period: the agent might have had no
// chance to renew the Lease.
func (l *liveness) recordLiveRead(cluster string, now time.Time, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, known := l.byCluster[cluster]
	hasNoFailure := !failed && !last.readFailed
	if !known || hasNoFailure {
		return
	}
	last.extendedAt, last.readFailed = now, failed
	l.byCluster[cluster] = last
}

// forget removes the state of a cluster.
func (l *liveness) forget(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byCluster, cluster)
}

// periodStart returns when the current period of a cluster started; zero if it is unknown.
func (l *liveness) periodStart(cluster string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byCluster[cluster].periodStart()
}
