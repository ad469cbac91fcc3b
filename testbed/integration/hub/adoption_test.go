// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestTakeOver has a hub take over what others installed, before it goes on to the target. What cannot be taken over
// stops it in the wave where it is, and no version is blamed.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, startWhole(t), third, "a", "b", "c")
	for name, version := range map[string]string{"a": "1.0.0", "b": "1.1.0", "c": ""} {
		f.agents[name].found = version
	}
	f.agents["b"].refuse("Argo CD writes Subscription echo/echo. Remove it from Git.")
	for _, a := range f.agents {
		a.work(t)
	}
	f.operator.Spec.Adopt = &v1alpha1.OperatorAdoption{}
	f.operator.Spec.Strategy = v1alpha1.RolloutStrategy{OnFailure: v1alpha1.FailureRollback, Waves: []v1alpha1.Wave{
		{Name: "canary", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "b"}}}, {Name: "rest"}}}
	f.create()
	f.reaches(t, f.operator, "Stalled Halted", "rollout echo-1 to take over the installed versions: wave canary: 1 "+
		"cluster failed, 0 allowed: "+f.agents["b"].cluster.Name+" (NotAdoptable: Argo CD writes Subscription ")
	f.rollouts("echo-1")
	f.admittedBy(map[string]string{"b": "echo-1"})
	if err := f.blamesNoVersion(); err != nil {
		t.Error(err)
	}
	if f.operator.Status.Adoption != nil || len(f.operator.Spec.Holds) > 0 {
		t.Errorf("adoption %+v, holds %+v", f.operator.Status.Adoption, f.operator.Spec.Holds)
	}

	f.agents["b"].refuse("")
	f.reaches(t, f.operator, "True Succeeded", "3 of 3 clusters run 1.2.0")
	all := f.rollouts("echo-1", "echo-2")
	first, second := all["echo-1"], all["echo-2"]
	if !first.Spec.Release.AsInstalled || first.Status.Phase != v1alpha1.RolloutSucceeded ||
		second.Spec.Release.AsInstalled || second.Spec.Release.Version != "1.2.0" || second.Spec.Release.Adopt == nil {
		t.Errorf("%+v (%s), then %+v", first.Spec.Release, first.Status.Phase, second.Spec.Release)
	}
	if a := f.operator.Status.Adoption; a == nil || a.Rollout != "echo-1" || a.Clusters != 3 {
		t.Errorf("adoption %+v", a)
	}
	for name, before := range map[string]string{"a": "1.0.0", "b": "1.1.0", "c": ""} {
		install, err := f.installOn(name)
		must(t, err)
		previous := ""
		if p := install.Spec.Admission.Previous; p != nil {
			previous = p.Version
		}
		if previous != before {
			t.Errorf("cluster %s goes back to %q, want %q", name, previous, before)
		}
	}

	must(t, f.Get(t.Context(), client.ObjectKeyFromObject(f.operator), f.operator))
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.RemovalPolicy = v1alpha1.RemovalRestore })
	must(t, f.Delete(t.Context(), f.operator))
	f.gone(t, f.operator)
	f.running(map[string]string{})
}

// blamesNoVersion tells of a series from which a page about a release is made.
func (f *fixture) blamesNoVersion() error {
	families, err := f.metrics.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		if family.GetName() != series.RolloutWaveFailed && family.GetName() != series.RolloutChangeStart {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == series.OperatorNamespace && l.GetValue() == f.namespace {
					return fmt.Errorf("%s: %v", family.GetName(), m.GetLabel())
				}
			}
		}
	}
	return nil
}
