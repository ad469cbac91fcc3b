// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// grantPatience is how long an API server may take to apply a role that it has stored.
const grantPatience = 5 * time.Minute

var errNotGranted = errors.New("the API server does not apply it yet")

// Grant creates roles and bindings that are not there and waits until the API server applies the bindings: it
// authorizes from a cache, so that a request right after a binding was written may still be refused. The client needs
// client-go's scheme and all rights.
func Grant(t testing.TB, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := client.IgnoreAlreadyExists(c.Create(t.Context(), object)); err != nil {
			t.Fatal(err)
		}
	}
	for _, object := range objects {
		switch binding := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			granted(t, c, binding.Subjects, binding.RoleRef, "")
		case *rbacv1.RoleBinding:
			granted(t, c, binding.Subjects, binding.RoleRef, binding.Namespace)
		}
	}
}

// granted waits until subjects may do what the first rule of their role permits in a namespace, or everywhere if
// namespace is empty. A role comes into force as a whole.
func granted(t testing.TB, c client.Client, subjects []rbacv1.Subject, ref rbacv1.RoleRef, namespace string) {
	t.Helper()
	for _, subject := range subjects {
		Eventually(t, grantPatience, subject.Name+" has role "+ref.Name, func(ctx context.Context) error {
			rules, err := rulesOf(ctx, c, ref, namespace)
			at := slices.IndexFunc(rules, func(r rbacv1.PolicyRule) bool { return len(r.Resources) > 0 })
			if err != nil || at < 0 {
				return client.IgnoreNotFound(err) // a role that is missing, or has no such rule, grants nothing
			}
			review := reviewOf(subject, rules[at], namespace)
			if err := c.Create(ctx, review); err != nil {
				return err
			}
			if !review.Status.Allowed {
				return fmt.Errorf("%w: %s", errNotGranted, review.Status.Reason)
			}
			return nil
		})
	}
}

func rulesOf(ctx context.Context, c client.Client, ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	if ref.Kind == "Role" {
		role := &rbacv1.Role{}
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, role)
		return role.Rules, err
	}
	role := &rbacv1.ClusterRole{}
	err := c.Get(ctx, client.ObjectKey{Name: ref.Name}, role)
	return role.Rules, err
}

// reviewOf asks whether a subject may do something that a rule permits.
func reviewOf(subject rbacv1.Subject, rule rbacv1.PolicyRule, namespace string) *authorizationv1.SubjectAccessReview {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: rule.Verbs[0],
			Group: rule.APIGroups[0]},
	}}
	asked := review.Spec.ResourceAttributes
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	asked.Resource, asked.Subresource = resource, subresource
	if len(rule.ResourceNames) > 0 {
		asked.Name = rule.ResourceNames[0]
	}
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		review.Spec.User = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
	case rbacv1.GroupKind:
		review.Spec.Groups = []string{subject.Name}
	default:
		review.Spec.User = subject.Name
	}
	return review
}
