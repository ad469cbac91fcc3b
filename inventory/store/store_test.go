// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/inventory"
)

// epoch is the time at which the histories of tests begin.
var epoch = time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)

// minute returns the time so many minutes after epoch.
func minute(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }

// everything is visible to an administrator.
var everything = inventory.Visible{AllClusters: true, AllNamespaces: true}

func openStore(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newStore(t *testing.T) *Store {
	t.Helper()
	return openStore(t, filepath.Join(t.TempDir(), "inventory.db"))
}

// row returns a row of a table with some of its values. Other values are nil.
func row(table *inventory.Table, key []string, values map[string]any) inventory.Row {
	r := inventory.Row{Key: key, Values: make([]any, len(table.Values))}
	for name, value := range values {
		i := slices.IndexFunc(table.Values, func(c inventory.Column) bool { return c.Name == name })
		if i < 0 {
			panic("no column " + name)
		}
		r.Values[i] = value
	}
	return r
}

// install returns the facts of an install of team-a/echo in a version, and none if the version is empty.
func install(cluster, version string) inventory.Facts {
	return installOf("team-a", "echo", cluster, version)
}

func installOf(namespace, operator, cluster, version string) inventory.Facts {
	key := []string{namespace, operator, cluster}
	f := inventory.Facts{Table: inventory.Installs, Owner: key}
	if version != "" {
		f.Rows = []inventory.Row{row(inventory.Installs, key, map[string]any{"version": version, "ready": "True"})}
	}
	return f
}

// cluster returns the facts of a cluster that last reported at a time, which is zero if it reports.
func cluster(name string, staleSince time.Time) inventory.Facts {
	values := map[string]any{"online": "True", "labels": `{"region":"eu"}`}
	if !staleSince.IsZero() {
		values["online"], values["stale_since"] = "False", inventory.FormatTime(staleSince)
	}
	return inventory.Facts{Table: inventory.Clusters, Owner: []string{name},
		Rows: []inventory.Row{row(inventory.Clusters, []string{name}, values)}}
}

// record records facts of the hub.
func record(t *testing.T, s *Store, at time.Time, complete bool, facts ...inventory.Facts) {
	t.Helper()
	err := s.Record(context.Background(), Batch{Source: inventory.FromHub, At: at, Facts: slices.Values(facts),
		IsComplete: complete})
	if err != nil {
		t.Fatal(err)
	}
}

// query returns the rows of a query as an administrator, with a line for each row.
func query(t *testing.T, s *Store, at time.Time, text string) string {
	t.Helper()
	answer, err := s.Query(context.Background(), inventory.Query{SQL: text, At: at, Visible: everything})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return formatRows(answer.Rows)
}

func formatRows(rows [][]any) string {
	var lines []string
	for _, values := range rows {
		var words []string
		for _, v := range values {
			if v == nil {
				v = "-"
			}
			words = append(words, fmt.Sprint(v))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return strings.Join(lines, "\n")
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestQuestionsAboutAPastTime asks who ran what, at several times.
func TestQuestionsAboutAPastTime(t *testing.T) {
	s := newStore(t)
	record(t, s, minute(0), true, cluster("a", time.Time{}), install("a", "1.1.0"), install("b", "1.1.0"))
	record(t, s, minute(1), false, install("a", "1.2.0"))
	record(t, s, minute(2), false, install("b", ""))
	record(t, s, minute(3), false, install("a", "1.1.0"))
	const who = "SELECT cluster, version, valid_from FROM installs ORDER BY cluster"
	_, err := s.Query(context.Background(), inventory.Query{SQL: who, At: minute(-1), Visible: everything})
	if !errors.Is(err, inventory.ErrRefused) || !strings.Contains(err.Error(), "begins at 2026-11-24T10:00:00Z") {
		t.Errorf("before the inventory began: error %v", err)
	}
	want(
		t,
		"at the beginning",
		query(t, s, minute(0), who),
		"a 1.1.0 2026-11-24T10:00:00Z\nb 1.1.0 2026-11-24T10:00:00Z",
	)
	want(
		t,
		"after an upgrade",
		query(t, s, minute(1), who),
		"a 1.2.0 2026-11-24T10:01:00Z\nb 1.1.0 2026-11-24T10:00:00Z",
	)
	want(t, "just before a removal", query(t, s, minute(2).Add(-time.Second), who),
		"a 1.2.0 2026-11-24T10:01:00Z\nb 1.1.0 2026-11-24T10:00:00Z")
	want(t, "after a removal", query(t, s, minute(2), who), "a 1.2.0 2026-11-24T10:01:00Z")
	want(t, "now", query(t, s, minute(3), who), "a 1.1.0 2026-11-24T10:03:00Z")
	want(t, "history", query(t, s, minute(3),
		"SELECT cluster, version, valid_from, valid_to FROM installs_history ORDER BY cluster, valid_from"),
		`a 1.1.0 2026-11-24T10:00:00Z 2026-11-24T10:01:00Z
a 1.2.0 2026-11-24T10:01:00Z 2026-11-24T10:03:00Z
a 1.1.0 2026-11-24T10:03:00Z -
b 1.1.0 2026-11-24T10:00:00Z 2026-11-24T10:02:00Z`)
	want(t, "history as of an earlier time", query(t, s, minute(1),
		"SELECT cluster, version, valid_from, valid_to FROM installs_history ORDER BY cluster, valid_from"),
		`a 1.1.0 2026-11-24T10:00:00Z 2026-11-24T10:01:00Z
a 1.2.0 2026-11-24T10:01:00Z -
b 1.1.0 2026-11-24T10:00:00Z -`)
}

// TestWhatWasNotObservedIsSaid asks within gaps: of a hub that was away, and of a cluster that did not report.
func TestWhatWasNotObservedIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inventory.db")
	s, err := Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	record(t, s, minute(0), true, cluster("a", time.Time{}), cluster("b", time.Time{}), install("a", "1.1.0"),
		install("b", "1.1.0"), install("c", "1.1.0"))
	record(t, s, minute(1), false)
	if err := s.Close(); err != nil { // the hub ends
		t.Fatal(err)
	}
	s = openStore(t, path)
	if err := s.Record(context.Background(), Batch{Source: inventory.FromHub, At: minute(30),
		Facts: slices.Values([]inventory.Facts(nil))}); !errors.Is(err, ErrIncomplete) {
		t.Fatalf("an incomplete first batch: %v", err)
	}
	record(t, s, minute(30), true, cluster("a", time.Time{}), cluster("b", minute(20)), install("a", "1.2.0"),
		install("b", "1.1.0"))
	record(t, s, minute(31), false, cluster("b", time.Time{}), install("b", "1.2.0"))

	const who = "SELECT cluster, version, observed_until FROM installs ORDER BY cluster"
	want(t, "while the hub observed", query(t, s, minute(1), who),
		"a 1.1.0 2026-11-24T10:01:00Z\nb 1.1.0 2026-11-24T10:01:00Z\nc 1.1.0 2026-11-24T10:01:00Z")
	want(t, "while the hub was away", query(t, s, minute(15), who),
		"a 1.1.0 2026-11-24T10:01:00Z\nb 1.1.0 2026-11-24T10:01:00Z\nc 1.1.0 2026-11-24T10:01:00Z")
	want(t, "while b did not report", query(t, s, minute(30), who),
		"a 1.2.0 2026-11-24T10:30:00Z\nb 1.1.0 2026-11-24T10:20:00Z")
	want(t, "now", query(t, s, minute(31), who), "a 1.2.0 2026-11-24T10:31:00Z\nb 1.2.0 2026-11-24T10:31:00Z")
	want(t, "history", query(t, s, minute(31), `SELECT cluster, version, valid_from, valid_to, observed_until
		FROM installs_history ORDER BY cluster, valid_from`),
		`a 1.1.0 2026-11-24T10:00:00Z 2026-11-24T10:30:00Z 2026-11-24T10:01:00Z
a 1.2.0 2026-11-24T10:30:00Z - 2026-11-24T10:31:00Z
b 1.1.0 2026-11-24T10:00:00Z 2026-11-24T10:31:00Z 2026-11-24T10:20:00Z
b 1.2.0 2026-11-24T10:31:00Z - 2026-11-24T10:31:00Z
c 1.1.0 2026-11-24T10:00:00Z 2026-11-24T10:30:00Z 2026-11-24T10:01:00Z`)
	want(t, "observations", query(t, s, minute(31), "SELECT source, began, until FROM observations ORDER BY began"),
		"hub 2026-11-24T10:00:00Z 2026-11-24T10:01:00Z\nhub 2026-11-24T10:30:00Z 2026-11-24T10:31:00Z")

	answer, err := s.Query(context.Background(), inventory.Query{SQL: who, At: minute(15), Visible: everything})
	if err != nil {
		t.Fatal(err)
	}
	if got := answer.Observed; len(got) != 1 || !got[inventory.FromHub].Equal(minute(1)) {
		t.Errorf("the answer says that the hub observed until %v, want %v", got, minute(1))
	}
}

// TestFollowingColumnsBeginNoRow changes a message and then a reason.
func TestFollowingColumnsBeginNoRow(t *testing.T) {
	s := newStore(t)
	write := func(m int, reason, message string) {
		key := []string{"team-a", "echo", "a"}
		record(t, s, minute(m), m == 0, inventory.Facts{Table: inventory.Installs, Owner: key, Rows: []inventory.Row{
			row(inventory.Installs, key, map[string]any{"reason": reason, "message": message})}})
	}
	write(0, "Progressing", "1 of 3 pods")
	write(1, "Progressing", "2 of 3 pods")
	write(2, "Succeeded", "installed")
	want(
		t,
		"history",
		query(t, s, minute(2), "SELECT valid_from, reason, message FROM installs_history ORDER BY valid_from"),
		"2026-11-24T10:00:00Z Progressing 2 of 3 pods\n2026-11-24T10:02:00Z Succeeded installed",
	)
}

// TestClockThatIsSetBack never makes a row that ends before it begins.
func TestClockThatIsSetBack(t *testing.T) {
	s := newStore(t)
	record(t, s, minute(5), true, install("a", "1.1.0"))
	record(t, s, minute(5), false, install("a", "1.2.0"))
	record(t, s, minute(4), false, install("a", "1.3.0"))
	record(t, s, minute(6), false, install("a", "1.4.0"))
	want(
		t,
		"history",
		query(t, s, minute(6), "SELECT version, valid_from, valid_to FROM installs_history ORDER BY valid_from"),
		"1.3.0 2026-11-24T10:04:00Z 2026-11-24T10:06:00Z\n1.4.0 2026-11-24T10:06:00Z -",
	)
}

// TestLogsKeepWhatTheHubForgot records decisions, which the hub keeps for a time only.
func TestLogsKeepWhatTheHubForgot(t *testing.T) {
	s := newStore(t)
	decide := func(m int, what ...string) {
		f := inventory.Facts{Table: inventory.Decisions, Owner: []string{"team-a", "echo"}}
		for _, w := range what {
			f.Rows = append(f.Rows, row(inventory.Decisions, []string{"team-a", "echo",
				inventory.FormatTime(minute(m)), w, "", "", "anna"}, nil))
		}
		record(t, s, minute(m), m == 0, f)
	}
	decide(0, "Approved", "Paused")
	decide(1, "Resumed")
	want(t, "decisions", query(t, s, minute(1), "SELECT at, what, by FROM decisions ORDER BY at, what"),
		"2026-11-24T10:00:00Z Approved anna\n2026-11-24T10:00:00Z Paused anna\n2026-11-24T10:01:00Z Resumed anna")
}

// TestTablesAreMigrated compares the tables that users are told of with those in the file.
func TestTablesAreMigrated(t *testing.T) {
	s := newStore(t)
	for _, table := range inventory.Tables() {
		for name, columns := range map[string][]inventory.Column{
			keysOf(table): append([]inventory.Column{{Name: "id", Type: inventory.Integer}}, table.Key...),
			statesOf(table): slices.Concat([]inventory.Column{{Name: "id", Type: inventory.Integer}}, times,
				table.Values),
		} {
			rows, err := s.connection.QueryContext(
				context.Background(),
				"SELECT name, type FROM pragma_table_info(?)",
				name,
			)
			if err != nil {
				t.Fatal(err)
			}
			var got, want []string
			for rows.Next() {
				var column, kind string
				if err := rows.Scan(&column, &kind); err != nil {
					t.Fatal(err)
				}
				got = append(got, column+" "+kind)
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil {
				t.Fatal(err)
			}
			for _, c := range columns {
				want = append(want, c.Name+" "+string(c.Type))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

var times = []inventory.Column{{Name: "valid_to", Type: inventory.Text}, {Name: "valid_from", Type: inventory.Text},
	{Name: "observed_until", Type: inventory.Text}}

// TestViewsHaveTheirColumns reads every column that users are told of, and no view has others.
func TestViewsHaveTheirColumns(t *testing.T) {
	s := newStore(t)
	record(t, s, minute(0), true, install("a", "1.1.0"))
	for _, view := range inventory.Views() {
		answer, err := s.Query(context.Background(), inventory.Query{SQL: "SELECT * FROM " + view.Name, At: minute(0),
			Visible: everything})
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, c := range view.Columns {
			want = append(want, c.Name)
		}
		if diff := cmp.Diff(want, answer.Columns); diff != "" {
			t.Errorf("%s (-want +got):\n%s", view.Name, diff)
		}
	}
}
