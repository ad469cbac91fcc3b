// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

const (
	// AdmissionTimeout is how long a hub may act on a batch entry after it read the entry. If the stamp is not seen
	// for longer than entryDoubt, the entry is checked in a live view.
	AdmissionTimeout = 20 * time.Second
	entryDoubt       = 2 * AdmissionTimeout
)

// listUnseenEntries returns the batch entries whose stamp the view does not show. Entries of clusters without an
// install of the wave are left out.
func listUnseenEntries(in Input) []v1alpha1.BatchEntry {
	if in.Rollout.Status.Batch == nil {
		return nil
	}
	members := make(map[string]*Install, len(in.Installs))
	for i := range in.Installs {
		if in.Installs[i].Rollout == in.Rollout.Name {
			members[in.Installs[i].Cluster] = &in.Installs[i]
		}
	}
	var result []v1alpha1.BatchEntry
	for _, e := range in.Rollout.Status.Batch.Clusters {
		install, exists := members[e.Cluster]
		if exists && install.Wave == e.Wave && !IsStampSeen(in.Rollout, e, install.Stamp) {
			result = append(result, e)
		}
	}
	return result
}

// listOpenEntries returns the unseen batch entries by cluster. It leaves out entries that no hub carried out before
// the rollout was stopped or the cluster got a hold: after a pause, a person expects that no change starts. Only a
// live view shows this, and only after the time in which a slow hub could still carry out the entry.
func listOpenEntries(in Input, clusters map[string]*Cluster) map[string]v1alpha1.BatchEntry {
	open := map[string]v1alpha1.BatchEntry{}
	for _, e := range listUnseenEntries(in) {
		isDoubtful := in.Now.Sub(e.AdmittedAt.Time) > entryDoubt
		isLapsed := isDoubtful && (isHalting(in.Rollout.Status.Phase) || isEntryDropped(in.Rollout, e, clusters))
		if !in.Live || !isLapsed {
			open[e.Cluster] = e
		}
	}
	return open
}

// isEntryDropped reports whether the cluster's hold drops the batch entry e. Only an entry that is marked as held can
// be dropped, because a hub might still act on other entries.
func isEntryDropped(ro *v1alpha1.OperatorRollout, e v1alpha1.BatchEntry, clusters map[string]*Cluster) bool {
	h := findHold(ro, clusters[e.Cluster])
	return e.Held && h != nil && !h.KeepsEntry
}

// isHalting reports whether a rollout in this phase admits nothing. Admissions are written only in other phases, and
// are dropped only in these phases. The compare-and-swap of the status separates the two.
func isHalting(phase v1alpha1.RolloutPhase) bool {
	switch phase {
	case v1alpha1.RolloutPaused, v1alpha1.RolloutHalted, v1alpha1.RolloutAborted, v1alpha1.RolloutSuperseded,
		v1alpha1.RolloutRolledBack:
		return true
	default:
		return false
	}
}

// renewEntry returns the entry, with the time now in two cases. If the rollout stops, the time until the entry expires
// is counted from now. If a live view shows no stamp after entryDoubt, the entry could not be applied, so the cluster
// gets its whole deadline from now. The slot stays taken.
func renewEntry(e v1alpha1.BatchEntry, isStopping, isLive bool, now time.Time) v1alpha1.BatchEntry {
	if isStopping || isLive && now.Sub(e.AdmittedAt.Time) > entryDoubt {
		e.AdmittedAt = *roundDown(now)
	}
	return e
}

// markHeld records in a batch entry whether its cluster has a hold, and since when. The slot stays taken. Hubs act on
// the entry again after the hold ends.
//
// A hub detects the mark only after it read the status with the mark. A hub that read an earlier status must end
// within AdmissionTimeout. So an entry is dropped only after entryDoubt.
func markHeld(e v1alpha1.BatchEntry, isHeld bool, now time.Time) v1alpha1.BatchEntry {
	if isHeld != e.Held {
		e.Held, e.AdmittedAt = isHeld, *roundDown(now)
	}
	return e
}

// expireBatch returns the entries of a superseded rollout that a hub might still act on, all marked as held. While an
// entry remains, other operators must not be admitted on its cluster. It also returns how long to wait until the next
// check. It returns nil and zero if no entry remains.
func expireBatch(batch *v1alpha1.AdmissionBatch, now time.Time) (*v1alpha1.AdmissionBatch, time.Duration) {
	if batch == nil {
		return nil, 0
	}
	var entries []v1alpha1.BatchEntry
	for _, e := range batch.Clusters {
		if !e.Held {
			e.Held, e.AdmittedAt = true, *roundDown(now)
		}
		if now.Sub(e.AdmittedAt.Time) <= entryDoubt {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return nil, 0
	}
	return &v1alpha1.AdmissionBatch{Clusters: entries}, entryDoubt + time.Second
}

// FindEntryExpiry returns when a batch entry is checked in a live view if its stamp is still not seen.
func FindEntryExpiry(e v1alpha1.BatchEntry) time.Time {
	return e.AdmittedAt.Add(entryDoubt + time.Second)
}

// IsStampSeen reports whether the stamp shows that the batch entry was carried out: the rollout wrote the stamp in the
// entry's attempt or in a later attempt.
func IsStampSeen(ro *v1alpha1.OperatorRollout, e v1alpha1.BatchEntry, stamp Stamp) bool {
	return stamp.RolloutUID == string(ro.UID) && stamp.Attempt >= e.Attempt
}
