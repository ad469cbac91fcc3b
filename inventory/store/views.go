// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/inventory"
)

// innerPrefix begins the names of the views that read the tables. No query may contain it.
const innerPrefix = "bellwether_inner_"

// contextTables are the tables of a connection that the views depend on: the time of the query, until when each source
// was observed by then, and what the user may see.
const contextTables = `
CREATE TEMP TABLE IF NOT EXISTS query_context (at TEXT, hub TEXT);
CREATE TEMP TABLE IF NOT EXISTS visible_clusters (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TEMP TABLE IF NOT EXISTS visible_namespaces (name TEXT PRIMARY KEY) WITHOUT ROWID;
`

// buildViews returns the statements that make the views in a connection, for what a user sees.
func buildViews(v inventory.Visible) string {
	var b strings.Builder
	b.WriteString(contextTables)
	addView(&b, inventory.ObservationsView, "all", `SELECT o.source, o.began, min(o.until, q.at) AS until
		FROM query_context q JOIN main.observations o WHERE o.began <= q.at`)
	for _, t := range inventory.Tables() {
		from := source{kind: "all", tables: "query_context q CROSS JOIN main." + keysOf(t) + " k"}
		isRestricted, visible := !v.AllNamespaces, "visible_namespaces"
		if t == inventory.Clusters {
			isRestricted, visible = !v.AllClusters, "visible_clusters"
		}
		if isRestricted {
			// The LIMIT keeps conditions of the user outside: they must never see a row that the user does not see,
			// since an error would tell of it.
			from = source{kind: "part", limit: "LIMIT -1", tables: fmt.Sprintf(
				"query_context q CROSS JOIN %s v CROSS JOIN main.%s k ON k.%s = v.name", visible, keysOf(t),
				t.Restricted)}
		}
		addView(&b, t.Name, from.kind, buildView(t, from))
		addView(&b, t.Name+inventory.HistorySuffix, from.kind, buildHistoryView(t, from))
	}
	return b.String()
}

// source is where a view gets its rows from.
type source struct {
	// kind is a part of the name of the inner view: all rows, or those that the user sees.
	kind string
	// tables are those with the context of the query and the keys, and limit is a clause at the end.
	tables, limit string
}

// addView adds the statements for a view: an inner view of a kind, which stays in the connection, and the view that
// users query, which is made anew since it depends on the user.
func addView(b *strings.Builder, name, kind, query string) {
	inner := innerPrefix + kind + "_" + name
	fmt.Fprintf(b, "CREATE TEMP VIEW IF NOT EXISTS %s AS %s;\nDROP VIEW IF EXISTS temp.%s;\n"+
		"CREATE TEMP VIEW %s AS SELECT * FROM temp.%s;\n", inner, query, name, name, inner)
}

// buildView returns the query for the rows that were true at the time of the query. The CROSS JOINs fix the order: keys
// are found first, and the row of each key by its time.
func buildView(t *inventory.Table, from source) string {
	return fmt.Sprintf(`SELECT %s, %s, s.valid_from AS valid_from, %s AS observed_until
		FROM %s CROSS JOIN main.%s s
		WHERE s.id = k.id AND s.valid_to > q.at AND s.valid_from <= q.at %s`,
		listAliases("k", t.Key), listAliases("s", t.Values), buildObservedUntil(t, "q."+string(t.Source),
			"SELECT min(cs.stale_since)", "cs.valid_to > q.at AND cs.stale_since <= q.at"),
		from.tables, statesOf(t), from.limit)
}

// buildHistoryView returns the query for all rows that began by the time of the query.
func buildHistoryView(t *inventory.Table, from source) string {
	observed := fmt.Sprintf("iif(s.valid_to > q.at, q.%s, ifnull(s.observed_until, s.valid_to))", t.Source)
	return fmt.Sprintf(`SELECT %s, %s, s.valid_from AS valid_from, iif(s.valid_to > q.at, NULL, s.valid_to) AS valid_to,
			%s AS observed_until
		FROM %s JOIN main.%s s
		WHERE s.id = k.id AND s.valid_from <= q.at %s`,
		listAliases("k", t.Key), listAliases("s", t.Values), buildObservedUntil(t, observed, "SELECT cs.stale_since",
			"iif(s.valid_to > q.at, cs.valid_to > q.at AND cs.valid_from <= q.at, "+
				"cs.valid_to >= s.valid_to AND cs.valid_from < s.valid_to)"),
		from.tables, statesOf(t), from.limit)
}

// buildObservedUntil returns the expression for the time at which a row was last observed: the time of the source, or
// the time of the cluster's last report if the cluster did not report then. query and condition select that from the
// states cs of the cluster.
func buildObservedUntil(t *inventory.Table, source, query, condition string) string {
	if t.Cluster == "" {
		return source
	}
	return fmt.Sprintf(`min(%s, ifnull((%s FROM main.clusters_keys ck
		JOIN main.clusters_states cs ON cs.id = ck.id WHERE ck.cluster = k.%s AND %s), %s))`, source, query, t.Cluster,
		condition, source)
}

// listAliases returns the columns of a table of the database under their own names.
func listAliases(table string, columns []inventory.Column) string {
	var out []string
	for _, c := range columns {
		out = append(out, fmt.Sprintf("%s.%s AS %s", table, c.Name, c.Name))
	}
	return strings.Join(out, ", ")
}
