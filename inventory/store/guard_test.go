// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/inventory"
)

// TestPermittedQueries are queries that people write.
func TestPermittedQueries(t *testing.T) {
	s := newStore(t)
	record(t, s, minute(0), true, cluster("a", time.Time{}), install("a", "1.1.0"))
	for text, rows := range map[string]string{
		"SELECT count(*) FROM installs": "1",

		"select upper(version) v from installs i join clusters c using (cluster) " +
			"where c.labels ->> 'region' = 'eu'": "1.1.0",

		"WITH old AS (SELECT * FROM installs WHERE version < '1.2.0') SELECT cluster FROM old": "a",

		"SELECT cluster, row_number() OVER (PARTITION BY operator ORDER BY cluster) FROM installs": "a 1",

		"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3) " +
			"SELECT group_concat(x) FROM n": "1,2,3",

		"VALUES (1), (2)": "1\n2",

		"SELECT e.key, e.value FROM clusters, json_each(clusters.labels) e": "region eu",

		"WITH old AS (SELECT DISTINCT cluster FROM installs) SELECT count(*) FROM old": "1",

		"WITH installs AS (SELECT cluster FROM clusters) SELECT * FROM installs": "a",

		"SELECT 1 FROM installs UNION SELECT 2": "1\n2",
		"SELECT 1; SELECT 2":                    "2",
		"SELECT 1; -- the end":                  "1",
		"EXPLAIN QUERY PLAN SELECT 1":           "1 0 0 SCAN CONSTANT ROW",

		"SELECT version FROM installs WHERE cluster = 'a' AND observed_until > date('now', '-20 years')": "1.1.0",
	} {
		want(t, text, query(t, s, minute(0), text), rows)
	}
}

// TestRefusedQueries are attempts to read or to change more than the views, or to use up the hub.
func TestRefusedQueries(t *testing.T) {
	s := newStore(t)
	record(t, s, minute(0), true, cluster("a", time.Time{}), install("a", "1.1.0"))
	other := filepath.Join(t.TempDir(), "other.db")
	for text, reason := range map[string]string{
		"":                                      "no statement",
		"SELEC 1":                               "syntax error",
		"SELECT * FROM machines":                "the views are clusters, clusters_history",
		"SELECT machine FROM installs":          "no such column: machine",
		"SELECT * FROM installs_keys":           "there is no view installs_keys",
		"SELECT * FROM main.installs_states":    "there is no view installs_states",
		"SELECT * FROM sqlite_master":           "there is no view sqlite_master",
		"SELECT * FROM temp.sqlite_temp_master": "there is no view sqlite_temp_master",
		"SELECT * FROM query_context":           "there is no view query_context",
		"SELECT * FROM visible_clusters":        "there is no view visible_clusters",
		"SELECT * FROM pragma_table_info('x')":  "there is no view pragma_table_info",
		"SELECT * FROM dbstat":                  "there is no view dbstat",
		"SELECT * FROM goose_db_version":        "there is no view goose_db_version",

		"WITH installs AS (SELECT * FROM main.installs_keys) SELECT * FROM installs": "there is no view",

		"WITH installs AS (SELECT 1 FROM main.installs_keys) SELECT * FROM installs": "there is no view",

		"WITH installs AS (SELECT * FROM temp.query_context) SELECT * FROM installs": "there is no view",

		"WITH installs AS (SELECT * FROM sqlite_master) SELECT * FROM installs": "there is no view",

		"WITH installs AS (SELECT randomblob(100)) SELECT * FROM installs": "randomblob is not permitted",

		"WITH Bellwether_Inner_x AS (SELECT 1) SELECT * FROM bellwether_inner_x": "there is no view",

		"SELECT count(*) FROM main.\"Installs_Keys\"": "there is no view",
		"SELECT count(*) FROM sqlite_master":          "there is no view",
		"SELECT count(*) FROM goose_db_version":       "there is no view",
		"SELECT count(*) FROM pragma_table_list":      "only SELECT is permitted",
		"SELECT * FROM bellwether_inner_all_installs": "there is no view",
		"SELECT * FROM main.observations":             "there is no view",
		"SELECT instr(labels, 'x') FROM clusters":     "instr is not permitted",
		"PRAGMA query_only = 0":                       "only SELECT is permitted",
		"PRAGMA hard_heap_limit = 0":                  "only SELECT is permitted",
		"ATTACH '" + other + "' AS other":             "only SELECT is permitted",
		"VACUUM INTO '" + other + "'":                 "cannot VACUUM",
		"DETACH main":                                 "only SELECT is permitted",
		"BEGIN":                                       "only SELECT is permitted",
		"SAVEPOINT x":                                 "only SELECT is permitted",
		"DELETE FROM installs_states":                 "there is no view",
		"UPDATE query_context SET all_clusters = 1":   "there is no view",
		"INSERT INTO visible_clusters VALUES ('a')":   "there is no view",
		"CREATE TEMP TABLE x (y)":                     "only SELECT is permitted",

		"CREATE TEMP VIEW installs_2 AS SELECT * FROM installs_keys": "there is no view",

		"DELETE FROM installs":              "cannot modify installs because it is a view",
		"CREATE TEMP VIEW more AS SELECT 1": "only SELECT is permitted",
		"DROP VIEW installs":                "only SELECT is permitted",
		"REINDEX":                           "only SELECT is permitted",
		"ANALYZE":                           "only SELECT is permitted",
		"SELECT 1; DROP VIEW installs":      "only SELECT is permitted",
		"SELECT load_extension('x')":        "the function load_extension is not permitted",
		"SELECT readfile('/etc/passwd')":    "no such function: readfile",
		"SELECT randomblob(1000000000)":     "the function randomblob is not permitted",
		"SELECT zeroblob(1000000000)":       "the function zeroblob is not permitted",
		"SELECT sqlite_version()":           "the function sqlite_version is not permitted",
		"SELECT printf('%2000000s', 'x')":   "a value has more than 65536 bytes",
		"SELECT replace(hex(labels), '7', hex(labels) || hex(labels)) FROM clusters, json_each('[" +
			strings.Repeat("1,", 40_000) + "1]')": "more than 16384 bytes",
		"SELECT " + strings.Repeat("abs(", 500) + "1" + strings.Repeat(")", 500): "depth",
		"SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", 50):                   "too many terms",
	} {
		_, err := s.Query(context.Background(), inventory.Query{SQL: text, At: minute(0), Visible: everything})
		if !errors.Is(err, inventory.ErrRefused) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%.60s: error %v, want %q", text, err, reason)
		}
	}
	if _, err := os.Stat(other); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a query made a file: %v", err)
	}
	want(t, "afterwards", query(t, s, minute(0), "SELECT cluster, version FROM installs"), "a 1.1.0")
}

// TestEndlessQueriesEnd gives queries that would never end less time than they have elsewhere.
func TestEndlessQueriesEnd(t *testing.T) {
	s := newStore(t)
	record(t, s, minute(0), true)
	s.maxTime = 300 * time.Millisecond
	for _, text := range []string{
		"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n",
		"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100) SELECT count(*) " +
			"FROM n a, n b, n c, n d, n e, n f, n g, n h, n i, n j",
		"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT group_concat(x) FROM n",
	} {
		_, err := s.Query(context.Background(), inventory.Query{SQL: text, At: minute(0), Visible: everything})
		if !errors.Is(err, inventory.ErrRefused) {
			t.Errorf("%s: error %v", text, err)
		}
	}
	// Many rows are cut off instead.
	s.maxTime = MaxTime
	answer, err := s.Query(context.Background(), inventory.Query{At: minute(0), Visible: everything,
		SQL: "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"})
	if err != nil || len(answer.Rows) != MaxRows || !answer.Truncated {
		t.Errorf("endless rows: error %v", err)
	}
}

// TestPeopleSeeOnlyTheirPart queries as users with few rights, with whatever could tell them of the rest.
func TestPeopleSeeOnlyTheirPart(t *testing.T) {
	s := newStore(t)
	record(t, s, minute(0), true, cluster("a", time.Time{}), cluster("b", time.Time{}), install("a", "1.1.0"),
		install("b", "1.1.0"), installOf("team-b", "secret", "a", "6.6.6"), installOf("team-b", "secret", "b", "6.6.6"))
	record(t, s, minute(1), false, install("b", "1.2.0"), installOf("team-b", "secret", "b", ""))
	ask := func(v inventory.Visible, text string) string {
		answer, err := s.Query(context.Background(), inventory.Query{SQL: text, At: minute(1), Visible: v})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return formatRows(answer.Rows)
	}
	one := inventory.Visible{Clusters: []string{"a"}, Namespaces: []string{"team-a"}}
	const installs = "SELECT namespace, cluster FROM installs ORDER BY 1, 2"
	want(t, "one namespace", ask(one, installs), "team-a a\nteam-a b")
	want(t, "one cluster", ask(one, "SELECT cluster FROM clusters"), "a")
	want(
		t,
		"all clusters",
		ask(inventory.Visible{AllClusters: true}, "SELECT cluster FROM clusters ORDER BY 1"),
		"a\nb",
	)
	want(t, "nothing", ask(inventory.Visible{}, installs), "")
	want(t, "counts", ask(one, `SELECT (SELECT count(*) FROM clusters), (SELECT count(*) FROM installs),
		(SELECT count(*) FROM installs_history), (SELECT max(version) FROM installs_history)`), "1 2 3 1.2.0")
}

// TestErrorsTellNothingOfTheRest asks as a user with few rights, in a way in which a row would make the query fail: it
// must fail, or not, as if the other rows were not there.
func TestErrorsTellNothingOfTheRest(t *testing.T) {
	s := newStore(t)
	record(t, s, minute(0), true, install("a", "1.1.0"), installOf("team-b", "secret", "a", "6.6.6"),
		cluster("a", time.Time{}), cluster("b", time.Time{}))
	isAnswered := func(view, condition string) bool {
		text := fmt.Sprintf(
			"SELECT count(*) FROM %s WHERE %s AND abs(iif(%s, -9223372036854775808, 1)) > 0",
			view,
			condition,
			condition,
		)
		_, err := s.Query(context.Background(), inventory.Query{SQL: text, At: minute(0),
			Visible: inventory.Visible{Namespaces: []string{"team-a"}, Clusters: []string{"a"}}})
		return err == nil
	}
	for condition, values := range map[string][2]string{
		"version = '%s'": {"6.6.6", "7.7.7"}, "version LIKE '%s%%'": {"6", "7"}, "operator = '%s'": {"secret", "nope"},
		"operator > 'echo' AND operator LIKE '%s%%'": {"se", "sx"}, "namespace LIKE '%%%s'": {"-b", "-x"},
		"valid_from >= '2026' AND version LIKE '%s%%'": {"6", "7"},
	} {
		for _, view := range []string{"installs", "installs_history"} {
			there, absent := fmt.Sprintf(condition, values[0]), fmt.Sprintf(condition, values[1])
			if isAnswered(view, there) != isAnswered(view, absent) {
				t.Errorf("%s: it can be told whether there is a row with %s", view, there)
			}
		}
	}
	for _, view := range []string{"clusters", "clusters_history"} {
		if isAnswered(view, "cluster LIKE 'b%'") != isAnswered(view, "cluster LIKE 'x%'") {
			t.Errorf("%s: it can be told whether there is a cluster", view)
		}
	}
}

// TestManyNamesTwice asks two queries of a user who sees many clusters.
func TestManyNamesTwice(t *testing.T) {
	s := newStore(t)
	record(t, s, minute(0), true, cluster("cluster-with-a-long-name-7", time.Time{}))
	var names []string
	for i := range 40_000 {
		names = append(names, fmt.Sprint("cluster-with-a-long-name-", i))
	}
	for range 2 * maxQueries {
		answer, err := s.Query(
			context.Background(),
			inventory.Query{SQL: "SELECT count(*) FROM clusters", At: minute(0),
				Visible: inventory.Visible{Clusters: names}},
		)
		if err != nil || formatRows(answer.Rows) != "1" {
			t.Fatalf("%v, error %v", answer, err)
		}
	}
}

// TestArguments binds values, which are never a part of the statement.
func TestArguments(t *testing.T) {
	s := newStore(t)
	record(t, s, minute(0), true, install("a", "1.1.0"))
	answer, err := s.Query(
		context.Background(),
		inventory.Query{SQL: "SELECT cluster FROM installs WHERE version = :version",
			Arguments: map[string]string{"version": "1.1.0' OR 1 --"}, At: minute(0), Visible: everything},
	)
	if err != nil || len(answer.Rows) != 0 {
		t.Errorf("%v, error %v", answer, err)
	}
}
