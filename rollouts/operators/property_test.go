// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/internal/tools/long"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

// TestRandomHistories makes random changes of everything that a person, a
// catalog, a rollout and an agent can change, and applies each decision. It
// checks invariants of the planner:
//
//   - an applied decision is not repeated;
//   - revisions only go up, and no two rollouts run at a time;
//   - nothing is removed from a selected cluster;
//   - nothing is removed while the selector matches nothing;
//   - no rollout to a blocked version starts or goes on, and every agent and the
//     newest rollout know what is blocked;
//   - no rollout to a version outside the range starts, and what waits for an
//     approval is announced once;
//   - with spec.adopt, no rollout to a version starts before one has taken over
//     what is installed, and one that takes over has no version and no rollback.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(long.Cases(100, 5000)) {
		h := &history{Input: newInput(t), t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1))}
		h.highest = 1
		if seed%2 == 0 { // others have installed what runs
			h.Rollouts, h.Operator.Spec.Adopt = nil, &v1alpha1.OperatorAdoption{}
		}
		for range 60 {
			h.changeWorld()
			h.decide()
		}
	}
}

type history struct {
	operators.Input
	t       *testing.T
	seed    uint64
	random  *rand.Rand
	highest int64
	// tookOver is true if a rollout has taken over the installed operators.
	tookOver bool
}

var versions = []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0"}

// changeWorld lets one thing happen in the world.
func (h *history) changeWorld() {
	spec := &h.Operator.Spec
	switch h.random.IntN(18) {
	case 0:
		spec.Version = slices.Concat(versions, []string{"", "9.9.9"})[h.random.IntN(6)]
	case 12:
		spec.Version = []string{">=1.1.0 <1.3.0", "1.x", ">=1.2.0 || =1.0.0", ">=2.0.0", "^1"}[h.random.IntN(5)]
	case 13:
		spec.Updates = []*v1alpha1.VersionUpdates{nil, approval(v1alpha1.UpdateApproval, ""),
			approval(v1alpha1.UpdateApproval, versions[h.random.IntN(4)])}[h.random.IntN(3)]
	case 1:
		h.Package = ladder(h.t, upTo110+"\n1.2.0 replaces 1.1.0\n1.3.0 replaces 1.2.0")
		h.Catalog.Status.Digest = fmt.Sprintf("sha256:%d", h.random.IntN(5))
	case 2:
		spec.Install.Mode = []v1alpha1.InstallMode{"", v1alpha1.InstallAllNamespaces,
			v1alpha1.InstallOwnNamespace}[h.random.IntN(3)]
	case 3:
		tier := []string{"canary", "prod", "nowhere", ""}[h.random.IntN(4)]
		spec.ClusterSelector = metav1.LabelSelector{}
		if tier != "" {
			spec.ClusterSelector.MatchLabels = map[string]string{"tier": tier}
		}
	case 4:
		c := &h.Clusters[h.random.IntN(len(h.Clusters))]
		c.Online = !c.Online
	case 5:
		h.Clusters = append(h.Clusters, rollouts.Cluster{
			Name: fmt.Sprintf("c%d", len(h.Clusters)), Online: true, Labels: map[string]string{"tier": "prod"},
		})
	case 6:
		spec.Paused = !spec.Paused
	case 7:
		spec.Strategy.NewTarget = []v1alpha1.NewTargetPolicy{v1alpha1.NewTargetFinish,
			v1alpha1.NewTargetSupersede}[h.random.IntN(2)]
	case 8:
		spec.RemovalPolicy = []v1alpha1.RemovalPolicy{v1alpha1.RemovalOrphan,
			v1alpha1.RemovalUninstall}[h.random.IntN(2)]
	case 9:
		h.Catalog.Spec.Blocks = nil
		for _, v := range versions {
			if h.random.IntN(4) == 0 {
				h.Catalog.Spec.Blocks = append(h.Catalog.Spec.Blocks, blocking(v)...)
			}
		}
	case 10:
		spec.Restart = fmt.Sprint(h.random.IntN(3))
	case 11:
		spec.Strategy.Waves = []v1alpha1.Wave{{Name: "first", Selector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"tier": []string{"canary", "not valid!"}[h.random.IntN(2)]}}}}
	case 17:
		spec.Adopt = []*v1alpha1.OperatorAdoption{nil, {}, {Accept: []v1alpha1.AcceptedFinding{"GitOps"}},
			{}}[h.random.IntN(4)]
		spec.Strategy.OnFailure = []v1alpha1.FailurePolicy{v1alpha1.FailurePause,
			v1alpha1.FailureRollback}[h.random.IntN(2)]
	default:
		h.advanceRollouts()
	}
}

// advanceRollouts plays the rollouts and the agents for a moment.
func (h *history) advanceRollouts() {
	for i := range h.Rollouts {
		r := &h.Rollouts[i]
		switch {
		case r.Status.Phase.Ended():
		case r.Spec.Abort != nil:
			r.Status.Phase = v1alpha1.RolloutSuperseded
		case r.Spec.Blocked != "":
			r.Status.Phase = v1alpha1.RolloutHalted
		case r.Spec.Release.AsInstalled && len(h.Installs) > 0 && h.random.IntN(3) == 0:
			r.Status.Phase = v1alpha1.RolloutHalted
			h.Installs[h.random.IntN(len(h.Installs))].StalledReason = v1alpha1.ReasonNotAdoptable
		case h.random.IntN(2) == 0:
			r.Status.Phase = v1alpha1.RolloutProgressing
		default:
			h.succeed(r)
		}
	}
	h.Installs = slices.DeleteFunc(h.Installs,
		func(i operators.Install) bool { return i.Deleting && (!i.Held || h.online(i.Cluster)) })
}

func (h *history) succeed(r *v1alpha1.OperatorRollout) {
	selector, err := metav1.LabelSelectorAsSelector(&r.Spec.ClusterSelector)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, c := range h.Clusters {
		if !selector.Matches(set(c.Labels)) || !c.Online {
			continue
		}
		installed := catalogs.Installed{Name: r.Spec.Release.Bundle, Version: r.Spec.Release.Version}
		if at := slices.IndexFunc(h.Installs, func(i operators.Install) bool {
			return i.Cluster == c.Name
		}); at >= 0 && r.Spec.Release.AsInstalled {
			installed = h.Installs[at].Installed
		}
		h.Installs = slices.DeleteFunc(h.Installs, func(i operators.Install) bool { return i.Cluster == c.Name })
		h.Installs = append(h.Installs, operators.Install{
			Install: removal.Install{Namespace: "bellwether-" + c.Name, Name: "team.echo", Cluster: c.Name,
				Policy: v1alpha1.RemovalOrphan, Held: true},
			Installed: installed,
			Revision:  r.Spec.Revision, SucceededHash: r.Spec.Release.Hash(), Ready: true, Rollout: r.Name,
		})
	}
	r.Status.Phase = v1alpha1.RolloutSucceeded
	h.tookOver = h.tookOver || r.Spec.Release.AsInstalled
}

func (h *history) online(cluster string) bool {
	return slices.ContainsFunc(h.Clusters, func(c rollouts.Cluster) bool { return c.Name == cluster && c.Online })
}

type set map[string]string

func (s set) Has(key string) bool              { _, ok := s[key]; return ok }
func (s set) Get(key string) string            { return s[key] }
func (s set) Lookup(key string) (string, bool) { value, ok := s[key]; return value, ok }

// decide calls the planner, checks its decision, and applies it.
func (h *history) decide() {
	h.check(h.apply(operators.Next(h.Input)))
	again := operators.Next(h.Input)
	if again.Create != nil || again.Supersede != nil || again.AddFinalizer || len(again.DeleteRollouts) > 0 ||
		again.Block != nil || again.Announce != nil || len(again.SetBlocks) > 0 || len(again.SetDrift) > 0 {
		h.t.Fatalf("seed %d: what was carried out is decided again: %+v", h.seed, again)
	}
}

func (h *history) check(d operators.Decision) {
	selector, err := metav1.LabelSelectorAsSelector(&h.Operator.Spec.ClusterSelector)
	if err != nil {
		h.t.Fatal(err)
	}
	matched := 0
	for _, c := range h.Clusters {
		if !selector.Matches(set(c.Labels)) {
			continue
		}
		matched++
		if slices.ContainsFunc(d.Removals, func(s removal.Step) bool {
			return s.Namespace == "bellwether-"+c.Name && s.SetPolicy != v1alpha1.RemovalOrphan
		}) {
			h.t.Fatalf("seed %d: removal from selected cluster %s", h.seed, c.Name)
		}
	}
	if matched == 0 && len(d.Removals) > 0 {
		h.t.Fatalf("seed %d: a selector that matches nothing removes %v", h.seed, d.Removals)
	}
	h.checkBlocks(d)
	h.checkHistory(d)
	h.checkAdoption(d)
	if d.Create != nil && !d.Create.Spec.Release.AsInstalled && !catalogs.IsExact(h.Operator.Spec.Version) &&
		h.Operator.Spec.Version != "" {
		h.checkRange(d.Create.Spec.Release.Version)
	}
	running := 0
	for _, r := range h.Rollouts {
		if !r.Status.Phase.Ended() && r.Spec.Abort == nil {
			running++
		}
	}
	if running > 1 {
		h.t.Fatalf("seed %d: %d rollouts run", h.seed, running)
	}
}

func (h *history) checkAdoption(d operators.Decision) {
	if d.Status.Adoption != nil && !h.tookOver {
		h.t.Fatalf("seed %d: nothing was taken over, and the status has %+v", h.seed, d.Status.Adoption)
	}
	if d.Create == nil || d.Create.Spec.Rollback != nil {
		return
	}
	release, adopts := d.Create.Spec.Release, h.Operator.Spec.Adopt != nil
	switch {
	case release.AsInstalled && !adopts:
		h.t.Fatalf("seed %d: %s takes over, and spec.adopt is not set", h.seed, d.Create.Name)
	case !release.AsInstalled && adopts && !h.tookOver:
		h.t.Fatalf("seed %d: %s brings %s before anything was taken over", h.seed, d.Create.Name, release.Version)
	case release.AsInstalled && (release.Version != "" || release.Bundle != "" || release.Adopt == nil ||
		d.Create.Spec.Strategy.OnFailure == v1alpha1.FailureRollback):
		h.t.Fatalf("seed %d: %s takes over with %+v, on failure %s", h.seed, d.Create.Name, release,
			d.Create.Spec.Strategy.OnFailure)
	case (release.Adopt != nil) != adopts:
		h.t.Fatalf("seed %d: %s adopts: %v, spec.adopt: %v", h.seed, d.Create.Name, release.Adopt != nil, adopts)
	}
}

func (h *history) checkRange(version string) {
	r, err := catalogs.ParseRange(h.Operator.Spec.Version)
	if err != nil || !r.Contains(semver.MustParse(version)) {
		h.t.Fatalf("seed %d: a rollout to %s, and the range is %s", h.seed, version, h.Operator.Spec.Version)
	}
}

// checkHistory checks that the history has every rollout, and that none with an
// invalid selector was created.
func (h *history) checkHistory(d operators.Decision) {
	if d.Create != nil && rollouts.Validate(d.Create.Spec.ClusterSelector, d.Create.Spec.Strategy) != nil {
		h.t.Fatalf("seed %d: a rollout with an invalid selector is made", h.seed)
	}
	if len(d.Lost) > 0 {
		h.t.Fatalf("seed %d: what was pruned is reported as deleted by somebody else: %+v", h.seed, d.Lost)
	}
	for _, r := range h.Rollouts {
		known := slices.ContainsFunc(d.Status.History, func(o v1alpha1.RolloutOutcome) bool { return o.Name == r.Name })
		if created := d.Create != nil && d.Create.Name == r.Name; !known && !created {
			h.t.Fatalf("seed %d: the history has no %s", h.seed, r.Name)
		}
	}
}

func (h *history) checkBlocks(d operators.Decision) {
	blocked := map[string]bool{}
	for _, b := range h.Catalog.Spec.Blocks {
		blocked[b.Version] = true
	}
	if d.Create != nil && blocked[d.Create.Spec.Release.Version] {
		h.t.Fatalf("seed %d: a rollout to %s, which is blocked", h.seed, d.Create.Spec.Release.Version)
	}
	for _, r := range h.Rollouts {
		if !r.Status.Phase.Ended() && r.Spec.Abort == nil && blocked[r.Spec.Release.Version] != (r.Spec.Blocked != "") {
			h.t.Fatalf("seed %d: rollout %s to %s is blocked by %q", h.seed, r.Name, r.Spec.Release.Version,
				r.Spec.Blocked)
		}
	}
	for _, i := range h.Installs {
		if blocks := operators.Encode(h.Catalog.Spec.Blocks); !i.Deleting && i.Blocks != blocks {
			h.t.Fatalf("seed %d: %s carries blocks %s instead of %s", h.seed, i.Cluster, i.Blocks, blocks)
		}
	}
}

func (h *history) apply(d operators.Decision) operators.Decision {
	if d.Holds != nil {
		h.Operator.Spec.Holds = *d.Holds
	}
	for i := range h.Rollouts {
		if d.Block != nil && h.Rollouts[i].Name == d.Block.Rollout {
			h.Rollouts[i].Spec.Blocked = d.Block.Reason
		}
	}
	for i := range h.Installs {
		key := types.NamespacedName{Namespace: h.Installs[i].Namespace, Name: h.Installs[i].Name}
		if slices.Contains(d.SetBlocks, key) {
			h.Installs[i].Blocks, h.Installs[i].Holds = operators.Encode(d.Blocks), h.Operator.Spec.Holds
		}
		if slices.Contains(d.SetDrift, key) {
			h.Installs[i].Drift = operators.DriftPolicy(h.Operator.Spec.Install.Drift)
		}
	}
	for i := range h.Rollouts {
		if d.Supersede != nil && h.Rollouts[i].Name == d.Supersede.Rollout {
			h.Rollouts[i].Spec.Abort = &v1alpha1.RolloutAbort{Reason: d.Supersede.Reason, Superseded: true}
		}
	}
	if d.Create != nil {
		if d.Create.Spec.Revision <= h.highest {
			h.t.Fatalf("seed %d: revision %d after %d", h.seed, d.Create.Spec.Revision, h.highest)
		}
		h.highest = d.Create.Spec.Revision
		h.Rollouts = append(h.Rollouts, *d.Create)
	}
	h.Rollouts = slices.DeleteFunc(h.Rollouts,
		func(r v1alpha1.OperatorRollout) bool { return slices.Contains(d.DeleteRollouts, r.Name) })
	for _, step := range d.Removals {
		for i := range h.Installs {
			if h.Installs[i].Namespace != step.Namespace {
				continue
			}
			if step.SetPolicy != "" {
				h.Installs[i].Policy = step.SetPolicy
			}
			h.Installs[i].Deleting = h.Installs[i].Deleting || step.Delete
			h.Installs[i].Held = h.Installs[i].Held && !step.Release
		}
	}
	h.Operator.Status = d.Status
	return d
}

// BenchmarkNext is one pass over ten thousand clusters.
func BenchmarkNext(b *testing.B) {
	in := benchmarkWorld(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		operators.Next(in)
	}
}

func benchmarkWorld(b *testing.B, n int) operators.Input {
	in := newInput(b)
	cluster, install := in.Clusters[0], in.Installs[0]
	in.Clusters, in.Installs = nil, nil
	for i := range n {
		cluster.Name = fmt.Sprintf("cluster-%05d", i)
		install.Cluster = cluster.Name
		in.Clusters, in.Installs = append(in.Clusters, cluster), append(in.Installs, install)
	}
	return in
}
