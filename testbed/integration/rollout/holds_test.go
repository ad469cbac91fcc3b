// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// A cluster whose owner refuses changes is deferred; it is updated once the veto is
// gone, even after the rollout has succeeded.
func TestVetoDefers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runAgents()
	defer f.startHub()()
	names := f.enrollMany(3)
	fc := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: names[1]}}
	f.changeStatus(fc, func() { fc.Status.Veto = &v1alpha1.ClusterVeto{Reason: "audit", Since: metav1.Now()} })
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 1)}})
	f.reaches(ro, v1alpha1.RolloutSucceeded, "2 of 3 clusters updated, 1 deferred")
	if diff := cmp.Diff([]string{names[0], names[2]}, f.recorder.admittedBy(ro.Name)); diff != "" {
		t.Errorf("admitted (-want +got):\n%s", diff)
	}
	if g := ro.Status.HeldBack; len(g) != 1 || g[0].Reason != v1alpha1.ReasonVetoed || !g[0].Deferred {
		t.Errorf("held back %+v", g)
	}
	f.changeStatus(fc, func() { fc.Status.Veto = nil })
	f.reaches(ro, v1alpha1.RolloutSucceeded, "3 of 3 clusters updated")
}

func TestDependencyComesFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runAgents()
	defer f.startHub()()
	names := f.enrollMany(1)
	operator := &v1alpha1.ManagedOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "echo"},
		Spec: v1alpha1.ManagedOperatorSpec{Package: "echo", Catalog: v1alpha1.LocalReference{Name: "none"},
			DependsOn: []v1alpha1.OperatorDependency{{Name: "db", MinVersion: "2.0.0"}}},
	}
	must(t, f.Create(t.Context(), operator))
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 1)}})
	f.reaches(ro, v1alpha1.RolloutProgressing, "DependencyNotMet",
		"operator db, which must come first, is not installed")

	db := v1alpha1.OperatorReference{Namespace: f.namespace, Name: "db"}
	install := &v1alpha1.OperatorInstall{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(names[0]), Name: db.InstallName(),
			Labels: db.Labels()},
		Spec: v1alpha1.OperatorInstallSpec{Operator: db, Cluster: names[0]},
	}
	must(t, f.Create(t.Context(), install))
	report := func(version string) {
		f.changeStatus(install, func() {
			install.Status.Installed = &v1alpha1.InstalledVersion{Bundle: "db.v" + version, Version: version}
			conditions.Set(&install.Status.Conditions, install.Generation, v1alpha1.ConditionReady, true,
				v1alpha1.ReasonSucceeded, "as the test says")
		})
	}
	report("1.0.0")
	f.reaches(ro, v1alpha1.RolloutProgressing, "has version 1.0.0 there, and 2.0.0 is the least")
	report("2.1.0")
	f.reaches(ro, v1alpha1.RolloutSucceeded, "1 of 1 cluster updated")
}
