// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// observation is the input of a pass, indexed by cluster, with the waves as the policies and the current pace
// define them.
type observation struct {
	in Input
	// prior is the status that was read, with the plan if this pass freezes the plan.
	prior    v1alpha1.OperatorRolloutStatus
	strategy v1alpha1.RolloutStrategy
	// hash identifies the release.
	hash  string
	waves []wave
	// selected is sorted by name.
	selected []Cluster
	clusters map[string]*Cluster
	installs map[string]*Install
	// batch has the entries whose stamp was not seen.
	batch map[string]v1alpha1.BatchEntry
	// unready has since when clusters are known to be not Ready.
	unready map[string]time.Time
	// policies are the RolloutPolicies that bind the rollout. unmet is the requirement that the rollout does not meet;
	// "" if it meets all.
	policies []v1alpha1.AppliedPolicy
	unmet    string
	// pace is how fast the rollout may proceed; nil if the pace is always full.
	pace *v1alpha1.PaceStatus
	// recorded is true if the caller has no policies, and the status says what the policies require.
	recorded bool
	// events has an event if this pass freezes the plan.
	events []Event
}

// observe indexes the input. It returns a decision if there is nothing to judge: a newer rollout took over, the view
// is too old, the spec is not valid, or the membership is not frozen yet.
func observe(in Input) (observation, *Decision) {
	if in.Newer {
		return observation{}, recordSuperseded(in)
	}
	if isTooOld(in) {
		return observation{}, &Decision{WantsLive: true, Status: in.Rollout.Status}
	}
	o, err := indexInput(in)
	if err != nil {
		return observation{}, recordInvalid(in, err)
	}
	if o.prior.PlanHash == "" && in.Rollout.MayAdmit() {
		return freezeMembership(o)
	}
	return o, nil
}

// indexInput returns the observation of the input. It fails only on a selector that an API server would refuse.
func indexInput(in Input) (observation, error) {
	ro := in.Rollout
	waves, err := parseWaves(ro.Spec.Strategy)
	if err != nil {
		return observation{}, err
	}
	selector, err := metav1.LabelSelectorAsSelector(&ro.Spec.ClusterSelector)
	if err != nil {
		return observation{}, fmt.Errorf("parse cluster selector: %w", err)
	}
	o := observation{in: in, prior: ro.Status, strategy: Defaulted(ro.Spec.Strategy), waves: waves,
		hash:     cmp.Or(ro.Status.ReleaseHash, ro.Spec.Release.Hash()),
		clusters: map[string]*Cluster{}, installs: make(map[string]*Install, len(in.Installs)),
		unready: map[string]time.Time{},
	}
	for i := range in.Installs {
		o.installs[in.Installs[i].Cluster] = &in.Installs[i]
	}
	o.selected = selectMembers(ro, selector, in.Clusters, o.installs)
	for i := range o.selected {
		o.clusters[o.selected[i].Name] = &o.selected[i]
	}
	o.batch = listOpenEntries(in, o.clusters)
	for _, u := range ro.Status.Unready {
		o.unready[u.Cluster] = u.Since.Time
	}
	bound := applyPolicies(in, waves)
	o.policies, o.unmet = bound.Applied, bound.Unmet
	if spec := readPaceSpec(ro.Spec, o.strategy); spec != nil && ro.MayAdmit() {
		o.pace = judgePace(spec, in)
		stretchSoaks(waves, ro.Status, o.pace.Percent)
	}
	return o, nil
}

// selectMembers returns the clusters that belong to the rollout, sorted by name.
func selectMembers(ro *v1alpha1.OperatorRollout, selector labels.Selector, fleet []Cluster,
	installs map[string]*Install) []Cluster {
	members := slices.DeleteFunc(selectClusters(selector, fleet),
		func(c Cluster) bool { return !canBeMember(ro, installs[c.Name]) })
	slices.SortFunc(members, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return members
}

// isTooOld reports whether a view is too old for a decision. A live view is not. A cached view is too old if the
// membership is not frozen yet, if it is older than the view in the status, or if it does not show the stamp of a batch
// entry after entryDoubt.
func isTooOld(in Input) bool {
	if in.Live {
		return false
	}
	status := in.Rollout.Status
	if status.PlanHash == "" {
		return true
	}
	if isOlder(in.ObservedInstalls, status.ObservedInstalls) {
		return true
	}
	return slices.ContainsFunc(listUnseenEntries(in), func(e v1alpha1.BatchEntry) bool {
		return in.Now.Sub(e.AdmittedAt.Time) > entryDoubt
	})
}

// isOlder reports whether version a of a view is older than version b, or cannot be compared with it. No version is
// older than an empty b. Resource versions of one resource are ordered (Kubernetes KEP-5504).
func isOlder(a, b string) bool {
	if b == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order < 0
}
