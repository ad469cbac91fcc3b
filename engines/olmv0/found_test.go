// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"errors"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
)

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// manually returns a cluster where another owner installed echo, which OLM is upgrading, with a dependency of echo;
// where Bellwether manages another operator; and where a third operator has no Subscription.
func manually() []client.Object {
	sub := &operatorsv1alpha1.Subscription{ObjectMeta: named("echo", "my-echo")}
	sub.Spec = &operatorsv1alpha1.SubscriptionSpec{
		Package: "echo-operator", Channel: "stable", CatalogSource: "community", CatalogSourceNamespace: "olm",
		StartingCSV: "echo.v1.0.0", Config: &operatorsv1alpha1.SubscriptionConfig{Env: []corev1.EnvVar{{Name: "A"}},
			Affinity: &corev1.Affinity{}}}
	sub.Annotations = map[string]string{
		"argocd.argoproj.io/tracking-id": "team-echo:operators.coreos.com/Subscription:x"}
	sub.Finalizers = []string{"example.com/keep"}
	sub.Status.InstalledCSV, sub.Status.CurrentCSV = "echo.v1.0.0", "echo.v1.1.0"
	sub.Status.InstallPlanRef = &corev1.ObjectReference{Name: "install-2"}
	sub.Status.Conditions = []operatorsv1alpha1.SubscriptionCondition{{Status: corev1.ConditionTrue,
		Type: operatorsv1alpha1.SubscriptionResolutionFailed, Message: "constraints not satisfiable"}}

	dependency := &operatorsv1alpha1.Subscription{ObjectMeta: named("echo", "db-alpha-community-olm"),
		Spec: &operatorsv1alpha1.SubscriptionSpec{Package: "db", Channel: "alpha", CatalogSource: "community",
			CatalogSourceNamespace: "olm", InstallPlanApproval: operatorsv1alpha1.ApprovalManual}}

	ours := &operatorsv1alpha1.Subscription{ObjectMeta: named("zoo", "zoo"),
		Spec: &operatorsv1alpha1.SubscriptionSpec{Package: "zoo"}}
	ours.Labels = v1alpha1.OperatorReference{Namespace: "team", Name: "zoo"}.ManagedLabels()

	csv := func(namespace, name, number string, change func(*operatorsv1alpha1.ClusterServiceVersion)) client.Object {
		c := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: named(namespace, name)}
		c.Spec.Version = version.OperatorVersion{Version: semver.MustParse(number)}
		c.Status.Phase = operatorsv1alpha1.CSVPhaseSucceeded
		if change != nil {
			change(c)
		}
		return c
	}
	deployment := &appsv1.Deployment{ObjectMeta: named("echo", "echo"),
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](3)}}
	deployment.Labels = map[string]string{"olm.owner": "echo.v1.0.0"}
	deployment.Status.AvailableReplicas = 2
	plan := func(name string, phase operatorsv1alpha1.InstallPlanPhase, csvs ...string) client.Object {
		return &operatorsv1alpha1.InstallPlan{ObjectMeta: named("echo", name),
			Spec:   operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: csvs},
			Status: operatorsv1alpha1.InstallPlanStatus{Phase: phase}}
	}
	group := &operatorsv1.OperatorGroup{ObjectMeta: named("echo", "echo"), Spec: operatorsv1.OperatorGroupSpec{
		TargetNamespaces: []string{"b", "a"}, ServiceAccountName: "limited"}}
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: named("olm", "community"),
		Spec: operatorsv1alpha1.CatalogSourceSpec{Image: "example.com/community:latest"}}
	source.Status.GRPCConnectionState = &operatorsv1alpha1.GRPCConnectionState{LastObservedState: "READY"}
	return []client.Object{sub, dependency, ours, deployment, group, source,
		csv("echo", "echo.v1.0.0", "1.0.0", func(c *operatorsv1alpha1.ClusterServiceVersion) {
			c.Status.Phase, c.Status.Message = operatorsv1alpha1.CSVPhaseReplacing, "being replaced"
			c.Finalizers = []string{"operators.coreos.com/csv-cleanup", "example.com/csv"}
			c.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{
				{Name: "echoes.example.com", Version: "v1", Kind: "Echo"},
				{Name: "gone.example.com", Version: "v1", Kind: "Gone"}}
			c.Spec.CustomResourceDefinitions.Required = []operatorsv1alpha1.CRDDescription{{Name: "dbs.example.com"}}
			c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{
				{Name: "echo"}}
		}),
		csv("echo", "echo.v1.1.0", "1.1.0", func(c *operatorsv1alpha1.ClusterServiceVersion) {
			c.Spec.Replaces, c.Status.Phase = "echo.v1.0.0", operatorsv1alpha1.CSVPhaseInstalling
		}),
		csv("lost", "lost.v2.0.0", "2.0.0", nil), csv("olm", "packageserver", "0.46.0", nil),
		plan("install-1", operatorsv1alpha1.InstallPlanPhaseComplete, "echo.v1.0.0"),
		plan("install-2", operatorsv1alpha1.InstallPlanPhaseFailed, "echo.v1.1.0"),
		plan("install-0", operatorsv1alpha1.InstallPlanPhaseFailed, "echo.v0.9.0"),
		plan("install-3", operatorsv1alpha1.InstallPlanPhaseRequiresApproval, "db.v1", "echo.v1.2.0"),
	}
}

func definitions(marked bool, names ...string) []client.Object {
	var out []client.Object
	for _, name := range names {
		d := newDefinitionMeta()
		d.Name = name
		if marked {
			d.Labels = map[string]string{"olm.managed": "true"}
		}
		out = append(out, d)
	}
	return out
}

func TestFind(t *testing.T) {
	t.Parallel()
	objects := append(manually(), definitions(true, "echoes.example.com", "left.example.com")...)
	objects = append(objects, definitions(false, "foreign.example.com")...)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{operatorsv1.AddToScheme, operatorsv1alpha1.AddToScheme,
		appsv1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	served, known := false, false
	f := &Finder{Local: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(),
		OLM: func() (bool, bool) { return served, known }}
	if _, err := f.Find(t.Context()); !errors.Is(err, engines.ErrNotReady) {
		t.Errorf("OLM not looked for: %v, want %v", err, engines.ErrNotReady)
	}
	known = true
	got, err := f.Find(t.Context())
	if diff := cmp.Diff(v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMNotServed}, got); err != nil || diff != "" {
		t.Errorf("no OLM: %v (-want +got):\n%s", err, diff)
	}
	served = true
	got, err = f.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.OperatorScanStatus{
		OLM: v1alpha1.OLMServed, Counts: v1alpha1.ScanCounts{Operators: 4, Managed: 1},
		Operators: []v1alpha1.FoundOperator{
			{Namespace: "echo", Subscription: &v1alpha1.FoundSubscription{Name: "db-alpha-community-olm", Package: "db",
				Channel: "alpha", Source: "community", SourceNamespace: "olm", Approval: "Manual", Dependency: true}},
			{Namespace: "echo", Subscription: &v1alpha1.FoundSubscription{Name: "my-echo", Package: "echo-operator",
				Channel: "stable", Source: "community", SourceNamespace: "olm", Approval: "Automatic",
				StartingCSV: "echo.v1.0.0", Config: []string{"affinity", "env"},
				ConfigNotSupported: []string{"affinity"},
				Settings:           `{"env":[{"name":"A"}]}`,
				InstalledCSV:       "echo.v1.0.0", CurrentCSV: "echo.v1.1.0", InstallPlan: "install-2",
				NotResolved: "constraints not satisfiable", GitOps: "Argo CD (team-echo)",
				Finalizers: []string{"example.com/keep"}},
				CSV: &v1alpha1.FoundCSV{Name: "echo.v1.0.0", Version: "1.0.0", Phase: "Replacing",
					Message: "being replaced",
					Owned: []v1alpha1.FoundDefinition{{Name: "echoes.example.com", Version: "v1", Kind: "Echo"},
						{Name: "gone.example.com", Version: "v1", Kind: "Gone"}},
					Missing: []string{"gone.example.com"}, Required: []string{"dbs.example.com"},
					Deployments: []v1alpha1.FoundDeployment{{Name: "echo", Replicas: 3, Ready: 2, Bundle: 1}},
					Finalizers:  []string{"example.com/csv"}},
				Others: []v1alpha1.FoundVersion{{Name: "echo.v1.1.0", Phase: "Installing"}}},
			{Namespace: "lost", CSV: &v1alpha1.FoundCSV{Name: "lost.v2.0.0", Version: "2.0.0", Phase: "Succeeded"}},
			{Namespace: "zoo", Managed: true, Operator: &v1alpha1.OperatorReference{Namespace: "team", Name: "zoo"},
				Subscription: &v1alpha1.FoundSubscription{Name: "zoo", Package: "zoo", Approval: "Automatic"}},
		},
		Namespaces: []v1alpha1.FoundNamespace{
			{Name: "echo", OperatorGroups: []v1alpha1.FoundOperatorGroup{{Name: "echo", Targets: []string{"a", "b"},
				ServiceAccount: "limited"}}, InstallPlans: []v1alpha1.FoundInstallPlan{
				{Name: "install-2", Phase: "Failed", CSVs: []string{"echo.v1.1.0"}},
				{Name: "install-3", Phase: "RequiresApproval", CSVs: []string{"db.v1", "echo.v1.2.0"}}}},
			{Name: "lost"}, {Name: "zoo"},
		},
		CatalogSources: []v1alpha1.FoundCatalogSource{{Namespace: "olm", Name: "community", State: "READY",
			Image: "example.com/community:latest"}},
		OwnerlessDefinitions: []string{"left.example.com"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

// TestStripSubscription: the cache has who writes the spec, without the fields. The agent caches Subscriptions as they
// are, and not as the type. Informers transform an object more than once.
func TestStripSubscription(t *testing.T) {
	t.Parallel()
	object := func(text string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return o
	}
	const head = `{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": {"name": "echo", `
	got, err := stripSubscription(object(head + `"managedFields": [
		{"manager": "argocd-controller", "operation": "Apply", "apiVersion": "operators.coreos.com/v1alpha1",
			"time": "2026-11-28T12:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:name": {}}}},
		{"manager": "argocd-controller", "operation": "Update", "fieldsV1": {"f:spec": {}}},
		{"manager": "catalog", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
		{"manager": "catalog", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}}]}}`))
	if err == nil {
		got, err = stripSubscription(got)
	}
	if err != nil {
		t.Fatal(err)
	}
	sub := &operatorsv1alpha1.Subscription{}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(got.(*unstructured.Unstructured).Object, sub)
	if err != nil {
		t.Fatal(err)
	}
	want := []metav1.ManagedFieldsEntry{{Manager: "argocd-controller", FieldsV1: specFields}}
	if diff := cmp.Diff(want, sub.ManagedFields); diff != "" {
		t.Errorf("field managers (-want +got):\n%s", diff)
	}
}
