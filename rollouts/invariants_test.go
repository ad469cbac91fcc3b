// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// strategyWave finds the wave of a strategy and its place. These checks read
// the strategy on their own, not through the planner.
func strategyWave(ro *v1alpha1.OperatorRollout, name string) (v1alpha1.Wave, int) {
	for i, wave := range ro.Spec.Strategy.Waves {
		if wave.Name == name {
			return wave, i
		}
	}
	return v1alpha1.Wave{}, -1
}

func share(v *intstr.IntOrString, total int) int {
	if v.Type == intstr.Int {
		return v.IntValue()
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, total, false)
	if err != nil {
		return 0
	}
	return n
}

func (r *rollout) maxConcurrency(wave string) int {
	s, _ := strategyWave(r.now(), wave)
	return max(1, share(s.MaxConcurrency, len(r.ever[wave])))
}

func (r *rollout) maxFailures(wave string) int {
	s, _ := strategyWave(r.now(), wave)
	return min(len(r.ever[wave]), share(s.MaxFailures, len(r.ever[wave])))
}

// holders counts, in truth, the clusters of a wave that are being changed: by
// this rollout, and by older ones.
func (sim *simulation) holders(r *rollout, wave string) (ours, older int) {
	ro := r.now()
	s, _ := strategyWave(ro, wave)
	for _, i := range sim.present() {
		e := sim.entry(i)
		if i.Rollout != ro.Name || i.Wave != wave || e == nil || e.released ||
			!sim.now.Before(e.at.Add(s.Deadline.Duration)) {
			continue
		}
		if i.Stamp.RolloutUID == string(ro.UID) {
			ours++
		} else {
			older++
		}
	}
	return ours, older
}

// checkAdmission is called before a stamp is written.
func (sim *simulation) checkAdmission(p *hubPass, a rollouts.Action, at install) {
	// A person's change after the hub's last check of the rollout is too late for this cluster.
	r, ro := p.r, p.read
	wave, place := strategyWave(ro, a.Wave)
	if place < 0 {
		sim.violate("%s is admitted to wave %s, which is none of the strategy", a.Cluster, a.Wave)
		return
	}
	ours, older := sim.holders(r, a.Wave)
	if e := sim.entry(at); e != nil && !e.released && sim.now.Before(e.at.Add(wave.Deadline.Duration)) {
		older-- // it moves within its slot
	}
	if ro.Spec.Rollback != nil {
		older = 0 // that is what is taken back
	}
	if limit := r.maxConcurrency(a.Wave); ours+older+1 > limit {
		sim.violate("%s: %d clusters of wave %s would be in progress, %d of them with an older rollout; %d may",
			a.Cluster, ours+older+1, a.Wave, older, limit)
	}
	for _, before := range ro.Status.Waves[:place] {
		if before.VerifiedAt == nil && before.Phase != v1alpha1.WaveSkipped {
			sim.violate("%s is admitted to wave %s before wave %s is verified", a.Cluster, a.Wave, before.Name)
		}
	}
	sim.checkEntered(ro, a.Wave, place)
	if ro.Spec.Paused || ro.Spec.Abort != nil {
		sim.violate("%s is admitted while the rollout is stopped by a person", a.Cluster)
	}
	if ro.Spec.Blocked != "" {
		sim.violate("%s is admitted to a blocked version", a.Cluster)
	}
	for _, g := range wave.Gates {
		if g.Approval != nil && !approved(ro, a.Wave, g.Name) {
			sim.violate("%s is admitted to wave %s without approval of gate %s", a.Cluster, a.Wave, g.Name)
		}
	}
	if !a.AdmittedAt.Equal(new(a.AdmittedAt.Rfc3339Copy())) {
		sim.violate("%s: the stamp's time does not survive the API", a.Cluster)
	}
	sim.checkBadRelease(r, a)
	sim.checkHolds(p, a)
	sim.checkLock(a.Cluster)
	sim.checkPolicies(p, a.Wave)
}

func approved(ro *v1alpha1.OperatorRollout, wave, gate string) bool {
	for _, a := range ro.Spec.Approvals {
		if a.Wave == wave && a.Gate == gate {
			return true
		}
	}
	return false
}

// checkBadRelease: a release that succeeds nowhere reaches no more clusters
// than may fail and may be in progress.
func (sim *simulation) checkBadRelease(r *rollout, a rollouts.Action) {
	if !sim.bad || sim.dies || sim.disturbed || sim.good[r.now().Spec.Release.Hash()] {
		return // what dies only in the soak may reach its whole wave
	}
	touched := len(r.touched[a.Wave])
	if !r.touched[a.Wave][a.Cluster] {
		touched++
	}
	if limit := r.maxFailures(a.Wave) + r.maxConcurrency(a.Wave); touched > limit {
		sim.violate("a bad release reaches %d clusters of wave %s, %d are the limit", touched, a.Wave, limit)
	}
}

// checkJoin: a late joiner belongs to a wave that selects it, and that did not
// take a fixed share of the fleet.
func (sim *simulation) checkJoin(p *hubPass, a rollouts.Action) {
	wave, _ := strategyWave(p.read, a.Wave)
	for _, c := range p.in.Clusters {
		if c.Name != a.Cluster {
			continue
		}
		if wave.Selector != nil && wave.Selector.MatchLabels["stage"] != c.Labels["stage"] {
			sim.violate("%s joins wave %s, which does not select it", c.Name, a.Wave)
		}
		if wave.Size != nil && wave.Size.Type == intstr.String {
			sim.violate("%s joins wave %s, which has its share", c.Name, a.Wave)
		}
	}
}

// checkStatus is called before a status is written.
func (sim *simulation) checkStatus(p *hubPass) {
	was, is := p.read.Status, p.d.Status
	if was.Phase.Ended() && is.Phase != was.Phase && is.Phase != v1alpha1.RolloutRolledBack {
		sim.violate("%s was %s and is %s", p.read.Name, was.Phase, is.Phase)
	}
	var sum v1alpha1.WaveCounts
	for i, wave := range is.Waves {
		c := wave.WaveCounts
		if c.Pending < 0 || c.Removed < 0 ||
			c.Pending+c.InProgress+c.Succeeded+c.Failed+c.Deferred+c.Removed != c.Total {
			sim.violate("the counts of wave %s do not add up: %+v", wave.Name, c)
		}
		if gone := p.gone(wave); c.Removed != gone && !p.in.Newer {
			sim.violate("wave %s has %d removed clusters, %d were seen to be gone", wave.Name, c.Removed, gone)
		}
		sim.checkPace(p, wave)
		sum.Total += c.Total
		sum.Succeeded += c.Succeeded
		if i < len(was.Waves) && c.Total < was.Waves[i].Total {
			sim.violate("wave %s shrank from %d to %d", wave.Name, was.Waves[i].Total, c.Total)
		}
		if wave.VerifiedAt != nil && (i >= len(was.Waves) || was.Waves[i].VerifiedAt == nil) {
			sim.checkObserved(p, wave)
			sim.checkVerified(p, wave, i)
		}
		sim.checkSkipped(p, i)
	}
	if sum.Total != is.Clusters.Total || sum.Succeeded != is.Clusters.Succeeded {
		sim.violate("the counts of the waves do not add up to those of the rollout")
	}
	sim.checkBatch(p)
}

// gone counts the members of a wave that the hub saw leave or could not see.
func (p *hubPass) gone(wave v1alpha1.WaveStatus) int32 {
	stays := map[string]bool{}
	for _, c := range p.in.Clusters {
		stays[c.Name] = !c.Deleting && c.Labels["fleet"] == "yes"
	}
	gone := wave.Total
	for _, i := range p.view {
		if i.Rollout == p.read.Name && i.Wave == wave.Name && stays[i.Cluster] && !i.Deleting {
			gone--
		}
	}
	return gone
}

// checkVerified: a wave is verified only when nothing of it changes any more,
// every updated cluster of it is Ready, but for failures that are tolerated, and
// the soak since each success is over. So a release that succeeds nowhere, or
// whose pods die in the soak, never leaves a wave that tolerates less than the
// failure of all.
func (sim *simulation) checkVerified(p *hubPass, wave v1alpha1.WaveStatus, place int) {
	s, _ := strategyWave(p.read, wave.Name)
	for _, before := range p.d.Status.Waves[:place] {
		if before.VerifiedAt == nil && before.Phase != v1alpha1.WaveSkipped {
			sim.violate("wave %s is verified before wave %s", wave.Name, before.Name)
		}
	}
	sim.checkGates(p, wave, s)
	sim.checkPolicyGates(p, wave)
	soak := p.soak(s)
	failed, size := 0, 0
	paused := map[string]bool{}
	for _, c := range p.in.Clusters {
		paused[c.Name] = c.Paused
	}
	for _, i := range p.view {
		if i.Rollout != p.read.Name || i.Wave != wave.Name || sim.left[i.Cluster] {
			continue
		}
		size++
		e := sim.entry(i)
		if e == nil || i.Stamp.RolloutUID != string(p.read.UID) {
			continue
		}
		now := p.in.Now
		running := !i.Stalled && i.SucceededHash != i.Stamp.Hash && now.Before(e.at.Add(s.Deadline.Duration))
		if running {
			sim.violate("wave %s is verified while %s is in progress", wave.Name, i.Cluster)
		}
		sick := i.isUpdated() && !i.Ready && !paused[i.Cluster]
		if sick && now.Sub(i.unreadySince) < s.UnreadyGrace.Duration && i.Stamp.Attempt == 0 {
			sim.violate("wave %s is verified while %s is not Ready, since %s", wave.Name, i.Cluster,
				now.Sub(i.unreadySince))
		}
		if sick || i.Stalled && !paused[i.Cluster] {
			failed++
		}
		if !sim.unobserved[string(p.read.UID)+wave.Name] && !e.succeededAt.IsZero() && e.succeededRV <= i.rv &&
			now.Sub(e.succeededAt) < soak {
			sim.violate("wave %s is verified %s after %s succeeded, the soak is %s", wave.Name, now.Sub(e.succeededAt),
				i.Cluster, soak)
		}
	}
	if tolerated := min(size, share(s.MaxFailures, int(wave.Total))); failed > tolerated ||
		sim.bad && !sim.good[p.read.Spec.Release.Hash()] && size > tolerated {
		sim.violate("wave %s of %d is verified with %d failures", wave.Name, size, failed)
	}
}

// checkBatch checks that the hub saw the cluster of each new entry as admissible, and that no entry is dropped while
// the hub cannot know whether it was carried out.
func (sim *simulation) checkBatch(p *hubPass) {
	known := map[string]bool{}
	if b := p.read.Status.Batch; b != nil {
		for _, e := range b.Clusters {
			known[e.Cluster] = true
		}
	}
	if p.d.Status.Batch == nil {
		return
	}
	for _, c := range p.in.Clusters {
		for _, e := range p.d.Status.Batch.Clusters {
			if e.Cluster == c.Name && !known[c.Name] &&
				(!c.Online || c.Paused || c.Deleting || c.Labels["fleet"] != "yes" || isHeld(p.read, c)) {
				sim.violate("%s is to be admitted and was seen unfit: %+v", c.Name, c)
			}
			if e.Cluster == c.Name && !known[c.Name] {
				sim.checkDependency(p, c.Name)
			}
		}
	}
}

// checkEnd is called when the simulation is calm and nothing moves any more: the
// newest rollout must have ended, or wait for a reason that is true.
func (sim *simulation) checkEnd() {
	r := sim.latest()
	ro := r.now()
	failing := sim.failingWaves(r)
	switch ro.Status.Phase {
	case v1alpha1.RolloutSucceeded:
		sim.checkCaughtUp(r, failing)
	case v1alpha1.RolloutHalted:
		if len(failing) == 0 && !sim.hasFailedGate(ro) {
			sim.violate("halted, and no wave has too many failures: %s", ro.Status.Message)
		}
	case v1alpha1.RolloutAborted:
		if ro.Spec.Abort == nil && ro.Spec.Strategy.OnFailure != v1alpha1.FailureAbort {
			sim.violate("aborted by nobody")
		}
	case v1alpha1.RolloutSuperseded:
		if ro.Spec.Abort == nil {
			sim.violate("superseded by nothing")
		}
	case v1alpha1.RolloutPending:
		for _, c := range sim.clusters() {
			if c.Labels["fleet"] == "yes" {
				sim.violate("never planned: %s", ro.Status.Message)
			}
		}
	default:
		if sim.hasWaiting() {
			return
		}
		sim.violate("never ended: %s, wave %s: %s", ro.Status.Phase, ro.Status.CurrentWave, ro.Status.Message)
	}
}

func (sim *simulation) failed(ro *v1alpha1.OperatorRollout, i install) bool {
	s, _ := strategyWave(ro, i.Wave)
	e := sim.entry(i)
	if i.Stamp.RolloutUID != string(ro.UID) {
		return false
	}
	if i.isUpdated() {
		return !i.Ready && !isVerified(ro, i.Wave)
	}
	return i.Stalled || e != nil && !sim.now.Before(e.at.Add(s.Deadline.Duration))
}

func isVerified(ro *v1alpha1.OperatorRollout, wave string) bool {
	return slices.ContainsFunc(ro.Status.Waves,
		func(w v1alpha1.WaveStatus) bool { return w.Name == wave && w.VerifiedAt != nil })
}

func (sim *simulation) failingWaves(r *rollout) map[string]bool {
	ro := r.now()
	count := map[string]int{}
	for _, i := range sim.present() {
		if i.Rollout == ro.Name && sim.clusters()[i.Cluster].Labels["fleet"] == "yes" && sim.failed(ro, i) {
			count[i.Wave]++
		}
	}
	failing := map[string]bool{}
	for _, wave := range ro.Status.Waves {
		s, _ := strategyWave(ro, wave.Name)
		if count[wave.Name] > min(int(wave.Total), share(s.MaxFailures, int(wave.Total))) {
			failing[wave.Name] = true
		}
	}
	return failing
}

// checkCaughtUp checks that every selected cluster, including late joiners and deferred clusters, has the release or
// has failed.
func (sim *simulation) checkCaughtUp(r *rollout, failing map[string]bool) {
	ro := r.now()
	if ro.Spec.Abort != nil {
		return
	}
	for name, c := range sim.clusters() {
		i, exists := sim.present()[name]
		if c.Labels["fleet"] != "yes" || sim.isWaiting(name) || exists &&
			(i.SucceededHash == ro.Status.ReleaseHash || sim.failed(ro, i) || failing[i.Wave]) {
			continue
		}
		if ignored := !exists || i.Rollout != ro.Name; ignored && ro.Spec.Strategy.LateJoiners == v1alpha1.LateIgnore {
			continue
		}
		sim.violate("succeeded, and %s was forgotten: %+v", name, i)
	}
}

// soon is a short random time.
func (sim *simulation) soon() time.Duration { return time.Duration(sim.rng.IntN(15)) * time.Second }
