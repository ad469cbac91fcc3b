// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// liveness remembers when the hub saw each Lease change, by the hub's own
// clock. It is an observation and not state: a hub that starts anew goes on
// from the Online condition that was last written.
type liveness struct {
	mu   sync.Mutex
	seen map[string]sighting
}

type sighting struct {
	renewal string
	// version is the resource version that the renewal was seen in.
	version string
	at      time.Time
	// assumed is when the hub last gave the agent a whole period again, because it could not see whether it renews. It
	// is no sign of life.
	assumed time.Time
	// renewed is the time of the renewal by the agent's clock.
	renewed time.Time
	// back is a later renewal in an earlier resource version; empty where there is none.
	back string
	// blind is set if the newest read past the cache failed.
	blind bool
}

// validFrom is when the period began after which the agent counts as offline.
func (s sighting) validFrom() time.Time {
	if s.assumed.After(s.at) {
		return s.assumed
	}
	return s.at
}

// behind tells whether a Lease is older than what was seen: the cache may lag
// behind a live read, and going back is no renewal.
func (s sighting) behind(lease *coordinationv1.Lease) bool {
	order, err := resourceversion.CompareResourceVersion(lease.ResourceVersion, s.version)
	return err == nil && order < 0
}

// isRestored tells whether a Lease that is behind shows that the order itself went back, as after etcd was restored
// from a backup: the agent has renewed it twice since, by its own clock.
func (s sighting) isRestored(lease *coordinationv1.Lease) bool {
	return s.back != "" && s.back != renewal(lease) && s.isLater(lease)
}

func (s sighting) isLater(lease *coordinationv1.Lease) bool {
	return lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(s.renewed)
}

// renewal identifies one renewal of a Lease. The resource version will not do:
// it moves with any write.
func renewal(lease *coordinationv1.Lease) string {
	text := string(lease.UID)
	if lease.Spec.HolderIdentity != nil {
		text += "/" + *lease.Spec.HolderIdentity
	}
	if lease.Spec.RenewTime != nil {
		text += "/" + lease.Spec.RenewTime.Format(time.RFC3339Nano)
	}
	return text
}

// observe takes a Lease in and returns when its last renewal was seen, and when the period
// began after which the agent counts as offline. The first sight of a Lease is a renewal only
// where witnessed says that the hub saw it happen, or was online before.
func (l *liveness) observe(cluster string, lease *coordinationv1.Lease, now time.Time,
	witnessed bool) (seen, validFrom time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[string]sighting{}
	}
	next := sighting{renewal: renewal(lease), version: lease.ResourceVersion}
	if lease.Spec.RenewTime != nil {
		next.renewed = lease.Spec.RenewTime.Time
	}
	last, known := l.seen[cluster]
	switch {
	case known && last.behind(lease) && !last.isRestored(lease):
		if last.back == "" && last.isLater(lease) {
			last.back = next.renewal
			l.seen[cluster] = last
		}
		return last.at, last.validFrom()
	case known && last.renewal == next.renewal && (!last.validFrom().IsZero() || !witnessed):
		next.at, next.assumed, next.blind = last.at, last.assumed, last.blind
	case known || witnessed:
		next.at = now
	}
	l.seen[cluster] = next
	return next.at, next.validFrom()
}

// looked gives an agent a whole period again while the hub is blind, and from its first sight on: the agent may not
// have come to renew since.
func (l *liveness) looked(cluster string, now time.Time, blind bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, known := l.seen[cluster]
	if !known || !blind && !last.blind {
		return
	}
	last.assumed, last.blind = now, blind
	l.seen[cluster] = last
}

func (l *liveness) forget(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, cluster)
}

// validFrom returns when the period began after which the agent counts as offline, or zero.
func (l *liveness) validFrom(cluster string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[cluster].validFrom()
}
