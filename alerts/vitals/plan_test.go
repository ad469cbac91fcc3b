// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// admitted is an install that was admitted some time ago and has not succeeded
// since.
func admitted(since time.Duration) *v1alpha1.OperatorInstall {
	oi := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 2}}
	oi.Spec.Admission = &v1alpha1.Admission{Hash: "new", Revision: 2, AdmittedAt: metav1.NewTime(ago(since))}
	oi.Status.ObservedRevision, oi.Status.SucceededHash = 2, "old"
	return oi
}

func succeeded(after time.Duration) *v1alpha1.OperatorInstall {
	oi := admitted(time.Hour)
	at := metav1.NewTime(oi.Spec.Admission.AdmittedAt.Add(after))
	oi.Status.SucceededHash, oi.Status.SucceededAt = "new", &at
	return oi
}

func stalled(reason string) *v1alpha1.OperatorInstall {
	oi := admitted(time.Hour)
	oi.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: reason,
		ObservedGeneration: oi.Generation,
		LastTransitionTime: metav1.NewTime(ago(50 * time.Minute)),
	}}
	return oi
}

func TestUpgrading(t *testing.T) {
	v1, v2 := CSV{Name: "v1", Created: ago(24 * time.Hour)}, CSV{Name: "v2", Replaces: "v1", Created: ago(time.Minute)}
	for name, tc := range map[string]struct {
		hop  Observation
		want bool
	}{
		"not admitted": {hop: Observation{Install: &v1alpha1.OperatorInstall{}}},
		"just admitted": {hop: Observation{Install: admitted(time.Minute), Installed: "v1",
			CSVs: []CSV{v1}}, want: true},
		"succeeded": {hop: Observation{Install: succeeded(time.Minute), Installed: "v2",
			CSVs: []CSV{v2}}},
		"admitted long ago, without progress": {hop: Observation{Install: admitted(time.Hour), Installed: "v1",
			CSVs: []CSV{v1}}},
		"started long after its admission": {hop: Observation{Install: admitted(time.Hour), Installed: "v1",
			CSVs: []CSV{v1, v2}}, want: true},
		"started, and OLM names the new CSV": {hop: Observation{Install: admitted(time.Hour), Installed: "v2",
			CSVs: []CSV{v1, v2}}, want: true},
		"started long ago": {hop: Observation{Install: admitted(time.Hour), Installed: "v2",
			CSVs: []CSV{v1, {Name: "v2", Replaces: "v1", Created: ago(Grace)}}}},
		"a new CSV of another operator": {hop: Observation{Install: admitted(time.Hour), Installed: "v1",
			CSVs: []CSV{v1, {Name: "lib", Created: now}}}},
		"subscribed just now": {hop: Observation{Install: admitted(time.Hour), Subscribed: ago(time.Minute)},
			want: true},
		"subscribed again while it runs": {hop: Observation{Install: admitted(time.Hour), Subscribed: now,
			Installed: "v1",
			CSVs:      []CSV{v1}}},
		"subscribed long ago, no CSV":  {hop: Observation{Install: admitted(time.Hour), Subscribed: ago(Grace)}},
		"CSV deleted by somebody else": {hop: Observation{Install: succeeded(time.Minute), Subscribed: now}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsUpgrading(tc.hop, now); got != tc.want {
				t.Errorf("upgrading: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestInstalling(t *testing.T) {
	upgrading := admitted(time.Minute)
	upgrading.Status.SucceededHash = "" // as the agent leaves it from the beginning of an upgrade
	for name, tc := range map[string]struct {
		hop  Observation
		want bool
	}{
		"nothing installed yet": {hop: Observation{Install: upgrading}, want: true},
		"a first CSV": {hop: Observation{Install: upgrading, Subscribed: ago(50 * time.Second),
			Installed: "v1", CSVs: []CSV{{Name: "v1", Created: ago(40 * time.Second)}}}, want: true},
		"within the second": {hop: Observation{Install: upgrading, Subscribed: ago(time.Minute)}, want: true},
		"first installation takes too long": {hop: Observation{Install: admitted(Grace + time.Minute),
			Subscribed: ago(Grace)}},
		"an upgrade": {hop: Observation{Install: upgrading, Subscribed: ago(time.Hour), Installed: "v1",
			CSVs: []CSV{{Name: "v1", Created: ago(time.Hour)}}}},
		"an upgrade, old CSV deleted": {hop: Observation{Install: upgrading, Subscribed: ago(time.Hour),
			Installed: "v2",
			CSVs:      []CSV{{Name: "v2", Replaces: "v1", Created: ago(30 * time.Second)}}}},
		"done": {hop: Observation{Install: succeeded(time.Minute),
			Subscribed: ago(59 * time.Minute)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsInstalling(tc.hop, now); got != tc.want {
				t.Errorf("installing: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestOwnCSVs(t *testing.T) {
	h := Observation{Installed: "v2", CSVs: []CSV{{Name: "v3", Replaces: "v2"}, {Name: "lib.v2", Replaces: "lib.v1"},
		{Name: "v1", Replaces: "v0"}, {Name: "v2", Replaces: "v1"}, {Name: "lib.v1"}, {Name: "alone"}}}
	if diff := cmp.Diff([]string{"v2", "v3", "v1"}, h.OwnCSVs()); diff != "" {
		t.Errorf("own CSVs (-want +got):\n%s", diff)
	}
}

func operand(conditions ...OperandCondition) Operand {
	var o Operand
	o.Metadata.Generation, o.Metadata.CreationTimestamp = 3, metav1.NewTime(ago(time.Hour))
	o.Status.ObservedGeneration, o.Status.Conditions = 3, conditions
	return o
}

func TestReadiness(t *testing.T) {
	is := func(conditionType, status string) OperandCondition {
		return OperandCondition{Type: conditionType, Status: status}
	}
	young, leaving, left, behind := operand(is("Ready", "False")), operand(is("Ready", "False")),
		operand(is("Ready", "True")), operand(is("Ready", "True"))
	young.Metadata.CreationTimestamp = metav1.NewTime(ago(MinAge - time.Second))
	just, long := metav1.NewTime(ago(time.Second)), metav1.NewTime(ago(MinAge))
	leaving.Metadata.DeletionTimestamp, left.Metadata.DeletionTimestamp = &just, &long
	behind.Status.ObservedGeneration = 2
	silent := operand()
	silent.Status.ObservedGeneration = 0
	old := is("Ready", "True")
	old.ObservedGeneration = 2
	for name, tc := range map[string]struct {
		operand Operand
		want    string // empty: does not count
	}{
		"ready":                       {operand(is("Synced", "False"), is("Ready", "True")), series.ReadyTrue},
		"not ready":                   {operand(is("Ready", "False")), series.ReadyFalse},
		"status unknown":              {operand(is("Ready", "Unknown")), series.ReadyUnknown},
		"available":                   {operand(is("Available", "True")), series.ReadyTrue},
		"not available":               {operand(is("Available", "False")), series.ReadyFalse},
		"Ready goes before Available": {operand(is("Available", "True"), is("Ready", "False")), series.ReadyFalse},
		"Stalled goes before Ready":   {operand(is("Ready", "True"), is("Stalled", "True")), series.ReadyFalse},
		"not stalled":                 {operand(is("Ready", "True"), is("Stalled", "False")), series.ReadyTrue},
		"no conditions":               {silent, series.ReadyUnknown},
		"status is outdated":          {behind, series.ReadyUnknown},
		"condition is outdated":       {operand(old), series.ReadyUnknown},
		"young":                       {young, ""},
		"deletion just requested":     {leaving, ""},
		"deletion does not finish":    {left, series.ReadyUnknown},
		"an invalid condition status": {operand(is("Ready", "yes")), series.ReadyUnknown},
		"an empty condition status":   {operand(is("Ready", "")), series.ReadyUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			got, counts := tc.operand.Readiness(now)
			if counts != (tc.want != "") || counts && got != tc.want {
				t.Errorf("got %q, counts %t; want %q", got, counts, tc.want)
			}
		})
	}
}

func TestOutcomeOf(t *testing.T) {
	older, early := stalled(v1alpha1.ReasonCSVFailed), succeeded(-time.Minute)
	older.Status.Conditions[0].ObservedGeneration--
	for name, tc := range map[string]struct {
		install *v1alpha1.OperatorInstall
		want    string
		took    time.Duration
	}{
		"not admitted": {install: &v1alpha1.OperatorInstall{}},
		"in progress":  {install: admitted(time.Minute)},
		"succeeded": {install: succeeded(90 * time.Second), want: series.OutcomeSucceeded,
			took: 90 * time.Second},
		"succeeded before it was admitted": {install: early, want: series.OutcomeSucceeded},
		"failed": {install: stalled(v1alpha1.ReasonCSVFailed), want: series.OutcomeFailed,
			took: 10 * time.Minute},
		"stalled before OLM was involved":        {install: stalled(v1alpha1.ReasonCatalogUnreachable)},
		"upgrade refused by the operator itself": {install: stalled(v1alpha1.ReasonNotUpgradeable)},
		"failed for an earlier admission":        {install: older},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ReadOutcome(tc.install); got.Outcome != tc.want || got.Took != tc.took {
				t.Errorf("ended %q after %s; want %q after %s", got.Outcome, got.Took, tc.want, tc.took)
			}
		})
	}
}

// TestCounted checks what an agent counts for sequences of one install's
// states.
func TestCounted(t *testing.T) {
	again := succeeded(time.Minute)
	again.Spec.Admission.Revision++
	failedNext := stalled(v1alpha1.ReasonPlanFailed)
	failedNext.Spec.Admission.Hash, failedNext.Spec.Admission.Revision, failedNext.Status.ObservedRevision = "newer", 3,
		3
	for name, tc := range map[string]struct {
		known []*v1alpha1.OperatorInstall
		seen  []*v1alpha1.OperatorInstall
		want  []string
	}{
		"a success": {seen: []*v1alpha1.OperatorInstall{admitted(0),
			succeeded(time.Minute)}, want: []string{series.OutcomeSucceeded}},
		"a success seen several times": {seen: []*v1alpha1.OperatorInstall{succeeded(time.Minute),
			succeeded(time.Minute), succeeded(time.Minute)}, want: []string{series.OutcomeSucceeded}},
		"counted by the previous agent": {known: []*v1alpha1.OperatorInstall{succeeded(time.Minute)},
			seen: []*v1alpha1.OperatorInstall{succeeded(time.Minute)}},
		"started under the previous agent": {known: []*v1alpha1.OperatorInstall{admitted(0)},
			seen: []*v1alpha1.OperatorInstall{succeeded(time.Minute)}, want: []string{series.OutcomeSucceeded}},
		"only the first result counts": {seen: []*v1alpha1.OperatorInstall{stalled(v1alpha1.ReasonCSVFailed),
			admitted(0), stalled(v1alpha1.ReasonCSVFailed), succeeded(time.Minute)},
			want: []string{series.OutcomeFailed}},
		"admitted again to the installed release": {known: []*v1alpha1.OperatorInstall{succeeded(time.Minute)},
			seen: []*v1alpha1.OperatorInstall{again, again}},
		"each admission counts": {known: []*v1alpha1.OperatorInstall{succeeded(time.Minute)},
			seen: []*v1alpha1.OperatorInstall{failedNext, failedNext}, want: []string{series.OutcomeFailed}},
		"a failure that its predecessor " +
			"reported": {known: []*v1alpha1.OperatorInstall{stalled(v1alpha1.ReasonCSVFailed)},
			seen: []*v1alpha1.OperatorInstall{stalled(v1alpha1.ReasonCSVFailed)}},
	} {
		t.Run(name, func(t *testing.T) {
			var l Counted
			for _, oi := range tc.known {
				l.MarkCounted(oi)
			}
			var got []string
			for _, oi := range tc.seen {
				if ending, ended := l.Update(oi); ended {
					got = append(got, ending.Outcome)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRelease(t *testing.T) {
	for name, test := range map[string]struct {
		admitted  string // version
		succeeded string // hash
		want      string
	}{
		"the admitted version":          {admitted: "1.1.0", want: "new"},
		"the configuration has changed": {admitted: "1.1.0", succeeded: "old", want: "new"},
		"admitted, not installed yet":   {admitted: "1.2.0", succeeded: "old", want: "old"},
		"between two releases":          {admitted: "1.2.0"},
		"no longer admitted":            {succeeded: "old", want: "old"},
	} {
		t.Run(name, func(t *testing.T) {
			install := &v1alpha1.OperatorInstall{Status: v1alpha1.OperatorInstallStatus{SucceededHash: test.succeeded}}
			if test.admitted != "" {
				install.Spec.Admission = &v1alpha1.Admission{Hash: "new",
					Release: v1alpha1.Release{Version: test.admitted}}
			}
			if got := InstalledRelease(install, "1.1.0"); got != test.want {
				t.Errorf("release %q, want %q", got, test.want)
			}
		})
	}
}
