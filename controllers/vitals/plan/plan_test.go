// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

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

// admitted some time ago, and not succeeded since.
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
		hop  Hop
		want bool
	}{
		"not admitted": {hop: Hop{Install: &v1alpha1.OperatorInstall{}}},
		"just admitted": {hop: Hop{Install: admitted(time.Minute), Installed: "v1",
			CSVs: []CSV{v1}}, want: true},
		"succeeded": {hop: Hop{Install: succeeded(time.Minute), Installed: "v2",
			CSVs: []CSV{v2}}},
		"admitted long ago, and nothing happens": {hop: Hop{Install: admitted(time.Hour), Installed: "v1",
			CSVs: []CSV{v1}}},
		"begun long after its admission": {hop: Hop{Install: admitted(time.Hour), Installed: "v1",
			CSVs: []CSV{v1, v2}}, want: true},
		"begun, and OLM names the new one": {hop: Hop{Install: admitted(time.Hour), Installed: "v2",
			CSVs: []CSV{v1, v2}}, want: true},
		"begun long ago": {hop: Hop{Install: admitted(time.Hour), Installed: "v2",
			CSVs: []CSV{v1, {Name: "v2", Replaces: "v1", Created: ago(Grace)}}}},
		"a new CSV of something else": {hop: Hop{Install: admitted(time.Hour), Installed: "v1",
			CSVs: []CSV{v1, {Name: "lib", Created: now}}}},
		"subscribed just now": {hop: Hop{Install: admitted(time.Hour), Subscribed: ago(time.Minute)},
			want: true},
		"subscribed anew when it runs": {hop: Hop{Install: admitted(time.Hour), Subscribed: now, Installed: "v1",
			CSVs: []CSV{v1}}},
		"subscribed long ago, no CSV":   {hop: Hop{Install: admitted(time.Hour), Subscribed: ago(Grace)}},
		"its CSV was deleted by others": {hop: Hop{Install: succeeded(time.Minute), Subscribed: now}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Upgrading(tc.hop, now); got != tc.want {
				t.Errorf("upgrading: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestInstalling(t *testing.T) {
	upgrading := admitted(time.Minute)
	upgrading.Status.SucceededHash = "" // as the agent leaves it from the beginning of an upgrade
	for name, tc := range map[string]struct {
		hop  Hop
		want bool
	}{
		"nothing is there yet": {hop: Hop{Install: upgrading}, want: true},
		"a first CSV": {hop: Hop{Install: upgrading, Subscribed: ago(50 * time.Second),
			Installed: "v1", CSVs: []CSV{{Name: "v1", Created: ago(40 * time.Second)}}}, want: true},
		"within the second":        {hop: Hop{Install: upgrading, Subscribed: ago(time.Minute)}, want: true},
		"first, and it takes long": {hop: Hop{Install: admitted(Grace + time.Minute), Subscribed: ago(Grace)}},
		"an upgrade": {hop: Hop{Install: upgrading, Subscribed: ago(time.Hour), Installed: "v1",
			CSVs: []CSV{{Name: "v1", Created: ago(time.Hour)}}}},
		"an upgrade, and the old is gone": {hop: Hop{Install: upgrading, Subscribed: ago(time.Hour), Installed: "v2",
			CSVs: []CSV{{Name: "v2", Replaces: "v1", Created: ago(30 * time.Second)}}}},
		"done": {hop: Hop{Install: succeeded(time.Minute),
			Subscribed: ago(59 * time.Minute)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Installing(tc.hop, now); got != tc.want {
				t.Errorf("installing: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestOwn(t *testing.T) {
	h := Hop{Installed: "v2", CSVs: []CSV{{Name: "v3", Replaces: "v2"}, {Name: "lib.v2", Replaces: "lib.v1"},
		{Name: "v1", Replaces: "v0"}, {Name: "v2", Replaces: "v1"}, {Name: "lib.v1"}, {Name: "alone"}}}
	if diff := cmp.Diff([]string{"v2", "v3", "v1"}, h.Own()); diff != "" {
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
	young.Metadata.CreationTimestamp = metav1.NewTime(ago(Young - time.Second))
	just, long := metav1.NewTime(ago(time.Second)), metav1.NewTime(ago(Young))
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
		"ready":                         {operand(is("Synced", "False"), is("Ready", "True")), series.ReadyTrue},
		"not ready":                     {operand(is("Ready", "False")), series.ReadyFalse},
		"nobody knows":                  {operand(is("Ready", "Unknown")), series.ReadyUnknown},
		"available":                     {operand(is("Available", "True")), series.ReadyTrue},
		"not available":                 {operand(is("Available", "False")), series.ReadyFalse},
		"Ready goes before Available":   {operand(is("Available", "True"), is("Ready", "False")), series.ReadyFalse},
		"Stalled goes before Ready":     {operand(is("Ready", "True"), is("Stalled", "True")), series.ReadyFalse},
		"not stalled":                   {operand(is("Ready", "True"), is("Stalled", "False")), series.ReadyTrue},
		"says nothing":                  {silent, series.ReadyUnknown},
		"the spec is newer":             {behind, series.ReadyUnknown},
		"the condition is of an older":  {operand(old), series.ReadyUnknown},
		"young":                         {young, ""},
		"asked to go just now":          {leaving, ""},
		"asked to go, and does not go":  {left, series.ReadyUnknown},
		"a word that is no status":      {operand(is("Ready", "yes")), series.ReadyUnknown},
		"an empty status of conditions": {operand(is("Ready", "")), series.ReadyUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			got, counts := tc.operand.Readiness(now)
			if counts != (tc.want != "") || counts && got != tc.want {
				t.Errorf("got %q, counts %t; want %q", got, counts, tc.want)
			}
		})
	}
}

func TestEndingOf(t *testing.T) {
	older, early := stalled(v1alpha1.ReasonCSVFailed), succeeded(-time.Minute)
	older.Status.Conditions[0].ObservedGeneration--
	for name, tc := range map[string]struct {
		install *v1alpha1.OperatorInstall
		want    string
		took    time.Duration
	}{
		"not admitted": {install: &v1alpha1.OperatorInstall{}},
		"on its way":   {install: admitted(time.Minute)},
		"succeeded": {install: succeeded(90 * time.Second), want: series.OutcomeSucceeded,
			took: 90 * time.Second},
		"succeeded before it was admitted": {install: early, want: series.OutcomeSucceeded},
		"failed": {install: stalled(v1alpha1.ReasonCSVFailed), want: series.OutcomeFailed,
			took: 10 * time.Minute},
		"stalled before OLM had a part in it": {install: stalled(v1alpha1.ReasonCatalogUnreachable)},
		"held by the operator itself":         {install: stalled(v1alpha1.ReasonNotUpgradeable)},
		"failed under an earlier admission":   {install: older},
	} {
		t.Run(name, func(t *testing.T) {
			if got := EndingOf(tc.install); got.Outcome != tc.want || got.Took != tc.took {
				t.Errorf("ended %q after %s; want %q after %s", got.Outcome, got.Took, tc.want, tc.took)
			}
		})
	}
}

// TestLedger plays what an agent sees of one install, in order.
func TestLedger(t *testing.T) {
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
		"a success seen often": {seen: []*v1alpha1.OperatorInstall{succeeded(time.Minute),
			succeeded(time.Minute), succeeded(time.Minute)}, want: []string{series.OutcomeSucceeded}},
		"counted by the agent before": {known: []*v1alpha1.OperatorInstall{succeeded(time.Minute)},
			seen: []*v1alpha1.OperatorInstall{succeeded(time.Minute)}},
		"begun under the agent before": {known: []*v1alpha1.OperatorInstall{admitted(0)},
			seen: []*v1alpha1.OperatorInstall{succeeded(time.Minute)}, want: []string{series.OutcomeSucceeded}},
		"the first ending counts": {seen: []*v1alpha1.OperatorInstall{stalled(v1alpha1.ReasonCSVFailed),
			admitted(0), stalled(v1alpha1.ReasonCSVFailed), succeeded(time.Minute)},
			want: []string{series.OutcomeFailed}},
		"admitted again to what is there": {known: []*v1alpha1.OperatorInstall{succeeded(time.Minute)},
			seen: []*v1alpha1.OperatorInstall{again, again}},
		"each admission counts": {known: []*v1alpha1.OperatorInstall{succeeded(time.Minute)},
			seen: []*v1alpha1.OperatorInstall{failedNext, failedNext}, want: []string{series.OutcomeFailed}},
		"a failure that its predecessor reported": {known: []*v1alpha1.OperatorInstall{stalled(v1alpha1.ReasonCSVFailed)}, seen: []*v1alpha1.OperatorInstall{stalled(v1alpha1.ReasonCSVFailed)}},
	} {
		t.Run(name, func(t *testing.T) {
			var l Ledger
			for _, oi := range tc.known {
				l.Known(oi)
			}
			var got []string
			for _, oi := range tc.seen {
				if ending, ended := l.Next(oi); ended {
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
		"the admitted version":             {admitted: "1.1.0", want: "new"},
		"the configuration has changed":    {admitted: "1.1.0", succeeded: "old", want: "new"},
		"a version is admitted, not there": {admitted: "1.2.0", succeeded: "old", want: "old"},
		"between the release and the next": {admitted: "1.2.0"},
		"nothing is admitted any more":     {succeeded: "old", want: "old"},
	} {
		t.Run(name, func(t *testing.T) {
			install := &v1alpha1.OperatorInstall{Status: v1alpha1.OperatorInstallStatus{SucceededHash: test.succeeded}}
			if test.admitted != "" {
				install.Spec.Admission = &v1alpha1.Admission{Hash: "new",
					Release: v1alpha1.Release{Version: test.admitted}}
			}
			if got := Release(install, "1.1.0"); got != test.want {
				t.Errorf("release %q, want %q", got, test.want)
			}
		})
	}
}
