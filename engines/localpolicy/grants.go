// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package localpolicy

import (
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
)

// grant is a rule that holds once the bundle is installed, and where it is from.
type grant struct {
	rule rbacv1.PolicyRule
	// cluster says that it holds in all namespaces.
	cluster bool
	from    string
}

// grants are all rights that come with a bundle: those that its CSV asks for, those of
// roles among its objects whether or not the bundle binds them, since a binding may be
// there already, and what its webhooks and APIs see.
func grants(b *bundles.Bundle, mode v1alpha1.InstallMode) []grant {
	strategy := b.CSV.Spec.InstallStrategy.StrategySpec
	out := accountGrants(strategy.ClusterPermissions, true, "clusterPermissions")
	out = append(out, accountGrants(strategy.Permissions, mode != v1alpha1.InstallOwnNamespace, "permissions")...)
	for _, o := range b.Objects {
		if o.IsRBAC() {
			out = append(out, roleGrants(o)...)
		}
	}
	for _, w := range b.CSV.Spec.WebhookDefinitions {
		out = append(out, webhookGrants(w)...)
	}
	for _, api := range b.CSV.Spec.APIServiceDefinitions.Owned {
		out = append(out, grant{from: "owned API " + api.Name, cluster: true, rule: rbacv1.PolicyRule{
			APIGroups: []string{api.Group}, Resources: []string{api.Name}, Verbs: []string{rbacv1.VerbAll}}})
	}
	return out
}

func accountGrants(list []operatorsv1alpha1.StrategyDeploymentPermissions, cluster bool, field string) []grant {
	var out []grant
	for _, p := range list {
		for _, rule := range p.Rules {
			out = append(out, grant{rule: rule, cluster: cluster,
				from: fmt.Sprintf("%s of service account %s", field, p.ServiceAccountName)})
		}
	}
	return out
}

func roleGrants(o *bundles.Object) []grant {
	var role rbacv1.ClusterRole
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role) != nil {
		return nil // ungraspable reports it
	}
	var out []grant
	for _, rule := range role.Rules {
		out = append(out, grant{rule: rule, cluster: o.GetKind() == "ClusterRole",
			from: o.GetKind() + " " + o.GetName()})
	}
	return out
}

// webhookGrants say what an admission webhook sees, and changes if it is a mutating
// one: that is not less than the right to read and update the objects.
func webhookGrants(w operatorsv1alpha1.WebhookDescription) []grant {
	if w.Type == operatorsv1alpha1.ConversionWebhook {
		return nil // it is about definitions that the bundle owns
	}
	verbs := []string{"get", "list", "watch"}
	if w.Type == operatorsv1alpha1.MutatingAdmissionWebhook {
		verbs = append(verbs, "create", "update", "patch")
	}
	var out []grant
	for _, r := range w.Rules {
		out = append(out, grant{from: "webhook " + w.GenerateName, cluster: true, rule: rbacv1.PolicyRule{
			APIGroups: r.APIGroups, Resources: withoutSubresources(r), Verbs: verbs}})
	}
	return out
}

// withoutSubresources writes the resources of a webhook's rule as RBAC does: "*/*" is
// everything there.
func withoutSubresources(r admissionregistrationv1.RuleWithOperations) []string {
	out := make([]string, len(r.Resources))
	for i, resource := range r.Resources {
		if out[i] = resource; resource == "*/*" {
			out[i] = rbacv1.ResourceAll
		}
	}
	return out
}

// ungraspable says why the rights that come with a bundle are not known from the bundle;
// empty where they are.
func ungraspable(b *bundles.Bundle) string {
	roles, accounts := map[string]bool{}, map[string]bool{bundles.DefaultAccount: true}
	for _, o := range b.Objects {
		switch o.GetKind() {
		case "ServiceAccount":
			accounts[o.GetName()] = true
		case "Role", "ClusterRole":
			roles[o.GetKind()+" "+o.GetName()] = true
		}
	}
	for _, o := range b.Objects {
		if !o.IsRBAC() {
			continue
		}
		if why := unknownRole(o, roles); why != "" {
			return why
		}
	}
	strategy := b.CSV.Spec.InstallStrategy.StrategySpec
	for _, list := range [][]operatorsv1alpha1.StrategyDeploymentPermissions{strategy.Permissions,
		strategy.ClusterPermissions} {
		for _, p := range list {
			accounts[p.ServiceAccountName] = true
		}
	}
	for _, d := range strategy.DeploymentSpecs {
		if account := bundles.AccountOf(d.Spec.Template.Spec); !accounts[account] {
			return fmt.Sprintf("Deployment %s runs as service account %s, which is not the bundle's", d.Name, account)
		}
	}
	return ""
}

// unknownRole says why the rights that a role or a binding gives are not known.
func unknownRole(o *bundles.Object, roles map[string]bool) string {
	// Where the operator is for all namespaces OLM makes a ClusterRole of every Role with the label, whoever made it
	// (ensureSingletonRBAC in pkg/controller/operators/olm/operatorgroup.go).
	if _, owned := o.GetLabels()[labelOwner]; owned {
		return fmt.Sprintf("%s %s has the label %s, by which OLM may grant it in all namespaces", o.GetKind(),
			o.GetName(), labelOwner)
	}
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	convert := runtime.DefaultUnstructuredConverter.FromUnstructured
	switch o.GetKind() {
	case "Role", "ClusterRole":
		if err := convert(o.Object, &role); err != nil {
			return fmt.Sprintf("%s %s cannot be read", o.GetKind(), o.GetName())
		}
		if role.AggregationRule != nil {
			return fmt.Sprintf("ClusterRole %s is aggregated from others", o.GetName())
		}
	default:
		if err := convert(o.Object, &binding); err != nil || !roles[binding.RoleRef.Kind+" "+binding.RoleRef.Name] {
			return fmt.Sprintf("%s %s binds %s %s, which is not the bundle's", o.GetKind(), o.GetName(),
				binding.RoleRef.Kind, binding.RoleRef.Name)
		}
	}
	return ""
}
