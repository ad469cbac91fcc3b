// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silence

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// TestSilenceOfFlags creates objects from flags, or reports the missing flags.
func TestSilenceOfFlags(t *testing.T) {
	good := createOptions{owner: "anna", reason: "work", operators: []string{"echo"}, duration: time.Hour}
	with := func(change func(*createOptions)) createOptions {
		o := good
		change(&o)
		return o
	}
	for name, test := range map[string]struct {
		options createOptions
		want    v1alpha1.AlertSilenceSpec
		wrong   string
	}{
		"an operator": {options: good, want: v1alpha1.AlertSilenceSpec{Owner: "anna", Reason: "work",
			Operators: []string{"echo"}, End: metav1.NewTime(noon.Add(time.Hour))}},
		"clusters": {options: createOptions{owner: "anna", reason: "work", clusters: []string{"a"}, selector: "site=eu",
			until: "2026-11-23T14:00:00+01:00", fleet: true, tickets: true},
			want: v1alpha1.AlertSilenceSpec{Owner: "anna", Reason: "work", End: metav1.NewTime(noon.Add(time.Hour)),
				Scope: v1alpha1.SilenceFleet, Alerts: v1alpha1.SilenceTickets, Clusters: &v1alpha1.SilencedClusters{
					Names:    []string{"a"},
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"site": "eu"}}}}},
		"excludes time": {options: with(func(o *createOptions) { o.exclude = true }),
			want: v1alpha1.AlertSilenceSpec{Owner: "anna", Reason: "work", Operators: []string{"echo"},
				End: metav1.NewTime(noon.Add(time.Hour)), ExcludeFromBudgets: true}},
		"no owner":       {options: with(func(o *createOptions) { o.owner = " " }), wrong: "needs an owner and a reason"},
		"no reason":      {options: with(func(o *createOptions) { o.reason = "" }), wrong: "needs an owner and a reason"},
		"about nothing":  {options: with(func(o *createOptions) { o.operators = nil }), wrong: "do not say what is silenced"},
		"no time":        {options: with(func(o *createOptions) { o.until = "tomorrow" }), wrong: "invalid value"},
		"over already":   {options: with(func(o *createOptions) { o.duration = 0 }), wrong: "which is over"},
		"wrong selector": {options: with(func(o *createOptions) { o.selector = "a b" }), wrong: "--cluster-selector"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.options.newSilence(client.ObjectKey{Namespace: "tools", Name: "s"})
			if err == nil {
				got.Spec.End, err = test.options.computeEnd(noon)
			}
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("error %v, want %q in it", err, test.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(
				test.want,
				got.Spec,
				cmpopts.EquateEmpty(),
			); diff != "" || got.Namespace != "tools" ||
				got.Name != "s" {
				t.Errorf("%s/%s (-want +got):\n%s", got.Namespace, got.Name, diff)
			}
		})
	}
}

// TestList: silences in force are listed first.
func TestList(t *testing.T) {
	silence := func(name, reason string, end time.Duration, active metav1.ConditionStatus) v1alpha1.AlertSilence {
		return v1alpha1.AlertSilence{ObjectMeta: metav1.ObjectMeta{Namespace: "tools", Name: name},
			Spec: v1alpha1.AlertSilenceSpec{Owner: "anna", Reason: "work", End: metav1.NewTime(noon.Add(end))},
			Status: v1alpha1.AlertSilenceStatus{HiddenPages: 2, Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: reason},
				{Type: v1alpha1.ConditionActive, Status: active}}}}
	}
	later := silence("later", v1alpha1.ReasonInForce, 2*time.Hour, metav1.ConditionTrue)
	later.Spec.ExcludeFromBudgets = true
	later.Status.Conditions = append(later.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionBudgetsExcluded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonExcluding})
	got := BuildSilenceTable([]v1alpha1.AlertSilence{silence("over", v1alpha1.ReasonEnded, -time.Hour,
		metav1.ConditionFalse),
		later,
		silence("sooner", v1alpha1.ReasonInForce, time.Hour, metav1.ConditionTrue)},
		term.Listing{Now: noon, Namespaces: true, Wide: true}).Render(term.Style{})
	lines := strings.Split(strings.TrimSpace(got), "\n")
	want := [][]string{{"NAMESPACE", "NAME", "OWNER", "STATE", "END", "BUDGETS", "HIDDEN", "PAGES", "REASON"},
		{"tools", "sooner", "anna", "InForce", "2026-11-23T13:00:00Z", "-", "2", "work"},
		{"tools", "later", "anna", "InForce", "2026-11-23T14:00:00Z", "Excluding", "2", "work"},
		{"tools", "over", "anna", "Ended", "2026-11-23T11:00:00Z", "-", "2", "work"}}
	var fields [][]string
	for _, line := range lines {
		fields = append(fields, strings.Fields(line))
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}
