// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package localpolicy

import (
	"cmp"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Claims are the objects that a bundle claims. OLM creates them; if an object with the name already exists, OLM uses
// it with all its permissions.
type Claims struct {
	// Bundle is the bundle's name, and Namespace the namespace that it is to be installed into.
	Bundle, Namespace string
	// Accounts are the service accounts that the bundle names and runs as, sorted.
	Accounts []string
	// Roles are the roles in the bundle.
	Roles []Role
	// bindings are the bindings in the bundle. After the installation, they are as the bundle has them.
	bindings []binding
}

// Role names a Role of the bundle's namespace or a ClusterRole.
type Role struct{ Kind, Name string }

// binding is a RoleBinding or ClusterRoleBinding with the role that it binds.
type binding struct {
	kind, name string
	ref        Role
}

// Cluster has the objects on the cluster that a bundle's claims are compared with.
type Cluster struct {
	// Source is the CatalogSource in the namespace that serves this operator.
	Source string
	// Accounts are the claimed accounts that exist, and Roles the claimed roles that exist.
	Accounts []metav1.PartialObjectMetadata
	Roles    map[Role]metav1.PartialObjectMetadata
	// RoleBindings and ClusterRoleBindings are all bindings of the cluster.
	RoleBindings        []rbacv1.RoleBinding
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	// Subscriptions and InstallPlans are all objects of these kinds in the namespace.
	Subscriptions []operatorsv1alpha1.Subscription
	InstallPlans  []operatorsv1alpha1.InstallPlan
}

// ReadClaims returns the claims of a bundle that JudgeBundle permits, which must be looked up on the cluster; nil if
// the policy does not limit permissions.
func (p *Policy) ReadClaims(name, namespace string, objects [][]byte) (*Claims, error) {
	if p == nil || !p.Spec.Permissions.isSet() {
		return nil, nil
	}
	b, err := bundles.ParseForRights(objects)
	if err != nil {
		return nil, RefuseUnreadable(name, err)
	}
	c := &Claims{Bundle: name, Namespace: namespace, Accounts: b.Accounts()}
	for _, o := range b.Objects {
		switch o.GetKind() {
		case "Role", "ClusterRole":
			c.Roles = append(c.Roles, Role{o.GetKind(), o.GetName()})
		case "RoleBinding", "ClusterRoleBinding":
			var read rbacv1.ClusterRoleBinding
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &read); err != nil {
				return nil, RefuseUnreadable(name, err)
			}
			ref := Role{read.RoleRef.Kind, read.RoleRef.Name}
			c.bindings = append(c.bindings, binding{kind: o.GetKind(), name: o.GetName(), ref: ref})
		}
	}
	return c, nil
}

// RefuseUnreadable returns the refusal of a bundle if its content, or the claimed objects on the cluster, cannot be
// read.
func RefuseUnreadable(bundle string, cause error) error {
	return refuse("bundle %s cannot be judged: %s", bundle, phrase.Truncate(phrase.OneLine(cause.Error()), maxCause))
}

// maxCause limits the length of a cause in a message. A cause may name an image with its digest twice.
const maxCause = 2 * maxShown

// Judge refuses a bundle that would get the permissions of objects that others made: a role of the bundle exists and
// OLM does not manage it, an account of the bundle exists and is not of this operator, or a binding of others grants
// permissions to such an account. It returns nil for every other bundle.
func (c *Claims) Judge(cluster Cluster) error {
	own := newOwnership(c.Namespace, cluster)
	for _, role := range c.Roles {
		// OLM overwrites a role that it manages. The cluster itself restores the permissions of its own roles, for
		// example cluster-admin.
		if live, exists := cluster.Roles[role]; exists && live.Labels[labelManaged] != "true" {
			return refuse("bundle %s brings %s %s, which is there already and not OLM's", c.Bundle, role.Kind,
				role.Name)
		}
	}
	for _, account := range cluster.Accounts {
		if account.Name != bundles.DefaultAccount && !own.hasAccount(account) {
			return refuse("bundle %s names service account %s/%s, which is there already and not of this operator "+
				"(%s)%s", c.Bundle, c.Namespace, account.Name, describeOwner(account),
				c.describeBindings(account.Name, cluster, own))
		}
	}
	for _, account := range c.Accounts {
		if bound := c.listForeignBindings(account, cluster, own); len(bound) > 0 {
			return refuse("bundle %s would run with rights of others: service account %s/%s is bound by %s", c.Bundle,
				c.Namespace, account, phrase.First(bound, maxBindings))
		}
	}
	return nil
}

// maxBindings limits the number of bindings in a refusal.
const maxBindings = 3

// describeBindings returns a clause with the other bindings of an account; empty if there are none.
func (c *Claims) describeBindings(account string, cluster Cluster, own ownership) string {
	bound := c.listForeignBindings(account, cluster, own)
	if len(bound) == 0 {
		return ""
	}
	return ", and is bound by " + phrase.First(bound, maxBindings)
}

// listForeignBindings returns the bindings of an account that are neither in the bundle nor made by OLM for this
// operator, in words.
func (c *Claims) listForeignBindings(account string, cluster Cluster, own ownership) []string {
	var out []string
	for i := range cluster.ClusterRoleBindings {
		b := &cluster.ClusterRoleBindings[i]
		if c.isSubject(b.Subjects, "", account) && !c.hasBinding("ClusterRoleBinding", b.Name, b.RoleRef) &&
			!own.hasBinding("ClusterRoleBinding", b) {
			out = append(out, fmt.Sprintf("ClusterRoleBinding %s (%s %s)", b.Name, b.RoleRef.Kind, b.RoleRef.Name))
		}
	}
	for i := range cluster.RoleBindings {
		b := &cluster.RoleBindings[i]
		isOwn := b.Namespace == c.Namespace && c.hasBinding("RoleBinding", b.Name, b.RoleRef)
		if c.isSubject(b.Subjects, b.Namespace, account) && !isOwn && !isAuthReader(b) &&
			!own.hasBinding("RoleBinding", b) {
			out = append(out, fmt.Sprintf("RoleBinding %s/%s (%s %s)", b.Namespace, b.Name, b.RoleRef.Kind,
				b.RoleRef.Name))
		}
	}
	return out
}

// isSubject reports whether an account of the bundle's namespace is itself a subject. namespace is the namespace of
// the binding. Groups do not count, because they contain all accounts of a namespace or of the cluster.
func (c *Claims) isSubject(subjects []rbacv1.Subject, namespace, account string) bool {
	user := "system:serviceaccount:" + c.Namespace + ":" + account
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			return cmp.Or(s.Namespace, namespace) == c.Namespace && s.Name == account
		case rbacv1.UserKind:
			return s.Name == user
		}
		return false
	})
}

// hasBinding reports whether the bundle has a binding.
func (c *Claims) hasBinding(kind, name string, ref rbacv1.RoleRef) bool {
	return slices.Contains(c.bindings, binding{kind: kind, name: name, ref: Role{ref.Kind, ref.Name}})
}

// isAuthReader reports whether a binding is to the Role by which OLM lets webhooks and API servers of operators read
// the certificates of clients, which are public. OLM does not label the binding with the operator.
func isAuthReader(b *rbacv1.RoleBinding) bool {
	return b.Namespace == metav1.NamespaceSystem && b.RoleRef.Kind == "Role" &&
		b.RoleRef.Name == "extension-apiserver-authentication-reader"
}
