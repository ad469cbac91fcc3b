// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// policy makes a RolloutPolicy for the operators of the test.
func (w *world) policy(name string, spec v1alpha1.RolloutPolicySpec) *v1alpha1.RolloutPolicy {
	w.t.Helper()
	spec.Namespaces = []string{w.namespace}
	p := &v1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + w.tag}, Spec: spec}
	must(w.t, w.Create(w.t.Context(), p))
	w.t.Cleanup(func() {
		if err := client.IgnoreNotFound(w.Delete(w.t.Context(), p)); err != nil && w.t.Context().Err() == nil {
			w.t.Errorf("delete policy: %v", err)
		}
	})
	return p
}

// A policy bounds the pace and adds an approval that the strategy does not ask for. It
// becomes stricter while the rollout runs.
func TestRolloutPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runAgents()
	defer w.startHub()()
	w.enrollMany(4)
	p := w.policy("house", v1alpha1.RolloutPolicySpec{
		MaxConcurrency: new(intstr.FromInt32(1)), MinSoak: &metav1.Duration{Duration: time.Second},
		Gates: []v1alpha1.Gate{{Name: "go", Approval: &v1alpha1.ApprovalGate{}}},
	})
	gate := p.Name + "/go"
	ro := w.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{sized(wave("canary", 4), 1), wave("rest", 4)}})

	w.reaches(ro, v1alpha1.RolloutProgressing, "Gated", "wave canary waits for gate "+gate)
	want := []v1alpha1.AppliedPolicy{{Name: p.Name, Generation: p.Generation, Waves: []string{"canary", "rest"},
		Added: []string{"soak 1s in wave canary, was 0s", "soak 1s in wave rest, was 0s",
			"maxConcurrency 1 in wave rest, was 4", "gate " + gate + " in waves canary, rest"}}}
	if diff := cmp.Diff(want, ro.Status.Policies); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	approve := func(wave string) {
		w.change(ro, func() {
			ro.Spec.Approvals = append(ro.Spec.Approvals, v1alpha1.Approval{Wave: wave, Gate: gate, By: "ann",
				Reason: "fine"})
		})
	}
	approve("canary")
	w.reaches(ro, v1alpha1.RolloutProgressing, "wave rest waits for gate "+gate)

	w.change(p, func() { p.Spec.MinWaves = new(int32(3)) })
	const problem = "asks for at least 3 waves, and the clusters are in 2"
	w.reaches(ro, v1alpha1.RolloutHalted, "PolicyNotMet", problem)
	approve("rest")
	w.eventually(func() error { // the hub has seen the approval
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(ro), ro); err != nil {
			return err
		}
		if ro.Status.ObservedGeneration != ro.Generation {
			return fmt.Errorf("generation %d of %d was observed", ro.Status.ObservedGeneration, ro.Generation)
		}
		return nil
	})
	w.reaches(ro, v1alpha1.RolloutHalted, "PolicyNotMet", problem)
	if got := w.witness.admittedBy(ro.Name); len(got) != 1 {
		t.Errorf("admitted while a policy is not met: %v", got)
	}
	w.change(p, func() { p.Spec.MinWaves = nil })
	w.reaches(ro, v1alpha1.RolloutSucceeded, "4 of 4 clusters updated")
	if peak := w.witness.peakOf(ro.Name + "/rest"); peak != 1 {
		t.Errorf("%d clusters of wave rest were in progress at a time", peak)
	}
	w.hasEvents(ro, "PolicyApplied")
}

// A window that a policy asks for counts whatever it selects itself, and closes the
// clusters while it does not exist.
func TestRolloutPolicyAsksForWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runAgents()
	defer w.startHub()()
	w.enrollMany(2)
	window := "nights-" + w.tag
	w.policy("hours", v1alpha1.RolloutPolicySpec{Windows: []string{window}})
	ro := w.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 2)}})
	w.reaches(ro, v1alpha1.RolloutProgressing, "WindowClosed", "asks for ChangeWindow "+window+", which does not exist")
	must(t, w.Create(t.Context(), &v1alpha1.ChangeWindow{ObjectMeta: metav1.ObjectMeta{Name: window},
		Spec: v1alpha1.ChangeWindowSpec{Type: v1alpha1.WindowAllow, Namespaces: []string{"of-nobody"},
			Start:    time.Now().Add(-time.Hour).UTC().Format(windowTime),
			Duration: metav1.Duration{Duration: 24 * time.Hour}}}))
	w.reaches(ro, v1alpha1.RolloutSucceeded, "2 of 2 clusters updated")
}
