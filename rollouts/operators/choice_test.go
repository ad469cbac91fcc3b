// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

const choiceUpTo200 = `
	1.0.0
	1.1.0 replaces 1.0.0
	1.1.1 replaces 1.1.0
	1.2.0 replaces 1.1.1
	1.3.0-rc.1 replaces 1.2.0
	1.3.0 replaces 1.3.0-rc.1
	2.0.0 replaces 1.3.0`

const skipping = `
	1.0.0
	1.1.0 replaces 1.0.0
	1.2.0 replaces 1.1.0
	1.3.0 replaces 1.1.0 skips 1.2.0`

// situation is an operator in a fleet.
type situation struct {
	operators.ChoiceInput

	t *testing.T
}

func newSituation(t *testing.T, version string) *situation {
	s := &situation{t: t, ChoiceInput: operators.ChoiceInput{Operator: &v1alpha1.ManagedOperator{},
		Offered: ladder(t, choiceUpTo200)}}
	s.Operator.Spec.Version = version
	return s
}

// rolledOut adds a rollout that is newer than those before. It has reached clusters.
func (s *situation) rolledOut(version string) *v1alpha1.OperatorRollout {
	r := v1alpha1.OperatorRollout{}
	r.Spec.Revision = int64(len(s.Rollouts) + 1)
	r.Spec.Release.Version, r.Spec.Release.Bundle = version, "echo.v"+version
	r.Status.Phase = v1alpha1.RolloutProgressing
	r.Status.Waves = []v1alpha1.WaveStatus{{Name: "canary", StartedAt: &metav1.Time{},
		WaveCounts: v1alpha1.WaveCounts{Total: 1, InProgress: 1}}, {Name: "rest"}}
	s.Rollouts = append([]v1alpha1.OperatorRollout{r}, s.Rollouts...)
	return &s.Rollouts[0]
}

// approvals sets the policy of patch, minor and major updates: A for Automatic, P for a person.
func (s *situation) approvals(policies string) {
	of := map[byte]v1alpha1.UpdatePolicy{'A': v1alpha1.UpdateAutomatic, 'P': v1alpha1.UpdateApproval}
	s.Operator.Spec.Updates = &v1alpha1.VersionUpdates{Patch: of[policies[0]], Minor: of[policies[1]],
		Major: of[policies[2]]}
}

func (s *situation) approve(version string) {
	s.Operator.Spec.Updates.Approved = &v1alpha1.VersionApproval{Version: version, By: "ann", Reason: "tested"}
}

func (s *situation) block(versions ...string) {
	var blocks []catalogs.Block
	for _, v := range versions {
		blocks = append(blocks, catalogs.Block{Version: v, Reason: "bad"})
	}
	var err error
	if s.Offered, err = s.Offered.WithBlocked(blocks...); err != nil {
		s.t.Fatal(err)
	}
}

// rollBack lets the newest rollout be rolled back to a version, and holds its version.
func (s *situation) rollBack(to string) {
	bad := &s.Rollouts[0]
	bad.Status.Phase = v1alpha1.RolloutRolledBack
	version := bad.Spec.Release.Version
	s.Operator.Spec.Holds = append(s.Operator.Spec.Holds, v1alpha1.VersionHold{Version: version, Rollout: "echo-1",
		Reason: "it was rolled back"})
	s.rolledOut(to).Spec.Rollback = &v1alpha1.RolloutRollback{Version: version}
	s.block(version)
}

func TestChoose(t *testing.T) {
	t.Parallel()
	const all = ">=1.0.0 <2.0.0"
	for name, test := range map[string]struct {
		version string
		change  func(*situation)
		want    string // the chosen version
		waits   string
		reason  string
		err     error
		message string
	}{
		"a first installation takes the highest version of the range": {
			version: all, change: func(s *situation) { s.approvals("PPP") }, want: "1.3.0",
			reason: `the highest version in ">=1.0.0 <2.0.0" that may be rolled out; first installation`,
		},
		"without a policy every update is automatic": {
			version: all, change: func(s *situation) { s.rolledOut("1.1.0") }, want: "1.3.0",
			reason: `the highest version in ">=1.0.0 <2.0.0" that may be rolled out; minor updates, as from 1.1.0, ` +
				"are Automatic",
		},
		"a patch flows while a minor version waits": {
			version: all, change: func(s *situation) { s.approvals("APP"); s.rolledOut("1.1.0") },
			want: "1.1.1", waits: "1.3.0 Minor: 1.3.0 is a minor update of 1.1.0, and spec.updates.minor is Approval",
			reason: "patch updates, as from 1.1.0, are Automatic",
		},
		"a major version waits": {
			version: ">=1.0.0", change: func(s *situation) { s.approvals("AAP"); s.rolledOut("1.1.0") },
			want: "1.3.0", waits: "2.0.0 Major: 2.0.0 is a major update of 1.1.0, and spec.updates.major is Approval",
		},
		"a rollout that takes over brings no version: the clusters say what runs": {
			version: all, change: func(s *situation) {
				s.approvals("APP")
				s.rolledOut("").Spec.Release.AsInstalled = true
				s.Rollouts[0].Status.Phase = v1alpha1.RolloutSucceeded
				s.Installed = []catalogs.Installed{{Name: "echo.v1.0.0", Version: "1.0.0"},
					{Name: "echo.v1.1.0", Version: "1.1.0"}}
			},
			want: "1.1.1", waits: "1.3.0 Minor: 1.3.0 is a minor update of 1.1.0, and spec.updates.minor is Approval",
		},
		"an approved version is rolled out": {
			version: all, change: func(s *situation) { s.approvals("APP"); s.rolledOut("1.1.0"); s.approve("1.3.0") },
			want: "1.3.0", reason: "; approved by ann: tested",
		},
		"an approval is for one version": {
			version: all, change: func(s *situation) { s.approvals("APP"); s.rolledOut("1.1.0"); s.approve("1.2.0") },
			want: "1.2.0", waits: "1.3.0 Minor: 1.3.0 is a minor update of 1.1.0, and spec.updates.minor is Approval",
		},
		"an approval of a version outside the range has no effect": {
			version: all, change: func(s *situation) { s.approvals("PPP"); s.rolledOut("1.3.0"); s.approve("2.0.0") },
			want: "1.3.0",
		},
		"what was rolled out last stays without its approval": {
			version: all, change: func(s *situation) { s.approvals("PPP"); s.rolledOut("1.1.0"); s.rolledOut("1.2.0") },
			want: "1.2.0", waits: "1.3.0 Minor: 1.3.0 is a minor update of 1.2.0, and spec.updates.minor is Approval",
			reason: `the highest version in ">=1.0.0 <2.0.0" that may be rolled out`,
		},
		"a rollout that has reached no cluster does not count": {
			version: all, change: func(s *situation) {
				s.approvals("PPP")
				s.rolledOut("1.1.0")
				s.rolledOut("1.2.0").Status.Waves[0].StartedAt = nil
			},
			want: "1.1.0", waits: "1.3.0 Minor: 1.3.0 is a minor update of 1.1.0, and spec.updates.minor is Approval",
		},
		"nor one whose clusters have left the fleet": {
			version: all, change: func(s *situation) {
				s.approvals("PPP")
				s.rolledOut("1.1.0")
				s.rolledOut("1.2.0").Status.Waves[0].WaveCounts = v1alpha1.WaveCounts{Total: 1, Removed: 1}
			},
			want: "1.1.0", waits: "1.3.0 Minor: 1.3.0 is a minor update of 1.1.0, and spec.updates.minor is Approval",
		},
		"a cluster that went offline after it was admitted counts": {
			version: all, change: func(s *situation) {
				s.approvals("PPP")
				s.rolledOut("1.1.0")
				s.rolledOut("1.2.0").Status.Waves[0].WaveCounts = v1alpha1.WaveCounts{Total: 1, Deferred: 1}
			},
			want: "1.2.0", waits: "1.3.0 Minor: 1.3.0 is a minor update of 1.2.0, and spec.updates.minor is Approval",
		},
		"clusters that are behind do not count where a rollout does": {
			version: all, change: func(s *situation) {
				s.approvals("APP")
				s.rolledOut("1.2.0")
				s.Installed = []catalogs.Installed{{Name: "echo.v1.0.0", Version: "1.0.0"}}
			},
			want: "1.2.0", waits: "1.3.0 Minor: 1.3.0 is a minor update of 1.2.0, and spec.updates.minor is Approval",
		},
		"without rollouts the highest version that runs counts": {
			version: all, change: func(s *situation) {
				s.approvals("APP")
				s.Installed = []catalogs.Installed{{}, {Name: "echo.v1.0.0", Version: "1.0.0"},
					{Name: "echo.v1.1.0", Version: "1.1.0"}}
			},
			want: "1.1.1", waits: "1.3.0 Minor: 1.3.0 is a minor update of 1.1.0, and spec.updates.minor is Approval",
		},
		"a pre-release is not chosen": {
			version: ">=1.0.0 <1.3.0", change: func(s *situation) { s.rolledOut("1.1.0") }, want: "1.2.0",
		},
		"unless the range names one": {
			version: ">=1.3.0-rc.0 <1.3.0", change: func(s *situation) { s.rolledOut("1.1.0") }, want: "1.3.0-rc.1",
		},
		"its release is a patch of it": {
			version: ">=1.3.0-rc.0 <2.0.0", want: "1.3.0",
			change: func(s *situation) { s.approvals("APP"); s.rolledOut("1.3.0-rc.1") },
			reason: "patch updates, as from 1.3.0-rc.1, are Automatic",
		},
		"a blocked version is skipped": {
			version: all, change: func(s *situation) { s.rolledOut("1.1.0"); s.block("1.3.0") }, want: "1.2.0",
		},
		"a version that another one skips is skipped": {
			version: ">=1.0.0 <1.3.0", change: func(s *situation) {
				s.Offered = ladder(s.t, skipping)
				s.rolledOut("1.0.0")
			}, want: "1.1.0",
		},
		"unless the range has no other": {
			version: ">=1.2.0 <1.3.0", change: func(s *situation) {
				s.Offered = ladder(s.t, skipping)
				s.rolledOut("1.0.0")
			}, want: "1.2.0",
		},
		"a version that cannot be reached is skipped": {
			version: ">=1.0.0", change: func(s *situation) {
				stable := s.Offered.Channels["stable"].Entries
				stable[len(stable)-1].Replaces = ""
				s.rolledOut("1.0.0")
			}, want: "1.3.0",
		},
		"unless none can": {
			version: ">=2.0.0", change: func(s *situation) {
				stable := s.Offered.Channels["stable"].Entries
				stable[len(stable)-1].Replaces = ""
				s.rolledOut("1.0.0")
			}, want: "2.0.0",
		},
		"a rolled back version is skipped, and what runs stays": {
			version: all, change: func(s *situation) {
				s.rolledOut("1.1.1")
				s.rolledOut("1.3.0")
				s.rollBack("1.1.1")
			},
			want:  "1.1.1",
			waits: "1.2.0 Minor: 1.2.0 is lower than 1.3.0, which was rolled back, and higher than 1.1.1",
		},
		"a version below it can be approved": {
			version: all, change: func(s *situation) {
				s.rolledOut("1.1.1")
				s.rolledOut("1.3.0")
				s.rollBack("1.1.1")
				s.approvals("AAA")
				s.approve("1.2.0")
			},
			want: "1.2.0",
		},
		"its correction is rolled out": {
			version: ">=1.0.0", change: func(s *situation) {
				s.rolledOut("1.1.1")
				s.rolledOut("1.3.0")
				s.rollBack("1.1.1")
			},
			want: "2.0.0",
		},
		"its correction needs an approval as any other version": {
			version: ">=1.0.0", change: func(s *situation) {
				s.approvals("AAP")
				s.rolledOut("1.1.1")
				s.rolledOut("1.3.0")
				s.rollBack("1.1.1")
			},
			want: "1.1.1", waits: "2.0.0 Major: 2.0.0 is a major update of 1.1.1, and spec.updates.major is Approval",
		},
		"a range that leaves the rolled back version out is a person's word": {
			version: ">=1.0.0 <1.3.0", change: func(s *situation) {
				s.rolledOut("1.1.1")
				s.rolledOut("1.3.0")
				s.rollBack("1.1.1")
			},
			want: "1.2.0",
		},
		"a hold by a person leaves other versions alone": {
			version: all, change: func(s *situation) {
				s.rolledOut("1.1.1")
				s.Operator.Spec.Holds = []v1alpha1.VersionHold{{Version: "1.3.0", Reason: "not yet"}}
				s.block("1.3.0")
			},
			want: "1.2.0",
		},
		"a rollback below the range": {
			version: ">=1.2.0 <2.0.0", change: func(s *situation) {
				s.rolledOut("1.1.1")
				s.rolledOut("1.3.0")
				s.rollBack("1.1.1")
			},
			waits: "1.2.0 Minor: 1.2.0 is lower than 1.3.0, which was rolled back, and higher than 1.1.1",
			err:   operators.ErrNeedsApproval,
		},
		"a range above what was rolled out is entered by an approval": {
			version: ">=1.2.0 <2.0.0", change: func(s *situation) { s.approvals("APP"); s.rolledOut("1.1.1") },
			waits: "1.3.0 Minor: 1.3.0 is a minor update of 1.1.1, and spec.updates.minor is Approval",
			err:   operators.ErrNeedsApproval,
		},
		"a range that was lowered is no way down": {
			version: ">=1.0.0 <1.2.0", change: func(s *situation) { s.rolledOut("1.3.0") },
			err:     operators.ErrDowngrade,
			message: "1.3.0 was rolled out last, and the highest version in the range is 1.1.1",
		},
		"a range that has nothing": {
			version: ">=1.4.0 <2.0.0", err: catalogs.ErrNoVersion,
			message: `no such version in ">=1.4.0 <2.0.0" in channel "stable" of package "echo": the nearest are ` +
				"2.0.0, 1.3.0",
		},
		"a range that has nothing but a pre-release": {
			version: ">1.2.0 <1.3.0", err: catalogs.ErrNoVersion,
			message: "1.3.0-rc.1 would be, and a range has a pre-release only if it names one of the same version, " +
				"such as >=1.3.0-rc.1",
		},
		"what is no range": {version: "^1.2.0", err: catalogs.ErrNotRange},
		"an unknown channel": {
			version: all, change: func(s *situation) { s.Operator.Spec.Channel = "fast" }, err: catalogs.ErrNoChannel,
		},

		"the head": {
			change: func(s *situation) { s.rolledOut("1.1.0") }, want: "2.0.0",
			reason: "the head of the channel; major updates, as from 1.1.0, are Automatic",
		},
		"the head on the first installation": {
			change: func(s *situation) { s.approvals("PPP") }, want: "2.0.0",
			reason: "the head of the channel; first installation",
		},
		"the head is lower than what was rolled out": {
			change: func(s *situation) { s.rolledOut("3.0.0"); s.approvals("PPP") }, want: "2.0.0",
			reason: "the head of the channel",
		},
		"a head that needs an approval": {
			change: func(s *situation) { s.rolledOut("1.1.0"); s.approvals("AAP") }, want: "1.3.0",
			waits: "2.0.0 Major: 2.0.0 is a major update of 1.1.0, and spec.updates.major is Approval",
			reason: "the highest version of the channel that may be rolled out; minor updates, as from 1.1.0, are " +
				"Automatic",
		},
		"below a head that needs an approval, nothing is higher": {
			change: func(s *situation) { s.rolledOut("1.3.0"); s.approvals("PPP") }, want: "1.3.0",
			waits:  "2.0.0 Major: 2.0.0 is a major update of 1.3.0, and spec.updates.major is Approval",
			reason: "the highest version of the channel that may be rolled out",
		},
		"a head that is approved": {
			change: func(s *situation) { s.rolledOut("1.3.0"); s.approvals("PPP"); s.approve("2.0.0") }, want: "2.0.0",
			reason: "the head of the channel; approved by ann: tested",
		},
		"a head that needs an approval, and what runs is in no channel": {
			change: func(s *situation) { s.rolledOut("0.5.0"); s.approvals("PPP") },
			waits:  "2.0.0 Major: 2.0.0 is a major update of 0.5.0, and spec.updates.major is Approval",
			err:    operators.ErrNeedsApproval,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSituation(t, test.version)
			if test.change != nil {
				test.change(s)
			}
			got, err := operators.ChooseTarget(s.ChoiceInput)
			if !errors.Is(err, test.err) || err != nil && !strings.Contains(err.Error(), test.message) {
				t.Fatalf("error %v, want %v with %q", err, test.err, test.message)
			}
			var chosen, waits string
			if got.Bundle != nil {
				chosen = got.Bundle.VersionString()
			}
			if w := got.Waiting; w != nil {
				waits = w.Bundle.VersionString() + " " + string(w.Kind) + ": " + w.Reason
			}
			if chosen != test.want || waits != test.waits || !strings.Contains(got.Reason, test.reason) {
				t.Errorf("chosen %q because %q, waits %q;\nwant %q because %q, %q", chosen, got.Reason, waits,
					test.want, test.reason, test.waits)
			}
		})
	}
}
