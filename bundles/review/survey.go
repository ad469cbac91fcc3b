// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// bundleSurvey is a bundle together with data that most checks need.
type bundleSurvey struct {
	*bundles.Bundle
	// fields are all fields in the schemas of the CRDs, such as "Thing spec.backup".
	fields []fieldPath
	// rules are the rules that are granted to the operator.
	rules []rbacv1.PolicyRule
	// containers are the containers of all Deployments, by DEPLOYMENT/CONTAINER.
	containers map[string]corev1.Container
}

// fieldPath is a field in the schema of a kind. name is the last part of path.
type fieldPath struct {
	kind, path, name string
}

func (f fieldPath) String() string { return f.kind + " " + f.path }

// surveyBundle collects the data about a bundle.
func surveyBundle(b *bundles.Bundle) bundleSurvey {
	s := bundleSurvey{Bundle: b, containers: map[string]corev1.Container{}}
	for _, crd := range b.CRDs {
		for _, v := range crd.Spec.Versions {
			if v.Storage && v.Schema != nil {
				s.collectFields(crd.Spec.Names.Kind, "", v.Schema.OpenAPIV3Schema, 0)
			}
		}
	}
	for _, r := range b.Rights() {
		if len(r.ListBoundHolders()) > 0 {
			s.rules = append(s.rules, r.Rule)
		}
	}
	for _, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, c := range d.Spec.Template.Spec.Containers {
			s.containers[d.Name+"/"+c.Name] = c
		}
	}
	return s
}

// maxDepth is the maximum depth of fields that count. Deeper fields mostly belong to a pod template, whose fields are
// no evidence about the operator.
const maxDepth = 3

// collectFields adds the fields below a schema.
func (s *bundleSurvey) collectFields(kind, path string, schema *apiextensionsv1.JSONSchemaProps, depth int) {
	if schema == nil || depth > maxDepth {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		fieldName := strings.TrimPrefix(path+"."+name, ".")
		s.fields = append(s.fields, fieldPath{kind: kind, path: fieldName, name: name})
		property := schema.Properties[name]
		s.collectFields(kind, fieldName, &property, depth+1)
	}
	if schema.Items != nil {
		s.collectFields(kind, path+"[]", schema.Items.Schema, depth)
	}
}

// maxEvidence is the maximum number of places that are shown for one signal.
const maxEvidence = 3

// limitEvidence sorts a list, removes duplicates and limits its length to maxEvidence.
func limitEvidence(list []string) []string {
	slices.Sort(list)
	return phrase.Limit(slices.Compact(list), maxEvidence)
}

// findFields returns the fields of a section, spec or status, whose name matches.
func (s bundleSurvey) findFields(section string, pattern *regexp.Regexp) []string {
	var out []string
	for _, f := range s.fields {
		if strings.HasPrefix(f.path, section+".") && pattern.MatchString(f.name) {
			out = append(out, "field "+f.String())
		}
	}
	return out
}

// findKinds returns the owned kinds whose name matches.
func (s bundleSurvey) findKinds(pattern *regexp.Regexp) []string {
	var out []string
	for _, owned := range s.CSV.Spec.CustomResourceDefinitions.Owned {
		if pattern.MatchString(owned.Kind) {
			out = append(out, "kind "+owned.Kind)
		}
	}
	return out
}

// findObjects returns the manifests of the given kinds.
func (s bundleSurvey) findObjects(kinds ...string) []string {
	var out []string
	for _, o := range s.Objects {
		if slices.Contains(kinds, o.GetKind()) {
			out = append(out, o.GetKind()+" "+o.GetName())
		}
	}
	return out
}

// findWriteRights returns the rights to write the given resources. Wildcards do not count, because a right to
// everything is no evidence.
func (s bundleSurvey) findWriteRights(group string, resources ...string) []string {
	var out []string
	for _, r := range s.rules {
		if !slices.Contains(r.APIGroups, group) || !slices.ContainsFunc(r.Verbs, isWriteVerb) {
			continue
		}
		for _, resource := range resources {
			if slices.Contains(r.Resources, resource) {
				out = append(out, "may write "+resource)
			}
		}
	}
	return out
}

// isWriteVerb reports whether a verb permits to write objects.
func isWriteVerb(verb string) bool {
	return slices.Contains([]string{"*", "create", "update", "patch"}, verb)
}

// checkContainers returns the evidence with the number of containers if every container passes; nil if a container
// fails or there are no containers.
func (s bundleSurvey) checkContainers(evidence string, isPassing func(corev1.Container) bool) []string {
	for _, c := range s.containers {
		if !isPassing(c) {
			return nil
		}
	}
	if len(s.containers) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s on %s", evidence, formatCount(len(s.containers), "container"))}
}

// formatCount returns a text for all of n objects, such as "all 3 containers".
func formatCount(n int, noun string) string {
	if n == 1 {
		return "its one " + noun
	}
	return fmt.Sprintf("all %d %ss", n, noun)
}
