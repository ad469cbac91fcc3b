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

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

// Undefined is a resource that the operator needs and that nothing in the bundle defines or requires.
type Undefined struct {
	// Name is that of the CustomResourceDefinition: the resource, a dot and the API group. The resource is * where all
	// of the group are meant, and none is defined.
	Name string
	// By says what needs it, such as "webhook x" or "permissions of service account y".
	By string
	// Path is the place in the ClusterServiceVersion, as Position takes it.
	Path []any
}

// UndefinedResources returns the resources that an admission webhook is called for, and those whose status an account
// may write, as only the operator that reconciles them does. APIs of Kubernetes, of OLM and of OpenShift are not among
// them, and neither is what the bundle defines, serves, or requires. Each is there once.
func (b *Bundle) UndefinedResources() []Undefined {
	known := b.knownResources()
	var out []Undefined
	add := func(u Undefined) {
		if !known.has(u.Name) && !slices.ContainsFunc(out, func(o Undefined) bool { return o.Name == u.Name }) {
			out = append(out, u)
		}
	}
	for i, w := range b.CSV.Spec.WebhookDefinitions {
		for j, rule := range w.Rules {
			for _, name := range namesOf(rule.APIGroups, rule.Resources, "") {
				add(Undefined{Name: name, By: "webhook " + w.GenerateName,
					Path: []any{"spec", "webhookdefinitions", i, "rules", j}})
			}
		}
	}
	strategy := b.CSV.Spec.InstallStrategy.StrategySpec
	for _, r := range slices.Concat(b.asked(strategy.ClusterPermissions, FromClusterPermissions, InCluster),
		b.asked(strategy.Permissions, FromPermissions, InTargets)) {
		if !canWrite(r.Rule) {
			continue
		}
		for _, name := range namesOf(r.Rule.APIGroups, r.Rule.Resources, "status") {
			add(Undefined{Name: name, By: r.From(), Path: r.Path})
		}
	}
	return out
}

func canWrite(r rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(r.Verbs,
		func(verb string) bool { return verb == "update" || verb == "patch" || verb == rbacv1.VerbAll })
}

// namesOf are the names of definitions of the resources of a rule: of those with the subresource, or of all if it is
// empty. All resources of a group count only then, as *, and all groups never.
func namesOf(groups, resources []string, subresource string) []string {
	var out []string
	for _, group := range groups {
		for _, resource := range resources {
			name, sub, _ := strings.Cut(resource, "/")
			if strings.Contains(group, "*") || subresource != "" && (sub != subresource || name == "*") {
				continue
			}
			out = append(out, name+"."+group)
		}
	}
	return out
}

// knownResources are those that exist where the bundle is installed.
type knownResources struct {
	// names are those of definitions, and groups the API groups of which all resources are there.
	names, groups map[string]bool
	// all says that another package may bring anything.
	all bool
}

func (k knownResources) has(name string) bool {
	resource, group, _ := strings.Cut(name, ".")
	if k.all || k.names[name] || k.groups[group] || isPlatform(group) {
		return true
	}
	if resource != "*" {
		return false
	}
	for known := range k.names {
		if strings.HasSuffix(known, "."+group) {
			return true
		}
	}
	return false
}

// knownResources of a bundle. A definition of v1beta1 counts as well.
func (b *Bundle) knownResources() knownResources {
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
	k.all = slices.ContainsFunc(b.Dependencies,
		func(d registryv1.Property) bool { return d.Type != registryv1.PropertyGVK })
	for _, p := range slices.Concat(b.Dependencies, b.Properties) {
		switch p.Type {
		case registryv1.PropertyPackageRequired, registryv1.PropertyConstraint:
			k.all = true
		case registryv1.PropertyGVK, registryv1.PropertyGVKRequired:
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

// isPlatform says whether an API group is of Kubernetes, of OLM, or of OpenShift.
func isPlatform(group string) bool {
	return scheme.Scheme.IsGroupRegistered(group) || !strings.Contains(group, ".") ||
		slices.Contains([]string{apiextensionsv1.GroupName, "apiregistration.k8s.io", "metrics.k8s.io",
			"custom.metrics.k8s.io", "external.metrics.k8s.io", operatorsv1alpha1.GroupName,
			"packages." + operatorsv1alpha1.GroupName}, group) || strings.HasSuffix(group, ".openshift.io")
}
