// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// policy makes a RolloutPolicy for the operators of the test.
func (f *fixture) policy(name string, spec v1alpha1.RolloutPolicySpec) *v1alpha1.RolloutPolicy {
	f.t.Helper()
	spec.Namespaces = []string{f.namespace}
	p := &v1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + f.tag}, Spec: spec}
	must(f.t, f.Create(f.t.Context(), p))
	f.t.Cleanup(func() {
		if err := client.IgnoreNotFound(f.Delete(f.t.Context(), p)); err != nil && f.t.Context().Err() == nil {
			f.t.Errorf("delete policy: %v", err)
		}
	})
	return p
}

// A policy bounds the pace and adds an approval that the strategy does not ask for. It
// becomes stricter while the rollout runs.
func TestRolloutPolicy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runAgents()
	defer f.startHub()()
	f.enrollMany(4)
	p := f.policy("house", v1alpha1.RolloutPolicySpec{
		MaxConcurrency: new(intstr.FromInt32(1)), MinSoak: &metav1.Duration{Duration: time.Second},
		Gates: []v1alpha1.Gate{{Name: "go", Approval: &v1alpha1.ApprovalGate{}}},
	})
	gate := p.Name + "/go"
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{sized(wave("canary", 4), 1), wave("rest", 4)}})

	f.reaches(ro, v1alpha1.RolloutProgressing, "Gated", "wave canary waits for gate "+gate)
	want := []v1alpha1.AppliedPolicy{{Name: p.Name, Generation: p.Generation, Waves: []string{"canary", "rest"},
		Added: []string{"soak 1s in wave canary, was 0s", "soak 1s in wave rest, was 0s",
			"maxConcurrency 1 in wave rest, was 4", "gate " + gate + " in waves canary, rest"}}}
	if diff := cmp.Diff(want, ro.Status.Policies); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	approve := func(wave string) {
		f.change(ro, func() {
			ro.Spec.Approvals = append(ro.Spec.Approvals, v1alpha1.Approval{Wave: wave, Gate: gate, By: "ann",
				Reason: "fine"})
		})
	}
	approve("canary")
	f.reaches(ro, v1alpha1.RolloutProgressing, "wave rest waits for gate "+gate)

	f.change(p, func() { p.Spec.MinWaves = new(int32(3)) })
	const problem = "asks for at least 3 waves, and the clusters are in 2"
	f.reaches(ro, v1alpha1.RolloutHalted, "PolicyNotMet", problem)
	approve("rest")
	f.eventually(func() error { // the hub has seen the approval
		if err := f.Get(t.Context(), client.ObjectKeyFromObject(ro), ro); err != nil {
			return err
		}
		if ro.Status.ObservedGeneration != ro.Generation {
			return fmt.Errorf("generation %d of %d was observed", ro.Status.ObservedGeneration, ro.Generation)
		}
		return nil
	})
	f.reaches(ro, v1alpha1.RolloutHalted, "PolicyNotMet", problem)
	if got := f.recorder.admittedBy(ro.Name); len(got) != 1 {
		t.Errorf("admitted while a policy is not met: %v", got)
	}
	f.change(p, func() { p.Spec.MinWaves = nil })
	f.reaches(ro, v1alpha1.RolloutSucceeded, "4 of 4 clusters updated")
	if peak := f.recorder.peakOf(ro.Name + "/rest"); peak != 1 {
		t.Errorf("%d clusters of wave rest were in progress at a time", peak)
	}
	f.hasEvents(ro, "PolicyApplied")
}

// TestReservedGateOfAPolicy: no RolloutPolicy can add the gate that waves without an observation have by themselves.
func TestReservedGateOfAPolicy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	create := func(name, gate string) error {
		p := &v1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Spec.Gates = []v1alpha1.Gate{{Name: gate, Approval: &v1alpha1.ApprovalGate{}}}
		return f.Create(t.Context(), p, client.DryRunAll)
	}
	err := create("bellwether", "observation")
	if err == nil || !strings.Contains(err.Error(), v1alpha1.GateObservation) {
		t.Errorf("the error is %v", err)
	}
	must(t, create("bellwether", "other"))
	must(t, create("house", "observation"))
}

// A window that a policy asks for counts whatever it selects itself, and closes the
// clusters while it does not exist.
func TestRolloutPolicyAsksForWindow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runAgents()
	defer f.startHub()()
	f.enrollMany(2)
	window := "nights-" + f.tag
	f.policy("hours", v1alpha1.RolloutPolicySpec{Windows: []string{window}})
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 2)}})
	f.reaches(ro, v1alpha1.RolloutProgressing, "WindowClosed", "asks for ChangeWindow "+window+", which does not exist")
	must(t, f.Create(t.Context(), &v1alpha1.ChangeWindow{ObjectMeta: metav1.ObjectMeta{Name: window},
		Spec: v1alpha1.ChangeWindowSpec{Type: v1alpha1.WindowAllow, Namespaces: []string{"of-nobody"},
			Start:    time.Now().Add(-time.Hour).UTC().Format(windowTime),
			Duration: metav1.Duration{Duration: 24 * time.Hour}}}))
	f.reaches(ro, v1alpha1.RolloutSucceeded, "2 of 2 clusters updated")
}
