// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestHintsNameTheRole has a hub that permits nothing: each hint names the one role that is missing.
func TestHintsNameTheRole(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Group: "bellwether.dev", Resource: "things"}, "x", nil)
	c := New(fake.NewClientBuilder().WithScheme(Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return refusal
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return refusal
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refusal },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return refusal },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refusal
		},
	}).Build(), "team", "bellwether")
	ctx, in := t.Context(), metav1.ObjectMeta{Namespace: "team", Name: "x"}
	rollout := &v1alpha1.OperatorRollout{ObjectMeta: in}
	patch := client.MergeFrom(rollout)
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"get": {c.Get(ctx, client.ObjectKey{Namespace: "team", Name: "x"}, rollout),
			"bellwether-view in namespace \"team\""},
		"list": {c.List(ctx, &v1alpha1.FleetClusterList{}), "bellwether-view"},
		"list here": {c.List(ctx, &v1alpha1.ManagedOperatorList{}, client.InNamespace("team")),
			"bellwether-view in namespace \"team\""},
		"pause": {c.Patch(ctx, rollout, patch), "bellwether-operate in namespace \"team\""},
		"approve": {WrapDenied(c.Patch(ctx, rollout, patch), "approve", "team"),
			"bellwether-approve in namespace \"team\""},
		"override": {WrapDenied(c.Patch(ctx, rollout, patch), "override", "team"),
			"bellwether-override in namespace \"team\""},
		"silence":       {c.Create(ctx, &v1alpha1.AlertSilence{ObjectMeta: in}), "bellwether-operate in namespace \"team\""},
		"freeze":        {c.Create(ctx, &v1alpha1.FleetFreeze{}), "bellwether-freeze"},
		"a window":      {c.Create(ctx, &v1alpha1.ChangeWindow{}), "bellwether-policy"},
		"join":          {c.Create(ctx, &v1alpha1.FleetCluster{}), "bellwether-join"},
		"revoke":        {c.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: in}), "bellwether-join in namespace \"team\""},
		"of kubernetes": {c.Create(ctx, &corev1.Secret{ObjectMeta: in}), "permission to create secrets"},
		"by others":     {fmt.Errorf("list: %w", refusal), "the permission that the message names"},
	} {
		if got := FormatDenialHint(fmt.Errorf("do it: %w", test.err)); !strings.HasSuffix(got, test.want) ||
			strings.Count(got, "bellwether-") > 1 {
			t.Errorf("%s: %q, want … %q", name, got, test.want)
		}
		if !apierrors.IsForbidden(test.err) {
			t.Errorf("%s: %v is not forbidden any more", name, test.err)
		}
	}
	if apierrors.IsForbidden(WrapDenied(context.Canceled, "approve", "")) {
		t.Error("an interrupt became a refusal")
	}
}

// TestRolesAreTheChartsRoles compares the roles in this package with the chart.
func TestRolesAreTheChartsRoles(t *testing.T) {
	text, err := os.ReadFile("../../../../charts/testdata/hub.yaml")
	if err != nil {
		t.Fatal(err)
	}
	inChart := map[string][]rbacv1.PolicyRule{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var r rbacv1.ClusterRole
		if yaml.Unmarshal([]byte(document), &r) == nil && r.Kind == "ClusterRole" {
			inChart[r.Name] = r.Rules
		}
	}
	for _, r := range roles {
		for _, verb := range r.verbs {
			for _, resource := range r.resources {
				if !slices.ContainsFunc(inChart[r.name], func(rule rbacv1.PolicyRule) bool {
					return slices.Contains(rule.Verbs, verb) && slices.Contains(rule.Resources, resource)
				}) {
					t.Errorf("the chart's role %s does not permit to %s %s", r.name, verb, resource)
				}
			}
		}
	}
}
