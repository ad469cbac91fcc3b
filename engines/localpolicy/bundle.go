// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package localpolicy

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/bellwether-dev/bellwether/apis/own"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/phrase"
)

// JudgesBundles tells whether Bundle can refuse anything that is installed into a
// namespace. Where it cannot, nobody needs to read what a bundle holds: a cluster
// without a policy needs no access to the registries from which OLM alone takes its
// bundles. A nil policy judges none.
func (p *Policy) JudgesBundles(namespace string) bool {
	if p == nil || p.Absent {
		return false
	}
	return len(p.Spec.AllowedRegistries) > 0 || p.Spec.Permissions.isSet() || p.isOwn(namespace)
}

// isOwn tells whether a namespace is that of the agent, in which the owner's ConfigMaps are.
func (p *Policy) isOwn(namespace string) bool { return namespace != "" && namespace == p.OwnNamespace }

// Bundle judges the content of a bundle that OLM is to install into a namespace. Objects
// are its manifests. Image is where OLM takes them from; empty where they are served
// inline. A nil policy permits everything.
//
// A bundle that runs for its own namespace asks for less than one that runs for all:
// OLM makes cluster-wide rules of namespaced ones where the mode is AllNamespaces.
func (p *Policy) Bundle(name, image string, objects [][]byte, namespace string,
	mode v1alpha1.InstallMode) error {
	if !p.JudgesBundles(namespace) {
		return nil
	}
	if image != "" {
		return refuse("bundle %s, with what it needs, is too large for an InstallPlan, so OLM would unpack %s into a "+
			"ConfigMap, and what is there can be changed before OLM installs it", name,
			phrase.Truncate(image, maxShown))
	}
	b, err := bundles.RightsOf(objects)
	if err != nil {
		return refuse("the content of bundle %s cannot be judged: %s", name,
			phrase.Truncate(phrase.OneLine(err.Error()), maxShown))
	}
	if err := p.objects(name, b, namespace); err != nil {
		return err
	}
	if err := p.images(name, b); err != nil {
		return err
	}
	if !p.Spec.Permissions.isSet() {
		return nil
	}
	return p.Spec.Permissions.judge(name, b.Rights(), mode != v1alpha1.InstallOwnNamespace)
}

// objects judges what a bundle brings, whatever the rights are that come with it.
func (p *Policy) objects(name string, b *bundles.Bundle, namespace string) error {
	for _, o := range b.Objects {
		if field := o.Misspelt(); field != "" {
			return refuse("the content of bundle %s cannot be judged: %s %s has the field %q, which OLM reads though "+
				"it is spelt in another case than in Kubernetes: spell it as Kubernetes does", name, o.GetKind(),
				o.GetName(), field)
		}
		if label := forAgent(o); label != "" {
			return refuse("bundle %s brings ClusterRole %s, whose label %s gives its rights to the agent: only the "+
				"owner of the cluster does that", name, o.GetName(), label)
		}
	}
	return p.ofOwner(name, b, namespace)
}

// images judges what a bundle runs, and what it says that it may run.
func (p *Policy) images(name string, b *bundles.Bundle) error {
	for _, image := range b.Images() {
		if image.Use == bundles.AnnotationImage { // for people
			continue
		}
		if err := p.registry("an image of bundle "+name, image.Ref); err != nil {
			return err
		}
	}
	return nil
}

// forAgent returns the label by which an object widens the rights of the agent; empty where there is none.
func forAgent(o *bundles.Object) string {
	const prefix = "/aggregate-to-agent"
	for _, label := range o.AggregationLabels() {
		if strings.HasPrefix(label, v1alpha1.SchemeGroupVersion.Group+prefix) {
			return label
		}
	}
	return ""
}

// ofOwner refuses what could change what bounds the agent: OLM overwrites an object that a bundle brings and that is
// there already. Into the agent's namespace comes only its own bundle, with nothing that says what the agent may do,
// and nowhere a cluster-wide role that is named like the agent's.
func (p *Policy) ofOwner(name string, b *bundles.Bundle, namespace string) error {
	isOwn := p.isOwn(namespace)
	if isOwn && !strings.HasPrefix(name, own.AgentPackage+".") {
		return refuse("bundle %s is not the agent's, and namespace %s is the agent's own", name, namespace)
	}
	for _, o := range b.Objects {
		switch kind := o.GetKind(); {
		case isOwn && !slices.Contains([]string{kindCSV, "Service", "CustomResourceDefinition"}, kind):
			return refuse("bundle %s brings %s %s into the agent's namespace, where only the owner of the cluster "+
				"writes such objects", name, kind, o.GetName())
		case (kind == "ClusterRole" || kind == "ClusterRoleBinding") && strings.HasPrefix(o.GetName(), "bellwether-"):
			return refuse("bundle %s brings %s %s: only the owner of the cluster writes those that are named "+
				"bellwether-*", name, kind, o.GetName())
		}
	}
	return nil
}

// judge judges the rights that come with a bundle. They count whether or not the bundle binds them, since a binding may
// be there already.
func (p Permissions) judge(name string, all []bundles.Right, forAll bool) error {
	for _, r := range all {
		if r.Unknown != "" {
			return refuse("what bundle %s may do has no limit: %s", name, r.Unknown)
		}
	}
	for _, r := range all {
		if err := p.judgeRight(name, r, forAll); err != nil {
			return err
		}
	}
	return nil
}

func (p Permissions) judgeRight(name string, r bundles.Right, forAll bool) error {
	if p.DenyClusterWildcards && r.Scope.IsCluster(forAll) && hasWildcard(r.Rule) {
		return refuse("bundle %s asks for a wildcard in all namespaces, which denyClusterWildcards denies: %s (%s)",
			name, describe(r.Rule), r.From())
	}
	for _, denied := range p.Denied {
		if overlap(denied, r.Rule) {
			return refuse("bundle %s asks for rights that are denied: %s (%s)", name, describe(r.Rule), r.From())
		}
	}
	if p.Maximum == nil {
		return nil
	}
	if covered, beyond := validation.Covers(p.Maximum, []rbacv1.PolicyRule{r.Rule}); !covered {
		return refuse("bundle %s asks for more than the maximum: %s (%s)", name, describe(beyond[0]), r.From())
	}
	return nil
}

func hasWildcard(rule rbacv1.PolicyRule) bool {
	for _, values := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs} {
		if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "*") }) {
			return true
		}
	}
	return false
}

// overlap tells whether some request is permitted by both rules.
func overlap(a, b rbacv1.PolicyRule) bool {
	if !meet(a.Verbs, b.Verbs, equal) {
		return false
	}
	if meet(a.NonResourceURLs, b.NonResourceURLs, sameURL) {
		return true
	}
	return meet(a.APIGroups, b.APIGroups, equal) && meet(a.Resources, b.Resources, sameResource) &&
		(len(a.ResourceNames) == 0 || len(b.ResourceNames) == 0 || meet(a.ResourceNames, b.ResourceNames, equal))
}

// meet tells whether two lists have something in common; a wildcard has with anything.
func meet(a, b []string, same func(a, b string) bool) bool {
	for _, x := range a {
		for _, y := range b {
			if x == rbacv1.ResourceAll || y == rbacv1.ResourceAll || same(x, y) {
				return true
			}
		}
	}
	return false
}

func equal(a, b string) bool { return a == b }

// sameResource knows "*/status", which is that subresource of every resource, and of webhooks "pods/*", which is every
// subresource.
func sameResource(a, b string) bool {
	resourceA, subA, hasA := strings.Cut(a, "/")
	resourceB, subB, hasB := strings.Cut(b, "/")
	return (subA == subB || hasA && hasB && (subA == rbacv1.ResourceAll || subB == rbacv1.ResourceAll)) &&
		(resourceA == resourceB || resourceA == rbacv1.ResourceAll || resourceB == rbacv1.ResourceAll)
}

// sameURL knows URLs that end in a wildcard.
func sameURL(a, b string) bool {
	prefixA, anyA := strings.CutSuffix(a, "*")
	prefixB, anyB := strings.CutSuffix(b, "*")
	return a == b || anyA && strings.HasPrefix(prefixB, prefixA) || anyB && strings.HasPrefix(prefixA, prefixB)
}

func describe(rule rbacv1.PolicyRule) string {
	about := strings.Join(rule.NonResourceURLs, ", ")
	if len(rule.Resources) > 0 {
		groups := slices.Clone(rule.APIGroups)
		for i, group := range groups {
			if group == "" {
				groups[i] = "core"
			}
		}
		about = fmt.Sprintf("%s in %s", strings.Join(rule.Resources, ", "), strings.Join(groups, ", "))
	}
	if len(rule.ResourceNames) > 0 {
		about += " named " + strings.Join(rule.ResourceNames, ", ")
	}
	return phrase.Truncate(strings.Join(rule.Verbs, ", ")+" "+about, maxShown)
}
