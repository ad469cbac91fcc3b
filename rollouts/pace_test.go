// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// paced is a rollout by error budgets on clusters that have the operator, with a first
// wave of 10 clusters of which 8 may be changed at a time.
func paced(pace v1alpha1.ErrorBudgetPace) *fixture {
	f := newFixture()
	f.wave(0).Size, f.wave(0).MaxConcurrency = number(10), number(8)
	f.ro.Spec.Strategy.ErrorBudgetPace = &pace
	f.ro.Spec.Strategy = rollouts.Defaulted(f.ro.Spec.Strategy)
	f.Clusters, f.Installs = members(10), nil
	for _, c := range f.Clusters {
		f.Installs = append(f.Installs, rollouts.Install{Cluster: c.Name, Rollout: "echo-2", Wave: "one",
			SucceededHash: "old", Ready: true, Stamp: rollouts.Stamp{RolloutUID: "uid-1", Hash: "old",
				AdmittedAt: noon.Add(-24 * time.Hour)}})
	}
	return f
}

// budgets returns results with these remaining error budgets.
func budgets(left ...rollouts.Sample) map[string]rollouts.Result {
	return map[string]rollouts.Result{
		"objectives": vector(ofSLI("available", 0.99), ofSLI("panic", 0.999)), "budget": vector(left...),
	}
}

// TestErrorBudgetPace: concurrency and soak follow the error budget that is left, and
// nothing is admitted where none is left or it is not known.
func TestErrorBudgetPace(t *testing.T) {
	t.Parallel()
	const none, full = "wave one: 0 of 10 clusters updated, 0 in progress; no cluster is admitted: ",
		", and the pace is full from 50 % on"
	tests := map[string]struct {
		pace     v1alpha1.ErrorBudgetPace
		results  map[string]rollouts.Result
		failure  string
		percent  int32
		admitted int
		reason   string
		message  string
	}{
		"all is left": {
			results: budgets(ofSLI("available", 1), ofSLI("panic", 0.9)), percent: 100, admitted: 8,
			reason: "Progressing", message: "wave one: 0 of 10 clusters updated, 8 in progress",
		},
		"as much as is asked for": {
			results: budgets(ofSLI("available", 0.5), ofSLI("panic", 0.9)), percent: 100, admitted: 8,
			reason: "Progressing", message: "wave one: 0 of 10 clusters updated, 8 in progress",
		},
		"half of that": {
			results: budgets(ofSLI("available", 0.25), ofSLI("panic", 0.9)), percent: 50, admitted: 4,
			reason: "Progressing",
			message: "wave one: 0 of 10 clusters updated, 4 in progress; slowed down to 50 % of the full " +
				"pace: 25 % of the error budget of available is left" + full,
		},
		"nearly nothing": {
			results: budgets(ofSLI("available", 0.001), ofSLI("panic", 0.9)), percent: 1, admitted: 1,
			reason: "Progressing",
			message: "wave one: 0 of 10 clusters updated, 1 in progress; slowed down to 1 % of the full pace: " +
				"0.1 % of the error budget of available is left" + full,
		},
		"nothing": {
			results: budgets(ofSLI("available", 0), ofSLI("panic", 0.9)), reason: "ErrorBudgetSpent",
			message: none + "0 % of the error budget of available is left" + full,
		},
		"less than nothing": {
			results: budgets(ofSLI("available", 1), ofSLI("panic", -3)), reason: "ErrorBudgetSpent",
			message: none + "the error budget is overspent by 300 % for panic" + full,
		},
		"another threshold": {
			pace:    v1alpha1.ErrorBudgetPace{FullAbovePercent: new(int32(100))},
			results: budgets(ofSLI("available", 0.5), ofSLI("panic", 0.9)), percent: 50, admitted: 4,
			reason: "Progressing",
			message: "wave one: 0 of 10 clusters updated, 4 in progress; slowed down to 50 % of the full " +
				"pace: 50 % of the error budget of available is left, and the pace is full from 100 % " +
				"on",
		},
		"one objective counts": {
			pace:    v1alpha1.ErrorBudgetPace{Objectives: []string{"panic"}},
			results: budgets(ofSLI("panic", 0.9)), percent: 100, admitted: 8,
			reason:  "Progressing",
			message: "wave one: 0 of 10 clusters updated, 8 in progress",
		},
		"an objective without a budget": {
			results: budgets(ofSLI("available", 1)), reason: "ErrorBudgetUnknown",
			message: none + "the error budgets of the operator are not known: series " +
				"bellwether:slo_budget_left:ratio has nothing of objective panic",
		},
		"no objectives": {
			results: map[string]rollouts.Result{"objectives": vector(), "budget": vector()},
			reason:  "ErrorBudgetUnknown",
			message: none + "the error budgets of the operator are not known: series bellwether:slo_objective:ratio " +
				"has no objective of the operator",
		},
		"Prometheus is down": {
			failure: "connection refused", reason: "ErrorBudgetUnknown",
			message: none + "the error budgets of the operator are not known: connection refused",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := paced(test.pace)
			if d := rollouts.Next(f.Input); d.Status.Batch != nil || d.Reason != "ErrorBudgetUnknown" ||
				len(d.Events) != 0 {
				t.Errorf("before the first measurement: %s, batch %v, events %v", d.Status.Message, d.Status.Batch,
					d.Events)
			}
			if test.failure != "" {
				f.fail(t, test.failure)
			} else {
				f.answer(t, test.results)
			}
			d := rollouts.Next(f.Input)
			admitted := 0
			if d.Status.Batch != nil {
				admitted = len(d.Status.Batch.Clusters)
			}
			if admitted != test.admitted || d.Reason != test.reason {
				t.Errorf("%d clusters are admitted, %s; want %d, %s", admitted, d.Reason, test.admitted, test.reason)
			}
			if diff := cmp.Diff(test.message, d.Status.Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if pace := d.Status.Pace; pace == nil || pace.Percent != test.percent || pace.At == nil {
				t.Errorf("pace %+v, want %d %%", pace, test.percent)
			}
			var reasons []string
			for _, e := range d.Events {
				if strings.HasPrefix(e.Reason, "ErrorBudget") {
					reasons = append(reasons, e.Reason)
				}
			}
			if stopped := test.percent == 0; stopped != (len(reasons) == 1 && reasons[0] == test.reason) {
				t.Errorf("events %v", reasons)
			}
		})
	}
}

// TestErrorBudgetPaceSoak: a wave soaks longer while the budget is low, ten times as
// long at most.
func TestErrorBudgetPaceSoak(t *testing.T) {
	t.Parallel()
	for left, want := range map[float64]time.Duration{1: 10 * time.Minute, 0.25: 20 * time.Minute,
		0.05: 100 * time.Minute, 0.001: 100 * time.Minute, 0: 100 * time.Minute} {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			f.soaking()
			f.ro.Spec.Strategy.ErrorBudgetPace = &v1alpha1.ErrorBudgetPace{}
			f.answer(t, budgets(ofSLI("available", left), ofSLI("panic", 1)))
			is := rollouts.Next(f.Input).Status.Waves[0]
			if is.Phase != v1alpha1.WaveSoaking || is.Soak == nil || is.Soak.Duration != want {
				t.Errorf("%s, soak %v, want %s", is.Phase, is.Soak, want)
			}
		})
	}
}

// TestErrorBudgetPaceIsFull where there is no budget to protect, and for a rollback.
func TestErrorBudgetPaceIsFull(t *testing.T) {
	t.Parallel()
	fresh := paced(v1alpha1.ErrorBudgetPace{})
	for i := range fresh.Installs {
		fresh.Installs[i].SucceededHash, fresh.Installs[i].Stamp = "", rollouts.Stamp{}
	}
	back := goingBack()
	back.Installs[0].SucceededHash = "bad"
	back.ro.Spec.Strategy.ErrorBudgetPace = &v1alpha1.ErrorBudgetPace{}
	for name, test := range map[string]struct {
		*fixture
		admitted int
	}{"nothing is installed": {fresh, 8}, "a rollback": {back, 1}} {
		if d := rollouts.Next(test.Input); d.Status.Batch == nil || len(d.Status.Batch.Clusters) != test.admitted ||
			len(d.Questions) != 0 {
			t.Errorf("%s: batch %v, questions %v: %s", name, d.Status.Batch, d.Questions, d.Status.Message)
		}
	}
}

// TestErrorBudgetPaceIsMeasuredAgain checks that a measurement is valid for two minutes, also for a restarted hub, and
// that the rollout reports when it continues.
func TestErrorBudgetPaceIsMeasuredAgain(t *testing.T) {
	t.Parallel()
	f := paced(v1alpha1.ErrorBudgetPace{})
	f.ro.Status.Pace = &v1alpha1.PaceStatus{Reason: v1alpha1.ReasonErrorBudgetSpent, Evidence: "nothing is left",
		At: &metav1.Time{Time: noon.Add(-time.Minute)}}
	d := rollouts.Next(f.Input)
	if d.Reason != v1alpha1.ReasonErrorBudgetSpent || len(d.Questions) != 1 || d.RecheckAfter == 0 ||
		d.RecheckAfter > rollouts.MeasureInterval {
		t.Errorf("%s, questions %v, again in %s", d.Reason, d.Questions, d.RecheckAfter)
	}
	f.Now = noon.Add(2 * time.Minute)
	if d := rollouts.Next(f.Input); d.Reason != v1alpha1.ReasonErrorBudgetUnknown {
		t.Errorf("%s after three minutes without a measurement", d.Reason)
	}
	f.answer(t, budgets(ofSLI("available", 1), ofSLI("panic", 1)))
	d = rollouts.Next(f.Input)
	if len(d.Questions) != 0 || len(d.Events) == 0 || !strings.Contains(fmt.Sprint(d.Events), "ErrorBudgetLeft") {
		t.Errorf("questions %v, events %v", d.Questions, d.Events)
	}
}
