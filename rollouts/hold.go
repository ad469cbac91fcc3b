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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Hold is a reason why a cluster must not be admitted now. Clusters that were admitted before the hold finish.
type Hold struct {
	// Reason is one of the API's reasons. Message is a sentence without a period.
	Reason, Message string
	// Until is when the hold might end by itself; zero if that is not known.
	Until time.Time
	// Defers is true if the cluster counts as deferred: other clusters and the next wave do not wait for it. Otherwise
	// it counts as pending.
	Defers bool
	// NeedsJob is true if the hold ends after the preflight Job ran on the cluster, and the Job was not requested yet.
	NeedsJob bool
	// KeepsEntry is true if a batch entry of the cluster waits for the end of the hold. Otherwise the entry
	// is dropped.
	KeepsEntry bool
}

// isIgnored reports whether a hold does not apply to this rollout. A person can override windows. A rollback restores
// the earlier release, so only a few holds block it: holds by the cluster's owner, by FleetAccess and FleetFreeze
// objects, and by other changes of the cluster.
func isIgnored(spec *v1alpha1.OperatorRolloutSpec, h Hold) bool {
	isRollback := spec.Rollback != nil
	switch h.Reason {
	case v1alpha1.ReasonWindowClosed:
		return isRollback || spec.WindowOverride != nil
	case v1alpha1.ReasonClusterBusy, v1alpha1.ReasonVetoed, v1alpha1.ReasonClusterNotWritable,
		v1alpha1.ReasonRecovered, v1alpha1.ReasonReportPending, v1alpha1.ReasonAccessNotPermitted,
		v1alpha1.ReasonFrozen:
		return false
	default:
		return isRollback
	}
}

// findHold returns the first hold of a cluster that applies. It returns nil if there is none, if the cluster is not
// selected (c is nil), and if the rollout admits no more clusters.
func findHold(ro *v1alpha1.OperatorRollout, c *Cluster) *Hold {
	if c == nil || !ro.MayAdmit() {
		return nil
	}
	for i := range c.Holds {
		if !isIgnored(&ro.Spec, c.Holds[i]) {
			return &c.Holds[i]
		}
	}
	return nil
}

// readOpenUntil returns when ChangeWindows might close the cluster. It returns zero if windows do not apply.
func readOpenUntil(spec *v1alpha1.OperatorRolloutSpec, c *Cluster) time.Time {
	if isIgnored(spec, Hold{Reason: v1alpha1.ReasonWindowClosed}) {
		return time.Time{}
	}
	return c.OpenUntil
}

// recordWindowOverride returns the override for the next status. A withdrawn override stays recorded. An override
// without a time gets the time at which the hub first saw it.
func recordWindowOverride(requested, previous *v1alpha1.WindowOverride, now time.Time) *v1alpha1.WindowOverride {
	o := requested.DeepCopy()
	if o == nil {
		return previous
	}
	if o.At.IsZero() && previous != nil && previous.By == o.By && previous.Reason == o.Reason {
		o.At = previous.At
	} else if o.At.IsZero() {
		o.At = *roundDown(now)
	}
	return o
}

// listOverrideEvents returns an event if current is an override that previous does not record.
func listOverrideEvents(previous, current *v1alpha1.WindowOverride) []Event {
	if current == nil || previous != nil && previous.By == current.By && previous.Reason == current.Reason &&
		previous.At.Equal(&current.At) {
		return nil
	}
	return []Event{{Reason: "WindowsOverridden",
		Message: fmt.Sprintf("ChangeWindows are overridden by %s: %s", current.By, current.Reason)}}
}

// The API's limits for a group of clusters with a hold.
const (
	maxHeldBack     = 10
	maxHeldClusters = 100
	maxHoldMessage  = 512
)

// isBlockedByHold reports whether the hold is the only reason why a member is not admitted. It is false if the wave
// admits no clusters.
func isBlockedByHold(w *judgedWave, m *member) bool { return w.isAdmitting && m.isHeld() }

// groupHeldClusters groups the clusters that are blocked by a hold, by reason and message: members of waves that admit
// clusters, and selected clusters that cannot be written to and are not members. The largest group comes first. It
// returns at most maxHeldBack groups.
func groupHeldClusters(ro *v1alpha1.OperatorRollout, waves []judgedWave, selected []Cluster,
	installs map[string]*Install) []v1alpha1.HeldBackClusters {
	groups := holdGroups{}
	for i := range waves {
		for k := range waves[i].members {
			if m := &waves[i].members[k]; isBlockedByHold(&waves[i], m) {
				groups.add(m.Cluster, *m.hold)
			}
		}
	}
	for i := range selected {
		c := &selected[i]
		h, install := findNotWritableHold(ro, c), installs[c.Name]
		if h != nil && (install == nil || install.Rollout != ro.Name) {
			groups.add(c.Name, *h) // it could not be assigned to a wave
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

// applyRecordedHolds returns the clusters with the holds that the status records, for callers that cannot read the
// causes of holds.
func applyRecordedHolds(in Input) []Cluster {
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

// isHeld reports whether the member would be admitted without its hold.
func (m *member) isHeld() bool {
	return m.hold != nil && (m.Class == ClassPending || m.Class == ClassDeferred) && m.Reason == m.hold.Reason
}

// explainHeld lists the clusters of each hold if all pending members have a hold. Otherwise it returns "". The reason
// is the reason of the first hold, or Progressing while other members are in progress.
func explainHeld(w *judgedWave) (reason, message string) {
	var held []heldCluster
	for i := range w.members {
		m := &w.members[i]
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
	return reason, phrase.Truncate(explainProgress(w)+"; "+listHeld(held, "not admitted now"), maxMessage)
}

// heldCluster is a cluster with its hold.
type heldCluster struct {
	cluster string
	Hold
}

// findFirstEnd returns when the first of the holds ends. It returns zero if no hold has an end.
func findFirstEnd(held []heldCluster) time.Time {
	var earliest time.Time
	for _, h := range held {
		if !h.Until.IsZero() && (earliest.IsZero() || h.Until.Before(earliest)) {
			earliest = h.Until
		}
	}
	return earliest
}

// listHeld returns a text with the clusters of each hold, for at most maxNamed messages. effect is the effect of the
// holds on the clusters, such as "not admitted now".
func listHeld(held []heldCluster, effect string) string {
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
			texts = append(texts, fmt.Sprintf("others %s for %s", effect, phrase.Count(len(order)-i, "more reason")))
			break
		}
		names := clusters[message]
		texts = append(texts, fmt.Sprintf("%s %s (%s): %s", phrase.Count(len(names), "cluster"), effect,
			phrase.First(names, maxNamed), message))
	}
	return strings.Join(texts, "; ")
}

// toNotAfter converts a time to an action's NotAfter. Zero means no limit.
func toNotAfter(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.Time{Time: t.UTC()}
}

// listHoldTimes returns the times at which a hold might end, or a window might close, on clusters of the wave that have
// a batch entry or would be admitted next. Some of the times can be zero.
func listHoldTimes(spec *v1alpha1.OperatorRolloutSpec, w *judgedWave,
	batch map[string]v1alpha1.BatchEntry) []time.Time {
	var times []time.Time
	for i := range w.members {
		m := &w.members[i]
		_, written := batch[m.Cluster]
		if m.hold != nil && (written || isBlockedByHold(w, m)) {
			times = append(times, m.hold.Until)
		}
		if written || w.isAdmitting && m.isAdmissible {
			times = append(times, readOpenUntil(spec, m.cluster))
		}
	}
	return times
}

// holdGroups are groups of clusters with a hold, by reason and message.
type holdGroups map[string]*v1alpha1.HeldBackClusters

// add adds a cluster to the group of its hold. The group counts all clusters, lists at most maxHeldClusters, and has
// the earliest end of its holds.
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

// findNotWritableHold returns the hold of a cluster whose OperatorInstall could not be written. It returns nil if
// there is none.
func findNotWritableHold(ro *v1alpha1.OperatorRollout, c *Cluster) *Hold {
	if h := findHold(ro, c); h != nil && h.Reason == v1alpha1.ReasonClusterNotWritable {
		return h
	}
	return nil
}

// isDeferring reports whether the rollout does not wait for the end of the member's hold.
func (m *member) isDeferring() bool { return m.hold != nil && m.hold.Defers }
