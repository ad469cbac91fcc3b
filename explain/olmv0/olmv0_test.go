// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/explain"
)

// succeeded returns the objects of an operator that is installed as specified.
func succeeded() Objects {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "echo", Name: name} }
	return Objects{
		Namespace: "echo",
		CatalogSource: &operatorsv1alpha1.CatalogSource{
			ObjectMeta: meta("bellwether-echo"),
			Spec:       operatorsv1alpha1.CatalogSourceSpec{Address: "10.0.0.1:50051"},
			Status: operatorsv1alpha1.CatalogSourceStatus{
				GRPCConnectionState: &operatorsv1alpha1.GRPCConnectionState{LastObservedState: "READY"}},
		},
		Subscription: &operatorsv1alpha1.Subscription{
			ObjectMeta: meta("echo"),
			Status: operatorsv1alpha1.SubscriptionStatus{State: operatorsv1alpha1.SubscriptionStateAtLatest,
				InstalledCSV: "echo.v1.1.0", CurrentCSV: "echo.v1.1.0"},
		},
		InstallPlan: &operatorsv1alpha1.InstallPlan{
			ObjectMeta: meta("install-1"),
			Spec: operatorsv1alpha1.InstallPlanSpec{Approved: true,
				ClusterServiceVersionNames: []string{"echo.v1.1.0"}},
			Status: operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhaseComplete},
		},
		CSV: &operatorsv1alpha1.ClusterServiceVersion{
			ObjectMeta: meta("echo.v1.1.0"),
			Status:     operatorsv1alpha1.ClusterServiceVersionStatus{Phase: operatorsv1alpha1.CSVPhaseSucceeded},
		},
	}
}

// finding is a link that is not healthy.
type finding struct {
	State        explain.State
	Reason, Text string
}

// findings lists the links that are not healthy, in the order of the chain.
func findings(links []explain.Link) []finding {
	var found []finding
	for _, l := range links {
		if l.State != "" && l.State != explain.Healthy {
			found = append(found, finding{l.State, l.Reason, l.Text})
		}
		found = append(found, findings(l.Links)...)
	}
	return found
}

func TestLinks(t *testing.T) {
	failed, progressing := explain.Failed, explain.Progressing
	tests := map[string]struct {
		change func(*Objects)
		want   []finding
	}{
		"everything is as asked": {change: func(*Objects) {}},
		"nothing is there": {
			change: func(o *Objects) { *o = Objects{Namespace: o.Namespace} },
			want: []finding{
				{failed, remedy.ObjectMissing, "CatalogSource: there is none"},
				{failed, remedy.ObjectMissing, "Subscription: there is none"},
				{failed, remedy.ObjectMissing, "ClusterServiceVersion: there is none"},
			},
		},
		"the namespace is being deleted, and something keeps it": {
			change: func(o *Objects) {
				*o = Objects{Namespace: o.Namespace, Terminating: &corev1.Namespace{
					ObjectMeta: metav1.ObjectMeta{Name: "echo", DeletionTimestamp: &metav1.Time{}},
					Status: corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{
						{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "configmaps."},
						{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue,
							Message: "Some content in the namespace has finalizers remaining: example.com/hangs in " +
								"1 resource instances."}}}}}
			},
			want: []finding{{progressing, v1alpha1.ReasonNamespaceTerminating, "namespace echo is being deleted: " +
				"Some content in the namespace has finalizers remaining: example.com/hangs in 1 resource instances"}},
		},
		"the namespace is about to be gone": {
			change: func(o *Objects) {
				o.Terminating = &corev1.Namespace{
					ObjectMeta: metav1.ObjectMeta{Name: "echo", DeletionTimestamp: &metav1.Time{}}}
			},
			want: []finding{{progressing, v1alpha1.ReasonNamespaceTerminating,
				"namespace echo is being deleted: its content is being deleted"}},
		},
		"OLM has removed the InstallPlan of an earlier upgrade": {change: func(o *Objects) { o.InstallPlan = nil }},
		"OLM does not reach the catalog view": {
			change: func(o *Objects) {
				o.CatalogSource.Status.GRPCConnectionState.LastObservedState = "TRANSIENT_FAILURE"
			},
			want: []finding{{progressing, v1alpha1.ReasonCatalogNotReady,
				"CatalogSource bellwether-echo: TRANSIENT_FAILURE, 10.0.0.1:50051"}},
		},
		"OLM has not seen the catalog view": {
			change: func(o *Objects) { o.CatalogSource.Status.GRPCConnectionState = nil },
			want: []finding{{progressing, v1alpha1.ReasonCatalogNotReady,
				"CatalogSource bellwether-echo: no connection yet, 10.0.0.1:50051"}},
		},
		"the resolver finds no solution, and nothing is to be resolved": {
			change: func(o *Objects) {
				o.Subscription.Status.Conditions = []operatorsv1alpha1.SubscriptionCondition{{
					Type: operatorsv1alpha1.SubscriptionResolutionFailed, Status: corev1.ConditionTrue,
					Message: "subscription foreign exists"}}
			},
			want: []finding{{explain.Degraded, v1alpha1.ReasonResolutionFailed,
				"ResolutionFailed: subscription foreign exists"}},
		},
		"the resolver finds no solution": {
			change: func(o *Objects) {
				o.Subscription.Status.State = ""
				o.Subscription.Status.Conditions = []operatorsv1alpha1.SubscriptionCondition{{
					Type: operatorsv1alpha1.SubscriptionResolutionFailed, Status: corev1.ConditionTrue,
					Message: "constraints\nnot satisfiable"}}
			},
			want: []finding{
				{progressing, v1alpha1.ReasonProgressing,
					"Subscription echo: no state yet, installed echo.v1.1.0, current echo.v1.1.0"},
				{failed, v1alpha1.ReasonResolutionFailed, "ResolutionFailed: constraints not satisfiable"},
			},
		},
		"a condition that was true before": {
			change: func(o *Objects) {
				o.Subscription.Status.Conditions = []operatorsv1alpha1.SubscriptionCondition{{
					Type: operatorsv1alpha1.SubscriptionBundleUnpackFailed, Status: corev1.ConditionFalse}}
			},
		},
		"an upgrade waits for approval": {
			change: func(o *Objects) {
				o.Subscription.Status.State = operatorsv1alpha1.SubscriptionStateUpgradePending
				o.Subscription.Status.CurrentCSV = "echo.v1.2.0"
				o.InstallPlan.Spec.Approved = false
				o.InstallPlan.Status.Phase = operatorsv1alpha1.InstallPlanPhaseRequiresApproval
			},
			want: []finding{
				{progressing, v1alpha1.ReasonProgressing,
					"Subscription echo: UpgradePending, installed echo.v1.1.0, current echo.v1.2.0"},
				{progressing, v1alpha1.ReasonProgressing,
					"InstallPlan install-1 for echo.v1.1.0: not approved, RequiresApproval"},
			},
		},
		"a step of the InstallPlan failed": {
			change: func(o *Objects) {
				o.InstallPlan.Status.Phase = operatorsv1alpha1.InstallPlanPhaseFailed
				o.InstallPlan.Status.Conditions = []operatorsv1alpha1.InstallPlanCondition{{
					Type: operatorsv1alpha1.InstallPlanInstalled, Status: corev1.ConditionFalse,
					Reason: "InstallComponentFailed", Message: "serviceaccounts is forbidden"}}
			},
			want: []finding{
				{failed, v1alpha1.ReasonPlanFailed, "InstallPlan install-1 for echo.v1.1.0: approved, Failed"},
				{failed, v1alpha1.ReasonPlanFailed,
					"Installed: InstallComponentFailed: serviceaccounts is forbidden"},
			},
		},
		"the CSV has a requirement that is not met": {
			change: func(o *Objects) {
				o.CSV.Status = operatorsv1alpha1.ClusterServiceVersionStatus{
					Phase: operatorsv1alpha1.CSVPhasePending, Reason: "RequirementsNotMet", Message: "one is missing",
					RequirementStatus: []operatorsv1alpha1.RequirementStatus{
						{Kind: "ServiceAccount", Name: "echo", Status: "NotPresent", Message: "does not exist"},
						{Kind: "CustomResourceDefinition", Name: "echoes.example.com", Status: "Present"},
						{Kind: "APIService", Name: "v1.echo.example.com", Status: "Satisfied"},
					}}
			},
			want: []finding{
				{progressing, v1alpha1.ReasonProgressing,
					"ClusterServiceVersion echo.v1.1.0: Pending (RequirementsNotMet): one is missing"},
				{failed, v1alpha1.ReasonRequirementsNotMet,
					"requirement ServiceAccount echo: NotPresent: does not exist"},
			},
		},
		"the CSV failed": {
			change: func(o *Objects) {
				o.CSV.Status = operatorsv1alpha1.ClusterServiceVersionStatus{
					Phase: operatorsv1alpha1.CSVPhaseFailed, Message: "deployment has no minimum availability"}
			},
			want: []finding{{failed, v1alpha1.ReasonCSVFailed,
				"ClusterServiceVersion echo.v1.1.0: Failed (no reason): " +
					"deployment has no minimum availability"}},
		},
		"the Deployment does not exist": {
			change: func(o *Objects) {
				o.CSV.Status.Phase = operatorsv1alpha1.CSVPhaseFailed
				o.CSV.Status.Reason, o.CSV.Status.Message = "ComponentUnhealthy", "waiting"
				o.Deployments = []explain.Deployment{{Name: "echo"}}
			},
			want: []finding{
				{failed, v1alpha1.ReasonCSVFailed,
					"ClusterServiceVersion echo.v1.1.0: Failed (ComponentUnhealthy): waiting"},
				{failed, remedy.ObjectMissing, "Deployment echo does not exist"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := succeeded()
			test.change(&o)
			if diff := cmp.Diff(test.want, findings(o.Links())); diff != "" {
				t.Errorf("findings (-want +have):\n%s", diff)
			}
		})
	}
}

// A healthy link says what was checked. Every other link has a reason from the table, and evidence.
func TestLinksHaveEvidence(t *testing.T) {
	var check func(explain.Link)
	check = func(l explain.Link) {
		switch {
		case l.State == explain.Healthy && l.Check == "":
			t.Errorf("link %q does not say what was checked", l.Text)
		case l.State != "" && l.State != explain.Healthy && l.Reason == "":
			t.Errorf("link %q has no reason", l.Text)
		case l.State != "" && l.Reason != remedy.ObjectMissing && len(l.Evidence) == 0:
			t.Errorf("link %q has no evidence", l.Text)
		}
		for _, below := range l.Links {
			check(below)
		}
	}
	broken := succeeded()
	broken.CatalogSource.Status.GRPCConnectionState = nil
	broken.Subscription.Status.State = operatorsv1alpha1.SubscriptionStateFailed
	broken.InstallPlan.Status.Phase = operatorsv1alpha1.InstallPlanPhaseFailed
	broken.CSV.Status.Phase = operatorsv1alpha1.CSVPhaseFailed
	for _, o := range []Objects{succeeded(), broken, {Namespace: "echo"}} {
		for _, l := range o.Links() {
			check(l)
		}
	}
}

// TestSelectNames checks which InstallPlan and ClusterServiceVersions are read.
func TestSelectNames(t *testing.T) {
	t.Parallel()
	reported := &v1alpha1.OperatorInstall{Status: v1alpha1.OperatorInstallStatus{
		OLM:       &v1alpha1.OLMStatus{InstallPlan: "install-1"},
		Installed: &v1alpha1.InstalledVersion{Bundle: "echo.v1.0.0"}}}
	subscription := func(current, installed string, plan *corev1.ObjectReference) *operatorsv1alpha1.Subscription {
		return &operatorsv1alpha1.Subscription{Status: operatorsv1alpha1.SubscriptionStatus{CurrentCSV: current,
			InstalledCSV: installed, InstallPlanRef: plan}}
	}
	for name, test := range map[string]struct {
		install      *v1alpha1.OperatorInstall
		subscription *operatorsv1alpha1.Subscription
		plan         string
		csvs         []string
	}{
		"nothing is known": {install: &v1alpha1.OperatorInstall{}},
		"no Subscription":  {install: reported, plan: "install-1", csvs: []string{"echo.v1.0.0"}},
		"an upgrade": {reported, subscription("echo.v1.1.0", "echo.v1.0.0", &corev1.ObjectReference{Name: "install-2"}),
			"install-2", []string{"echo.v1.1.0", "echo.v1.0.0"}},
		"installed": {reported, subscription("", "echo.v1.0.1", &corev1.ObjectReference{}), "install-1",
			[]string{"echo.v1.0.1", "echo.v1.0.0"}},
		"nothing installed": {&v1alpha1.OperatorInstall{}, subscription("", "", nil), "", []string{""}},
	} {
		plan, csvs := SelectNames(test.install, test.subscription)
		if diff := cmp.Diff(test.csvs, csvs); diff != "" || plan != test.plan {
			t.Errorf("%s: InstallPlan %q, want %q; ClusterServiceVersions (-want +got):\n%s", name, plan, test.plan,
				diff)
		}
	}
}
