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
	"github.com/bellwether-dev/bellwether/phrase"
)

// Claims are the objects that a bundle takes for its own. OLM creates them, and where there is one of that name already
// it uses that, with all rights that it has.
type Claims struct {
	// Bundle is the bundle's name, and Namespace where it is to be installed.
	Bundle, Namespace string
	// Accounts are the service accounts that the bundle names and runs as, sorted.
	Accounts []string
	// Roles are those that the bundle brings.
	Roles []Role
	// bindings are those that the bundle brings, so that they are as the bundle says once it is installed.
	bindings []binding
}

// Role names a Role of the bundle's namespace or a ClusterRole.
type Role struct{ Kind, Name string }

type binding struct {
	kind, name string
	ref        Role
}

// Cluster is what the cluster has of what a bundle claims.
type Cluster struct {
	// Source is the CatalogSource in the namespace that serves this operator.
	Source string
	// Accounts are the claimed accounts that exist, and Roles the claimed roles.
	Accounts []metav1.PartialObjectMetadata
	Roles    map[Role]metav1.PartialObjectMetadata
	// RoleBindings and ClusterRoleBindings are all of the cluster.
	RoleBindings        []rbacv1.RoleBinding
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	// Subscriptions and InstallPlans are those of the namespace.
	Subscriptions []operatorsv1alpha1.Subscription
	InstallPlans  []operatorsv1alpha1.InstallPlan
}

// Claims returns what has to be looked up before a bundle is permitted that Bundle permits; nil where the policy limits
// no permissions.
func (p *Policy) Claims(name, namespace string, objects [][]byte) (*Claims, error) {
	if p == nil || !p.Spec.Permissions.isSet() {
		return nil, nil
	}
	b, err := bundles.RightsOf(objects)
	if err != nil {
		return nil, Unreadable(name, err)
	}
	c := &Claims{Bundle: name, Namespace: namespace, Accounts: b.Accounts()}
	for _, o := range b.Objects {
		switch o.GetKind() {
		case "Role", "ClusterRole":
			c.Roles = append(c.Roles, Role{o.GetKind(), o.GetName()})
		case "RoleBinding", "ClusterRoleBinding":
			var read rbacv1.ClusterRoleBinding
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &read); err != nil {
				return nil, Unreadable(name, err)
			}
			ref := Role{read.RoleRef.Kind, read.RoleRef.Name}
			c.bindings = append(c.bindings, binding{o.GetKind(), o.GetName(), ref})
		}
	}
	return c, nil
}

// Unreadable is the refusal of a bundle whose content, or what the cluster has of it, cannot be read.
func Unreadable(bundle string, cause error) error {
	return refuse("bundle %s cannot be judged: %s", bundle, phrase.Truncate(phrase.OneLine(cause.Error()), maxCause))
}

// maxCause bounds what is shown of a cause, which names an image with its digest twice.
const maxCause = 2 * maxShown

// Judge refuses a bundle that would get the rights of what others made.
func (c *Claims) Judge(cluster Cluster) error {
	own := ownershipOf(c.Namespace, cluster)
	for _, role := range c.Roles {
		// OLM has written what it manages from a bundle, and writes it again. The cluster itself gives rights back to
		// roles of its own, such as cluster-admin.
		if live, exists := cluster.Roles[role]; exists && live.Labels[labelManaged] != "true" {
			return refuse("bundle %s brings %s %s, which is there already and not OLM's", c.Bundle, role.Kind,
				role.Name)
		}
	}
	for _, account := range cluster.Accounts {
		if account.Name != bundles.DefaultAccount && !own.account(account) {
			return refuse("bundle %s names service account %s/%s, which is there already and not of this operator "+
				"(%s)%s", c.Bundle, c.Namespace, account.Name, ownersOf(account), c.rights(account.Name, cluster, own))
		}
	}
	for _, account := range c.Accounts {
		if bound := c.boundBy(account, cluster, own); len(bound) > 0 {
			return refuse("bundle %s would run with rights of others: service account %s/%s is bound by %s", c.Bundle,
				c.Namespace, account, phrase.First(bound, maxBindings))
		}
	}
	return nil
}

// maxBindings bounds how many bindings a refusal names.
const maxBindings = 3

// rights says what else binds an account; empty where nothing does.
func (c *Claims) rights(account string, cluster Cluster, own ownership) string {
	bound := c.boundBy(account, cluster, own)
	if len(bound) == 0 {
		return ""
	}
	return ", and is bound by " + phrase.First(bound, maxBindings)
}

// boundBy names the bindings of an account that are not of this operator.
func (c *Claims) boundBy(account string, cluster Cluster, own ownership) []string {
	var out []string
	for i := range cluster.ClusterRoleBindings {
		b := &cluster.ClusterRoleBindings[i]
		if c.binds(b.Subjects, "", account) && !c.brings("ClusterRoleBinding", b.Name, b.RoleRef) &&
			!own.binding("ClusterRoleBinding", b) {
			out = append(out, fmt.Sprintf("ClusterRoleBinding %s (%s %s)", b.Name, b.RoleRef.Kind, b.RoleRef.Name))
		}
	}
	for i := range cluster.RoleBindings {
		b := &cluster.RoleBindings[i]
		brought := b.Namespace == c.Namespace && c.brings("RoleBinding", b.Name, b.RoleRef)
		if c.binds(b.Subjects, b.Namespace, account) && !brought && !isAuthReader(b) && !own.binding("RoleBinding", b) {
			out = append(out, fmt.Sprintf("RoleBinding %s/%s (%s %s)", b.Namespace, b.Name, b.RoleRef.Kind,
				b.RoleRef.Name))
		}
	}
	return out
}

// binds tells whether an account of the bundle's namespace is a subject itself. Groups do not count: they hold all
// accounts of a namespace or of the cluster.
func (c *Claims) binds(subjects []rbacv1.Subject, of, account string) bool {
	user := "system:serviceaccount:" + c.Namespace + ":" + account
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			return cmp.Or(s.Namespace, of) == c.Namespace && s.Name == account
		case rbacv1.UserKind:
			return s.Name == user
		}
		return false
	})
}

func (c *Claims) brings(kind, name string, ref rbacv1.RoleRef) bool {
	return slices.Contains(c.bindings, binding{kind, name, Role{ref.Kind, ref.Name}})
}

// isAuthReader tells whether a binding is to the Role by which OLM lets webhooks and API servers of operators read the
// certificates of clients, which are public. OLM does not label it with the operator.
func isAuthReader(b *rbacv1.RoleBinding) bool {
	return b.Namespace == metav1.NamespaceSystem && b.RoleRef.Kind == "Role" &&
		b.RoleRef.Name == "extension-apiserver-authentication-reader"
}
