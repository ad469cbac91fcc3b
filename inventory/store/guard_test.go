// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
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
		"select upper(version) v from installs i join clusters c using (cluster) where c.labels ->> 'region' = 'eu'": "1.1.0",
		"WITH old AS (SELECT * FROM installs WHERE version < '1.2.0') SELECT cluster FROM old":                       "a",
		"SELECT cluster, row_number() OVER (PARTITION BY operator ORDER BY cluster) FROM installs":                   "a 1",
		"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3) SELECT group_concat(x) FROM n":  "1,2,3",
		"VALUES (1), (2)": "1\n2",
		"SELECT e.key, e.value FROM clusters, json_each(clusters.labels) e": "region eu",
		"SELECT 1; SELECT 2":          "2",
		"SELECT 1; -- the end":        "1",
		"EXPLAIN QUERY PLAN SELECT 1": "1 0 0 SCAN CONSTANT ROW",
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
		"":                                          "no statement",
		"SELEC 1":                                   "syntax error",
		"SELECT * FROM machines":                    "the views are clusters, clusters_history",
		"SELECT machine FROM installs":              "no such column: machine",
		"SELECT * FROM installs_keys":               "there is no view installs_keys",
		"SELECT * FROM main.installs_states":        "there is no view installs_states",
		"SELECT * FROM sqlite_master":               "there is no view sqlite_master",
		"SELECT * FROM temp.sqlite_temp_master":     "there is no view sqlite_temp_master",
		"SELECT * FROM query_context":               "there is no view query_context",
		"SELECT * FROM visible_clusters":            "there is no view visible_clusters",
		"SELECT * FROM pragma_table_info('x')":      "there is no view pragma_table_info",
		"SELECT * FROM dbstat":                      "there is no view dbstat",
		"SELECT * FROM goose_db_version":            "there is no view goose_db_version",
		"PRAGMA query_only = 0":                     "only SELECT is permitted",
		"PRAGMA hard_heap_limit = 0":                "only SELECT is permitted",
		"ATTACH '" + other + "' AS other":           "only SELECT is permitted",
		"VACUUM INTO '" + other + "'":               "only SELECT is permitted",
		"DETACH main":                               "only SELECT is permitted",
		"BEGIN":                                     "only SELECT is permitted",
		"SAVEPOINT x":                               "only SELECT is permitted",
		"DELETE FROM installs_states":               "only SELECT is permitted",
		"UPDATE query_context SET all_clusters = 1": "only SELECT is permitted",
		"INSERT INTO visible_clusters VALUES ('a')": "only SELECT is permitted",
		"CREATE TEMP TABLE x (y)":                   "only SELECT is permitted",
		"CREATE TEMP VIEW installs_2 AS SELECT * FROM installs_keys": "only SELECT is permitted",
		"DROP VIEW installs":              "only SELECT is permitted",
		"REINDEX":                         "only SELECT is permitted",
		"ANALYZE":                         "only SELECT is permitted",
		"SELECT 1; DROP VIEW installs":    "only SELECT is permitted",
		"SELECT load_extension('x')":      "the function load_extension is not permitted",
		"SELECT readfile('/etc/passwd')":  "no such function: readfile",
		"SELECT randomblob(1000000000)":   "the function randomblob is not permitted",
		"SELECT zeroblob(1000000000)":     "the function zeroblob is not permitted",
		"SELECT sqlite_version()":         "the function sqlite_version is not permitted",
		"SELECT printf('%2000000s', 'x')": "too big",
		"SELECT replace(hex(labels), '7', hex(labels) || hex(labels)) FROM clusters, json_each('[" +
			strings.Repeat("1,", 40_000) + "1]')": "more than 65536 bytes",
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
	want(t, "a WITH clause with the name of a table", ask(one,
		"WITH visible_clusters(name) AS (VALUES ('b')), query_context AS (SELECT 1 AS all_clusters) "+
			"SELECT count(*) FROM installs"), "2")
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
