// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access decides what FleetAccess objects permit: which namespace of the hub
// may bring which release to which cluster. It is pure; the rollout controller, the
// operator controller and the command line ask it.
package access

import (
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/origin"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Any is the registry that permits every catalog.
const Any = "*"

// Decision says on which clusters a release is permitted to a namespace. A nil Decision
// permits it on all.
type Decision struct {
	// refusal is why it is permitted on none; empty where that depends on the cluster.
	refusal string
	rules   []rule
}

// rule is a FleetAccess, read.
type rule struct {
	name     string
	spec     v1alpha1.FleetAccessSpec
	clusters labels.Selector
}

// Decide judges a release of a ManagedOperator in a namespace by all FleetAccess objects
// that there are. Without any it returns nil. One that cannot be read permits nothing.
func Decide(all []v1alpha1.FleetAccess, namespace string, release v1alpha1.Release) *Decision {
	if len(all) == 0 {
		return nil
	}
	d := &Decision{}
	for i := range all {
		selector, err := metav1.LabelSelectorAsSelector(&all[i].Spec.ClusterSelector)
		if err == nil {
			d.rules = append(d.rules, rule{name: all[i].Name, spec: all[i].Spec, clusters: selector})
		}
	}
	slices.SortFunc(d.rules, func(a, b rule) int { return strings.Compare(a.name, b.name) })
	source, target := release.Catalog.Source, release.TargetNamespace()
	for _, c := range []check{
		{func(r rule) bool { return matches(r.spec.Namespaces, namespace) },
			func(string) string { return "no FleetAccess names the namespace " + namespace }},
		{func(r rule) bool { return r.permitsCatalog(source) },
			func(names string) string {
				return names + " does not permit the catalog " + source.Image + source.Directory
			}},
		{func(r rule) bool { return r.permitsKeys(release.Catalog.PublicKeys) },
			func(names string) string {
				return names + " requires signatures: the OperatorCatalog has to have spec.verification with no " +
					"other keys than those of the FleetAccess, and a rollout that began before has to be started " +
					"again (spec.restart)"
			}},
		{func(r rule) bool { return matches(r.spec.TargetNamespaces, target) },
			func(names string) string { return names + " does not permit the target namespace " + target }},
	} {
		if !d.passes(c) {
			break
		}
	}
	return d
}

// ReleaseOf is the release of a ManagedOperator, before a rollout makes one, as far as Decide reads it. Catalog is the
// one that it names.
func ReleaseOf(o *v1alpha1.ManagedOperator, catalog *v1alpha1.OperatorCatalog) v1alpha1.Release {
	release := v1alpha1.Release{Package: o.Spec.Package, Install: o.Spec.Install.InstallSettings,
		Catalog: v1alpha1.CatalogPin{Source: catalog.Spec.Source}}
	if catalog.Status.Source != nil {
		release.Catalog.Source = *catalog.Status.Source
	}
	if v := catalog.Spec.Verification; v != nil {
		release.Catalog.PublicKeys = v.PublicKeys
	}
	return release
}

// check is one thing that a rule has to permit, and what to say of the rules of which
// none does.
type check struct {
	permits func(rule) bool
	refusal func(names string) string
}

// passes keeps the rules that permit something, and tells whether there are any.
func (d *Decision) passes(c check) bool {
	names := d.names()
	d.rules = slices.DeleteFunc(d.rules, func(r rule) bool { return !c.permits(r) })
	if len(d.rules) == 0 {
		d.refusal = c.refusal(names)
	}
	return len(d.rules) > 0
}

func (d *Decision) names() string {
	var names []string
	for _, r := range d.rules {
		names = append(names, r.name)
	}
	return "FleetAccess " + phrase.First(names, maxNamed)
}

const maxNamed = 5

// Refusal is why a cluster with these labels must not be admitted, without a stop; empty
// where it may be.
func (d *Decision) Refusal(cluster map[string]string) string {
	switch {
	case d == nil:
		return ""
	case d.refusal != "":
		return d.refusal
	case slices.ContainsFunc(d.rules, func(r rule) bool { return r.clusters.Matches(labels.Set(cluster)) }):
		return ""
	default:
		return d.names() + " does not permit this cluster (spec.clusterSelector)"
	}
}

// Reaches tells whether the FleetAccess objects permit a namespace of the hub anything on a
// cluster with these labels.
func Reaches(all []v1alpha1.FleetAccess, namespace string, cluster map[string]string) bool {
	return len(all) == 0 || slices.ContainsFunc(all, func(a v1alpha1.FleetAccess) bool {
		selector, err := metav1.LabelSelectorAsSelector(&a.Spec.ClusterSelector)
		return err == nil && matches(a.Spec.Namespaces, namespace) && selector.Matches(labels.Set(cluster))
	})
}

func (r rule) permitsCatalog(source v1alpha1.CatalogSource) bool {
	if slices.Contains(r.spec.Registries, Any) {
		return true
	}
	repository, err := origin.Repository(source.Image)
	return err == nil && slices.ContainsFunc(r.spec.Registries,
		func(registry string) bool { return origin.IsIn(repository, registry) })
}

// permitsKeys tells whether whatever a catalog may be signed by is permitted: one
// signature is enough for it, so every key has to be.
func (r rule) permitsKeys(keys []string) bool {
	return len(r.spec.PublicKeys) == 0 ||
		len(keys) > 0 && len(origin.Trusted(keys, r.spec.PublicKeys)) == len(keys)
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matched, err := path.Match(pattern, name)
		return err == nil && matched
	})
}
