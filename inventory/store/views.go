// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/inventory"
)

// contextTables are the tables of a connection that the views depend on: the time of the query, until when each source
// was observed by then, and what the user may see.
const contextTables = `
CREATE TEMP TABLE IF NOT EXISTS query_context (at TEXT, all_clusters INTEGER, all_namespaces INTEGER, hub TEXT);
CREATE TEMP TABLE IF NOT EXISTS visible_clusters (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TEMP TABLE IF NOT EXISTS visible_namespaces (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TEMP VIEW IF NOT EXISTS ` + inventory.ObservationsView + ` AS
	SELECT o.source, o.began, min(o.until, q.at) AS until FROM query_context q JOIN main.observations o
	WHERE o.began <= q.at;
`

// buildViews returns the statements that make the views in a connection.
func buildViews() string {
	var b strings.Builder
	b.WriteString(contextTables)
	for _, t := range inventory.Tables() {
		b.WriteString(buildView(t))
		b.WriteString(buildHistoryView(t))
	}
	return b.String()
}

// buildView returns the view with the rows that were true at the time of the query. The CROSS JOINs fix the order:
// keys are found first, and the row of each key by its time.
func buildView(t *inventory.Table) string {
	return fmt.Sprintf(
		`
CREATE TEMP VIEW IF NOT EXISTS %s AS
	SELECT %s, %s, s.valid_from AS valid_from, %s AS observed_until
	FROM query_context q CROSS JOIN main.%s k CROSS JOIN main.%s s
	WHERE s.id = k.id AND s.valid_to > q.at AND s.valid_from <= q.at%s;
`,
		t.Name,
		listAliases("k", t.Key),
		listAliases("s", t.Values),
		buildObservedUntil(
			t,
			"q."+string(t.Source),
			"cs.valid_to > q.at AND cs.valid_from <= q.at",
		),
		keysOf(t),
		statesOf(t),
		buildVisible(t),
	)
}

// buildHistoryView returns the view with all rows that began by the time of the query.
func buildHistoryView(t *inventory.Table) string {
	observed := fmt.Sprintf("iif(s.valid_to > q.at, q.%s, ifnull(s.observed_until, s.valid_to))", t.Source)
	return fmt.Sprintf(`
CREATE TEMP VIEW IF NOT EXISTS %s%s AS
	SELECT %s, %s, s.valid_from AS valid_from, iif(s.valid_to > q.at, NULL, s.valid_to) AS valid_to,
		%s AS observed_until
	FROM query_context q CROSS JOIN main.%s k JOIN main.%s s
	WHERE s.id = k.id AND s.valid_from <= q.at%s;
`, t.Name, inventory.HistorySuffix, listAliases("k", t.Key), listAliases("s", t.Values),
		buildObservedUntil(t, observed, "iif(s.valid_to > q.at, cs.valid_to > q.at AND cs.valid_from <= q.at, "+
			"cs.valid_to >= s.valid_to AND cs.valid_from < s.valid_to)"), keysOf(t), statesOf(t), buildVisible(t))
}

// buildObservedUntil returns the expression for the time at which a row was last observed: the time of the source, or
// the time of the cluster's last report if the cluster did not report then. condition selects the state cs of the
// cluster at that time.
func buildObservedUntil(t *inventory.Table, source, condition string) string {
	if t.Cluster == "" {
		return source
	}
	return fmt.Sprintf(`min(%s, ifnull((SELECT cs.stale_since FROM main.clusters_keys ck
		JOIN main.clusters_states cs ON cs.id = ck.id WHERE ck.cluster = k.%s AND %s), %s))`, source, t.Cluster,
		condition, source)
}

// buildVisible returns the condition that leaves only the rows that the user may see.
func buildVisible(t *inventory.Table) string {
	plural := "namespaces"
	if t == inventory.Clusters {
		plural = "clusters"
	}
	return fmt.Sprintf("\n\t\tAND (q.all_%s OR k.%s IN (SELECT name FROM visible_%s))", plural, t.Restricted, plural)
}

// listAliases returns the columns of a table of the database under their own names.
func listAliases(table string, columns []inventory.Column) string {
	var out []string
	for _, c := range columns {
		out = append(out, fmt.Sprintf("%s.%s AS %s", table, c.Name, c.Name))
	}
	return strings.Join(out, ", ")
}
