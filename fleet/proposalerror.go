// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// ProposalProblem is why no ManagedOperator can be proposed.
type ProposalProblem string

// The problems of a proposal.
const (
	// ProblemNoInstalls means that no selected and permitted cluster reports an install that others made.
	ProblemNoInstalls ProposalProblem = "NoInstalls"
	// ProblemNoSelector means that the request has no selector. The person must choose, because the ManagedOperator
	// installs the operator on all clusters that it selects.
	ProblemNoSelector ProposalProblem = "NoSelector"
	// ProblemSeveralCatalogs, ProblemNoCatalog and ProblemCatalogsNotRead mean that not exactly one OperatorCatalog is
	// known to have the package. In the last case it can be in a catalog that could not be read.
	ProblemSeveralCatalogs ProposalProblem = "SeveralCatalogs"
	ProblemNoCatalog       ProposalProblem = "NoCatalog"
	ProblemCatalogsNotRead ProposalProblem = "CatalogsNotRead"
	// ProblemConfigNotReported means that a report does not contain the settings of a Subscription.
	ProblemConfigNotReported ProposalProblem = "ConfigNotReported"
	// ProblemDifferentConfigs means that the settings of the Subscriptions differ. A ManagedOperator has one config for
	// all clusters.
	ProblemDifferentConfigs ProposalProblem = "DifferentConfigs"
)

// ProposalError is the error that no ManagedOperator can be proposed. Its text describes the problem and does not say
// how to solve it.
type ProposalError struct {
	Problem ProposalProblem
	// Catalogs are the OperatorCatalogs of the namespace to choose from, for ProblemSeveralCatalogs.
	Catalogs []string
	// Label is a label, KEY=VALUE, that the clusters with an install have and no other cluster has, for
	// ProblemNoSelector; empty if there is none.
	Label string
	// EveryCluster is true if every cluster has an install, for ProblemNoSelector.
	EveryCluster bool

	text string
}

func (e *ProposalError) Error() string { return e.text }

// newNoInstallsError returns the error that no install of the package can be taken over.
func (s Scans) newNoInstallsError(namespace string, request AdoptionRequest) error {
	return &ProposalError{Problem: ProblemNoInstalls, text: fmt.Sprintf("no cluster%s reports an install of package "+
		"%s that others made%s", formatSelectorSuffix(request.Selector), request.Package,
		s.describeAccessLimit(namespace))}
}

// describeAccessLimit returns the end of a sentence about clusters if FleetAccess excludes some of them; else empty.
func (s Scans) describeAccessLimit(namespace string) string {
	if !slices.ContainsFunc(s.Clusters, func(c v1alpha1.FleetCluster) bool {
		return !holds.HasAccess(s.Access, namespace, c.Labels)
	}) {
		return ""
	}
	return ", on the clusters that a FleetAccess permits to namespace " + namespace
}

// formatSelectorSuffix returns the selector as the end of a noun phrase; empty if it selects all clusters.
func formatSelectorSuffix(selector *metav1.LabelSelector) string {
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return ""
	}
	return " with the labels " + metav1.FormatLabelSelector(selector)
}

// maxNamedClusters is the number of clusters that an error names.
const maxNamedClusters = 40

// newNoSelectorError returns the error that no selector is set, with the data to suggest one.
func newNoSelectorError(installs []foundInstall, clusters []v1alpha1.FleetCluster) error {
	var names []string
	for _, f := range installs {
		names = append(names, f.cluster.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return &ProposalError{Problem: ProblemNoSelector, Label: findDistinctLabel(names, clusters),
		EveryCluster: len(names) == len(clusters),
		text: fmt.Sprintf("which clusters is the ManagedOperator to select? %s %s it: %s",
			phrase.Part(len(names), len(clusters), "cluster"), phrase.Word(len(names), "runs", "run"),
			phrase.First(names, maxNamedClusters))}
}

// findDistinctLabel returns a label that the named clusters have and no other cluster has; empty if there is none.
func findDistinctLabel(names []string, clusters []v1alpha1.FleetCluster) string {
	insideCounts, outside := map[string]int{}, map[string]bool{}
	for i := range clusters {
		for key, value := range clusters[i].Labels {
			label := key + "=" + value
			if slices.Contains(names, clusters[i].Name) {
				insideCounts[label]++
			} else {
				outside[label] = true
			}
		}
	}
	for _, label := range slices.Sorted(maps.Keys(insideCounts)) {
		if insideCounts[label] == len(names) && !outside[label] {
			return label
		}
	}
	return ""
}

// newCatalogError returns the error that not exactly one OperatorCatalog has the package. names are those that have it.
func newCatalogError(namespace string, request AdoptionRequest, names, notRead []string) error {
	switch {
	case len(names) > 1:
		return &ProposalError{Problem: ProblemSeveralCatalogs, Catalogs: names,
			text: fmt.Sprintf("%d OperatorCatalogs of namespace %s have package %s", len(names), namespace,
				request.Package)}
	case len(notRead) > 0:
		return &ProposalError{Problem: ProblemCatalogsNotRead,
			text: fmt.Sprintf("no OperatorCatalog of namespace %s is known to have package %s; not read: %s", namespace,
				request.Package, phrase.First(notRead, 3))}
	}
	name := ""
	if request.Catalog != "" {
		name = " " + request.Catalog
	}
	return &ProposalError{Problem: ProblemNoCatalog, text: fmt.Sprintf("no OperatorCatalog%s of namespace %s has "+
		"package %s", name, namespace, request.Package)}
}

// newConfigNotReportedError returns the error that a report does not contain the settings of a Subscription.
func newConfigNotReportedError(f foundInstall) error {
	return &ProposalError{Problem: ProblemConfigNotReported, text: fmt.Sprintf("the settings of Subscription %s/%s on "+
		"cluster %s are not in its report, which has no room for them", f.Namespace, f.Subscription.Name,
		f.cluster.Name)}
}

// newDifferentConfigsError returns the error that Subscriptions have different settings. variants has the clusters by
// the text of their settings.
func newDifferentConfigsError(variants map[string][]string) error {
	texts := slices.SortedFunc(maps.Keys(variants), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(variants[b]), len(variants[a])), cmp.Compare(a, b))
	})
	var lines strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&lines, "\n  %s: %s",
			phrase.First(slices.Sorted(slices.Values(variants[text])), maxNamedClusters), text)
	}
	return &ProposalError{Problem: ProblemDifferentConfigs, text: fmt.Sprintf("the Subscriptions have %d different "+
		"settings, and a ManagedOperator has the same for all clusters:%s", len(variants), lines.String())}
}
