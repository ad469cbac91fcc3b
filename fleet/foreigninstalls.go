// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// foundInstall is an operator of the package on one cluster that Bellwether does not manage.
type foundInstall struct {
	cluster *v1alpha1.FleetCluster
	scan    *v1alpha1.OperatorScanStatus
	known   adoption.Known
	*v1alpha1.FoundOperator
}

// listForeignInstalls returns the installs of the package that Bellwether does not manage, on the selected clusters
// that a FleetAccess permits to the namespace. Installs on other clusters must not influence the proposal.
func (s Scans) listForeignInstalls(namespace string, request AdoptionRequest) []foundInstall {
	var out []foundInstall
	for i := range s.Clusters {
		c := &s.Clusters[i]
		isDeselected := request.Selector != nil && !isSelected(request.Selector, c)
		if isDeselected || !holds.HasAccess(s.Access, namespace, c.Labels) {
			continue
		}
		scan := s.Reports[c.Name]
		if scan == nil {
			continue
		}
		known := s.selectKnown(c)
		for j := range scan.Status.Operators {
			f := &scan.Status.Operators[j]
			if !f.Managed && adoption.PackageOf(f, known) == request.Package {
				out = append(out, foundInstall{cluster: c, scan: &scan.Status, known: known, FoundOperator: f})
			}
		}
	}
	return out
}

// chooseCatalog returns the package from the requested catalog, or else from the only
// catalog of the namespace that has the package.
func chooseCatalog(namespace string, request AdoptionRequest, known adoption.Known) (adoption.Package, error) {
	var packages []adoption.Package
	var names []string
	for _, p := range known.Packages {
		name, ok := strings.CutPrefix(p.Catalog, namespace+"/")
		if ok && p.Name == request.Package && (request.Catalog == "" || request.Catalog == name) {
			packages, names = append(packages, p), append(names, name)
		}
	}
	if len(packages) != 1 {
		return adoption.Package{}, newCatalogError(namespace, request, names, known.NotRead)
	}
	return packages[0], nil
}

// findMostUsedChannel returns the channel that most Subscriptions follow, of the channels in the catalog. If none
// follows such a channel, it returns "", which means the default channel of the package.
func findMostUsedChannel(installs []foundInstall, pkg adoption.Package) string {
	return findMostCommon(installs, func(f foundInstall) string {
		if f.Subscription == nil || !slices.ContainsFunc(pkg.Channels, func(c adoption.Channel) bool {
			return c.Name == f.Subscription.Channel
		}) {
			return ""
		}
		return f.Subscription.Channel
	})
}

// findMostCommon returns the most frequent non-empty value of the installs, and of equally
// frequent values the first in alphabetical order.
func findMostCommon(installs []foundInstall, readValue func(foundInstall) string) string {
	counts := map[string]int{}
	for _, f := range installs {
		if value := readValue(f); value != "" {
			counts[value]++
		}
	}
	values := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// findInstallMode returns the install mode that fits the OperatorGroup
// in the operator's namespace; empty if none fits.
func findInstallMode(f foundInstall) v1alpha1.InstallMode {
	for _, n := range f.scan.Namespaces {
		if n.Name != f.Namespace || len(n.OperatorGroups) != 1 { // OLM needs exactly one OperatorGroup
			continue
		}
		switch g := n.OperatorGroups[0]; {
		case g.Selector: // no install mode has a selector of namespaces
		case len(g.Targets) == 0:
			return v1alpha1.InstallAllNamespaces
		case len(g.Targets) == 1 && g.Targets[0] == f.Namespace:
			return v1alpha1.InstallOwnNamespace
		}
	}
	return ""
}

// readCommonConfig returns the settings of the Subscriptions; nil if there are no settings. It returns an error if
// they differ, because a ManagedOperator has one config for all clusters, or if a report does not contain them.
func readCommonConfig(installs []foundInstall) (*v1alpha1.OperatorConfig, error) {
	variants := map[string][]string{}
	values := map[string]*v1alpha1.OperatorConfig{}
	for _, f := range installs {
		sub := f.Subscription
		if sub == nil {
			continue
		}
		config, isReported := sub.SupportedConfig()
		if !isReported {
			return nil, newConfigNotReportedError(f)
		}
		text := cmp.Or(v1alpha1.SettingsOf(config), "none")
		variants[text], values[text] = append(variants[text], f.cluster.Name), config
	}
	switch len(variants) {
	case 0:
		return nil, nil
	case 1:
		return values[slices.Collect(maps.Keys(values))[0]], nil
	}
	return nil, newDifferentConfigsError(variants)
}
