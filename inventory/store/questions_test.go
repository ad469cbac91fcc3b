// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/inventory"
)

// fact returns the facts that are one row.
func fact(table *inventory.Table, values map[string]any, key ...string) inventory.Facts {
	return inventory.Facts{Table: table, Owner: key, Rows: []inventory.Row{row(table, key, values)}}
}

// fillStory records an upgrade of team-a/echo on three clusters: 1.2.0 reaches all, and is bad on one.
func fillStory(t *testing.T) *Store {
	s := newStore(t)
	echo := []string{"team-a", "echo"}
	target := func(version string) inventory.Facts {
		return fact(
			inventory.Operators,
			map[string]any{"package": "echo-operator", "catalog": "main", "target": version},
			echo...)
	}
	at := func(version, ready, reason, cluster string) inventory.Facts {
		return fact(inventory.Installs, map[string]any{"version": version, "ready": ready, "reason": reason,
			"rollout": "echo-2"}, "team-a", "echo", cluster)
	}
	version := func(v string, blocked any) inventory.Row {
		return row(inventory.Versions, []string{"team-a", "main", "echo-operator", "echo.v" + v},
			map[string]any{"version": v, "blocked": blocked})
	}
	versions := func(rows ...inventory.Row) inventory.Facts {
		return inventory.Facts{Table: inventory.Versions, Owner: []string{"team-a", "main"}, Rows: rows}
	}
	rollout := func(phase string, ended any) inventory.Facts {
		return fact(inventory.Rollouts, map[string]any{"operator": "echo", "version": "1.2.0", "phase": phase,
			"started_at": "2026-11-24T10:02:00Z", "ended_at": ended, "message": phase + "!"}, "team-a", "echo-2")
	}
	record(t, s, minute(0), true, target("1.1.0"), at("1.1.0", "True", "Succeeded", "a"),
		at("1.1.0", "True", "Succeeded", "b"), at("1.1.0", "True", "Succeeded", "c"), cluster("a", time.Time{}),
		cluster("b", time.Time{}), cluster("c", minute(-30)), versions(version("1.1.0", nil)))
	record(t, s, minute(1), false, versions(version("1.1.0", nil), version("1.2.0", nil)))
	record(
		t,
		s,
		minute(2),
		false,
		target("1.2.0"),
		rollout("Progressing", nil),
		fact(inventory.Waves, map[string]any{"phase": "Updating", "succeeded": int64(0), "total": int64(1),
			"failed": int64(0)}, "team-a", "echo-2", "canary"),
		fact(
			inventory.Gates,
			map[string]any{"verdict": "Waiting", "evidence": "no data"},
			"team-a",
			"echo-2",
			"canary",
			"budget",
		),
	)
	record(
		t,
		s,
		minute(3),
		false,
		at("1.2.0", "True", "Succeeded", "a"),
		fact(
			inventory.Gates,
			map[string]any{"verdict": "Passed", "evidence": "burn rate 1"},
			"team-a",
			"echo-2",
			"canary",
			"budget",
		),
		fact(
			inventory.Decisions,
			map[string]any{"reason": "tested"},
			"team-a",
			"echo",
			"2026-11-24T10:03:00Z",
			"Approved",
			"echo-2",
			"rest/people", "anna",
		),
	)
	record(t, s, minute(4), false, at("1.2.0", "False", "WorkloadUnavailable", "b"),
		fact(inventory.Drift, map[string]any{"reason": "Drifted", "message": "replicas"}, "team-a", "echo", "b"))
	record(t, s, minute(5), false, at("1.2.0", "True", "Succeeded", "c"), rollout("Succeeded", "2026-11-24T10:05:00Z"),
		versions(version("1.1.0", "loses data"), version("1.2.0", nil)))
	return s
}

// TestQuestions asks every question about the same story.
func TestQuestions(t *testing.T) {
	s := fillStory(t)
	arguments := map[string]string{"operator": "echo", "version": "1.2.0", "cluster": "b", "rollout": "echo-2",
		"since": "2026-11-24"}
	answers := map[string]string{
		"who-ran": `team-a a True 2026-11-24T10:03:00Z 2026-11-24T10:05:00Z
team-a b False 2026-11-24T10:04:00Z 2026-11-24T10:05:00Z
team-a c True 2026-11-24T10:05:00Z 2026-11-24T09:30:00Z`,
		"versions":   "team-a echo 1.2.0 3 2 2026-11-24T09:30:00Z",
		"on-cluster": "team-a echo 1.2.0 - False WorkloadUnavailable 2026-11-24T10:04:00Z 2026-11-24T10:05:00Z",
		"changes-on-cluster": `2026-11-24T10:00:00Z team-a echo 1.1.0 True Succeeded echo-2 -
2026-11-24T10:04:00Z team-a echo 1.2.0 False WorkloadUnavailable echo-2 -`,
		"upgrades": `2026-11-24T10:03:00Z team-a a 1.1.0 1.2.0 echo-2
2026-11-24T10:04:00Z team-a b 1.1.0 1.2.0 echo-2
2026-11-24T10:05:00Z team-a c 1.1.0 1.2.0 echo-2`,
		"behind":           "",
		"not-ready":        "2026-11-24T10:04:00Z team-a echo b 1.2.0 WorkloadUnavailable - 2026-11-24T10:05:00Z",
		"stale-clusters":   "c 2026-11-24T09:30:00Z False - - -",
		"cluster-versions": "- - - 3",
		"approvals":        "2026-11-24T10:03:00Z team-a echo echo-2 Approved rest/people anna tested",
		"decisions":        "2026-11-24T10:03:00Z team-a echo-2 Approved rest/people anna tested",
		"rollouts": "team-a echo echo-2 1.2.0 Succeeded 2026-11-24T10:02:00Z 2026-11-24T10:05:00Z - - - - " +
			"Succeeded!",
		"rollout-steps": `2026-11-24T10:02:00Z team-a - Progressing Progressing!
2026-11-24T10:02:00Z team-a canary Updating 0 of 1 clusters succeeded, 0 failed
2026-11-24T10:05:00Z team-a - Succeeded Succeeded!`,
		"gate-evidence": `2026-11-24T10:02:00Z team-a canary budget Waiting - - no data
2026-11-24T10:03:00Z team-a canary budget Passed - - burn rate 1`,
		"lead-times":     "team-a 1.2.0 2026-11-24T10:01:00Z 2026-11-24T10:05:00Z 0.1",
		"drift":          "2026-11-24T10:04:00Z team-a echo b Drifted replicas 2026-11-24T10:05:00Z",
		"end-of-support": "",
	}
	for _, q := range inventory.Questions() {
		given := map[string]string{}
		for _, p := range q.Parameters {
			given[p.Name] = arguments[p.Name]
		}
		answer, err := s.Query(context.Background(), inventory.Query{SQL: q.SQL, Arguments: given, At: minute(5),
			Visible: everything})
		if err != nil {
			t.Errorf("%s: %v", q.Name, err)
			continue
		}
		expected, ok := answers[q.Name]
		if !ok {
			t.Errorf("%s: no answer is expected; it is\n%s", q.Name, formatRows(answer.Rows))
			continue
		}
		want(t, q.Name, formatRows(answer.Rows), expected)
	}
}

// TestQuestionsAboutAnEarlierTime asks in the middle of the story, and with a relative time.
func TestQuestionsAboutAnEarlierTime(t *testing.T) {
	s := fillStory(t)
	ask := func(name string, at time.Time, arguments map[string]string) string {
		q, _ := inventory.FindQuestion(name)
		answer, err := s.Query(
			context.Background(),
			inventory.Query{SQL: q.SQL, Arguments: arguments, At: at, Visible: everything},
		)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return formatRows(answer.Rows)
	}
	want(t, "behind", ask("behind", minute(3), map[string]string{"operator": "echo"}),
		`team-a b 1.1.0 1.2.0 2026-11-24T10:02:00Z Succeeded 2026-11-24T10:03:00Z
team-a c 1.1.0 1.2.0 2026-11-24T10:02:00Z Succeeded 2026-11-24T09:30:00Z`)
	want(t, "versions", ask("versions", minute(3), nil),
		"team-a echo 1.1.0 2 2 2026-11-24T09:30:00Z\nteam-a echo 1.2.0 1 1 2026-11-24T10:03:00Z")
	if got := ask("upgrades", minute(5), map[string]string{"operator": "echo", "since": "2020"}); strings.Count(
		got,
		"\n",
	) != 2 {
		t.Errorf("upgrades since a relative time:\n%s", got)
	}
}
