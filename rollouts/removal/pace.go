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

// DefaultConfirmAbove is the number of clusters from which an operator may be
// uninstalled without a confirmation.
const DefaultConfirmAbove = 5

// Leaver is an OperatorInstall that has to go, and its cluster.
type Leaver struct {
	Install
	// Wave is the label of the rollout that the install was a member of last.
	Wave  string
	Reach Reach
	// Stalled says that its agent cannot uninstall it.
	Stalled bool
	// Frozen says that a FleetFreeze stops all changes on its cluster: others do not wait for it.
	Frozen bool
}

// Pace is the result of Uninstall.
type Pace struct {
	Steps []Step
	// Progress is nil where nothing is to be uninstalled.
	Progress *v1alpha1.RemovalProgress
	// Failed are the clusters that cannot uninstall it, if they are too many for
	// others to be begun; sorted.
	Failed []string
}

// Uninstall takes the operator from the clusters in the order of the strategy's
// waves, with the limits that OperatorRemoval documents.
//
// The policy Uninstall on an OperatorInstall that is not being deleted says that
// its removal was agreed to: the agents act only on the deletion, so the policy
// is written to all of them at once when the request is confirmed, and needs no
// other memory. An install in a wave that the strategy does not have comes last.
//
// An offline cluster is begun only once it is back, a paused one once it is resumed, and
// neither takes a slot. A cluster
// that is gone has no agent that could do anything, so its install is released at
// once.
func Uninstall(leavers []Leaver, strategy v1alpha1.RolloutStrategy, removal *v1alpha1.OperatorRemoval) Pace {
	if len(leavers) == 0 {
		return Pace{}
	}
	p := pacing{waves: map[string]*wave{}, progress: &v1alpha1.RemovalProgress{}}
	p.addWaves(rollouts.Defaulted(strategy).Waves)
	var unconfirmed []Leaver
	for _, l := range slices.SortedFunc(slices.Values(leavers), Leaver.compare) {
		switch {
		case l.Reach == Gone, l.Deleting && !l.Held:
			p.step(l)
		case l.Deleting:
			p.progress.Uninstalling++
			p.waveOf(l).begun(l)
			p.step(l)
		case l.Policy == v1alpha1.RemovalUninstall:
			p.progress.Waiting++
			p.waveOf(l).wait(l)
		default:
			unconfirmed = append(unconfirmed, l)
		}
	}
	p.confirm(unconfirmed, removal)
	p.begin()
	return Pace{Steps: p.steps, Progress: p.progress, Failed: p.failed}
}

func (l Leaver) compare(o Leaver) int {
	return cmp.Or(cmp.Compare(l.Cluster, o.Cluster), cmp.Compare(l.Name, o.Name))
}

type pacing struct {
	ordered  []*wave
	waves    map[string]*wave
	steps    []Step
	progress *v1alpha1.RemovalProgress
	failed   []string
}

// wave holds the leavers of a wave.
type wave struct {
	v1alpha1.Wave
	total, uninstalling int
	stalled             []string
	waiting             []Leaver
}

func (p *pacing) addWaves(waves []v1alpha1.Wave) {
	for _, w := range waves {
		p.ordered = append(p.ordered, &wave{Wave: w})
		p.waves[w.Name] = p.ordered[len(p.ordered)-1]
	}
}

// waveOf returns the wave that an install was a member of. The last one takes
// those of waves that are not in the strategy any more.
func (p *pacing) waveOf(l Leaver) *wave {
	if w, known := p.waves[l.Wave]; known {
		return w
	}
	return p.ordered[len(p.ordered)-1]
}

func (w *wave) begun(l Leaver) {
	w.total++
	switch {
	case l.Reach == Offline, l.Frozen && !l.Stalled: // takes no slot
	case l.Stalled:
		w.stalled = append(w.stalled, l.Cluster)
	default:
		w.uninstalling++
	}
}

func (w *wave) wait(l Leaver) {
	w.total++
	if l.Reach != Offline && !l.Frozen && !WaitsForPause(l.Install, v1alpha1.RemovalUninstall, l.Reach) {
		w.waiting = append(w.waiting, l)
	}
}

// step adds what Next asks for.
func (p *pacing) step(l Leaver) {
	if step, due := Next(l.Install, v1alpha1.RemovalUninstall, l.Reach); due {
		p.steps = append(p.steps, step)
	}
}

// confirm marks the leavers whose removal was agreed to, or needs nobody's word.
// Those that are marked are begun by a later pass, which sees the mark.
func (p *pacing) confirm(leavers []Leaver, removal *v1alpha1.OperatorRemoval) {
	if len(leavers) == 0 {
		return
	}
	above, confirmed := int32(DefaultConfirmAbove), ""
	if removal != nil {
		confirmed = removal.Confirm
		if removal.ConfirmAbove != nil {
			above = *removal.ConfirmAbove
		}
	}
	request := requestOf(leavers)
	if n := int32(len(leavers)); n+p.progress.Waiting+p.progress.Uninstalling > above && confirmed != request {
		p.progress.Request, p.progress.Unconfirmed = request, n
		return
	}
	p.progress.Waiting += int32(len(leavers))
	for _, l := range leavers {
		p.steps = append(p.steps,
			Step{Namespace: l.Namespace, Name: l.Name, SetPolicy: v1alpha1.RemovalUninstall})
	}
}

// requestOf identifies a set of clusters: a confirmation is for these and no
// others.
func requestOf(leavers []Leaver) string {
	sum := sha256.New()
	for _, l := range leavers {
		fmt.Fprintln(sum, l.Cluster)
	}
	return hex.EncodeToString(sum.Sum(nil))[:8]
}

// begin deletes the installs whose turn it is.
func (p *pacing) begin() {
	for _, w := range p.ordered {
		concurrency, failures := rollouts.Limits(w.Wave, w.total)
		if len(w.stalled) > failures {
			p.failed = slices.Sorted(slices.Values(w.stalled))
			return
		}
		for _, l := range w.waiting[:min(max(concurrency-w.uninstalling, 0), len(w.waiting))] {
			p.step(l)
		}
		if w.uninstalling+len(w.waiting) > 0 {
			return // the next wave waits for this one
		}
	}
}
