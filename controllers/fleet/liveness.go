// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
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
	at      time.Time
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

// observe takes a Lease in and returns when its last renewal was seen. The
// first sight of a Lease is a renewal only where witnessed says that the hub saw
// it happen, or was online before.
func (l *liveness) observe(cluster string, lease *coordinationv1.Lease, now time.Time, witnessed bool) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[string]sighting{}
	}
	id := renewal(lease)
	last, known := l.seen[cluster]
	switch {
	case known && last.renewal == id:
		if last.at.IsZero() && witnessed {
			l.seen[cluster] = sighting{renewal: id, at: now}
		}
	case known || witnessed:
		l.seen[cluster] = sighting{renewal: id, at: now}
	default:
		l.seen[cluster] = sighting{renewal: id}
	}
	return l.seen[cluster].at
}

// restart gives an agent a whole period again, after the hub itself was blind.
func (l *liveness) restart(cluster string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, known := l.seen[cluster]; known {
		last.at = now
		l.seen[cluster] = last
	}
}

func (l *liveness) forget(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, cluster)
}

// last returns when the last renewal was seen, or zero.
func (l *liveness) last(cluster string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[cluster].at
}
