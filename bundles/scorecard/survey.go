// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scorecard

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
	"github.com/bellwether-dev/bellwether/phrase"
)

// surveyed is a bundle with what most signals need.
type surveyed struct {
	*bundles.Bundle
	// fields are the paths of all fields of the CRDs' schemas, such as "Thing spec.backup".
	fields []fieldPath
	// rules are those that the operator is granted.
	rules []rbacv1.PolicyRule
	// containers are all of all Deployments, named DEPLOYMENT/CONTAINER.
	containers map[string]corev1.Container
}

type fieldPath struct {
	kind, path, name string
}

func (f fieldPath) String() string { return f.kind + " " + f.path }

func survey(b *bundles.Bundle) surveyed {
	s := surveyed{Bundle: b, containers: map[string]corev1.Container{}}
	for _, crd := range b.CRDs {
		for _, v := range crd.Spec.Versions {
			if v.Storage && v.Schema != nil {
				s.walk(crd.Spec.Names.Kind, "", v.Schema.OpenAPIV3Schema, 0)
			}
		}
	}
	for _, r := range b.Rights() {
		if len(r.Bound()) > 0 {
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

// maxDepth is how far down a field can be and still be the operator's own: what is deeper is mostly a pod template,
// whose fields say nothing about the operator.
const maxDepth = 3

func (s *surveyed) walk(kind, path string, schema *apiextensionsv1.JSONSchemaProps, depth int) {
	if schema == nil || depth > maxDepth {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		below := strings.TrimPrefix(path+"."+name, ".")
		s.fields = append(s.fields, fieldPath{kind, below, name})
		property := schema.Properties[name]
		s.walk(kind, below, &property, depth+1)
	}
	if schema.Items != nil {
		s.walk(kind, path+"[]", schema.Items.Schema, depth)
	}
}

// maxEvidence is how many pieces are shown for one signal.
const maxEvidence = 3

// some cuts a list to what a page has room for.
func some(list []string) []string {
	slices.Sort(list)
	return phrase.Limit(slices.Compact(list), maxEvidence)
}

// named finds fields of spec or status whose name matches.
func (s surveyed) named(below string, pattern *regexp.Regexp) []string {
	var out []string
	for _, f := range s.fields {
		if strings.HasPrefix(f.path, below+".") && pattern.MatchString(f.name) {
			out = append(out, "field "+f.String())
		}
	}
	return out
}

// kinds finds owned kinds whose name matches.
func (s surveyed) kinds(pattern *regexp.Regexp) []string {
	var out []string
	for _, owned := range s.CSV.Spec.CustomResourceDefinitions.Owned {
		if pattern.MatchString(owned.Kind) {
			out = append(out, "kind "+owned.Kind)
		}
	}
	return out
}

// objects finds manifests of a kind.
func (s surveyed) objects(kinds ...string) []string {
	var out []string
	for _, o := range s.Objects {
		if slices.Contains(kinds, o.GetKind()) {
			out = append(out, o.GetKind()+" "+o.GetName())
		}
	}
	return out
}

// writes finds rights to make or change a resource. Wildcards are no evidence: who may do everything shows nothing.
func (s surveyed) writes(group string, resources ...string) []string {
	var out []string
	for _, r := range s.rules {
		if !slices.Contains(r.APIGroups, group) || !slices.ContainsFunc(r.Verbs, isWrite) {
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

func isWrite(verb string) bool {
	return slices.Contains([]string{"*", "create", "update", "patch"}, verb)
}

// each checks every container, and has evidence only if all pass.
func (s surveyed) each(what string, ok func(corev1.Container) bool) []string {
	for _, c := range s.containers {
		if !ok(c) {
			return nil
		}
	}
	if len(s.containers) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s on %s", what, counted(len(s.containers), "container"))}
}

func counted(n int, what string) string {
	if n == 1 {
		return "its one " + what
	}
	return fmt.Sprintf("all %d %ss", n, what)
}
