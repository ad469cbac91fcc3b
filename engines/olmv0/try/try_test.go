// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	libversion "github.com/operator-framework/api/pkg/lib/version"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/bundles"
)

// bundle is a version of an operator that owns the kind Thing.
func bundle(version string, change func(*bundles.Bundle)) *bundles.Bundle {
	b := &bundles.Bundle{Name: "thing.v" + version, Package: "thing", Version: semver.MustParse(version),
		CSV: &operatorsv1alpha1.ClusterServiceVersion{}}
	b.CSV.Name = b.Name
	b.CSV.Annotations = map[string]string{}
	b.CSV.Spec.Version = libversion.OperatorVersion{Version: b.Version}
	b.CSV.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{
		{Name: "things.example.com", Kind: "Thing", Version: "v1"}}
	if change != nil {
		change(b)
	}
	return b
}

func supporting(supported ...operatorsv1alpha1.InstallModeType) func(*bundles.Bundle) {
	return func(b *bundles.Bundle) {
		for _, m := range supported {
			b.CSV.Spec.InstallModes = append(b.CSV.Spec.InstallModes,
				operatorsv1alpha1.InstallMode{Type: m, Supported: true})
		}
	}
}

func TestChooseMode(t *testing.T) {
	const own, all, multi = operatorsv1alpha1.InstallModeTypeOwnNamespace,
		operatorsv1alpha1.InstallModeTypeAllNamespaces, operatorsv1alpha1.InstallModeTypeMultiNamespace
	both, onlyAll, none := bundle("1.0.0", supporting(all, own)), bundle("1.1.0", supporting(all, multi)),
		bundle("1.2.0", nil)
	for name, test := range map[string]struct {
		wanted  operatorsv1alpha1.InstallModeType
		bundles []*bundles.Bundle
		want    operatorsv1alpha1.InstallModeType
	}{
		"the least of the cluster":  {bundles: []*bundles.Bundle{both}, want: own},
		"what both versions have":   {bundles: []*bundles.Bundle{both, onlyAll}, want: all},
		"the wanted one":            {wanted: all, bundles: []*bundles.Bundle{both}, want: all},
		"the wanted one is not":     {wanted: own, bundles: []*bundles.Bundle{both, onlyAll}},
		"a bundle without any mode": {bundles: []*bundles.Bundle{none}},
	} {
		got, err := chooseMode(test.wanted, test.bundles...)
		if got != test.want || errors.Is(err, ErrMode) != (test.want == "") {
			t.Errorf("%s: got %q (%v), want %q", name, got, err, test.want)
		}
	}
}

func TestCheckPair(t *testing.T) {
	b := bundle("1.1.0", nil)
	for from, ok := range map[*bundles.Bundle]bool{
		bundle("1.0.0", nil): true, bundle("1.2.0", nil): false, bundle("1.1.0", nil): false,
		bundle("1.0.0", func(b *bundles.Bundle) { b.Package = "other" }): false,
	} {
		if err := checkPair(b, from); (err == nil) != ok || err != nil && !errors.Is(err, ErrPair) {
			t.Errorf("from %s of package %s: %v", from.Name, from.Package, err)
		}
	}
}

func TestDeclaresUpgrade(t *testing.T) {
	from := bundle("1.0.0", nil)
	for name, test := range map[string]struct {
		change func(*bundles.Bundle)
		want   bool
	}{
		"nothing":       {},
		"replaces":      {func(b *bundles.Bundle) { b.CSV.Spec.Replaces = from.Name }, true},
		"skips":         {func(b *bundles.Bundle) { b.CSV.Spec.Skips = []string{from.Name} }, true},
		"a range":       {func(b *bundles.Bundle) { b.CSV.Annotations["olm.skipRange"] = "<1.1.0" }, true},
		"another range": {func(b *bundles.Bundle) { b.CSV.Annotations["olm.skipRange"] = "<1.0.0" }, false},
	} {
		if got := declaresUpgrade(bundle("1.1.0", test.change), from); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func TestConflicts(t *testing.T) {
	csv := operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "old.v1"}}
	csv.Spec = bundle("1.0.0", nil).CSV.Spec
	other := operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "other.v1"}}
	subscription := func(pkg string) operatorsv1alpha1.Subscription {
		return operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "s"},
			Spec: &operatorsv1alpha1.SubscriptionSpec{Package: pkg}}
	}
	got := listConflicts("thing", []*bundles.Bundle{bundle("1.1.0", nil)}, usage{
		objects: []object{{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
			Name: "things.example.com"}},
		subscriptions: []operatorsv1alpha1.Subscription{subscription("thing"), subscription("other"), {}},
		csvs:          []operatorsv1alpha1.ClusterServiceVersion{csv, other},
	})
	if diff := cmp.Diff([]string{"Subscription prod/s subscribes to package thing",
		"ClusterServiceVersion prod/old.v1 owns things.example.com",
		"CustomResourceDefinition things.example.com exists"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestExamplesOf(t *testing.T) {
	with := func(text string) *bundles.Bundle {
		return bundle("1.0.0", func(b *bundles.Bundle) { b.CSV.Annotations["alm-examples"] = text })
	}
	got, err := readExamples(with(`[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"}}]`))
	if err != nil || len(got) != 1 || got[0].GetName() != "a" {
		t.Errorf("got %v (%v)", got, err)
	}
	for text, want := range map[string]string{
		"{}":               "is not a JSON list",
		`[{"kind":"A"}]`:   "example 1 of thing.v1.0.0 has no apiVersion",
		`[{"apiVersion":1`: "is not a JSON list",
	} {
		if _, err := readExamples(with(text)); !errors.Is(err, errBundle) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestStateOf(t *testing.T) {
	condition := func(kind, value string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": kind, "status": value, "message": "why"}}}
	}
	for name, test := range map[string]struct {
		status any
		want   State
	}{
		"no status":       {nil, NoStatus},
		"an empty status": {map[string]any{}, NoStatus},
		"ready":           {condition("Ready", "True"), Ready},
		"not ready":       {condition("Ready", "False"), NotReady},
		"stalled":         {condition("Stalled", "True"), NotReady},
		"in progress":     {condition("Reconciling", "True"), NotReady},
		"old":             {map[string]any{"observedGeneration": int64(1)}, NotReady},
		"without Ready":   {map[string]any{"phase": "Running"}, Ready},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing",
			"metadata": map[string]any{"name": "a", "generation": int64(2)}}}
		if test.status != nil {
			o.Object["status"] = test.status
		}
		if got, message := readState(o); got != test.want {
			t.Errorf("%s: %s (%s), want %s", name, got, message, test.want)
		}
	}
}

func TestJudgeExamples(t *testing.T) {
	all := []Example{{Kind: "Thing", Name: "a", Of: "v1", State: Ready},
		{Kind: "Thing", Name: "b", Of: "v1", State: NotReady, Message: "InProgress: why"},
		{Kind: "Thing", Name: "c", Of: "v1", State: NoStatus}}
	problems, message := judgeExamples(all, false)
	if diff := cmp.Diff([]string{"example Thing/b of v1 is not ready: InProgress: why"}, problems); diff != "" {
		t.Error(diff)
	}
	if message != "examples: 1 ready, 1 not ready, 1 without a status" {
		t.Error(message)
	}
	if problems, _ = judgeExamples(all, true); len(problems) > 0 {
		t.Errorf("where no operator runs nobody makes an example ready: %v", problems)
	}
	gone := []Example{{Kind: "Thing", Name: "a", Of: "v1", State: NotReady, Message: "it is gone"}}
	if problems, _ = judgeExamples(gone, true); len(problems) != 1 {
		t.Errorf("an example that an upgrade deleted is a problem anywhere: %v", problems)
	}
}

func TestPendingPlan(t *testing.T) {
	plan := func(phase operatorsv1alpha1.InstallPlanPhase, approved bool, csv string) operatorsv1alpha1.InstallPlan {
		return operatorsv1alpha1.InstallPlan{Spec: operatorsv1alpha1.InstallPlanSpec{Approved: approved,
			ClusterServiceVersionNames: []string{csv}}, Status: operatorsv1alpha1.InstallPlanStatus{Phase: phase}}
	}
	const waits = operatorsv1alpha1.InstallPlanPhaseRequiresApproval
	for name, test := range map[string]struct {
		plan  operatorsv1alpha1.InstallPlan
		found bool
		fails bool
	}{
		"to be approved":   {plan: plan(waits, false, "a"), found: true},
		"approved already": {plan: plan(waits, true, "a")},
		"without a phase":  {plan: plan("", false, "a")},
		"another bundle":   {plan: plan(waits, false, "b"), fails: true},
	} {
		got, err := findPendingPlan([]operatorsv1alpha1.InstallPlan{test.plan}, "a")
		if (got != nil) != test.found || errors.Is(err, errBundle) != test.fails {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestCSVMessage(t *testing.T) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	csv.Status = operatorsv1alpha1.ClusterServiceVersionStatus{Phase: operatorsv1alpha1.CSVPhasePending,
		Reason: operatorsv1alpha1.CSVReasonRequirementsNotMet, Message: "one or more requirements couldn't be found",
		RequirementStatus: []operatorsv1alpha1.RequirementStatus{
			{Kind: "CustomResourceDefinition", Name: "a", Status: operatorsv1alpha1.RequirementStatusReasonPresent},
			{Kind: "ServiceAccount", Name: "sa",
				Status: operatorsv1alpha1.RequirementStatusReasonPresentNotSatisfied,
				Dependents: []operatorsv1alpha1.DependentStatus{{Kind: "PolicyRule", Message: "rule",
					Status: operatorsv1alpha1.DependentStatusReasonNotSatisfied}}}},
	}
	want := "Pending (RequirementsNotMet): one or more requirements couldn't be found; ServiceAccount sa is " +
		"PresentNotSatisfied, PolicyRule is missing: rule"
	if got := formatCSVState(csv); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestUnready checks the reasons that OLM does not report: OLM reports only that a Deployment is not available.
func TestUnready(t *testing.T) {
	of := func(name string) map[string]string { return map[string]string{"app": name} }
	deployment := func(name string) appsv1.Deployment {
		return appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: of(name)}}}
	}
	webhook, manager, runs := deployment("webhook"), deployment("manager"), deployment("runs")
	webhook.Status.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "no minimum availability"},
		{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: `serviceaccount "w" not found`},
	}
	runs.Status.AvailableReplicas, runs.Status.UpdatedReplicas, runs.Status.Replicas = 1, 1, 1
	pulls := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: of("manager")}}
	pulls.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", Image: "example.com/proxy:1",
		State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}}}
	want := []string{
		`Deployment webhook: FailedCreate: serviceaccount "w" not found`,
		"Deployment manager: ImagePull of container proxy: the image example.com/proxy:1 cannot be pulled: not found",
	}
	got := listUnready([]appsv1.Deployment{webhook, manager, runs}, []corev1.Pod{pulls})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestClientHasNoLimit: a client's limit would end a step with another error right before the step's deadline.
func TestClientHasNoLimit(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	trial, err := newTrial(Options{Config: &rest.Config{Host: server.URL, QPS: 1e-6, Burst: 1,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for range 3 {
		if _, err := trial.kube.CoreV1().Pods("ns").Get(ctx, "p", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Fatalf("%v, want what the server says", err)
		}
	}
}

// TestRemoveEndsTheGroup: OLM creates the roles of an OperatorGroup again while the group exists.
func TestRemoveEndsTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: objectName}}
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "olm.og.bellwether-try.admin",
			Labels: map[string]string{labelOwnerNamespace: "ns"}}}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
		olm := interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object,
			options ...client.DeleteOption) error {
			if o.GetName() == role.Name && c.Get(ctx, client.ObjectKeyFromObject(group), group.DeepCopy()) == nil {
				return nil
			}
			return c.Delete(ctx, o, options...)
		}}
		scheme := newScheme()
		trial := &trial{Options: Options{Timeout: time.Minute, Now: time.Now}, scheme: scheme, namespace: "ns",
			report: &Report{}, Client: fake.NewClientBuilder().WithScheme(scheme).
				WithObjects(group, role, namespace).WithInterceptorFuncs(olm).Build()}
		if notes, err := trial.removeAll(t.Context()); err != nil || len(notes) > 0 {
			t.Errorf("%v, %v", notes, err)
		}
	})
}

// TestRemoveWhatComesBack: a reconcile of OLM that began before the OperatorGroup was deleted creates its role again.
func TestRemoveWhatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "olm.og.bellwether-try.view",
			Labels: map[string]string{labelOwnerNamespace: "ns"}}}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
		scheme := newScheme()
		trial := &trial{Options: Options{Timeout: time.Minute, Now: time.Now}, scheme: scheme, namespace: "ns",
			report: &Report{}, Client: fake.NewClientBuilder().WithScheme(scheme).
				WithObjects(role.DeepCopy(), namespace).Build()}
		go func() {
			time.Sleep(settleTime - pollInterval)
			if err := trial.Create(t.Context(), role); err != nil {
				t.Error(err)
			}
		}()
		if notes, err := trial.removeAll(t.Context()); err != nil || len(notes) > 0 {
			t.Errorf("%v, %v", notes, err)
		}
		if err := trial.Get(t.Context(), client.ObjectKeyFromObject(role), role); !apierrors.IsNotFound(err) {
			t.Errorf("the role is still there: %v", err)
		}
	})
}

// TestRemoveWaitsForOLM: OLM creates an Operator object again while its cache has a component of that operator.
func TestRemoveWaitsForOLM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		operator := &operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: "echo.ns"}}
		operator.Status.Components = &operatorsv1.Components{Refs: []operatorsv1.RichReference{{}}}
		start := time.Now()
		isCached := func() bool { return time.Since(start) < 10*time.Second }
		olm := interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
				options ...client.GetOption) error {
				err := c.Get(ctx, key, o, options...)
				if seen, ok := o.(*operatorsv1.Operator); ok && !isCached() {
					seen.Status.Components.Refs = nil
				}
				return err
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object,
				options ...client.DeleteOption) error {
				if o.GetName() == operator.Name && isCached() {
					return nil
				}
				return c.Delete(ctx, o, options...)
			},
		}
		scheme := newScheme()
		trial := &trial{Options: Options{Timeout: 15 * time.Second, Now: time.Now}, scheme: scheme, namespace: "ns",
			report: &Report{}, Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(operator).
				WithInterceptorFuncs(olm).Build()}
		if err := trial.removeOperators(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCompareRights(t *testing.T) {
	rule := func(verb, group, resource string, only ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource},
			ResourceNames: only}
	}
	asks := operatorsv1alpha1.StrategyDetailsDeployment{
		Permissions: []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "sa",
			Rules: []rbacv1.PolicyRule{rule("get", "", "secrets"), rule("get", "", "configmaps", "one")}}},
		ClusterPermissions: []operatorsv1alpha1.StrategyDeploymentPermissions{
			{ServiceAccountName: "sa", Rules: []rbacv1.PolicyRule{rule("update", "apps", "deployments/scale"),
				rule("get", "", "secrets"),
				{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics/a", "/other"}}}},
			{ServiceAccountName: "other", Rules: []rbacv1.PolicyRule{rule("delete", "", "nodes")}}},
	}
	granted := func(verb, group, resource string, only ...string) authorizationv1.ResourceRule {
		return authorizationv1.ResourceRule{Verbs: []string{verb}, APIGroups: []string{group},
			Resources: []string{resource}, ResourceNames: only}
	}
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	csv.Spec.InstallStrategy.StrategySpec = asks
	asked := (&bundles.Bundle{CSV: csv}).Rights()
	own := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{
		granted("*", "", "secrets"), granted("get", "", "configmaps", "one", "two")}}
	cluster := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{granted("update", "*", "*/scale"),
			granted("get", "", "secrets", "only-this")},
		NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: []string{"get"},
			NonResourceURLs: []string{"/metrics/*"}}},
	}
	want := Rights{ServiceAccount: "sa", Rules: 5,
		Missing: []string{"get secrets in the whole cluster", "get /other in the whole cluster"}}
	if diff := cmp.Diff(want, compareRights(asked, "sa", own, cluster)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"other", "sa"}, listAccounts(asked)); diff != "" {
		t.Error(diff)
	}
}

func TestDenials(t *testing.T) {
	const user = "system:serviceaccount:ns:sa"
	text := `E1 failed to list *v1.Secret: secrets is forbidden: User "system:serviceaccount:ns:sa" cannot list ` +
		`resource "secrets" in API group "" at the cluster scope` + "\n" +
		`{"level":"error","error":"deployments.apps \"a\" is forbidden: User \"system:serviceaccount:ns:sa\" cannot ` +
		`patch resource \"deployments\" in API group \"apps\" in the namespace \"ns\""}` + "\n" +
		`pods "x" is forbidden: violates PodSecurity "restricted:latest"` + "\n" +
		`forbidden: User "system:serviceaccount:ns:sa" cannot get path "/metrics"` + "\n" +
		`it is forbidden: User "system:serviceaccount:ns:sa" cannot get path "/metrics"` + "\n" +
		`secrets is forbidden: User "system:serviceaccount:ns:sa" cannot list ` +
		`resource "secrets" in API group "" at the cluster scope`
	want := []Denial{
		{User: user, Verb: "list", Resource: "secrets", Scope: "at the cluster scope", Source: "log"},
		{User: user, Verb: "patch", Resource: "deployments", Group: "apps", Scope: "in the namespace ns",
			Source: "log"},
		{User: user, Verb: "get", Resource: "/metrics", Source: "log"},
	}
	got := removeDuplicates(parseDenials(text, "log"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if said := got[1].String(); said != user+" may not patch deployments.apps in the namespace ns" {
		t.Error(said)
	}
}
