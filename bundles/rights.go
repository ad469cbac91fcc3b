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

// Scope is where a right holds.
type Scope string

// The scopes of rights, from the narrowest to the widest.
const (
	// InNamespace is the namespace of the operator.
	InNamespace Scope = "namespace"
	// InTargets are the namespaces that the operator is installed for: OLM makes cluster-wide rules of such rights
	// where these are all.
	InTargets Scope = "targets"
	// InCluster are all namespaces, and what is in none.
	InCluster Scope = "cluster"
)

// IsCluster tells whether a right holds in all namespaces, given whether the operator is installed for all.
func (s Scope) IsCluster(forAll bool) bool { return s == InCluster || s == InTargets && forAll }

// Source is the part of a bundle that a right comes from.
type Source string

// The sources of rights.
const (
	FromPermissions        Source = "permissions"
	FromClusterPermissions Source = "clusterPermissions"
	// FromRole is a Role or ClusterRole among the objects.
	FromRole Source = "role"
	// FromWebhook and FromAPI are what an admission webhook and an API that the operator serves see and change. They
	// are no rules of RBAC.
	FromWebhook Source = "webhook"
	FromAPI     Source = "owned API"
	// FromBinding and FromDeployment come with Unknown only.
	FromBinding    Source = "binding"
	FromDeployment Source = "deployment"
	// FromObject is what comes by other objects: a token that is sent to the operator, or what is not known of a kind.
	FromObject Source = "object"
)

// AggregatedTo is the kind of a Holder that stands for all ClusterRoles which take the rules of those with a label. Its
// name is the key of the label.
const AggregatedTo = "AggregatedTo"

// Holder is who has a right, and where.
type Holder struct {
	// Kind is that of a subject of RBAC, or AggregatedTo. The Namespace is empty for the operator's own, and for what
	// has none.
	Kind, Namespace, Name string
	Scope                 Scope
}

// Right is a rule that holds once a bundle is installed, or says that some rights are not known.
type Right struct {
	Rule rbacv1.PolicyRule
	// Unknown is why the rights cannot be known from the bundle, as a clause; empty where Rule has them.
	Unknown string
	Source  Source
	// Name is that of the service account, role, webhook or API; a role's with its kind, an object's with how it gives
	// the right.
	Name string
	// Scope is where the right holds, or can be given to somebody by a binding.
	Scope Scope
	// Holders have the right by what the bundle brings, AggregatedTo before others. Of a role that nothing in the
	// bundle binds there are none, and none of what is no RBAC; somebody else may have bound the role.
	Holders []Holder
	// Object is the manifest that says so, and Path the place in it, as Position takes it.
	Object *Object
	Path   []any
}

// From names what the right comes from.
func (r Right) From() string {
	switch {
	case r.IsAsked():
		return fmt.Sprintf("%s of service account %s", r.Source, r.Name)
	case r.Source == FromWebhook || r.Source == FromAPI:
		return string(r.Source) + " " + r.Name
	default:
		return r.Name
	}
}

// IsAsked tells whether the right is a rule that the ClusterServiceVersion asks for.
func (r Right) IsAsked() bool {
	return r.Source == FromPermissions || r.Source == FromClusterPermissions
}

// Bound are the subjects that the bundle itself gives the rule to: there are none where it is no rule of RBAC, or not
// known, and AggregatedTo is not among them.
func (r Right) Bound() []Holder {
	if r.Unknown != "" {
		return nil
	}
	first := slices.IndexFunc(r.Holders, func(h Holder) bool { return h.Kind != AggregatedTo })
	if first < 0 {
		return nil
	}
	return r.Holders[first:]
}

// SupportsAllNamespaces tells whether the operator can be installed for all namespaces.
func (b *Bundle) SupportsAllNamespaces() bool {
	return slices.ContainsFunc(b.CSV.Spec.InstallModes, func(m operatorsv1alpha1.InstallMode) bool {
		return m.Type == operatorsv1alpha1.InstallModeTypeAllNamespaces && m.Supported
	})
}

// Rights returns all rights that come with the bundle, as the API server and OLM will have them: those that its
// ClusterServiceVersion asks for, those of roles among its objects, bound or not, what its webhooks and APIs see, and
// what other objects have sent to it. What an object of a kind or API group does that is not known here is unknown.
// OLM takes objects for roles and bindings by their kind, whatever the apiVersion is. What OLM gives by itself to the
// accounts of webhooks and APIs is not there.
func (b *Bundle) Rights() []Right {
	strategy := b.CSV.Spec.InstallStrategy.StrategySpec
	out := slices.Concat(
		b.asked(strategy.ClusterPermissions, FromClusterPermissions, InCluster),
		b.asked(strategy.Permissions, FromPermissions, InTargets))
	roles := b.rolesByName()
	for _, o := range b.Objects {
		if o.IsRBAC() {
			out = append(out, roles.rightsOf(o)...)
		} else {
			out = append(out, b.objectRights(o)...)
		}
	}
	return slices.Concat(out, b.webhookRights(), b.apiRights(), b.foreignAccounts())
}

func unknown(o *Object, source Source, path []any, format string, args ...any) Right {
	return Right{Unknown: fmt.Sprintf(format, args...), Source: source, Name: o.GetKind() + " " + o.GetName(),
		Scope: InCluster, Object: o, Path: path}
}

// asked are the rights that a list of the ClusterServiceVersion asks for.
func (b *Bundle) asked(list []operatorsv1alpha1.StrategyDeploymentPermissions, source Source, scope Scope) []Right {
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

// roles are the holders of the roles of a bundle, by kind and name.
type roles map[string][]Holder

// rolesByName finds out who has the roles of the bundle.
func (b *Bundle) rolesByName() roles {
	out := roles{}
	for _, o := range b.Objects {
		if isRole(o) {
			name := o.GetKind() + " " + o.GetName()
			out[name] = append(out[name], aggregatedTo(o)...)
		}
	}
	for _, o := range b.Objects {
		if isRole(o) || !o.IsRBAC() {
			continue
		}
		binding, err := bindingOf(o)
		name := binding.RoleRef.Kind + " " + binding.RoleRef.Name
		if held, brought := out[name]; brought && err == nil {
			out[name] = append(held, holders(o, binding)...)
		}
	}
	return out
}

func isRole(o *Object) bool { return o.GetKind() == "Role" || o.GetKind() == "ClusterRole" }

func bindingOf(o *Object) (rbacv1.ClusterRoleBinding, error) {
	var out rbacv1.ClusterRoleBinding // a RoleBinding has the same fields
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &out)
	return out, err
}

// holders are the subjects of a binding.
func holders(o *Object, binding rbacv1.ClusterRoleBinding) []Holder {
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

// AggregationLabels returns the labels, sorted, by which other ClusterRoles take the rules of an object: those of
// Kubernetes, such as rbac.authorization.k8s.io/aggregate-to-edit, and all that are named in the same way.
func (o *Object) AggregationLabels() []string {
	if o.GetKind() != "ClusterRole" {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(o.GetLabels())), func(label string) bool {
		_, name, _ := strings.Cut(label, "/")
		return !strings.HasPrefix(name, "aggregate-to-")
	})
}

func aggregatedTo(o *Object) []Holder {
	var out []Holder
	for _, label := range o.AggregationLabels() {
		out = append(out, Holder{Kind: AggregatedTo, Name: label, Scope: InCluster})
	}
	return out
}

// labelOwner is OLM's label for what a ClusterServiceVersion owns.
const labelOwner = "olm.owner"

// rightsOf are the rights of a role, and those of a binding that are not known.
func (r roles) rightsOf(o *Object) []Right {
	var out []Right
	// Where the operator is for all namespaces OLM makes a ClusterRole of every Role with the label, whoever made it
	// (ensureSingletonRBAC in pkg/controller/operators/olm/operatorgroup.go).
	if _, owned := o.GetLabels()[labelOwner]; owned {
		out = append(out, unknown(o, FromObject, []any{"metadata", "labels", labelOwner}, "%s %s has the label %s, by "+
			"which OLM may grant it in all namespaces", o.GetKind(), o.GetName(), labelOwner))
	}
	if isRole(o) {
		return append(out, r.rulesOf(o)...)
	}
	binding, err := bindingOf(o)
	if ref := binding.RoleRef; err != nil {
		out = append(out, unknown(o, FromBinding, nil, "%s %s cannot be read", o.GetKind(), o.GetName()))
	} else if _, brought := r[ref.Kind+" "+ref.Name]; !brought {
		not := unknown(o, FromBinding, []any{"roleRef"}, "%s %s binds %s %s, which is not the bundle's", o.GetKind(),
			o.GetName(), ref.Kind, ref.Name)
		not.Holders = holders(o, binding)
		out = append(out, not)
	}
	return out
}

func (r roles) rulesOf(o *Object) []Right {
	name := o.GetKind() + " " + o.GetName()
	var role rbacv1.ClusterRole // a Role has no other fields
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
		return []Right{unknown(o, FromRole, nil, "%s cannot be read", name)}
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
		all := unknown(o, FromRole, []any{"aggregationRule"}, "%s is aggregated from others%s", name,
			selected(role.AggregationRule))
		all.Holders = r[name]
		out = append(out, all)
	}
	return out
}

// selected says which roles an aggregated one takes the rules of.
func selected(rule *rbacv1.AggregationRule) string {
	var out []string
	for _, s := range rule.ClusterRoleSelectors {
		out = append(out, metav1.FormatLabelSelector(&s))
	}
	if len(out) == 0 {
		return ""
	}
	return ", those with the labels " + strings.Join(out, ", or ")
}

// webhookRights say what an admission webhook sees, and changes if it is a mutating one: that is not less than the
// right to read and update the objects.
func (b *Bundle) webhookRights() []Right {
	var out []Right
	for i, w := range b.CSV.Spec.WebhookDefinitions {
		if w.Type == operatorsv1alpha1.ConversionWebhook {
			continue // it is about definitions that the bundle owns
		}
		verbs := []string{"get", "list", "watch"}
		if w.Type == operatorsv1alpha1.MutatingAdmissionWebhook {
			verbs = append(verbs, "create", "update", "patch")
		}
		for j, r := range w.Rules {
			out = append(out, Right{Source: FromWebhook, Name: w.GenerateName, Scope: InCluster, Object: b.CSVObject(),
				Path: []any{"spec", "webhookdefinitions", i, "rules", j},
				Rule: rbacv1.PolicyRule{APIGroups: r.APIGroups, Resources: asInRBAC(r), Verbs: verbs}})
		}
	}
	return out
}

// asInRBAC writes the resources of a webhook's rule as RBAC does: "*/*" is everything there, and "pods/*" are pods,
// with all their subresources.
func asInRBAC(r admissionregistrationv1.RuleWithOperations) []string {
	var out []string
	for _, resource := range r.Resources {
		whole, all := strings.CutSuffix(resource, "/*")
		switch {
		case resource == "*/*":
			out = append(out, rbacv1.ResourceAll)
		case all:
			out = append(out, whole, resource)
		default:
			out = append(out, resource)
		}
	}
	return out
}

// apiRights say that the server of an API sees and changes all objects there.
func (b *Bundle) apiRights() []Right {
	var out []Right
	for i, api := range b.CSV.Spec.APIServiceDefinitions.Owned {
		out = append(out, Right{Source: FromAPI, Name: api.Name, Scope: InCluster, Object: b.CSVObject(),
			Path: []any{"spec", "apiservicedefinitions", "owned", i},
			Rule: rbacv1.PolicyRule{APIGroups: []string{api.Group}, Resources: []string{api.Name},
				Verbs: []string{rbacv1.VerbAll}}})
	}
	return out
}

// Accounts returns the service accounts that the bundle brings, gets permissions for or runs as, sorted, each once.
func (b *Bundle) Accounts() []string {
	all := b.ownAccounts()
	for _, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		all[AccountOf(d.Spec.Template.Spec)] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// ownAccounts are those that the bundle brings, and those that OLM makes for its permissions.
func (b *Bundle) ownAccounts() map[string]bool {
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

// HasAccount reports whether a service account is one that the bundle brings, or that OLM makes for its permissions.
func (b *Bundle) HasAccount(name string) bool { return b.ownAccounts()[name] }

// foreignAccounts say that a Deployment has the rights of an account which the bundle does not bring.
func (b *Bundle) foreignAccounts() []Right {
	own := b.ownAccounts()
	var out []Right
	for i, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		account := AccountOf(d.Spec.Template.Spec)
		if own[account] || account == DefaultAccount {
			continue
		}
		out = append(out, Right{Source: FromDeployment, Name: "Deployment " + d.Name, Scope: InCluster,
			Unknown: fmt.Sprintf("Deployment %s runs as service account %s, which is not the bundle's", d.Name,
				account),
			Object: b.CSVObject(),
			Path:   []any{"spec", "install", "spec", "deployments", i, "spec", "template", "spec"}})
	}
	return out
}
