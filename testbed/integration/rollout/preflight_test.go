// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// kubernetes reports the version of a cluster, as its agent would.
func (f *fixture) kubernetes(name, version string) {
	f.t.Helper()
	fc := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	f.changeStatus(fc, func() { fc.Status.Versions.Kubernetes = version })
}

// A cluster whose Kubernetes is too old is deferred and takes no slot: the others are
// updated one at a time. It is updated once its Kubernetes was.
func TestPreflightDefersClusters(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runAgents()
	defer f.startHub()()
	names := f.enrollMany(3)
	f.kubernetes(names[0], "v1.29.4+k3s1")
	f.kubernetes(names[1], "v1.31.0")
	f.kubernetes(names[2], "v1.31.0")
	ro := f.startWith(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 1)}},
		&v1alpha1.ReleaseRequirements{MinKubeVersion: "1.30.0"})
	f.reaches(ro, v1alpha1.RolloutSucceeded, "2 of 3 clusters updated, 1 deferred")
	if diff := cmp.Diff(names[1:], f.recorder.admittedBy(ro.Name)); diff != "" {
		t.Errorf("admitted (-want +got):\n%s", diff)
	}
	want := []v1alpha1.HeldBackClusters{{Reason: v1alpha1.ReasonPreflightFailed, Count: 1, Clusters: names[:1],
		Deferred: true, Message: "the cluster has Kubernetes 1.29.4, and bundle echo-operator.v1.1.0 needs 1.30.0 or " +
			"newer (minKubeVersion)"}}
	if diff := cmp.Diff(want, ro.Status.HeldBack); diff != "" {
		t.Errorf("held back (-want +got):\n%s", diff)
	}
	f.kubernetes(names[0], "v1.30.0")
	f.reaches(ro, v1alpha1.RolloutSucceeded, "3 of 3 clusters updated")
}

// A release that fits on no cluster ends in no success.
func TestReleaseThatFitsNowhereWaits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runAgents()
	defer f.startHub()()
	f.enrollMany(2)
	ro := f.startWith(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 1)}},
		&v1alpha1.ReleaseRequirements{TooLarge: "bundle too large"})
	f.reaches(ro, v1alpha1.RolloutProgressing, "PreflightFailed", "bundle too large")
	if got := f.recorder.admittedBy(ro.Name); len(got) > 0 {
		t.Errorf("admitted: %v", got)
	}
	before := ro.DeepCopy()
	ro.Spec.Requirements.TooLarge = ""
	if err := f.Patch(t.Context(), ro, client.MergeFrom(before)); err == nil ||
		!strings.Contains(err.Error(), "requirements cannot be changed") {
		t.Errorf("change the requirements: %v", err)
	}
}
