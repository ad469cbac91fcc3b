// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Hold is a reason why a cluster is not to be admitted now. What was admitted
// before finishes.
type Hold struct {
	// Reason is one of the API's reasons, and Message a sentence without a stop.
	Reason, Message string
	// Until is when the hold may be over by itself; zero where that is not known.
	Until time.Time
	// Defers says that the cluster counts as deferred: other clusters, and the next
	// wave, need not wait for it. Otherwise it counts as pending.
	Defers bool
	// NeedsJob says that the hold ends once the preflight Job has run on the cluster,
	// which it was not asked to yet.
	NeedsJob bool
	// KeepsEntry says that a batch entry of the cluster waits for the end of the
	// hold. Otherwise it is dropped.
	KeepsEntry bool
}

// isIgnored tells whether a hold does not count for this rollout. A person may
// override windows. A rollback brings back what ran before, so only what its
// cluster's owner, FleetAccess and FleetFreeze objects say and other changes of the cluster
// hold it up.
func (p *pass) isIgnored(h Hold) bool {
	switch h.Reason {
	case v1alpha1.ReasonWindowClosed:
		return p.isBack() || p.in.Rollout.Spec.WindowOverride != nil
	case v1alpha1.ReasonClusterBusy, v1alpha1.ReasonVetoed, v1alpha1.ReasonClusterNotWritable,
		v1alpha1.ReasonRecovered, v1alpha1.ReasonReportPending, v1alpha1.ReasonAccessNotPermitted,
		v1alpha1.ReasonFrozen:
		return false
	default:
		return p.isBack()
	}
}

// hold returns the first hold of a cluster that counts; nil if there is none, and in
// a rollout that admits nothing any more.
func (p *pass) hold(c Cluster) *Hold {
	if p.ending() {
		return nil
	}
	for i := range c.Holds {
		if !p.isIgnored(c.Holds[i]) {
			return &c.Holds[i]
		}
	}
	return nil
}

// openUntil is when windows may close a cluster; zero if that does not matter.
func (p *pass) openUntil(c Cluster) time.Time {
	if p.isIgnored(Hold{Reason: v1alpha1.ReasonWindowClosed}) {
		return time.Time{}
	}
	return c.OpenUntil
}

// judgeHold classifies a cluster that is not admitted and could be observed.
func (m *member) judgeHold() {
	m.Class = ClassPending
	if m.hold == nil {
		return
	}
	if m.hold.Defers {
		m.Class = ClassDeferred
	}
	m.Reason, m.Message, m.Until = m.hold.Reason, m.hold.Message, m.hold.Until
}

// windowOverride is the override to record; one that was taken back stays.
func (p *pass) windowOverride() *v1alpha1.WindowOverride {
	o := p.in.Rollout.Spec.WindowOverride.DeepCopy()
	if o == nil {
		return p.prior.WindowOverride
	}
	if was := p.prior.WindowOverride; o.At.IsZero() && was != nil && was.By == o.By && was.Reason == o.Reason {
		o.At = was.At
	} else if o.At.IsZero() {
		o.At = *stampTime(p.in.Now)
	}
	return o
}

// overrideEvents tell of an override that was not recorded before.
func (p *pass) overrideEvents(status v1alpha1.OperatorRolloutStatus) []Event {
	was, is := p.prior.WindowOverride, status.WindowOverride
	if is == nil || was != nil && was.By == is.By && was.Reason == is.Reason && was.At.Equal(&is.At) {
		return nil
	}
	return []Event{{Reason: "WindowsOverridden",
		Message: fmt.Sprintf("ChangeWindows are overridden by %s: %s", is.By, is.Reason)}}
}

// heldEntry marks a batch entry whose cluster is held back, and since when; the
// slot stays taken. An entry that is not held any more is to be acted on from now
// on.
//
// That an entry is held is known to every hub only once it was read back: one that
// acts on the entry as it was before has to end within AdmissionTimeout. So an
// entry is dropped only after entryDoubt.
func (p *pass) heldEntry(e v1alpha1.BatchEntry) v1alpha1.BatchEntry {
	if held := p.hold(p.clusters[e.Cluster]) != nil; held != e.Held {
		e.Held, e.AdmittedAt = held, *stampTime(p.in.Now)
	}
	return e
}

// lapse keeps the entries of a rollout that acts on none any more for as long as a
// hub may act on them: other operators must not be admitted on these clusters.
func lapse(batch *v1alpha1.AdmissionBatch, now time.Time) (*v1alpha1.AdmissionBatch, time.Duration) {
	if batch == nil {
		return nil, 0
	}
	var kept []v1alpha1.BatchEntry
	for _, e := range batch.Clusters {
		if !e.Held {
			e.Held, e.AdmittedAt = true, *stampTime(now)
		}
		if now.Sub(e.AdmittedAt.Time) <= entryDoubt {
			kept = append(kept, e)
		}
	}
	if len(kept) == 0 {
		return nil, 0
	}
	return &v1alpha1.AdmissionBatch{Clusters: kept}, entryDoubt + time.Second
}

// isLapsed tells whether an entry that is held for so long that nobody acts on it
// any more is to be dropped.
func (p *pass) isLapsed(e v1alpha1.BatchEntry) bool {
	h := p.hold(p.clusters[e.Cluster])
	return e.Held && h != nil && !h.KeepsEntry && p.in.Now.Sub(e.AdmittedAt.Time) > entryDoubt
}

// The API's limits of a group of clusters that are held back.
const (
	maxHeldBack     = 10
	maxHeldClusters = 100
	maxHoldMessage  = 512
)

// isHoldingBack tells whether a member would be admitted but for its hold. In a
// wave that admits nothing, that is why.
func (s *waveState) isHoldingBack(m member) bool { return s.admits() && m.isHeld() }

// heldBackClusters groups the clusters of open waves that are held back by reason
// and message: those of the most clusters first.
func (p *pass) heldBackClusters() []v1alpha1.HeldBackClusters {
	if p.stopped() {
		return nil // that is why
	}
	groups := holdGroups{}
	for i := range p.states {
		for _, m := range p.states[i].members {
			if p.states[i].isHoldingBack(m) {
				groups.add(m.Cluster, *m.hold)
			}
		}
	}
	for _, c := range p.selected {
		if h := p.notWritable(c); h != nil && p.installs[c.Name].Rollout != p.in.Rollout.Name {
			groups.add(c.Name, *h) // it could not be given a wave
		}
	}
	var list []v1alpha1.HeldBackClusters
	for _, g := range groups {
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b v1alpha1.HeldBackClusters) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return list[:min(len(list), maxHeldBack)]
}

// recordedHolds returns the clusters with the holds that the status records, for
// whoever cannot look for them.
func recordedHolds(in Input) []Cluster {
	holds := map[string][]Hold{}
	for _, g := range in.Rollout.Status.HeldBack {
		h := Hold{Reason: g.Reason, Message: g.Message, Defers: g.Deferred}
		if g.Until != nil {
			h.Until = g.Until.Time
		}
		for _, name := range g.Clusters {
			holds[name] = append(holds[name], h)
		}
	}
	clusters := slices.Clone(in.Clusters)
	for i := range clusters {
		clusters[i].Holds = holds[clusters[i].Name]
	}
	return clusters
}

// isHeld tells whether the member would be admitted if nothing held it back.
func (m member) isHeld() bool {
	return m.hold != nil && (m.Class == ClassPending || m.Class == ClassDeferred) && m.Reason == m.hold.Reason
}

// explainHeld says what the wave waits for, where all that is left to admit is
// held back: for each hold, which clusters it is about.
func (s *waveState) explainHeld(w v1alpha1.WaveStatus) (reason, message string) {
	var held []heldCluster
	for _, m := range s.members {
		if m.Class != ClassPending {
			continue
		}
		if !m.isHeld() {
			return "", ""
		}
		held = append(held, heldCluster{m.Cluster, *m.hold})
	}
	if len(held) == 0 {
		return "", ""
	}
	reason = held[0].Reason
	if w.InProgress > 0 {
		reason = v1alpha1.ReasonProgressing
	}
	return reason, phrase.Truncate(s.explainProgress(w)+"; "+listHeld(held, "not admitted now"), maxMessage)
}

// heldCluster is a cluster and what holds it back.
type heldCluster struct {
	cluster string
	Hold
}

// firstEnd is when the first of the holds ends; zero where none has an end.
func firstEnd(held []heldCluster) time.Time {
	var first time.Time
	for _, h := range held {
		if !h.Until.IsZero() && (first.IsZero() || h.Until.Before(first)) {
			first = h.Until
		}
	}
	return first
}

// listHeld says for each hold which clusters it is about; how is what they are, such as "not admitted now".
func listHeld(held []heldCluster, how string) string {
	var order, texts []string
	clusters := map[string][]string{}
	for _, h := range held {
		if clusters[h.Message] == nil {
			order = append(order, h.Message)
		}
		clusters[h.Message] = append(clusters[h.Message], h.cluster)
	}
	for i, message := range order {
		if i == maxNamed {
			texts = append(texts, fmt.Sprintf("others %s for %s", how, phrase.Count(len(order)-i, "more reason")))
			break
		}
		names := clusters[message]
		texts = append(texts, fmt.Sprintf("%s %s (%s): %s", phrase.Count(len(names), "cluster"), how,
			phrase.First(names, maxNamed), message))
	}
	return strings.Join(texts, "; ")
}

// notAfter is when an action must not be carried out any more; zero if never.
func notAfter(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.Time{Time: t.UTC()}
}

// holdTimes are the times at which a hold of the wave's clusters may begin or end.
func (p *pass) holdTimes(s *waveState) []time.Time {
	if p.stopped() {
		return nil
	}
	var times []time.Time
	for _, m := range s.members {
		_, written := p.batch[m.Cluster]
		if m.hold != nil && (written || s.isHoldingBack(m)) {
			times = append(times, m.hold.Until)
		}
		if written || s.admits() && m.admissible {
			times = append(times, p.openUntil(m.cluster))
		}
	}
	return times
}

// holdGroups are clusters that are held back, by reason and message.
type holdGroups map[string]*v1alpha1.HeldBackClusters

func (all holdGroups) add(cluster string, h Hold) {
	key := h.Reason + " " + h.Message
	g := all[key]
	if g == nil {
		g = &v1alpha1.HeldBackClusters{Reason: h.Reason, Deferred: h.Defers,
			Message: phrase.Truncate(h.Message, maxHoldMessage)}
		all[key] = g
	}
	if g.Count++; g.Count <= maxHeldClusters {
		g.Clusters = append(g.Clusters, cluster)
	}
	if until := h.Until; !until.IsZero() && (g.Until == nil || until.Before(g.Until.Time)) {
		g.Until = roundUp(until)
	}
}

// notWritable is the hold of a cluster whose OperatorInstall could not be written; nil
// if there is none.
func (p *pass) notWritable(c Cluster) *Hold {
	if h := p.hold(c); h != nil && h.Reason == v1alpha1.ReasonClusterNotWritable {
		return h
	}
	return nil
}

// isDeferring tells whether the member's hold is one that the rollout does not wait
// for.
func (m member) isDeferring() bool { return m.hold != nil && m.hold.Defers }
