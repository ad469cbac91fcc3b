// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// choice has the actions of a pass, and the clusters that the next pass admits.
type choice struct {
	// actions use the batch in the status that was read, not the new batch.
	actions []Action
	// batch has the clusters that later passes admit; nil if there are none.
	batch *v1alpha1.AdmissionBatch
	// waves are the judged waves. Clusters of the batch count as in progress, and late joiners as present.
	waves []judgedWave
}

// choose returns the actions and the clusters to admit next. It collects the actions before it chooses the new batch,
// because actions must use the status that was read.
func choose(o observation, j judged) choice {
	ro := o.in.Rollout
	c := choice{waves: slices.Clone(j.waves)}
	// In a halting phase, entries of the batch might be dropped, so a hub acts on them only after the phase
	// has changed.
	mayAct := !j.isStopped && !isHalting(o.prior.Phase)
	if mayAct {
		c.actions = listAdmissions(ro, o.batch, c.waves)
	}
	if o.strategy.LateJoiners != v1alpha1.LateIgnore && ro.MayAdmit() {
		c.actions = append(c.actions, assignLateJoiners(ro, o.selected, o.installs, c.waves)...)
	}
	if mayAct {
		c.actions = append(c.actions, listJobRequests(ro, o.strategy.Preflight, o.clusters, o.installs, c.waves)...)
	}
	isStopping := j.isStopped && o.prior.Phase == v1alpha1.RolloutProgressing
	entries := listKeptEntries(o.in, o.batch, o.clusters, isStopping)
	if !j.isStopped {
		for i := range c.waves {
			var chosen []v1alpha1.BatchEntry
			c.waves[i], chosen = admitClusters(c.waves[i], ro, MaxBatch-len(entries), o.in.Now)
			entries = append(entries, chosen...)
		}
	}
	if len(entries) > 0 {
		slices.SortFunc(entries, func(a, b v1alpha1.BatchEntry) int { return cmp.Compare(a.Cluster, b.Cluster) })
		c.batch = &v1alpha1.AdmissionBatch{Clusters: entries}
	}
	return c
}

// listAdmissions returns an admission for each batch entry (batch has the entries whose stamps were not seen) in an
// open wave whose cluster has no hold. An entry that is marked as held waits until the mark is removed.
func listAdmissions(ro *v1alpha1.OperatorRollout, batch map[string]v1alpha1.BatchEntry, waves []judgedWave) []Action {
	if len(batch) == 0 {
		return nil
	}
	var actions []Action
	for i := range waves {
		w := &waves[i]
		for k := range w.members {
			m := &w.members[k]
			e, written := batch[m.Cluster]
			if !written || !w.open || m.Class == ClassRemoved || e.Held || m.hold != nil {
				continue
			}
			actions = append(actions, Action{
				Kind: ActionAdmit, Cluster: e.Cluster, Wave: e.Wave, AdmittedAt: *roundDown(e.AdmittedAt.Time),
				Attempt: e.Attempt, NotAfter: toNotAfter(readOpenUntil(&ro.Spec, m.cluster)),
			})
		}
	}
	return actions
}

// listKeptEntries returns the unseen batch entries for the next status. isStopping is true if this pass stops
// the rollout.
func listKeptEntries(in Input, batch map[string]v1alpha1.BatchEntry, clusters map[string]*Cluster,
	isStopping bool) []v1alpha1.BatchEntry {
	var entries []v1alpha1.BatchEntry
	for _, e := range batch {
		isHeld := findHold(in.Rollout, clusters[e.Cluster]) != nil
		entries = append(entries, markHeld(renewEntry(e, isStopping, in.Live, in.Now), isHeld, in.Now))
	}
	return entries
}

// admitClusters chooses clusters for the wave's free slots, at most maxEntries, and returns the wave with these
// clusters in progress, and their batch entries. It does not change the members of its argument.
//
// Failed clusters that are retried come first. No other cluster is admitted before all of these have a slot, so a
// retry brings a bad release to no more clusters. Clusters that are busy with an older release come second: they
// already hold a slot and keep the slot. If more clusters are busy than the wave has slots, some of them must finish
// or fail first.
func admitClusters(w judgedWave, ro *v1alpha1.OperatorRollout, maxEntries int,
	now time.Time) (judgedWave, []v1alpha1.BatchEntry) {
	if !canAdmit(&w) {
		return w, nil
	}
	w.members = slices.Clone(w.members)
	isRollback := ro.Spec.Rollback != nil
	own, busy := countTakenSlots(w.members)
	if isRollback {
		busy = 0 // a rollback changes the busy clusters itself, so they do not use its slots
	}
	var entries []v1alpha1.BatchEntry
	admit := func(m *member) {
		if m.takesSlot && !isRollback {
			busy--
		}
		entries = append(entries, v1alpha1.BatchEntry{Cluster: m.Cluster, Wave: w.Name, AdmittedAt: *roundDown(now),
			Attempt: ro.Spec.Retries})
		*w.selectCount(m.Class)--
		m.Class, m.isOurs, m.isAdmissible, m.takesSlot = ClassInProgress, true, false, true
		w.InProgress++
		own++
	}
	// admitEach admits the fitting members while there is a slot, and returns the number of members without a slot.
	admitEach := func(fits func(*member) bool, hasSlot func() bool) (remaining int) {
		for i := range w.members {
			m := &w.members[i]
			switch {
			case !m.isAdmissible || !fits(m): // this call does not admit the member
			case hasSlot() && len(entries) < maxEntries:
				admit(m)
			default:
				remaining++
			}
		}
		return remaining
	}
	isFree := func() bool { return own+busy < w.maxConcurrency }
	if admitEach(func(m *member) bool { return m.isRetry }, isFree) > 0 || hasHeldRetry(w.members) {
		return w, entries
	}
	if !isRollback {
		// A busy cluster already counts in own+busy, so it needs no free slot.
		admitEach(func(m *member) bool { return m.takesSlot }, func() bool { return own+busy <= w.maxConcurrency })
	}
	admitEach(func(*member) bool { return true }, isFree)
	return w, entries
}

// canAdmit reports whether the wave may admit clusters and has a member that can be admitted.
func canAdmit(w *judgedWave) bool {
	return w.isAdmitting && slices.ContainsFunc(w.members, func(m member) bool { return m.isAdmissible })
}

// hasHeldRetry reports whether a cluster that must be retried has a hold. Other clusters wait for this cluster.
func hasHeldRetry(members []member) bool {
	return slices.ContainsFunc(members, func(m member) bool { return m.isRetry && m.hold != nil })
}

// countTakenSlots counts the slots that this rollout (own) and older rollouts (busy) have taken. A cluster that left
// the fleet during its change keeps its slot until its install is deleted.
func countTakenSlots(members []member) (own, busy int) {
	for i := range members {
		switch m := &members[i]; {
		case m.takesSlot && m.isOurs:
			own++
		case m.takesSlot:
			busy++
		}
	}
	return own, busy
}
