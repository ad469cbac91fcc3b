// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// newCatalogPage returns the dashboard of the catalogs.
func newCatalogPage() page {
	catalog := newMultiVariable(series.Catalog, "Catalog", buildLabelValues(series.CatalogReady, series.Catalog))
	return page{
		uid: UIDCatalog, title: "Bellwether / Catalog", from: "now-7d",
		description: "The catalogs that versions come from: whether the published one is in use, what clusters run, " +
			"who runs what is blocked, and whether OLM gets its view of them.",
		variables:   append([]dashboard.VariableModel{catalog, newClusterVariable()}, newOperatorVariables()...),
		annotations: []annotation{markDigests(), markVersionChanges()},
		rows: []row{
			{"Now", newCatalogNowPanels()},
			{"Catalogs", newCatalogPanels()},
			{"On the clusters", newCatalogViewPanels()},
		},
	}
}

// catalogMatcher matches the catalog that is selected on this page.
var catalogMatcher = matchVariable(series.Catalog)

// markDigests marks the times at which another digest came into use.
func markDigests() annotation {
	return annotation{
		name: "New digest", colour: "blue", valueIsTime: true, tags: "catalog",
		expr: "max by (catalog) (" + selectSeries(series.CatalogRead, catalogMatcher) + ")",
		text: "{{catalog}}: another digest is in use",
	}
}

// newCatalogNowPanels returns the numbers for the current state of the catalogs.
func newCatalogNowPanels() []panel {
	return []panel{
		newFigure("Catalogs not ready",
			"Catalogs whose source has something else than what is in use: unreadable, unsigned, or it would strand "+
				"a cluster. The OperatorCatalog's conditions say which; the good digest stays in use.",
			units.Short, hubSilent, 6, newAnyIsBadLevels(),
			query{defaultToZero("count("+selectSeries(series.CatalogReady, catalogMatcher)+" == 0)",
				selectSeries(series.CatalogReady, catalogMatcher)), ""}),
		newFigure("Clusters on blocked versions",
			"Clusters that run a version that is blocked. `bellwether catalog get` names them and proposes what to do.",
			units.Short, hubSilent, 6, newAnyIsBadLevels(),
			query{"sum(" + selectSeries(series.CatalogBlocked, catalogMatcher) + ") or 0 * count(" +
				selectSeries(series.CatalogReady, catalogMatcher) + ")", ""}),
		newFigure("Packages", "Packages in all chosen catalogs. A sudden fall is a catalog that was published "+
			"incomplete: compare the digests with `bellwether catalog diff`.",
			units.Short, hubSilent, 6, newNeutralLevels(),
			query{"sum(" + selectSeries(series.CatalogPackages, catalogMatcher) + ")", ""}),
		newFigure("Clusters without catalog",
			"Operators on clusters whose CatalogSource is not ready, which cannot be upgraded. The agent serves it: "+
				"look at the agent and at OLM's catalog operator there.",
			units.Short, agentSilent, 6, newAnyIsBadLevels(),
			query{defaultToZero("count("+selectSeries(series.OperatorCatalogReady)+" == 0)",
				selectSeries(series.OperatorCatalogReady)), ""}),
	}
}

// newCatalogPanels returns the panels of the catalogs on the hub.
func newCatalogPanels() []panel {
	return []panel{
		{
			title: "Catalogs in use", draw: drawTable, width: 24, height: 7, unit: units.Short, noData: hubSilent,
			description: "Each catalog's digest and since when it is in use. A digest that is older than your last " +
				"publication means that the new one was refused: see the conditions.",
			queries: []query{
				{"max by (catalog, digest) (" + selectSeries(series.CatalogInfo, catalogMatcher) + ")", ""},
				{"max by (catalog) (" + selectSeries(series.CatalogReady, catalogMatcher) + ")", ""},
				{"time() - max by (catalog) (" + selectSeries(series.CatalogRead, catalogMatcher) + ")", ""},
				{"max by (catalog) (" + selectSeries(series.CatalogPackages, catalogMatcher) + ")", ""},
			},
			columns: []column{
				{from: series.Catalog, title: "Catalog"}, {from: "B", title: "Ready", words: yesNoWords},
				{from: "C", title: "In use for", unit: units.DurationSeconds},
				{from: "D", title: "Packages"}, {from: series.Digest, title: "Digest"},
			},
		},
		{
			title: "Ready", draw: drawTimeline, width: 12, height: 8, unit: units.Short, noData: hubSilent,
			words: yesNoWords, levels: []level{{bad, 0}, {good, 1}},
			description: "When each catalog's source and what is in use were the same. Short interruptions are " +
				"publications; long ones are refusals that need attention.",
			queries: []query{{"max by (catalog) (" + selectSeries(series.CatalogReady, catalogMatcher) + ")",
				"{{catalog}}"}},
		},
		{
			title: "Clusters on blocked versions, over time", draw: drawTimeSeries, width: 12, height: 8,
			unit: units.Short, noData: "no cluster runs a blocked version", minimum: newZero(), stacked: true,
			description: "Clusters by the blocked version that they run. The lines should fall after the block: " +
				"start a rollout to a version that is not blocked if they do not.",
			queries: []query{{"sum by (catalog, package, version) (" + selectSeries(series.CatalogBlocked,
				catalogMatcher) + ")", "{{package}} {{version}}"}},
		},
	}
}

// newCatalogViewPanels returns the panels of the versions that clusters run, and of the catalog views that OLM reads
// there.
func newCatalogViewPanels() []panel {
	return []panel{
		{
			title: "Clusters by version", draw: drawTimeSeries, width: 12, height: 9, unit: units.Short,
			noData:  hubSilent,
			stacked: true,
			description: "How many clusters run which version of an operator. Versions that no cluster runs can " +
				"leave " +
				"the catalog: `bellwether catalog ladder` retires them.",
			queries: []query{{"sum by (" + operatorLabels + ", version) (" +
				selectSeries(series.OperatorVersionClusters) + ")",
				legendOperator + " {{version}}"}}, link: buildLink(UIDRollout, operatorFromSeries),
		},
		{
			title: "CatalogSources that are not ready", draw: drawTimeSeries, width: 12, height: 9, unit: units.Short,
			noData: agentSilent, minimum: newZero(), levels: newAnyIsBadLevels(),
			description: "Clusters on which OLM does not reach the view of an operator's catalog. All operators of " +
				"one cluster point at its agent, one operator on all clusters at the catalog.",
			queries: []query{{"sum by (" + operatorLabels + ") (" + selectSeries(series.OperatorCatalogReady) +
				" == bool 0)", legendOperator}}, link: buildLink(UIDOperator, operatorFromSeries),
		},
	}
}
