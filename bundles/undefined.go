// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"encoding/json"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// Undefined is a resource that the operator needs and that the bundle neither defines nor requires.
type Undefined struct {
	// Name is the name of the CustomResourceDefinition: the resource, a dot and the API group. The resource is "*" if
	// the bundle needs all resources of a group and no resource of the group is defined.
	Name string
	// NeededBy names the part of the bundle that needs the resource, such as "webhook x" or "permissions of service
	// account y".
	NeededBy string
	// Path is the place in the ClusterServiceVersion, in the form that Position takes.
	Path []any
}

// UndefinedResources returns the resources that the operator needs and that the bundle does not define, serve or
// require. These are the resources of admission webhooks, and the resources whose status an account can write, because
// only the operator that reconciles a resource writes its status. APIs of Kubernetes, OLM and OpenShift are not
// included. Each resource is returned once.
func (b *Bundle) UndefinedResources() []Undefined {
	known := b.listKnownResources()
	var out []Undefined
	add := func(u Undefined) {
		if !known.has(u.Name) && !slices.ContainsFunc(out, func(o Undefined) bool { return o.Name == u.Name }) {
			out = append(out, u)
		}
	}
	for i, w := range b.CSV.Spec.WebhookDefinitions {
		for j, rule := range w.Rules {
			for _, name := range listDefinitionNames(rule.APIGroups, rule.Resources, "") {
				add(Undefined{Name: name, NeededBy: "webhook " + w.GenerateName,
					Path: []any{"spec", "webhookdefinitions", i, "rules", j}})
			}
		}
	}
	strategy := b.CSV.Spec.InstallStrategy.StrategySpec
	for _, r := range slices.Concat(b.listRequestedRights(strategy.ClusterPermissions, FromClusterPermissions,
		InCluster), b.listRequestedRights(strategy.Permissions, FromPermissions, InTargets)) {
		if !canWrite(r.Rule) {
			continue
		}
		for _, name := range listDefinitionNames(r.Rule.APIGroups, r.Rule.Resources, "status") {
			add(Undefined{Name: name, NeededBy: r.FormatSource(), Path: r.Path})
		}
	}
	return out
}

// canWrite reports whether a rule permits to update or patch objects.
func canWrite(r rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(r.Verbs,
		func(verb string) bool { return verb == "update" || verb == "patch" || verb == rbacv1.VerbAll })
}

// listDefinitionNames returns the names of the CustomResourceDefinitions for the resources of a rule. If subresource is
// not empty, only resources with this subresource count, and "*" does not. The group "*" never counts.
func listDefinitionNames(groups, resources []string, subresource string) []string {
	var out []string
	for _, group := range groups {
		for _, resource := range resources {
			name, sub, _ := strings.Cut(resource, "/")
			isOther := subresource != "" && (sub != subresource || name == "*")
			if strings.Contains(group, "*") || isOther {
				continue
			}
			out = append(out, name+"."+group)
		}
	}
	return out
}

// knownResources are the resources that exist where the bundle is installed.
type knownResources struct {
	// names are names of CustomResourceDefinitions, and groups are API groups whose resources all exist.
	names, groups map[string]bool
	// all is true if the bundle requires another package, which can define any resource.
	all bool
}

// has reports whether a resource exists; for the resource "*", whether at least one resource of the group exists.
func (k knownResources) has(name string) bool {
	resource, group, _ := strings.Cut(name, ".")
	if k.all || k.names[name] || k.groups[group] || isPlatformGroup(group) {
		return true
	}
	if resource != "*" {
		return false
	}
	for definition := range k.names {
		if strings.HasSuffix(definition, "."+group) {
			return true
		}
	}
	return false
}

// listKnownResources returns the resources that exist where the bundle is installed: those that the bundle defines,
// owns or requires, and all resources of API groups that it serves or requires. Definitions of v1beta1 count.
func (b *Bundle) listKnownResources() knownResources {
	k := knownResources{names: map[string]bool{}, groups: map[string]bool{}}
	for _, o := range b.Objects {
		if o.GroupVersionKind().Group == apiextensionsv1.GroupName {
			k.names[o.GetName()] = true
		}
	}
	definitions, services := b.CSV.Spec.CustomResourceDefinitions, b.CSV.Spec.APIServiceDefinitions
	for _, d := range slices.Concat(definitions.Owned, definitions.Required) {
		k.names[d.Name] = true
	}
	for _, d := range slices.Concat(services.Owned, services.Required) {
		k.groups[d.Group] = true
	}
	// Only a dependency on one kind shows what the required package defines.
	k.all = slices.ContainsFunc(b.Dependencies, func(d Property) bool { return d.Type != PropertyGVK })
	for _, p := range slices.Concat(b.Dependencies, b.Properties) {
		switch p.Type {
		case PropertyPackageRequired, PropertyConstraint:
			k.all = true
		case PropertyGVK, PropertyGVKRequired:
			var kind struct {
				Group string `json:"group"`
			}
			if err := json.Unmarshal(p.Value, &kind); err == nil {
				k.groups[kind.Group] = true
			}
		}
	}
	return k
}

// isPlatformGroup reports whether an API group belongs to Kubernetes, OLM or OpenShift.
func isPlatformGroup(group string) bool {
	return scheme.Scheme.IsGroupRegistered(group) || !strings.Contains(group, ".") ||
		slices.Contains([]string{apiextensionsv1.GroupName, "apiregistration.k8s.io", "metrics.k8s.io",
			"custom.metrics.k8s.io", "external.metrics.k8s.io", operatorsv1alpha1.GroupName,
			"packages." + operatorsv1alpha1.GroupName}, group) || strings.HasSuffix(group, ".openshift.io")
}
