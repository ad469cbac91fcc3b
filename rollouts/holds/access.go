// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// AnyRegistry is the registry that permits every catalog.
const AnyRegistry = "*"

// AccessDecision has the clusters on which a namespace may install a release. A nil Decision permits all clusters.
type AccessDecision struct {
	// refusal is why the release is permitted on no cluster; empty if that depends on the cluster.
	refusal string
	rules   []accessRule
}

// accessRule is a parsed FleetAccess.
type accessRule struct {
	name     string
	spec     v1alpha1.FleetAccessSpec
	clusters labels.Selector
}

// DecideAccess judges a release of a ManagedOperator in a namespace by all FleetAccess objects. It returns nil, which
// permits all clusters, if there are none. A FleetAccess that cannot be parsed permits nothing. One FleetAccess must
// meet all conditions, so the conditions are checked in turn on the rules that meet the earlier conditions.
func DecideAccess(all []v1alpha1.FleetAccess, namespace string, release v1alpha1.Release) *AccessDecision {
	if len(all) == 0 {
		return nil
	}
	d := &AccessDecision{}
	for i := range all {
		selector, err := metav1.LabelSelectorAsSelector(&all[i].Spec.ClusterSelector)
		if err == nil {
			d.rules = append(d.rules, accessRule{name: all[i].Name, spec: all[i].Spec, clusters: selector})
		}
	}
	slices.SortFunc(d.rules, func(a, b accessRule) int { return strings.Compare(a.name, b.name) })
	source, target := release.Catalog.Source, release.TargetNamespace()
	for _, c := range []accessCheck{
		{func(r accessRule) bool { return hasMatchingPattern(r.spec.Namespaces, namespace) },
			func(string) string { return "no FleetAccess names the namespace " + namespace }},
		{func(r accessRule) bool { return r.isCatalogPermitted(source) },
			func(names string) string {
				return names + " does not permit the catalog " + source.Image + source.Directory
			}},
		{func(r accessRule) bool { return r.areKeysPermitted(release.Catalog.PublicKeys) },
			func(names string) string {
				return names + " requires signatures: the OperatorCatalog must have spec.verification with no " +
					"other keys than those of the FleetAccess, and an earlier rollout must be started " +
					"again (spec.restart)"
			}},
		{func(r accessRule) bool { return hasMatchingPattern(r.spec.TargetNamespaces, target) },
			func(names string) string { return names + " does not permit the target namespace " + target }},
	} {
		if !d.filterRules(c) {
			break
		}
	}
	return d
}

// ReleaseForAccess returns the release that a ManagedOperator would roll out now, with only the fields that
// DecideAccess uses. catalog is the operator's catalog.
func ReleaseForAccess(o *v1alpha1.ManagedOperator, catalog *v1alpha1.OperatorCatalog) v1alpha1.Release {
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

// accessCheck is a condition that a rule must meet, and the refusal if no rule meets it.
type accessCheck struct {
	permits func(accessRule) bool
	refusal func(names string) string
}

// filterRules drops the rules that do not meet the condition, and reports whether any rule remains. If no rule remains,
// it sets the refusal, which names the rules that were dropped.
func (d *AccessDecision) filterRules(c accessCheck) bool {
	names := d.formatNames()
	d.rules = slices.DeleteFunc(d.rules, func(r accessRule) bool { return !c.permits(r) })
	if len(d.rules) == 0 {
		d.refusal = c.refusal(names)
	}
	return len(d.rules) > 0
}

// formatNames lists the names of the rules.
func (d *AccessDecision) formatNames() string {
	var names []string
	for _, r := range d.rules {
		names = append(names, r.name)
	}
	return "FleetAccess " + phrase.First(names, maxNamedRules)
}

const maxNamedRules = 5

// Refusal says why a cluster with these labels must not be admitted, without a period. It returns "" if it may
// be admitted.
func (d *AccessDecision) Refusal(cluster map[string]string) string {
	switch {
	case d == nil:
		return ""
	case d.refusal != "":
		return d.refusal
	case slices.ContainsFunc(d.rules, func(r accessRule) bool { return r.clusters.Matches(labels.Set(cluster)) }):
		return ""
	default:
		return d.formatNames() + " does not permit this cluster (spec.clusterSelector)"
	}
}

// HasAccess reports whether FleetAccess objects permit a namespace of the hub to install anything on a cluster with
// these labels. Without a FleetAccess, every namespace may reach every cluster.
func HasAccess(all []v1alpha1.FleetAccess, namespace string, cluster map[string]string) bool {
	return len(all) == 0 || slices.ContainsFunc(all, func(a v1alpha1.FleetAccess) bool {
		selector, err := metav1.LabelSelectorAsSelector(&a.Spec.ClusterSelector)
		return err == nil && hasMatchingPattern(a.Spec.Namespaces, namespace) && selector.Matches(labels.Set(cluster))
	})
}

// isCatalogPermitted reports whether the registry of the catalog is permitted.
func (r accessRule) isCatalogPermitted(source v1alpha1.CatalogSource) bool {
	if slices.Contains(r.spec.Registries, AnyRegistry) {
		return true
	}
	repository, err := catalogs.Repository(source.Image)
	return err == nil && slices.ContainsFunc(r.spec.Registries,
		func(registry string) bool { return catalogs.IsInRegistry(repository, registry) })
}

// areKeysPermitted reports whether all keys of a catalog are permitted. A signature by any one of the keys is
// sufficient for the catalog, so every key must be permitted.
func (r accessRule) areKeysPermitted(keys []string) bool {
	return len(r.spec.PublicKeys) == 0 ||
		len(keys) > 0 && len(catalogs.TrustedKeys(keys, r.spec.PublicKeys)) == len(keys)
}

// hasMatchingPattern reports whether a pattern matches the name.
func hasMatchingPattern(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matched, err := path.Match(pattern, name)
		return err == nil && matched
	})
}
