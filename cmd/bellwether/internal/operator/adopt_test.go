// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
)

// foundCluster is a cluster and what its agent reports.
type foundCluster struct {
	name   string
	labels map[string]string
	// version of echo-operator, by an ordinary Subscription; empty where it is not installed.
	version string
	change  func(*v1alpha1.FoundOperator, *v1alpha1.OperatorScanStatus)
}

func (f foundCluster) objects() []client.Object {
	cluster := clitest.Cluster(f.name, f.labels)
	at := metav1.NewTime(fixture.Noon.Add(-2 * time.Hour))
	scan := &v1alpha1.OperatorScan{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(f.name),
		Name: v1alpha1.ScanName, Labels: map[string]string{v1alpha1.LabelCluster: f.name}},
		Status: v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMServed, ObservedAt: &at,
			CatalogSources: []v1alpha1.FoundCatalogSource{{Namespace: "olm", Name: "community", State: "READY"}}}}
	if f.version != "" {
		csv := "echo-operator.v" + f.version
		found := v1alpha1.FoundOperator{Namespace: "echo",
			Subscription: &v1alpha1.FoundSubscription{Name: "my-echo", Package: "echo-operator", Channel: "stable",
				Source: "community", SourceNamespace: "olm", Approval: "Automatic", InstalledCSV: csv, CurrentCSV: csv},
			CSV: &v1alpha1.FoundCSV{Name: csv, Version: f.version, Phase: "Succeeded",
				Deployments: []v1alpha1.FoundDeployment{{Name: "echo", Replicas: 1, Ready: 1, Bundle: 1}}}}
		scan.Status.Namespaces = []v1alpha1.FoundNamespace{{Name: "echo",
			OperatorGroups: []v1alpha1.FoundOperatorGroup{{Name: "group"}}}}
		if f.change != nil {
			f.change(&found, &scan.Status)
		}
		scan.Status.Operators = []v1alpha1.FoundOperator{found}
	}
	return []client.Object{cluster, scan}
}

// echoCatalog has the versions 1.0.0 and 1.1.0 in channel stable, and 1.1.0 in fast.
func echoCatalog() *v1alpha1.OperatorCatalog {
	c := &v1alpha1.OperatorCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "main"}}
	c.Status.Digest, c.Status.PackageCount = "sha256:1", 1
	c.Status.Packages = []v1alpha1.CatalogPackage{{Name: "echo-operator",
		Channels: []v1alpha1.CatalogChannel{{Name: "fast", Head: "1.1.0", Versions: 1},
			{Name: "stable", Head: "1.1.0", Versions: 2}},
		Versions: []v1alpha1.CatalogVersion{{Version: "1.0.0", Bundle: "echo-operator.v1.0.0"},
			{Version: "1.1.0", Bundle: "echo-operator.v1.1.0"}}}}
	return c
}

var prod = map[string]string{"env": "prod"}

func level(value string) func(*v1alpha1.FoundOperator, *v1alpha1.OperatorScanStatus) {
	return func(f *v1alpha1.FoundOperator, _ *v1alpha1.OperatorScanStatus) {
		f.Subscription.Config = []string{"env"}
		f.Subscription.Settings = v1alpha1.SettingsOf(&v1alpha1.OperatorConfig{
			Env: []corev1.EnvVar{{Name: "LEVEL", Value: value}}})
	}
}

func byArgo(f *v1alpha1.FoundOperator, _ *v1alpha1.OperatorScanStatus) {
	f.Subscription.GitOps = "Argo CD (team/echo)"
}

func foundFleet(clusters ...foundCluster) *clitest.Hub {
	objects := []client.Object{echoCatalog()}
	for _, c := range clusters {
		objects = append(objects, c.objects()...)
	}
	return clitest.NewHub(objects...)
}

// TestAdoptPlan checks that the plan shows the result on each cluster, and the reason for each refusal.
func TestAdoptPlan(t *testing.T) {
	h := foundFleet(foundCluster{name: "a", labels: prod, version: "1.0.0"},
		foundCluster{name: "b", labels: prod, version: "1.1.0", change: func(f *v1alpha1.FoundOperator,
			_ *v1alpha1.OperatorScanStatus) {
			f.Subscription.Channel, f.Subscription.Approval = "fast", "Manual"
		}},
		foundCluster{name: "c", labels: prod, version: "0.9.0"},
		foundCluster{name: "d", labels: prod, version: "1.0.0", change: byArgo},
		foundCluster{name: "e", labels: prod}, foundCluster{name: "f", version: "1.0.0"},
		foundCluster{name: "g", labels: prod, version: "1.0.0", change: func(f *v1alpha1.FoundOperator,
			_ *v1alpha1.OperatorScanStatus) {
			f.CSV.Phase = "Installing"
		}})
	for name, args := range map[string]string{
		"adopt-plan":   "--selector env=prod --dry-run",
		"adopt-accept": "--selector env=prod --dry-run --accept GitOps --version 1.0.x",
		"adopt-yaml":   "--selector env=prod -o yaml --accept GitOps --channel fast --name my-echo",
	} {
		t.Run(name, func(t *testing.T) {
			got := h.Run(t, append([]string{"operator", "adopt", "echo-operator"}, strings.Fields(args)...)...)
			if got.Code != 0 || got.Err != "" {
				t.Fatalf("exit code %d: %s%s", got.Code, got.Out, got.Err)
			}
			fixture.AssertGolden(t, name, got.Out)
		})
	}
	list := &v1alpha1.ManagedOperatorList{}
	if err := h.List(t.Context(), list); err != nil || len(list.Items) > 0 {
		t.Errorf("a plan has made %d ManagedOperators: %v", len(list.Items), err)
	}
}

// TestAdoptWithinAccess checks that only clusters that a FleetAccess permits to the ManagedOperator count: the
// command ignores the installs and settings on other clusters.
func TestAdoptWithinAccess(t *testing.T) {
	teams := &v1alpha1.FleetAccess{ObjectMeta: metav1.ObjectMeta{Name: "teams"}, Spec: v1alpha1.FleetAccessSpec{
		Namespaces: []string{"default"}, Registries: []string{"*"}, TargetNamespaces: []string{"echo"},
		ClusterSelector: metav1.LabelSelector{MatchLabels: prod}}}
	objects := []client.Object{echoCatalog(), teams}
	for _, c := range []foundCluster{{name: "a", labels: prod, version: "1.0.0"},
		{name: "b", version: "1.1.0", change: level("debug")}, {name: "c"}, {name: "d", version: "0.9.0"},
		{name: "e", labels: prod}} {
		objects = append(objects, c.objects()...)
	}
	h := clitest.NewHub(objects...)
	got := h.MustRun(t, "operator", "adopt", "echo-operator", "--all-clusters", "--dry-run")
	fixture.AssertGolden(t, "adopt-access", got.Out)

	teams.Spec.TargetNamespaces = []string{"other"}
	if err := h.Update(t.Context(), teams); err != nil {
		t.Fatal(err)
	}
	if got := h.Run(t, "operator", "adopt", "echo-operator", "--all-clusters", "--yes"); got.Code == 0 ||
		!strings.Contains(got.Err, "no cluster can be taken over") ||
		!strings.Contains(got.Out, "does not permit the target namespace echo") {
		t.Errorf("exit code %d:\n%s%s", got.Code, got.Out, got.Err)
	}
	teams.Spec.Namespaces = []string{"other"}
	if err := h.Update(t.Context(), teams); err != nil {
		t.Fatal(err)
	}
	if got := h.Run(t, "operator", "adopt", "echo-operator", "--all-clusters", "--yes"); got.Code == 0 ||
		!strings.Contains(strings.Join(strings.Fields(got.Err), " "), "no cluster reports an install of package "+
			"echo-operator that others made, on the clusters that a FleetAccess permits to namespace default") {
		t.Errorf("exit code %d:\n%s%s", got.Code, got.Out, got.Err)
	}
}

// TestAdoptMakesAnOperator checks that the new ManagedOperator has the settings of the installs.
func TestAdoptMakesAnOperator(t *testing.T) {
	own := func(f *v1alpha1.FoundOperator, s *v1alpha1.OperatorScanStatus) {
		level("debug")(f, s)
		s.Namespaces[0].OperatorGroups[0].Targets = []string{"echo"}
	}
	h := foundFleet(foundCluster{name: "a", labels: prod, version: "1.0.0", change: own},
		foundCluster{name: "b", labels: prod, version: "1.1.0", change: own})
	got := h.MustRun(t, "operator", "adopt", "echo-operator", "--selector", "env=prod", "--yes")
	if !strings.Contains(got.Err+got.Out,
		"made ManagedOperator echo-operator: a rollout takes over what is installed") {
		t.Errorf("says:\n%s%s", got.Out, got.Err)
	}
	o := &v1alpha1.ManagedOperator{}
	if err := h.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "echo-operator"}, o); err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.ManagedOperatorSpec{Package: "echo-operator", Channel: "stable",
		Catalog:         v1alpha1.LocalReference{Name: "main"},
		ClusterSelector: metav1.LabelSelector{MatchLabels: prod}, Adopt: &v1alpha1.OperatorAdoption{},
		Install: v1alpha1.OperatorInstallation{InstallSettings: v1alpha1.InstallSettings{Namespace: "echo",
			Mode:   v1alpha1.InstallOwnNamespace,
			Config: &v1alpha1.OperatorConfig{Env: []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}}}}}
	if diff := cmp.Diff(want, o.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// TestAdoptAsks checks that nothing is created without the necessary flags and a confirmation.
func TestAdoptAsks(t *testing.T) {
	one := foundCluster{name: "a", labels: prod, version: "1.0.0"}
	other := clitest.Operator("echo", "1.1.0")
	other.Spec.Package, other.Spec.Install.Namespace = "echo-operator", "echo"
	other.Spec.Adopt = &v1alpha1.OperatorAdoption{Accept: []v1alpha1.AcceptedFinding{"ScaledToZero"}}
	second := echoCatalog()
	second.Name = "second"
	for name, test := range map[string]struct {
		clusters []foundCluster
		more     []client.Object
		args     string
		answer   string
		says     string
	}{
		"which clusters": {clusters: []foundCluster{one, {name: "b"}}, args: "echo-operator",
			says: "1 of 2 clusters runs it: a"},
		"which clusters, with a label": {clusters: []foundCluster{one, {name: "b"}}, args: "echo-operator",
			says: "set --selector env=prod, which exactly these have"},
		"all clusters have it": {clusters: []foundCluster{{name: "a", version: "1.0.0"}}, args: "echo-operator",
			says: "set --all-clusters: all clusters of the fleet have it"},
		"nobody has it": {clusters: []foundCluster{{name: "a"}}, args: "echo-operator --all-clusters",
			says: "no cluster reports an install of package echo-operator that others made"},
		"no catalog has it": {clusters: []foundCluster{{name: "a", version: "1.0.0",
			change: func(f *v1alpha1.FoundOperator, _ *v1alpha1.OperatorScanStatus) {
				f.Subscription.Package = "other"
			}}}, args: "other --all-clusters", says: "no OperatorCatalog of namespace default has package other"},
		"which catalog": {clusters: []foundCluster{one}, more: []client.Object{second},
			args: "echo-operator --all-clusters", says: "set --catalog to one of main, second"},
		"settings differ": {clusters: []foundCluster{{name: "a", version: "1.0.0", change: level("debug")},
			{name: "b", version: "1.0.0", change: level("info")}, {name: "c", version: "1.0.0", change: level("info")}},
			args: "echo-operator --all-clusters", says: `b, c: {"env":[{"name":"LEVEL","value":"info"}]}`},
		"settings that are not reported": {clusters: []foundCluster{{name: "a", version: "1.0.0",
			change: func(f *v1alpha1.FoundOperator, _ *v1alpha1.OperatorScanStatus) {
				f.Subscription.Config = []string{"env"}
			}}}, args: "echo-operator --all-clusters", says: "on cluster a are not in its report"},
		"what cannot be accepted": {clusters: []foundCluster{one}, args: "echo-operator --all-clusters --accept Vetoed",
			says: `invalid value "Vetoed" of --accept`},
		"what is no version": {clusters: []foundCluster{one}, args: "echo-operator --all-clusters --version ~1.0.0",
			says: "invalid value of --version"},
		"nothing can be taken over": {clusters: []foundCluster{{name: "a", version: "0.9.0"}},
			args: "echo-operator --all-clusters --yes", says: "nothing was changed: no cluster can be taken over"},
		"a no": {clusters: []foundCluster{one}, args: "echo-operator --all-clusters", answer: "no\n",
			says: "not confirmed, and nothing was changed"},
		"no terminal": {clusters: []foundCluster{one}, args: "echo-operator --all-clusters", says: "set --yes"},
		"flags of a new one": {clusters: []foundCluster{one}, more: []client.Object{other},
			args: "echo --channel fast", says: "ManagedOperator echo is there already"},
		"flags with undo": {clusters: []foundCluster{one}, args: "echo --undo --accept GitOps",
			says: "--accept has no effect with --undo"},
		"nothing to undo": {clusters: []foundCluster{one}, more: []client.Object{other}, args: "echo --undo --yes",
			says: "no cluster reports that operator echo was taken over there"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append([]client.Object{echoCatalog()}, test.more...)
			for _, c := range test.clusters {
				objects = append(objects, c.objects()...)
			}
			h := clitest.NewHub(objects...)
			h.Answer = test.answer
			got := h.Run(t, append([]string{"operator", "adopt"}, strings.Fields(test.args)...)...)
			if got.Code == 0 || !strings.Contains(strings.Join(strings.Fields(got.Err), " "), test.says) {
				t.Errorf("exit code %d, want %q:\n%s%s", got.Code, test.says, got.Out, got.Err)
			}
			list := &v1alpha1.ManagedOperatorList{}
			if err := h.List(t.Context(), list); err != nil || len(list.Items) != len(objectsOf(test.more)) {
				t.Errorf("%d ManagedOperators: %v", len(list.Items), err)
			}
		})
	}
}

func objectsOf(objects []client.Object) (out []*v1alpha1.ManagedOperator) {
	for _, o := range objects {
		if m, ok := o.(*v1alpha1.ManagedOperator); ok {
			out = append(out, m)
		}
	}
	return out
}

// TestAdoptChangesAnOperator checks that an existing ManagedOperator keeps its spec and accepts more findings.
func TestAdoptChangesAnOperator(t *testing.T) {
	o := clitest.Operator("echo", "1.1.0")
	o.Spec.Package, o.Spec.Install.Namespace = "echo-operator", "echo"
	o.Spec.Adopt = &v1alpha1.OperatorAdoption{Accept: []v1alpha1.AcceptedFinding{"ScaledToZero"}}
	objects := append([]client.Object{echoCatalog(), o},
		foundCluster{name: "a", version: "1.0.0", change: byArgo}.objects()...)
	h := clitest.NewHub(objects...)
	h.Answer = "yes\n"
	h.MustRun(t, "operator", "adopt", "echo", "--accept", "GitOps", "--accept", "ScaledToZero")
	now := &v1alpha1.ManagedOperator{}
	if err := h.Get(t.Context(), client.ObjectKeyFromObject(o), now); err != nil {
		t.Fatal(err)
	}
	want := o.Spec.DeepCopy()
	want.Adopt.Accept = append(want.Adopt.Accept, "GitOps")
	if diff := cmp.Diff(*want, now.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// TestUndoAdoption checks that the original Subscriptions are shown, and that the
// ManagedOperator gets the policy Restore and is deleted.
func TestUndoAdoption(t *testing.T) {
	o := clitest.Operator("echo", "1.1.0")
	o.Finalizers = []string{v1alpha1.FinalizerHub}
	objects := []client.Object{o, clitest.Cluster("a", nil), clitest.Cluster("b", nil)}
	reference := v1alpha1.OperatorReference{Namespace: "default", Name: "echo"}
	for _, cluster := range []string{"b", "a"} {
		i := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(cluster),
			Name: reference.InstallName(), Labels: reference.Labels()},
			Spec: v1alpha1.OperatorInstallSpec{Cluster: cluster, Operator: reference}}
		if cluster == "a" {
			i.Status.Adopted = &v1alpha1.AdoptedSubscription{Name: "my-echo", Bundle: "echo-operator.v1.0.0",
				Channel: "stable", Source: "community", SourceNamespace: "olm", Approval: "Automatic",
				Since: metav1.NewTime(fixture.Noon.Add(-time.Hour))}
		}
		objects = append(objects, i)
	}
	h := clitest.NewHub(objects...)
	fixture.AssertGolden(t, "adopt-undo", h.MustRun(t, "operator", "adopt", "echo", "--undo", "--dry-run").Out)

	h.Denied = []string{"remove managedoperators"}
	if got := h.Run(t, "operator", "adopt", "echo", "--undo", "--yes"); got.Code == 0 ||
		!strings.Contains(got.Err, "ClusterRole bellwether-remove") {
		t.Errorf("without the right: exit code %d: %s", got.Code, got.Err)
	}
	h.Denied = nil
	got := h.Run(t, "operator", "adopt", "echo", "--undo", "--yes", "--timeout", "1ms")
	if got.Code == 0 || !strings.Contains(got.Err, "not ended within 1ms") {
		t.Errorf("exit code %d:\n%s%s", got.Code, got.Out, got.Err)
	}
	now := &v1alpha1.ManagedOperator{}
	if err := h.Get(t.Context(), client.ObjectKeyFromObject(o), now); err != nil {
		t.Fatal(err)
	}
	if now.Spec.RemovalPolicy != v1alpha1.RemovalRestore || now.DeletionTimestamp == nil {
		t.Errorf("policy %q, deleted at %v", now.Spec.RemovalPolicy, now.DeletionTimestamp)
	}
	// Once more: what was put back on a cluster is not reported any more, and the command waits for the rest.
	if got := h.Run(t, "operator", "adopt", "echo", "--undo", "--yes", "--timeout", "1ms"); got.Code == 0 ||
		!strings.Contains(got.Err, "not ended within 1ms") || !strings.Contains(got.Out+got.Err,
		"ManagedOperator echo is being deleted, and what was there before is being put back.") {
		t.Errorf("again: exit code %d:\n%s%s", got.Code, got.Out, got.Err)
	}
	now.Spec.RemovalPolicy = v1alpha1.RemovalOrphan
	if err := h.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if got := h.Run(t, "operator", "adopt", "echo", "--undo", "--yes"); got.Code == 0 ||
		!strings.Contains(got.Err, "operator echo is being deleted with the removal policy Orphan") {
		t.Errorf("with another policy: exit code %d:\n%s%s", got.Code, got.Out, got.Err)
	}
	now.Finalizers = nil
	if err := h.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if got := h.Run(t, "operator", "adopt", "echo", "--undo", "--yes"); got.Code == 0 ||
		!strings.Contains(got.Err, `there is no operator "echo"`) {
		t.Errorf("when it is gone: exit code %d:\n%s%s", got.Code, got.Out, got.Err)
	}
}
