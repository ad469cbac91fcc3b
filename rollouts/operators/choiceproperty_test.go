// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/internal/tools/long"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

// TestChoicesKeepTheirPromises lets versions be published, blocked and rolled back, and people write ranges, policies
// and approvals in random order. Of each choice it checks, with rules of its own:
//
//   - it is in the range, and not blocked;
//   - it is not lower than what was rolled out last, where there is a range;
//   - a step away from that is Automatic or approved, except the first one;
//   - what waits is higher, in the range, and neither Automatic nor approved, or below a rolled back version;
//   - the order of rollouts does not matter, nor what is chosen twice;
//   - once the choice has been rolled out, it is chosen again unless something higher flows.
func TestChoicesKeepTheirPromises(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(long.Cases(200, 10_000)) {
		h := &choices{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 7)), seen: seen}
		h.Operator = &v1alpha1.ManagedOperator{}
		h.published = []string{"1.0.0"}
		h.publish()
		for range 30 {
			h.change()
			h.decide()
		}
	}
	for _, what := range []string{"chosen", "waits", "approved", "needs approval", "downgrade", "none", "rolled back"} {
		if seen[what] == 0 {
			t.Errorf("never %s: %v", what, seen)
		}
	}
}

type choices struct {
	operators.ChoiceInput

	t         *testing.T
	seed      uint64
	random    *rand.Rand
	seen      map[string]int
	published []string
	blocked   map[string]bool
}

// publish reads the catalog again, without blocked and held versions.
func (h *choices) publish() {
	h.blocked = map[string]bool{}
	var notation strings.Builder
	for i, v := range h.published {
		notation.WriteString(v)
		if i > 0 {
			notation.WriteString(" replaces " + h.published[i-1])
		}
		notation.WriteString("\n")
	}
	h.Offered = ladder(h.t, notation.String())
	for _, hold := range h.Operator.Spec.Holds {
		h.block(hold.Version)
	}
}

func (h *choices) block(version string) {
	if without, err := h.Offered.WithBlocked(catalogs.Block{Version: version, Reason: "bad"}); err == nil {
		h.Offered, h.blocked[version] = without, true
	}
}

// next is a version that follows the newest one.
func (h *choices) next() string {
	v := semver.MustParse(h.published[len(h.published)-1])
	v.Pre = nil
	v = catalogtest.NextVersion(h.random, v)
	if h.random.IntN(8) == 0 {
		v.Pre = []semver.PRVersion{{VersionStr: "rc"}}
	}
	return v.String()
}

func (h *choices) change() {
	spec := &h.Operator.Spec
	switch h.random.IntN(9) {
	case 0, 1, 2:
		h.published = append(h.published, h.next())
		h.publish()
	case 3:
		spec.Version = []string{"", ">=1.0.0", "1.x", ">=1.1.0 <2.0.0", ">=1.0.0 <1.2.0 || >=2.0.0", ">=2.0.0",
			"1.0.x"}[h.random.IntN(7)]
	case 4:
		policy := func() v1alpha1.UpdatePolicy {
			return []v1alpha1.UpdatePolicy{"", v1alpha1.UpdateAutomatic, v1alpha1.UpdateApproval}[h.random.IntN(3)]
		}
		spec.Updates = &v1alpha1.VersionUpdates{Patch: policy(), Minor: policy(), Major: policy()}
	case 5:
		if spec.Updates != nil {
			spec.Updates.Approved = &v1alpha1.VersionApproval{Version: h.published[h.random.IntN(len(h.published))]}
		}
	case 6:
		h.block(h.published[h.random.IntN(len(h.published))])
	case 7:
		h.rollBack()
	case 8:
		h.random.Shuffle(len(h.Rollouts), func(a, b int) {
			h.Rollouts[a], h.Rollouts[b] = h.Rollouts[b], h.Rollouts[a]
		})
	}
}

// rollBack takes the newest rollout back to what was rolled out before, if there was anything.
func (h *choices) rollBack() {
	newest, before := -1, ""
	for i := range h.Rollouts {
		if h.Rollouts[i].Spec.Revision == int64(len(h.Rollouts)) {
			newest = i
		}
		if h.Rollouts[i].Spec.Revision == int64(len(h.Rollouts))-1 {
			before = h.Rollouts[i].Spec.Release.Version
		}
	}
	if before == "" || h.Rollouts[newest].Spec.Rollback != nil || h.Rollouts[newest].Spec.Release.Version == before {
		return
	}
	h.seen["rolled back"]++
	version := h.Rollouts[newest].Spec.Release.Version
	h.Rollouts[newest].Status.Phase = v1alpha1.RolloutRolledBack
	h.rollout(before).Spec.Rollback = &v1alpha1.RolloutRollback{Version: version}
	h.Operator.Spec.Holds = append(h.Operator.Spec.Holds, v1alpha1.VersionHold{Version: version, Rollout: "echo-1",
		Reason: "it was rolled back"})
	h.publish()
}

func (h *choices) rollout(version string) *v1alpha1.OperatorRollout {
	r := v1alpha1.OperatorRollout{}
	r.Spec.Revision = int64(len(h.Rollouts) + 1)
	r.Spec.Release.Version, r.Spec.Release.Bundle = version, "echo.v"+version
	r.Status.Phase = v1alpha1.RolloutSucceeded
	h.Rollouts = append(h.Rollouts, r)
	return &h.Rollouts[len(h.Rollouts)-1]
}

// lastVersion returns the version of the newest rollout.
func (h *choices) lastVersion() string {
	for i := range h.Rollouts {
		if h.Rollouts[i].Spec.Revision == int64(len(h.Rollouts)) {
			return h.Rollouts[i].Spec.Release.Version
		}
	}
	return ""
}

func (h *choices) decide() {
	got, err := operators.ChooseTarget(h.ChoiceInput)
	again, errAgain := operators.ChooseTarget(h.ChoiceInput)
	if diff := cmp.Diff(got, again, cmp.Comparer(func(a, b *catalogs.Bundle) bool { return a == b })); diff != "" ||
		fmt.Sprint(err) != fmt.Sprint(errAgain) {
		h.fatalf("chosen twice (-first +second):\n%s%v\n%v", diff, err, errAgain)
	}
	h.checkWaiting(got)
	if err != nil {
		h.checkError(err)
		return
	}
	h.seen["chosen"]++
	version, last := got.Bundle.VersionString(), h.lastVersion()
	switch {
	case h.blocked[version]:
		h.fatalf("%s is blocked", version)
	case h.Operator.Spec.Version != "" && !h.isInRange(version):
		h.fatalf("%s is not in the range", version)
	case last == "" || last == version:
	case h.Operator.Spec.Version != "" && catalogs.CompareVersions(version, last) < 0:
		h.fatalf("%s is lower than %s", version, last)
	case catalogs.CompareVersions(version, last) > 0 && !h.mayFollow(version):
		h.fatalf("%s must not follow %s", version, last)
	}
	if last == version {
		return
	}
	h.rollout(version)
	if next, err := operators.ChooseTarget(h.ChoiceInput); err != nil ||
		catalogs.CompareVersions(next.Bundle.VersionString(), version) < 0 ||
		next.Bundle != got.Bundle && h.policyOf(next.Bundle.VersionString()) != v1alpha1.UpdateAutomatic {
		h.fatalf("%s was rolled out, and then %v is chosen: %v", version, next.Bundle, err)
	}
}

func (h *choices) checkError(err error) {
	last := h.lastVersion()
	switch {
	case errors.Is(err, operators.ErrNeedsApproval):
		h.seen["needs approval"]++
		if last == "" {
			h.fatalf("the first version needs an approval: %v", err)
		}
	case errors.Is(err, operators.ErrDowngrade):
		h.seen["downgrade"]++
		for _, v := range h.published {
			if h.isInRange(v) && !h.blocked[v] && catalogs.CompareVersions(v, last) >= 0 {
				h.fatalf("%s would do: %v", v, err)
			}
		}
	case errors.Is(err, catalogs.ErrNoVersion):
		h.seen["none"]++
		for _, v := range h.published {
			if _, offered := h.Offered.Bundles["echo.v"+v]; offered && h.isInRange(v) && !h.blocked[v] {
				h.fatalf("%s would do: %v", v, err)
			}
		}
	default:
		h.fatalf("%v", err)
	}
}

func (h *choices) checkWaiting(got operators.Choice) {
	if got.Waiting == nil {
		return
	}
	h.seen["waits"]++
	version := got.Waiting.Bundle.VersionString()
	if h.blocked[version] || h.mayFollow(version) || h.Operator.Spec.Version != "" && !h.isInRange(version) {
		h.fatalf("%s waits", version)
	}
	if got.Bundle != nil && h.Operator.Spec.Version != "" &&
		catalogs.CompareVersions(version, got.Bundle.VersionString()) <= 0 {
		h.fatalf("%s waits and %s is chosen", version, got.Bundle.VersionString())
	}
}

// mayFollow reports whether a higher version may be rolled out after the last one.
func (h *choices) mayFollow(version string) bool {
	if u := h.Operator.Spec.Updates; u != nil && u.Approved != nil && u.Approved.Version == version {
		h.seen["approved"]++
		return true
	}
	for _, hold := range h.Operator.Spec.Holds {
		if h.Operator.Spec.Version != "" && h.isInRange(hold.Version) &&
			catalogs.CompareVersions(hold.Version, version) > 0 {
			return false
		}
	}
	return h.policyOf(version) == v1alpha1.UpdateAutomatic
}

func (h *choices) policyOf(version string) v1alpha1.UpdatePolicy {
	v, last := semver.MustParse(version), semver.MustParse(h.lastVersion())
	u := h.Operator.Spec.Updates
	if u == nil {
		return v1alpha1.UpdateAutomatic
	}
	policy := u.Patch
	switch {
	case v.Major != last.Major:
		policy = u.Major
	case v.Minor != last.Minor:
		policy = u.Minor
	}
	if policy == "" {
		return v1alpha1.UpdateAutomatic
	}
	return policy
}

func (h *choices) isInRange(version string) bool {
	text, v := h.Operator.Spec.Version, semver.MustParse(version)
	switch text {
	case "1.x":
		text = ">=1.0.0 <2.0.0"
	case "1.0.x":
		text = ">=1.0.0 <1.1.0"
	}
	// None of the ranges names a pre-release.
	return text != "" && len(v.Pre) == 0 && semver.MustParseRange(text)(v)
}

func (h *choices) fatalf(format string, args ...any) {
	h.t.Helper()
	h.t.Fatalf("seed %d, range %q, updates %+v, last %q, published %v, blocked %v: "+format, append([]any{h.seed,
		h.Operator.Spec.Version, h.Operator.Spec.Updates, h.lastVersion(), h.published, h.blocked}, args...)...)
}
