// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
)

// TestRepairRefuses: nothing is deleted on a cluster where that would not repair the operator. That it repairs one is
// tested on a real OLM.
func TestRepairRefuses(t *testing.T) {
	lost := func(i *v1alpha1.OperatorInstall) {
		conditions.Summarize(&i.Status.Conditions, 1, conditions.Summary{State: conditions.Stalled,
			Reason: v1alpha1.ReasonRequirementsNotMet, Message: "echo.v1.1.0 has lost its account."})
		i.Status.SucceededHash = i.Spec.Admission.Hash
	}
	for name, test := range map[string]struct {
		install func(*v1alpha1.OperatorInstall)
		offline bool
		frozen  bool
		want    string
	}{
		"it runs": {func(i *v1alpha1.OperatorInstall) {
			conditions.Summarize(&i.Status.Conditions, 1, conditions.Summary{State: conditions.Current,
				Reason: v1alpha1.ReasonSucceeded, Message: "It runs."})
		}, false, false, "has lost nothing that it came with"},
		"it was never installed": {func(i *v1alpha1.OperatorInstall) {
			lost(i)
			i.Status.SucceededHash = ""
		}, false, false, "has lost nothing"},
		"the agent does not report": {lost, true, false, "cluster a does not report"},
		"the cluster is frozen":     {lost, false, true, "cluster a is frozen"},
		"no such kubeconfig":        {lost, false, false, "check --cluster-kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			reference := v1alpha1.OperatorReference{Namespace: "default", Name: "echo"}
			install := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{
				Namespace: v1alpha1.ClusterNamespace("a"), Name: reference.InstallName(), Labels: reference.Labels()},
				Spec: v1alpha1.OperatorInstallSpec{Cluster: "a", Operator: reference, Admission: &v1alpha1.Admission{
					Hash: "hash", Release: v1alpha1.Release{Package: "echo", Bundle: "echo.v1.1.0", Version: "1.1.0"}}}}
			test.install(install)
			cluster := clitest.Cluster("a", nil)
			conditions.Set(&cluster.Status.Conditions, 1, v1alpha1.ConditionOnline, !test.offline, "Lease", "")
			h := clitest.NewHub(clitest.Operator("echo", "1.1.0"), cluster, install)
			if test.frozen {
				f := &v1alpha1.FleetFreeze{Spec: v1alpha1.FleetFreezeSpec{Clusters: []string{"*"}, Reason: "an incident"}}
				f.Name, f.CreationTimestamp = "now", metav1.NewTime(time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC))
				if err := h.Create(t.Context(), f); err != nil {
					t.Fatal(err)
				}
			}
			got := h.Run(t, "operator", "repair", "a", "echo", "--yes", "--cluster-kubeconfig", "missing.kubeconfig")
			if got.Code == 0 || !strings.Contains(got.Out+got.Err, test.want) {
				t.Errorf("it ends with %d, want %q:\n%s%s", got.Code, test.want, got.Out, got.Err)
			}
		})
	}
}
