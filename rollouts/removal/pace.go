// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// DefaultConfirmAbove is the maximum number of clusters from which an operator is uninstalled without a confirmation.
const DefaultConfirmAbove = 5

// Leaver is an OperatorInstall that must be removed, with its cluster.
type Leaver struct {
	Install
	// Wave is the install's wave in its last rollout.
	Wave  string
	Reach Reach
	// Stalled is true if the agent cannot uninstall the operator.
	Stalled bool
	// Frozen is true if a FleetFreeze stops all changes on the cluster. Other clusters do not wait for this cluster.
	Frozen bool
}

// Pace is the result of Uninstall.
type Pace struct {
	Steps []Step
	// Progress is nil if the operator is uninstalled from no cluster.
	Progress *v1alpha1.RemovalProgress
	// Failed are the clusters that cannot uninstall the operator, sorted. It is set only if they are so many that the
	// removal stops.
	Failed []string
}

// Uninstall returns the next steps that uninstall the operator from the clusters, in the order of the strategy's waves
// and with the limits that OperatorRemoval documents.
//
// The policy Uninstall on an OperatorInstall that is not being deleted means that its removal was confirmed. Agents
// act only on the deletion. So when the request is confirmed, the policy is written to all installs at once, and no
// other record is needed. An install in a wave that the strategy does not have comes last.
//
// The removal from an offline cluster begins when the cluster is online again, and from a paused cluster when
// the pause ends. Neither takes a slot. A deleted cluster has no agent, so the finalizer of its install is
// removed at once.
func Uninstall(leavers []Leaver, strategy v1alpha1.RolloutStrategy, removal *v1alpha1.OperatorRemoval) Pace {
	if len(leavers) == 0 {
		return Pace{}
	}
	p := pacing{waves: map[string]*wave{}, progress: &v1alpha1.RemovalProgress{}}
	p.addWaves(rollouts.Defaulted(strategy).Waves)
	var unconfirmed []Leaver
	for _, l := range slices.SortedFunc(slices.Values(leavers), Leaver.compare) {
		switch {
		case l.Reach == Gone, l.Deleting && !l.Held: // no agent uninstalls anything, so the install takes no slot
			p.addStep(l)
		case l.Deleting:
			p.progress.Uninstalling++
			p.findWave(l).addBegun(l)
			p.addStep(l)
		case l.Policy == v1alpha1.RemovalUninstall:
			p.progress.Waiting++
			p.findWave(l).addWaiting(l)
		default:
			unconfirmed = append(unconfirmed, l)
		}
	}
	p.confirmRemovals(unconfirmed, removal)
	p.beginRemovals()
	return Pace{Steps: p.steps, Progress: p.progress, Failed: p.failed}
}

// compare orders leavers by cluster and name.
func (l Leaver) compare(o Leaver) int {
	return cmp.Or(cmp.Compare(l.Cluster, o.Cluster), cmp.Compare(l.Name, o.Name))
}

// pacing is one run of Uninstall.
type pacing struct {
	ordered  []*wave
	waves    map[string]*wave
	steps    []Step
	progress *v1alpha1.RemovalProgress
	failed   []string
}

// wave has the leavers of a wave.
type wave struct {
	v1alpha1.Wave
	total, uninstalling int
	stalled             []string
	waiting             []Leaver
}

// addWaves adds the strategy's waves in order.
func (p *pacing) addWaves(waves []v1alpha1.Wave) {
	for _, w := range waves {
		p.ordered = append(p.ordered, &wave{Wave: w})
		p.waves[w.Name] = p.ordered[len(p.ordered)-1]
	}
}

// findWave returns the wave of an install. Installs of waves that are not in the strategy belong to the last wave.
func (p *pacing) findWave(l Leaver) *wave {
	if w, known := p.waves[l.Wave]; known {
		return w
	}
	return p.ordered[len(p.ordered)-1]
}

// addBegun counts an install whose removal has begun.
func (w *wave) addBegun(l Leaver) {
	w.total++
	switch {
	case l.Reach == Offline, l.Frozen && !l.Stalled: // takes no slot
	case l.Stalled:
		w.stalled = append(w.stalled, l.Cluster)
	default:
		w.uninstalling++
	}
}

// addWaiting adds an install whose removal is confirmed and has not begun.
func (w *wave) addWaiting(l Leaver) {
	w.total++
	if l.Reach != Offline && !l.Frozen && !IsWaitingForPause(l.Install, v1alpha1.RemovalUninstall, l.Reach) {
		w.waiting = append(w.waiting, l)
	}
}

// addStep adds the install's next step, if there is one.
func (p *pacing) addStep(l Leaver) {
	if step, due := Next(l.Install, v1alpha1.RemovalUninstall, l.Reach); due {
		p.steps = append(p.steps, step)
	}
}

// confirmRemovals writes the policy Uninstall to the leavers if their removal is confirmed or needs no confirmation.
// Later passes begin these removals. Otherwise it sets the request that a person must confirm.
func (p *pacing) confirmRemovals(leavers []Leaver, removal *v1alpha1.OperatorRemoval) {
	if len(leavers) == 0 {
		return
	}
	confirmAbove, confirmed := int32(DefaultConfirmAbove), ""
	if removal != nil {
		confirmed = removal.Confirm
		if removal.ConfirmAbove != nil {
			confirmAbove = *removal.ConfirmAbove
		}
	}
	request := buildRequest(leavers)
	if n := int32(len(leavers)); n+p.progress.Waiting+p.progress.Uninstalling > confirmAbove && confirmed != request {
		p.progress.Request, p.progress.Unconfirmed = request, n
		return
	}
	p.progress.Waiting += int32(len(leavers))
	for _, l := range leavers {
		p.steps = append(p.steps,
			Step{Namespace: l.Namespace, Name: l.Name, SetPolicy: v1alpha1.RemovalUninstall})
	}
}

// buildRequest identifies a set of clusters, so that a confirmation is valid for exactly these clusters.
func buildRequest(leavers []Leaver) string {
	sum := sha256.New()
	for _, l := range leavers {
		fmt.Fprintln(sum, l.Cluster)
	}
	return hex.EncodeToString(sum.Sum(nil))[:8]
}

// beginRemovals deletes the installs that have a free slot in the first wave that is not done. If more clusters of a
// wave cannot uninstall the operator than the wave permits, it deletes nothing more and sets failed.
func (p *pacing) beginRemovals() {
	for _, w := range p.ordered {
		concurrency, failures := rollouts.Limits(w.Wave, w.total)
		if len(w.stalled) > failures {
			p.failed = slices.Sorted(slices.Values(w.stalled))
			return
		}
		for _, l := range w.waiting[:min(max(concurrency-w.uninstalling, 0), len(w.waiting))] {
			p.addStep(l)
		}
		if w.uninstalling+len(w.waiting) > 0 {
			return // the next wave waits for this one
		}
	}
}
