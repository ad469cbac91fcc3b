// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Scope is the set of namespaces in which a right is valid.
type Scope string

// The scopes of rights, from the narrowest to the widest.
const (
	// InNamespace is the namespace of the operator.
	InNamespace Scope = "namespace"
	// InTargets are the namespaces that the operator is installed for. If it is installed for all namespaces, OLM
	// grants these rights cluster-wide.
	InTargets Scope = "targets"
	// InCluster are all namespaces and the cluster-scoped resources.
	InCluster Scope = "cluster"
)

// IsCluster reports whether a right is valid in all namespaces. forAll is true if the operator is installed for all.
func (s Scope) IsCluster(forAll bool) bool { return s == InCluster || s == InTargets && forAll }

// Source is the part of a bundle that gives a right.
type Source string

// The sources of rights.
const (
	FromPermissions        Source = "permissions"
	FromClusterPermissions Source = "clusterPermissions"
	// FromRole is a Role or ClusterRole among the objects.
	FromRole Source = "role"
	// FromWebhook and FromAPI are an admission webhook and an API that the operator serves. The operator reads and
	// changes the objects without an RBAC rule.
	FromWebhook Source = "webhook"
	FromAPI     Source = "owned API"
	// FromBinding and FromDeployment occur only together with Unknown.
	FromBinding    Source = "binding"
	FromDeployment Source = "deployment"
	// FromObject is another object: an object that makes a token available to the operator, or an object of a kind
	// whose effect is not known.
	FromObject Source = "object"
)

// AggregatedTo is the kind of a Holder that represents all ClusterRoles that aggregate ClusterRoles with a certain
// label. The name of the Holder is the key of the label.
const AggregatedTo = "AggregatedTo"

// Holder is a subject that has a right, and the scope of the right.
type Holder struct {
	// Kind is the kind of an RBAC subject, or AggregatedTo. Namespace is empty for the operator's own namespace and for
	// cluster-scoped subjects.
	Kind, Namespace, Name string
	Scope                 Scope
}

// Right is a rule that is valid after a bundle is installed, or a statement that some rights are not known.
type Right struct {
	Rule rbacv1.PolicyRule
	// Unknown is the reason why the rights cannot be determined from the bundle, as a clause; empty if Rule contains
	// the right.
	Unknown string
	Source  Source
	// Name is the name of the service account, role, webhook or API. For a role, it includes the kind; for other
	// objects, it also says how the object gives the right.
	Name string
	// Scope is where the right is valid, or where a binding can grant it.
	Scope Scope
	// Holders are the subjects that get the right through the objects of the bundle, AggregatedTo first. The list is
	// empty for a role that no binding of the bundle refers to (other bindings in the cluster may exist), and for
	// rights outside RBAC.
	Holders []Holder
	// Object is the manifest that gives the right, and Path the place in it, in the form that Position takes.
	Object *Object
	Path   []any
}

// FormatSource returns the name of the part of the bundle that gives the right, for messages.
func (r Right) FormatSource() string {
	switch {
	case r.IsRequested():
		return fmt.Sprintf("%s of service account %s", r.Source, r.Name)
	case r.Source == FromWebhook || r.Source == FromAPI:
		return string(r.Source) + " " + r.Name
	default:
		return r.Name
	}
}

// IsRequested reports whether the right is a rule in the permissions of the ClusterServiceVersion.
func (r Right) IsRequested() bool {
	return r.Source == FromPermissions || r.Source == FromClusterPermissions
}

// ListBoundHolders returns the subjects to which the bundle grants the rule, without AggregatedTo. It returns nil if
// the right is unknown or is not an RBAC rule.
func (r Right) ListBoundHolders() []Holder {
	if r.Unknown != "" {
		return nil
	}
	firstBound := slices.IndexFunc(r.Holders, func(h Holder) bool { return h.Kind != AggregatedTo })
	if firstBound < 0 {
		return nil
	}
	return r.Holders[firstBound:]
}

// SupportsAllNamespaces reports whether the operator can be installed for all namespaces.
func (b *Bundle) SupportsAllNamespaces() bool {
	return slices.ContainsFunc(b.CSV.Spec.InstallModes, func(m operatorsv1alpha1.InstallMode) bool {
		return m.Type == operatorsv1alpha1.InstallModeTypeAllNamespaces && m.Supported
	})
}

// Rights returns all rights that the bundle brings, as the API server and OLM apply them: the permissions of the
// ClusterServiceVersion, the rules of roles among the objects (bound or not), the objects that webhooks and APIs read
// and change, and tokens that other objects make available. Objects of an unsupported kind or API group give unknown
// rights. As in OLM, roles and bindings are recognized by their kind only. The rights that OLM itself grants to the
// accounts of webhooks and APIs are not included.
func (b *Bundle) Rights() []Right {
	strategy := b.CSV.Spec.InstallStrategy.StrategySpec
	out := slices.Concat(
		b.listRequestedRights(strategy.ClusterPermissions, FromClusterPermissions, InCluster),
		b.listRequestedRights(strategy.Permissions, FromPermissions, InTargets))
	roles := b.listRoleHolders()
	for _, o := range b.Objects {
		if o.IsRBAC() {
			out = append(out, roles.listRights(o)...)
		} else {
			out = append(out, b.listObjectRights(o)...)
		}
	}
	return slices.Concat(out, b.listWebhookRights(), b.listAPIRights(), b.listForeignAccountRights())
}

// newUnknownRight returns a right that says why the effect of an object is not known. format and args give the reason.
func newUnknownRight(o *Object, source Source, path []any, format string, args ...any) Right {
	return Right{Unknown: fmt.Sprintf(format, args...), Source: source, Name: o.GetKind() + " " + o.GetName(),
		Scope: InCluster, Object: o, Path: path}
}

// listRequestedRights returns the rights in a list of permissions of the ClusterServiceVersion.
func (b *Bundle) listRequestedRights(list []operatorsv1alpha1.StrategyDeploymentPermissions, source Source,
	scope Scope) []Right {
	var out []Right
	for i, p := range list {
		holders := []Holder{{Kind: rbacv1.ServiceAccountKind, Name: cmp.Or(p.ServiceAccountName, DefaultAccount),
			Scope: scope}}
		for j, rule := range p.Rules {
			out = append(out, Right{Rule: rule, Source: source, Name: p.ServiceAccountName, Scope: scope,
				Holders: holders, Object: b.CSVObject(),
				Path: []any{"spec", "install", "spec", string(source), i, "rules", j}})
		}
	}
	return out
}

// roleHolders maps the roles of a bundle, by kind and name, to their holders.
type roleHolders map[string][]Holder

// listRoleHolders returns the holders of each role of the bundle, from aggregation labels and bindings. Bindings of
// roles outside the bundle, and bindings that cannot be read, are ignored.
func (b *Bundle) listRoleHolders() roleHolders {
	out := roleHolders{}
	for _, o := range b.Objects {
		if isRole(o) {
			name := o.GetKind() + " " + o.GetName()
			out[name] = append(out[name], listAggregations(o)...)
		}
	}
	for _, o := range b.Objects {
		if isRole(o) || !o.IsRBAC() {
			continue
		}
		binding, err := decodeBinding(o)
		name := binding.RoleRef.Kind + " " + binding.RoleRef.Name
		if current, found := out[name]; found && err == nil {
			out[name] = append(current, listHolders(o, binding)...)
		}
	}
	return out
}

// isRole reports whether an object is a Role or a ClusterRole, by its kind.
func isRole(o *Object) bool { return o.GetKind() == "Role" || o.GetKind() == "ClusterRole" }

// decodeBinding decodes a RoleBinding or a ClusterRoleBinding.
func decodeBinding(o *Object) (rbacv1.ClusterRoleBinding, error) {
	var out rbacv1.ClusterRoleBinding // a RoleBinding has the same fields
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &out)
	return out, err
}

// listHolders returns the subjects of a binding as holders: in all namespaces for a ClusterRoleBinding, and in the
// namespace of the operator otherwise.
func listHolders(o *Object, binding rbacv1.ClusterRoleBinding) []Holder {
	scope := InNamespace
	if o.GetKind() == "ClusterRoleBinding" {
		scope = InCluster
	}
	var out []Holder
	for _, s := range binding.Subjects {
		out = append(out, Holder{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, Scope: scope})
	}
	return out
}

// AggregationLabels returns the labels, sorted, by which other ClusterRoles aggregate the rules of an object: the
// labels of Kubernetes, such as rbac.authorization.k8s.io/aggregate-to-edit, and all labels whose name has the same
// prefix. It returns nil if the object is not a ClusterRole.
func (o *Object) AggregationLabels() []string {
	if o.GetKind() != "ClusterRole" {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(o.GetLabels())), func(label string) bool {
		_, name, _ := strings.Cut(label, "/")
		return !strings.HasPrefix(name, "aggregate-to-")
	})
}

// listAggregations returns a holder for each aggregation label of a role.
func listAggregations(o *Object) []Holder {
	var out []Holder
	for _, label := range o.AggregationLabels() {
		out = append(out, Holder{Kind: AggregatedTo, Name: label, Scope: InCluster})
	}
	return out
}

// labelOwner is OLM's label for objects that a ClusterServiceVersion owns.
const labelOwner = "olm.owner"

// listRights returns the rights of a role or a binding. For a role, they are its rules. A binding gives an unknown
// right if it cannot be read, or if its role is not in the bundle; otherwise the rights are in the role. Objects with
// the label olm.owner give a further unknown right.
func (r roleHolders) listRights(o *Object) []Right {
	var out []Right
	// If the operator is installed for all namespaces, OLM creates a ClusterRole for every Role with the label,
	// independent of the creator of the Role (ensureSingletonRBAC in pkg/controller/operators/olm/operatorgroup.go).
	if _, owned := o.GetLabels()[labelOwner]; owned {
		out = append(out, newUnknownRight(o, FromObject, []any{"metadata", "labels", labelOwner},
			"%s %s has the label %s, by "+
				"which OLM may grant it in all namespaces", o.GetKind(), o.GetName(), labelOwner))
	}
	if isRole(o) {
		return append(out, r.listRoleRights(o)...)
	}
	binding, err := decodeBinding(o)
	if ref := binding.RoleRef; err != nil {
		out = append(out, newUnknownRight(o, FromBinding, nil, "%s %s cannot be read", o.GetKind(), o.GetName()))
	} else if _, found := r[ref.Kind+" "+ref.Name]; !found {
		right := newUnknownRight(o, FromBinding, []any{"roleRef"}, "%s %s binds %s %s, which is not in the bundle",
			o.GetKind(), o.GetName(), ref.Kind, ref.Name)
		right.Holders = listHolders(o, binding)
		out = append(out, right)
	}
	return out
}

// listRoleRights returns the rules of a role. An aggregated role also has an unknown right, because its rules come from
// other roles.
func (r roleHolders) listRoleRights(o *Object) []Right {
	name := o.GetKind() + " " + o.GetName()
	var role rbacv1.ClusterRole // a Role has no other fields
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
		return []Right{newUnknownRight(o, FromRole, nil, "%s cannot be read", name)}
	}
	scope := InNamespace
	if o.GetKind() == "ClusterRole" {
		scope = InCluster
	}
	var out []Right
	for i, rule := range role.Rules {
		out = append(out, Right{Rule: rule, Source: FromRole, Name: name, Scope: scope, Holders: r[name], Object: o,
			Path: []any{"rules", i}})
	}
	if role.AggregationRule != nil {
		all := newUnknownRight(o, FromRole, []any{"aggregationRule"}, "%s is aggregated from others%s", name,
			formatSelectors(role.AggregationRule))
		all.Holders = r[name]
		out = append(out, all)
	}
	return out
}

// formatSelectors returns a clause that names the label selectors of an aggregated role; empty if it has none.
func formatSelectors(rule *rbacv1.AggregationRule) string {
	var out []string
	for _, s := range rule.ClusterRoleSelectors {
		out = append(out, metav1.FormatLabelSelector(&s))
	}
	if len(out) == 0 {
		return ""
	}
	return ", those with the labels " + strings.Join(out, ", or ")
}

// listWebhookRights returns a right for each rule of an admission webhook. A webhook can read the objects, and a
// mutating webhook can also change them, which is as powerful as the right to read and update the objects.
func (b *Bundle) listWebhookRights() []Right {
	var out []Right
	for i, w := range b.CSV.Spec.WebhookDefinitions {
		if w.Type == operatorsv1alpha1.ConversionWebhook {
			continue // it converts only resources that the bundle owns
		}
		verbs := []string{"get", "list", "watch"}
		if w.Type == operatorsv1alpha1.MutatingAdmissionWebhook {
			verbs = append(verbs, "create", "update", "patch")
		}
		for j, r := range w.Rules {
			out = append(out, Right{Source: FromWebhook, Name: w.GenerateName, Scope: InCluster, Object: b.CSVObject(),
				Path: []any{"spec", "webhookdefinitions", i, "rules", j},
				Rule: rbacv1.PolicyRule{APIGroups: r.APIGroups, Resources: toRBACResources(r), Verbs: verbs}})
		}
	}
	return out
}

// toRBACResources converts the resources of a webhook's rule to RBAC resources. "*/*" becomes "*", and "pods/*" becomes
// pods and all their subresources.
func toRBACResources(r admissionregistrationv1.RuleWithOperations) []string {
	var out []string
	for _, resource := range r.Resources {
		parent, hasAllSubresources := strings.CutSuffix(resource, "/*")
		switch {
		case resource == "*/*":
			out = append(out, rbacv1.ResourceAll)
		case hasAllSubresources:
			out = append(out, parent, resource)
		default:
			out = append(out, resource)
		}
	}
	return out
}

// listAPIRights returns a right for each API that the operator serves: the server reads and changes all objects of
// the API.
func (b *Bundle) listAPIRights() []Right {
	var out []Right
	for i, api := range b.CSV.Spec.APIServiceDefinitions.Owned {
		out = append(out, Right{Source: FromAPI, Name: api.Name, Scope: InCluster, Object: b.CSVObject(),
			Path: []any{"spec", "apiservicedefinitions", "owned", i},
			Rule: rbacv1.PolicyRule{APIGroups: []string{api.Group}, Resources: []string{api.Name},
				Verbs: []string{rbacv1.VerbAll}}})
	}
	return out
}

// Accounts returns the service accounts that the bundle contains, gives permissions to or runs as, sorted and unique.
func (b *Bundle) Accounts() []string {
	all := b.listOwnAccounts()
	for _, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		all[ReadServiceAccount(d.Spec.Template.Spec)] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// listOwnAccounts returns the set of the service accounts that the bundle contains or that OLM creates for its
// permissions.
func (b *Bundle) listOwnAccounts() map[string]bool {
	out := map[string]bool{}
	for _, o := range b.Objects {
		if o.GetKind() == rbacv1.ServiceAccountKind {
			out[o.GetName()] = true
		}
	}
	strategy := b.CSV.Spec.InstallStrategy.StrategySpec
	for _, p := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
		out[cmp.Or(p.ServiceAccountName, DefaultAccount)] = true
	}
	return out
}

// HasAccount reports whether the bundle contains a service account or OLM creates it for the bundle's permissions.
func (b *Bundle) HasAccount(name string) bool { return b.listOwnAccounts()[name] }

// listForeignAccountRights returns an unknown right for each Deployment that runs as a service account from outside
// the bundle. The account "default" of the operator's namespace is not reported.
func (b *Bundle) listForeignAccountRights() []Right {
	own := b.listOwnAccounts()
	var out []Right
	for i, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		account := ReadServiceAccount(d.Spec.Template.Spec)
		if own[account] || account == DefaultAccount {
			continue
		}
		out = append(out, Right{Source: FromDeployment, Name: "Deployment " + d.Name, Scope: InCluster,
			Unknown: fmt.Sprintf("Deployment %s runs as service account %s, which is not in the bundle", d.Name,
				account),
			Object: b.CSVObject(),
			Path:   []any{"spec", "install", "spec", "deployments", i, "spec", "template", "spec"}})
	}
	return out
}
