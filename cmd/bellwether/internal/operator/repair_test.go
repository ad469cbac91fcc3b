// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
)

// TestRepairRefuses checks that nothing is deleted on a cluster where the deletion would not repair the operator.
func TestRepairRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		install func(*v1alpha1.OperatorInstall)
		offline bool
		frozen  bool
		want    string
	}{
		"it runs": {func(i *v1alpha1.OperatorInstall) {
			conditions.Summarize(&i.Status.Conditions, 1, conditions.Summary{State: conditions.Current,
				Reason: v1alpha1.ReasonSucceeded, Message: "It runs."})
		}, false, false, "nothing that came with operator echo is reported as lost on cluster a"},
		"it was never installed": {func(i *v1alpha1.OperatorInstall) {
			loseAccount(i)
			i.Status.SucceededHash = ""
		}, false, false, "is reported as lost"},
		"it needs what another operator provides": {func(i *v1alpha1.OperatorInstall) {
			loseAccount(i)
			conditions.Summarize(&i.Status.Conditions, 1, conditions.Summary{State: conditions.Stalled,
				Reason:  v1alpha1.ReasonRequirementsNotMet,
				Message: "echo.v1.1.0 needs what the cluster does not have: CustomResourceDefinition certificates."})
		}, false, false, "is reported as lost"},
		"another spec is reported": {func(i *v1alpha1.OperatorInstall) {
			loseAccount(i)
			i.Spec.Admission.Hash = "another"
		}, false, false, "is reported as lost"},
		"a message that was cut": {func(i *v1alpha1.OperatorInstall) {
			loseAccount(i)
			for n := range i.Status.Conditions {
				i.Status.Conditions[n].Message = "echo.v1.1.0 has lost what came with it: Servi…"
			}
		}, false, false, "check --cluster-kubeconfig"},
		"the agent does not report": {loseAccount, true, false, "the agent of cluster a does not report"},
		"the cluster is frozen":     {loseAccount, false, true, "cluster a is frozen"},
		"no such kubeconfig":        {loseAccount, false, false, "check --cluster-kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			h := lostOperator(t, test.install, test.offline)
			if test.frozen {
				f := &v1alpha1.FleetFreeze{Spec: v1alpha1.FleetFreezeSpec{Clusters: []string{"*"},
					Reason: "an incident"}}
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

// loseAccount reports that the account of the operator is lost.
func loseAccount(i *v1alpha1.OperatorInstall) {
	conditions.Summarize(&i.Status.Conditions, 1, conditions.Summary{State: conditions.Stalled,
		Reason: v1alpha1.ReasonObjectsLost, Message: "echo.v1.1.0 has lost what came with it: " +
			"ServiceAccount echo (NotPresent). " + i.RepairAdvice()})
	i.Status.SucceededHash = i.Spec.Admission.Hash
}

// lostOperator is a hub with operator echo on cluster a.
func lostOperator(t *testing.T, report func(*v1alpha1.OperatorInstall), offline bool) *clitest.Hub {
	t.Helper()
	reference := v1alpha1.OperatorReference{Namespace: "default", Name: "echo"}
	install := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{
		Namespace: v1alpha1.ClusterNamespace("a"), Name: reference.InstallName(), Labels: reference.Labels()},
		Spec: v1alpha1.OperatorInstallSpec{Cluster: "a", Operator: reference, Admission: &v1alpha1.Admission{
			Hash: "hash", Release: v1alpha1.Release{Package: "echo", Bundle: "echo.v1.1.0",
				Version: "1.1.0"}}}}
	report(install)
	cluster := clitest.Cluster("a", nil)
	conditions.Set(&cluster.Status.Conditions, 1, v1alpha1.ConditionOnline, !offline, "Lease", "")
	return clitest.NewHub(clitest.Operator("echo", "1.1.0"), cluster, install)
}

// TestRepair checks the output of a repair. OLM and the agent are simulated after the deletion.
func TestRepair(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		args   string
		phase  operatorsv1alpha1.ClusterServiceVersionPhase // before
		absent bool                                         // there is no ClusterServiceVersion
		stuck  bool                                         // OLM does not install it again

		owns     string // a CustomResourceDefinition that is not there
		failures int    // reads of the cluster that fail after the deletion
	}{
		"repaired":        {args: "--yes", phase: operatorsv1alpha1.CSVPhasePending},
		"asked":           {answer: "yes\n", phase: operatorsv1alpha1.CSVPhasePending},
		"not-confirmed":   {phase: operatorsv1alpha1.CSVPhasePending},
		"another-cluster": {args: "--yes", phase: operatorsv1alpha1.CSVPhaseSucceeded},
		"installing":      {args: "--yes", phase: operatorsv1alpha1.CSVPhaseInstalling},
		"failed":          {args: "--yes", phase: operatorsv1alpha1.CSVPhaseFailed},
		"no-phase":        {args: "--yes"},
		"decided-by-its-phase": {args: "--yes", phase: operatorsv1alpha1.CSVPhasePending,
			owns: "echoes.example.com"},
		"no-definition": {args: "--yes", phase: operatorsv1alpha1.CSVPhaseSucceeded,
			owns: "echoes.example.com"},
		"reads-fail":   {args: "--yes", phase: operatorsv1alpha1.CSVPhasePending, failures: 3},
		"reads-go-bad": {args: "--yes", phase: operatorsv1alpha1.CSVPhasePending, failures: 1 << 20},
		"absent":       {args: "--yes", absent: true},
		"timeout":      {args: "--yes", phase: operatorsv1alpha1.CSVPhasePending, stuck: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := lostOperator(t, loseAccount, false)
			h.Answer = test.answer
			csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "echo",
				Name: "echo.v1.1.0", UID: "old"}}
			csv.Status.Phase = test.phase
			if test.owns != "" {
				csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: test.owns}}
			}
			failures, isDeleted := test.failures, false
			cluster := fake.NewClientBuilder().WithScheme(hub.Scheme).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
					opts ...client.GetOption) error {
					if _, isDefinition := o.(*metav1.PartialObjectMetadata); isDefinition &&
						test.phase == operatorsv1alpha1.CSVPhasePending {
						t.Errorf("it reads definition %s, although the phase decides", key.Name)
					}
					if isDeleted && failures > 0 {
						failures--
						return apierrors.NewServiceUnavailable("etcd has no leader")
					}
					return c.Get(ctx, key, o, opts...)
				},
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object,
					opts ...client.DeleteOption) error {
					if err := c.Delete(ctx, o, opts...); err != nil || test.stuck {
						return err
					}
					isDeleted = true
					return installAgain(ctx, c, h)
				}})
			if !test.absent {
				cluster = cluster.WithObjects(csv)
			}
			h.Downstream = cluster.Build()
			synctest.Test(t, func(t *testing.T) {
				got := h.Run(t, append(strings.Fields("operator repair a echo --cluster-kubeconfig a.kubeconfig"),
					strings.Fields(test.args)...)...)
				fixture.AssertGolden(t, "repair-"+name, fmt.Sprintf("exit code %d\n%s%s", got.Code, got.Out, got.Err))
			})
		})
	}
}

// installAgain is what OLM and the agent do once the ClusterServiceVersion is deleted.
func installAgain(ctx context.Context, cluster client.Client, h *clitest.Hub) error {
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "echo",
		Name: "echo.v1.1.0", UID: "new"}, Status: operatorsv1alpha1.ClusterServiceVersionStatus{
		Phase: operatorsv1alpha1.CSVPhaseSucceeded}}
	if err := cluster.Create(ctx, csv); err != nil {
		return err
	}
	install := &v1alpha1.OperatorInstall{}
	if err := h.Get(ctx, client.ObjectKey{Namespace: v1alpha1.ClusterNamespace("a"), Name: "default.echo"},
		install); err != nil {
		return err
	}
	conditions.Summarize(&install.Status.Conditions, 1, conditions.Summary{State: conditions.Current,
		Reason: v1alpha1.ReasonSucceeded, Message: "It runs."})
	return h.Status().Update(ctx, install)
}
