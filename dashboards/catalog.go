// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

func catalogPage() page {
	catalog := choice(series.Catalog, "Catalog", values(series.CatalogReady, series.Catalog))
	return page{
		uid: UIDCatalog, title: "Bellwether / Catalog", from: "now-7d",
		description: "The catalogs that versions come from: whether the published one is in use, what clusters run, " +
			"who runs what is blocked, and whether OLM gets its view of them.",
		variables:   append([]dashboard.VariableModel{catalog, clusters()}, operators()...),
		annotations: []annotation{digests(), versionChanges()},
		rows: []row{
			{"Now", catalogNow()},
			{"Catalogs", catalogPanels()},
			{"On the clusters", catalogViews()},
		},
	}
}

// byCatalog matches the variable of this page.
var byCatalog = chosen(series.Catalog)

// digests marks when a digest came into use.
func digests() annotation {
	return annotation{
		name: "New digest", colour: "blue", valueIsTheTime: true, tags: "catalog",
		expr: "max by (catalog) (" + of(series.CatalogRead, byCatalog) + ")",
		text: "{{catalog}}: another digest is in use",
	}
}

func catalogNow() []panel {
	return []panel{
		figure("Catalogs not ready",
			"Catalogs whose source has something else than what is in use: unreadable, unsigned, or it would strand "+
				"a cluster. The OperatorCatalog's conditions say which; the good digest stays in use.",
			units.Short, hubSilent, 6, anyIsBad(),
			query{orNone("count("+of(series.CatalogReady, byCatalog)+" == 0)", of(series.CatalogReady, byCatalog)),
				""}),
		figure("Clusters on blocked versions",
			"Clusters that run a version that is blocked. `bellwether catalog get` names them and proposes what to do.",
			units.Short, hubSilent, 6, anyIsBad(),
			query{"sum(" + of(series.CatalogBlocked, byCatalog) + ") or 0 * count(" +
				of(series.CatalogReady, byCatalog) + ")", ""}),
		figure("Packages", "Packages in all chosen catalogs. A sudden fall is a catalog that was published "+
			"incomplete: compare the digests with `bellwether catalog diff`.",
			units.Short, hubSilent, 6, noJudgement(), query{"sum(" + of(series.CatalogPackages, byCatalog) + ")", ""}),
		figure("Clusters without catalog",
			"Operators on clusters whose CatalogSource is not ready, which cannot be upgraded. The agent serves it: "+
				"look at the agent and at OLM's catalog operator there.",
			units.Short, agentSilent, 6, anyIsBad(),
			query{orNone("count("+of(series.OperatorCatalogReady)+" == 0)", of(series.OperatorCatalogReady)), ""}),
	}
}

func catalogPanels() []panel {
	return []panel{
		{
			title: "Catalogs in use", draw: rows, width: 24, height: 7, unit: units.Short, none: hubSilent,
			description: "Each catalog's digest and since when it is in use. A digest that is older than your last " +
				"publication means that the new one was refused: see the conditions.",
			queries: []query{
				{"max by (catalog, digest) (" + of(series.CatalogInfo, byCatalog) + ")", ""},
				{"max by (catalog) (" + of(series.CatalogReady, byCatalog) + ")", ""},
				{"time() - max by (catalog) (" + of(series.CatalogRead, byCatalog) + ")", ""},
				{"max by (catalog) (" + of(series.CatalogPackages, byCatalog) + ")", ""},
			},
			columns: []column{
				{from: series.Catalog, title: "Catalog"}, {from: "B", title: "Ready", words: yesNo},
				{from: "C", title: "In use for", unit: units.DurationSeconds},
				{from: "D", title: "Packages"}, {from: series.Digest, title: "Digest"},
			},
		},
		{
			title: "Ready", draw: timeline, width: 12, height: 8, unit: units.Short, none: hubSilent, words: yesNo,
			levels: []level{{bad, 0}, {good, 1}},
			description: "When each catalog's source and what is in use were the same. Short interruptions are " +
				"publications; long ones are refusals that need attention.",
			queries: []query{{"max by (catalog) (" + of(series.CatalogReady, byCatalog) + ")", "{{catalog}}"}},
		},
		{
			title: "Clusters on blocked versions, over time", draw: timeSeries, width: 12, height: 8, unit: units.Short,
			none: "no cluster runs a blocked version", minimum: zero(), stacked: true,
			description: "Clusters by the blocked version that they run. The lines should fall after the block: " +
				"start a rollout to a version that is not blocked if they do not.",
			queries: []query{{"sum by (catalog, package, version) (" + of(series.CatalogBlocked, byCatalog) + ")",
				"{{package}} {{version}}"}},
		},
	}
}

func catalogViews() []panel {
	return []panel{
		{
			title: "Clusters by version", draw: timeSeries, width: 12, height: 9, unit: units.Short, none: hubSilent,
			stacked: true,
			description: "How many clusters run which version of an operator. Versions that no cluster runs can " +
				"leave " +
				"the catalog: `bellwether catalog ladder` retires them.",
			queries: []query{{"sum by (" + operatorLabels + ", version) (" + of(series.OperatorVersionClusters) + ")",
				legendOperator + " {{version}}"}}, link: to(UIDRollout, lineOperator),
		},
		{
			title: "CatalogSources that are not ready", draw: timeSeries, width: 12, height: 9, unit: units.Short,
			none: agentSilent, minimum: zero(), levels: anyIsBad(),
			description: "Clusters on which OLM does not reach the view of an operator's catalog. All operators of " +
				"one cluster point at its agent, one operator on all clusters at the catalog.",
			queries: []query{{"sum by (" + operatorLabels + ") (" + of(series.OperatorCatalogReady) + " == bool 0)",
				legendOperator}}, link: to(UIDOperator, lineOperator),
		},
	}
}
