// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package localpolicy

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// JudgesBundles reports whether JudgeBundle can refuse a bundle in a namespace. If it cannot, the agent does not need
// to read bundles: a cluster without a policy needs no access to the registries from which only OLM pulls bundles. A
// nil policy judges no bundles.
func (p *Policy) JudgesBundles(namespace string) bool {
	if p == nil || p.Absent {
		return false
	}
	return len(p.Spec.AllowedRegistries) > 0 || p.Spec.Permissions.isSet() || p.isOwn(namespace)
}

// isOwn reports whether a namespace is the agent's namespace, which also has the owner's ConfigMaps.
func (p *Policy) isOwn(namespace string) bool { return namespace != "" && namespace == p.OwnNamespace }

// JudgeBundle returns a RefusalError if the policy does not permit the content of a bundle that OLM will install into
// a namespace. objects are its manifests. image is the image from which OLM takes the manifests; empty if the catalog
// view has them itself. A bundle with an image is refused, because the content can change before OLM installs it. A nil
// policy permits everything.
//
// A bundle that runs for its own namespace requests fewer permissions than a bundle that runs for all namespaces: OLM
// makes namespaced rules cluster-wide in mode AllNamespaces.
func (p *Policy) JudgeBundle(name, image string, objects [][]byte, namespace string,
	mode v1alpha1.InstallMode) error {
	if !p.JudgesBundles(namespace) {
		return nil
	}
	if image != "" {
		return refuse("bundle %s, with what it needs, is too large for an InstallPlan, so OLM would unpack %s into a "+
			"ConfigMap, and what is there can be changed before OLM installs it", name,
			phrase.Truncate(image, maxShown))
	}
	b, err := bundles.ParseForRights(objects)
	if err != nil {
		return refuse("the content of bundle %s cannot be judged: %s", name,
			phrase.Truncate(phrase.OneLine(err.Error()), maxShown))
	}
	if err := p.checkObjects(name, b, namespace); err != nil {
		return err
	}
	if err := p.checkImages(name, b); err != nil {
		return err
	}
	if !p.Spec.Permissions.isSet() {
		return nil
	}
	return p.Spec.Permissions.judgeRights(name, b.Rights(), mode != v1alpha1.InstallOwnNamespace)
}

// checkObjects judges the objects of a bundle, except for its permissions.
func (p *Policy) checkObjects(name string, b *bundles.Bundle, namespace string) error {
	for _, o := range b.Objects {
		if field := o.FindMisspeltField(); field != "" {
			return refuse("the content of bundle %s cannot be judged: %s %s has the field %q, which OLM reads though "+
				"it is spelt in another case than in Kubernetes: spell it as Kubernetes does", name, o.GetKind(),
				o.GetName(), field)
		}
		if label := findAgentLabel(o); label != "" {
			return refuse("bundle %s brings ClusterRole %s, whose label %s gives its rights to the agent: only the "+
				"owner of the cluster does that", name, o.GetName(), label)
		}
	}
	return p.checkOwnerObjects(name, b, namespace)
}

// checkImages judges the images that a bundle runs or declares.
func (p *Policy) checkImages(name string, b *bundles.Bundle) error {
	for _, image := range b.Images() {
		if image.Use == bundles.AnnotationImage { // only shown to people
			continue
		}
		if err := p.checkRegistry("an image of bundle "+name, image.Ref); err != nil {
			return err
		}
	}
	return nil
}

// findAgentLabel returns the label by which an object extends the permissions of the agent; empty if there is none.
func findAgentLabel(o *bundles.Object) string {
	const prefix = "/aggregate-to-agent"
	for _, label := range o.AggregationLabels() {
		if strings.HasPrefix(label, v1alpha1.SchemeGroupVersion.Group+prefix) {
			return label
		}
	}
	return ""
}

// checkOwnerObjects refuses objects that could change the limits of the agent, because OLM overwrites existing
// objects. The agent's namespace accepts only the agent's bundle, without objects that set the agent's permissions.
// No bundle may have a ClusterRole or ClusterRoleBinding whose name begins like the names of the agent's roles.
func (p *Policy) checkOwnerObjects(name string, b *bundles.Bundle, namespace string) error {
	isOwn := p.isOwn(namespace)
	if isOwn && !strings.HasPrefix(name, v1alpha1.AgentPackage+".") {
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

// judgeRights judges the permissions of a bundle, first the permissions without a known limit. It also judges
// permissions that the bundle does not bind, because a binding may already exist. isForAll is set if the operator
// runs for all namespaces.
func (p Permissions) judgeRights(name string, all []bundles.Right, isForAll bool) error {
	for _, r := range all {
		if r.Unknown != "" {
			return refuse("what bundle %s may do has no limit: %s", name, r.Unknown)
		}
	}
	for _, r := range all {
		if err := p.judgeRight(name, r, isForAll); err != nil {
			return err
		}
	}
	return nil
}

// judgeRight judges one permission by the three limits of the policy: wildcards, denied rules and the maximum.
func (p Permissions) judgeRight(name string, r bundles.Right, isForAll bool) error {
	if p.DenyClusterWildcards && r.Scope.IsCluster(isForAll) && hasWildcard(r.Rule) {
		return refuse("bundle %s asks for a wildcard in all namespaces, which denyClusterWildcards denies: %s (%s)",
			name, describeRule(r.Rule), r.FormatSource())
	}
	for _, denied := range p.Denied {
		if hasOverlap(denied, r.Rule) {
			return refuse("bundle %s asks for rights that are denied: %s (%s)", name, describeRule(r.Rule),
				r.FormatSource())
		}
	}
	if p.Maximum == nil {
		return nil
	}
	if covered, uncovered := validation.Covers(p.Maximum, []rbacv1.PolicyRule{r.Rule}); !covered {
		return refuse("bundle %s asks for more than the maximum: %s (%s)", name, describeRule(uncovered[0]),
			r.FormatSource())
	}
	return nil
}

// hasWildcard reports whether a rule has a wildcard.
func hasWildcard(rule rbacv1.PolicyRule) bool {
	for _, values := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs} {
		if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "*") }) {
			return true
		}
	}
	return false
}

// hasOverlap reports whether both rules permit a common request. A rule without resourceNames permits all objects.
func hasOverlap(a, b rbacv1.PolicyRule) bool {
	if !hasCommon(a.Verbs, b.Verbs, isEqual) {
		return false
	}
	if hasCommon(a.NonResourceURLs, b.NonResourceURLs, isSameURL) {
		return true
	}
	return hasCommon(a.APIGroups, b.APIGroups, isEqual) && hasCommon(a.Resources, b.Resources, isSameResource) &&
		(len(a.ResourceNames) == 0 || len(b.ResourceNames) == 0 || hasCommon(a.ResourceNames, b.ResourceNames, isEqual))
}

// hasCommon reports whether two lists have a common element. A wildcard matches any element.
func hasCommon(a, b []string, isSame func(a, b string) bool) bool {
	for _, x := range a {
		for _, y := range b {
			if x == rbacv1.ResourceAll || y == rbacv1.ResourceAll || isSame(x, y) {
				return true
			}
		}
	}
	return false
}

// isEqual reports whether two texts are equal.
func isEqual(a, b string) bool { return a == b }

// isSameResource reports whether two resources, with their subresources, overlap. It supports "*/status", which is the
// subresource of every resource, and "pods/*" in the rules of webhooks, which is every subresource.
func isSameResource(a, b string) bool {
	resourceA, subA, hasA := strings.Cut(a, "/")
	resourceB, subB, hasB := strings.Cut(b, "/")
	return (subA == subB || hasA && hasB && (subA == rbacv1.ResourceAll || subB == rbacv1.ResourceAll)) &&
		(resourceA == resourceB || resourceA == rbacv1.ResourceAll || resourceB == rbacv1.ResourceAll)
}

// isSameURL reports whether two URLs overlap. A URL may end with a wildcard.
func isSameURL(a, b string) bool {
	prefixA, anyA := strings.CutSuffix(a, "*")
	prefixB, anyB := strings.CutSuffix(b, "*")
	return a == b || anyA && strings.HasPrefix(prefixB, prefixA) || anyB && strings.HasPrefix(prefixA, prefixB)
}

// describeRule returns a rule in words.
func describeRule(rule rbacv1.PolicyRule) string {
	target := strings.Join(rule.NonResourceURLs, ", ")
	if len(rule.Resources) > 0 {
		groups := slices.Clone(rule.APIGroups)
		for i, group := range groups {
			if group == "" {
				groups[i] = "core"
			}
		}
		target = fmt.Sprintf("%s in %s", strings.Join(rule.Resources, ", "), strings.Join(groups, ", "))
	}
	if len(rule.ResourceNames) > 0 {
		target += " named " + strings.Join(rule.ResourceNames, ", ")
	}
	return phrase.Truncate(strings.Join(rule.Verbs, ", ")+" "+target, maxShown)
}
