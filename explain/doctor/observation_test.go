// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/explain/doctor"
)

// TestReadAccess checks which permissions a component should have, and where.
func TestReadAccess(t *testing.T) {
	t.Parallel()
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"},
		Verbs: []string{"create"}}}
	for name, test := range map[string]struct {
		component, account string
		args               []string
		role, user         string
		// namespace is the namespace of the rules of a Role.
		namespace string
	}{
		"the hub": {component: "hub", account: "hub", role: "hub", user: "hub", namespace: "bellwether-system"},
		"a hub with rules elsewhere": {component: "hub", account: "hub", args: []string{"--rules-namespace=monitoring"},
			role: "hub", user: "hub", namespace: "monitoring"},
		"without a ServiceAccount": {component: "agent", role: "agent", user: "default",
			namespace: "bellwether-system"},
		"a read-only agent": {component: "agent", account: "agent", args: []string{"--read-only=true"},
			role: "agent-read", user: "agent", namespace: "bellwether-system"},
		"an agent that may write": {component: "agent", account: "agent",
			args: []string{"--read-only=true", "--read-only=false"}, role: "agent", user: "agent",
			namespace: "bellwether-system"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deployment(test.component, 1, 1)
			d.Deployment.Spec.Template.Spec = corev1.PodSpec{ServiceAccountName: test.account,
				Containers: []corev1.Container{{Name: test.component, Args: test.args}}}
			access := doctor.ReadAccess(test.component, d)
			if access.Role != test.role || access.Account() != "bellwether-system/"+test.user {
				t.Errorf("role %s, account %s", access.Role, access.Account())
			}
			want := authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:bellwether-system:" + test.user,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:bellwether-system",
					"system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: test.namespace, Verb: "create",
					Resource: "configmaps"}}
			reviews := access.BuildReviews(nil, rules)
			if len(reviews) != 1 {
				t.Fatalf("%d reviews, want 1", len(reviews))
			}
			if diff := cmp.Diff(want, reviews[0].Spec); diff != "" {
				t.Errorf("review (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDeniedPermissions checks the texts for the permissions of rules if all are denied.
func TestDeniedPermissions(t *testing.T) {
	t.Parallel()
	in := healthy()
	access := doctor.ReadAccess("hub", deployment("hub", 1, 1))
	for _, review := range access.BuildReviews([]rbacv1.PolicyRule{
		{APIGroups: []string{"bellwether.dev"}, Resources: []string{"rollouts", "rollouts/status"},
			Verbs: []string{"update", "get"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"},
			ResourceNames: []string{"b", "a"}},
	}, []rbacv1.PolicyRule{
		{APIGroups: []string{"", "apps"}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	}) {
		in.Hub.Denied = append(in.Hub.Denied, *review.Spec.ResourceAttributes)
	}
	findings := doctor.Examine(in).Findings
	if len(findings) != 1 {
		t.Fatalf("%d findings, want 1: %+v", len(findings), findings)
	}
	want := []string{"list pods in bellwether-system", "list pods.apps in bellwether-system",
		"get, update rollouts.bellwether.dev", "get, update rollouts.bellwether.dev/status", "get secrets a",
		"get secrets b"}
	if diff := cmp.Diff(want, findings[0].Objects); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
}

// TestListWebhooks checks that webhooks with a Service are listed, and whether requests fail without them.
func TestListWebhooks(t *testing.T) {
	t.Parallel()
	service := admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "guard", Name: "s"}}
	rules := func(groups ...string) []admissionv1.RuleWithOperations {
		return []admissionv1.RuleWithOperations{{Rule: admissionv1.Rule{APIGroups: groups}}}
	}
	got := doctor.ListWebhooks([]admissionv1.ValidatingWebhookConfiguration{{
		ObjectMeta: metav1.ObjectMeta{Name: "v"}, Webhooks: []admissionv1.ValidatingWebhook{
			{Name: "default", ClientConfig: service, Rules: append(rules("b", "a"), rules("a")...)},
			{Name: "url", ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To("https://example.com")}},
		}}}, []admissionv1.MutatingWebhookConfiguration{{
		ObjectMeta: metav1.ObjectMeta{Name: "m"}, Webhooks: []admissionv1.MutatingWebhook{
			{Name: "ignored", ClientConfig: service, FailurePolicy: ptr.To(admissionv1.Ignore), Rules: rules("*")},
		}}})
	want := []doctor.Webhook{
		{Kind: "ValidatingWebhookConfiguration", Configuration: "v", Name: "default", Service: "guard/s", Fails: true,
			Groups: []string{"a", "b"}},
		{Kind: "MutatingWebhookConfiguration", Configuration: "m", Name: "ignored", Service: "guard/s",
			Groups: []string{"*"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
}

func TestHasReadyEndpoint(t *testing.T) {
	t.Parallel()
	slice := func(ready ...*bool) discoveryv1.EndpointSlice {
		var s discoveryv1.EndpointSlice
		for _, r := range ready {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
				Conditions: discoveryv1.EndpointConditions{Ready: r}})
		}
		return s
	}
	for name, test := range map[string]struct {
		slices []discoveryv1.EndpointSlice
		want   bool
	}{
		"no slice":     {nil, false},
		"no endpoint":  {[]discoveryv1.EndpointSlice{slice()}, false},
		"not ready":    {[]discoveryv1.EndpointSlice{slice(ptr.To(false))}, false},
		"one is ready": {[]discoveryv1.EndpointSlice{slice(ptr.To(false)), slice(ptr.To(true))}, true},
		"unknown":      {[]discoveryv1.EndpointSlice{slice(nil)}, true},
	} {
		if got := doctor.HasReadyEndpoint(test.slices); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestCompareCRD checks that only the schemas of versions count.
func TestCompareCRD(t *testing.T) {
	t.Parallel()
	crd := func(schema, label string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"versions": []any{
			map[string]any{"name": "v1alpha1", "served": label == "", "schema": map[string]any{"is": schema}}}}}}
		out.SetName("x.bellwether.dev")
		out.SetLabels(map[string]string{"l": label})
		return out
	}
	for name, test := range map[string]struct {
		installed     *unstructured.Unstructured
		want          doctor.CRD
		wantDifferent bool
	}{
		"missing":          {nil, doctor.CRD{Name: "x.bellwether.dev", Missing: true}, true},
		"the same schema":  {crd("a", "other"), doctor.CRD{Name: "x.bellwether.dev"}, false},
		"another schema":   {crd("b", ""), doctor.CRD{Name: "x.bellwether.dev"}, true},
		"without versions": {&unstructured.Unstructured{}, doctor.CRD{Name: "x.bellwether.dev"}, true},
	} {
		got, isDifferent := doctor.CompareCRD(crd("a", ""), test.installed)
		if got != test.want || isDifferent != test.wantDifferent {
			t.Errorf("%s: got %+v, %t", name, got, isDifferent)
		}
	}
}
