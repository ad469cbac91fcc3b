// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// TestScan: somebody installed an operator by an ordinary Subscription. An agent that has the rights of agent.readOnly,
// and no others, reports it as it is, and it can be taken over. It manages nothing, and says so.
func TestScan(t *testing.T) {
	t.Parallel()
	c := quiet(t)
	k := clientOf(t, c)
	const user = "scan-reader"
	rules, err := charts.Rules("agent-read")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules.Cluster},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}},
	} {
		if err := k.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := c.WriteKubeconfig(user, user)
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, c, "scan", "--read-only", "--kubeconfig", reader)
	scan := &v1alpha1.OperatorScan{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: v1alpha1.ScanName}}
	h.create(scan)

	h = h.of(t, "scanned")
	h.makeNamespace()
	h.create(&operatorsv1.OperatorGroup{ObjectMeta: h.meta("group"),
		Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{h.operator}}})
	h.subscribeElsewhere("scanned", line("1.0.0")...)
	find := func() *v1alpha1.FoundOperator {
		if h.Get(t.Context(), client.ObjectKeyFromObject(scan), scan) != nil {
			return nil
		}
		i := slices.IndexFunc(scan.Status.Operators, func(o v1alpha1.FoundOperator) bool {
			return o.Namespace == h.operator && o.CSV != nil &&
				o.CSV.Phase == string(operatorsv1alpha1.CSVPhaseSucceeded)
		})
		if i < 0 {
			return nil
		}
		return &scan.Status.Operators[i]
	}
	h.eventually("the operator that runs is reported", func() bool { return find() != nil })
	found := find()
	want := &v1alpha1.FoundSubscription{Name: "scanned", Package: "scanned", Channel: "stable", Source: "theirs",
		SourceNamespace: h.operator, Approval: "Automatic", InstalledCSV: "scanned.v1.0.0",
		CurrentCSV: "scanned.v1.0.0", InstallPlan: found.Subscription.InstallPlan, Writers: found.Subscription.Writers}
	if diff := cmp.Diff(want, found.Subscription); diff != "" {
		t.Errorf("Subscription (-want +got):\n%s", diff)
	}
	if len(found.Subscription.Writers) != 1 || len(found.CSV.EditedBy) > 0 {
		t.Errorf("Subscription written by %q, want this test alone; CSV edited by %q, want nobody",
			found.Subscription.Writers, found.CSV.EditedBy)
	}
	if len(found.CSV.Owned) == 0 || len(found.CSV.Missing) > 0 || found.CSV.Version != "1.0.0" {
		t.Errorf("CSV %+v, want version 1.0.0 with its definitions", found.CSV)
	}
	packages, err := catalogs.ReadAll(catalogs.SingleFile("catalog.json",
		bytes.NewReader(fbc("scanned", line("1.0.0", "1.1.0")...))))
	h.must(err)
	verdict := adoption.Judge(adoption.Input{Found: found, Scan: &scan.Status, Known: adoption.Known{
		Packages: []adoption.Package{adoption.Summarize("fleet/main", packages[0])}}})
	if verdict.Class != adoption.Eligible {
		t.Errorf("class %q, want %q: %+v", verdict.Class, adoption.Eligible, verdict.Findings)
	}

	lease := &coordinationv1.Lease{}
	h.must(h.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: v1alpha1.LeaseName}, lease))
	if v := holds.DecodeVeto(lease.Annotations[v1alpha1.AnnotationVeto]); v == nil || !v.ReadOnly {
		t.Errorf("the agent reports the veto %+v, want that it may only read", v)
	}
}
