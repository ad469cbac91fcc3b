// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellwether-dev/bellwether/inventory"
)

// model is a naive inventory: it keeps the whole fleet for each time at which it was recorded.
type model struct {
	// versions are the versions by cluster, and stale is since when a cluster has not reported.
	versions map[string]string
	stale    map[string]time.Time
	past     []snapshot
}

type snapshot struct {
	at       time.Time
	versions map[string]string
	stale    map[string]time.Time
	// isAfterGap is true if the hub was away before.
	isAfterGap bool
}

func (m *model) record(at time.Time, isAfterGap bool) {
	m.past = append(m.past, snapshot{at, maps.Clone(m.versions), maps.Clone(m.stale), isAfterGap})
}

// ask returns who ran what at a time, and until when that was observed.
func (m *model) ask(at time.Time) string {
	i := len(m.past) - 1
	for m.past[i].at.After(at) {
		i--
	}
	observed := m.past[i].at
	if next := i + 1; next < len(m.past) && !m.past[next].isAfterGap {
		observed = at // the hub observed until the next time, and that is later
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(m.past[i].versions)) {
		until := observed
		for _, later := range m.past[i:] { // it may have been noticed later
			if since, ok := later.stale[name]; ok && !since.After(at) && since.Before(until) {
				until = since
			}
		}
		lines = append(lines, fmt.Sprint(name, " ", m.past[i].versions[name], " ", inventory.FormatTime(until)))
	}
	return strings.Join(lines, "\n")
}

// TestSameAnswersAsAModel records random histories, with hubs that are away and clusters that do not report, and asks
// about random times.
func TestSameAnswersAsAModel(t *testing.T) {
	folder := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		path := filepath.Join(folder, strconv.Itoa(n)+".db")
		s, err := Open(context.Background(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		m := &model{versions: map[string]string{}, stale: map[string]time.Time{}}
		now, names := epoch, []string{"a", "b", "c"}
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			isAway := step == 0 || rapid.IntRange(0, 3).Draw(t, "away") == 0
			if step > 0 {
				now = now.Add(time.Duration(rapid.IntRange(1, 50).Draw(t, "seconds")) * time.Second)
			}
			if isAway && step > 0 {
				now = now.Add(time.Hour)
				if rapid.Bool().Draw(t, "restart") {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					if s, err = Open(context.Background(), path); err != nil {
						t.Fatal(err)
					}
				}
			}
			changed := map[string]bool{}
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				name := rapid.SampledFrom(names).Draw(t, "cluster")
				changed[name] = true
				version := rapid.SampledFrom([]string{"", "1", "2", "stale", "reports"}).Draw(t, "change")
				switch version {
				case "":
					delete(m.versions, name)
				case "stale":
					m.stale[name] = now.Add(-time.Duration(rapid.IntRange(0, 5).Draw(t, "age")) * time.Second)
				case "reports":
					delete(m.stale, name)
				default:
					m.versions[name] = version
				}
			}
			var facts []inventory.Facts
			for _, name := range names {
				if isAway || changed[name] {
					facts = append(facts, cluster(name, m.stale[name]), install(name, m.versions[name]))
				}
			}
			if err := s.Record(context.Background(), Batch{Source: inventory.FromHub, At: now,
				Facts: slices.Values(facts), IsComplete: isAway}); err != nil {
				t.Fatal(err)
			}
			m.record(now, isAway)
		}
		for range 5 {
			at := epoch.Add(
				time.Duration(rapid.IntRange(0, int(now.Sub(epoch).Seconds())).Draw(t, "asked")) * time.Second,
			)
			answer, err := s.Query(context.Background(), inventory.Query{At: at, Visible: everything,
				SQL: "SELECT cluster, version, observed_until FROM installs ORDER BY cluster"})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := formatRows(answer.Rows), m.ask(at); got != want {
				t.Fatalf("at %s:\n%s\nwant:\n%s", inventory.FormatTime(at), got, want)
			}
		}
	})
}

// writerVariable makes the test binary a hub that records until it is killed.
const writerVariable = "BELLWETHER_TEST_INVENTORY"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerVariable); path != "" {
		writeForever(path)
	}
	os.Exit(m.Run())
}

// writeForever records one version after the other, and prints the number of each that was acknowledged.
func writeForever(path string) {
	s, err := Open(context.Background(), path)
	for i := 0; err == nil; i++ {
		err = s.Record(
			context.Background(),
			Batch{Source: inventory.FromHub, At: epoch.Add(time.Duration(i) * time.Second),
				IsComplete: i == 0, Facts: slices.Values([]inventory.Facts{install("a", strconv.Itoa(i))})},
		)
		fmt.Println(i)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestKilledHubLosesNothing kills a process that records, and looks for what it had acknowledged.
func TestKilledHubLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inventory.db")
	hub := exec.Command(os.Args[0])
	hub.Env = append(os.Environ(), writerVariable+"="+path)
	hub.Stderr = os.Stderr
	output, err := hub.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Start(); err != nil {
		t.Fatal(err)
	}
	lines, acknowledged := bufio.NewScanner(output), 0
	for acknowledged < 50 && lines.Scan() {
		if acknowledged, err = strconv.Atoi(lines.Text()); err != nil {
			t.Error(err)
		}
	}
	if err := hub.Process.Kill(); err != nil {
		t.Error(err)
	}
	for lines.Scan() { // what it said before it was killed
		acknowledged, err = strconv.Atoi(lines.Text())
		if err != nil {
			t.Error(err)
		}
	}
	_ = hub.Wait()
	s := openStore(t, path)
	got := query(t, s, epoch.Add(time.Hour), fmt.Sprintf(
		"SELECT count(*) FROM installs_history WHERE CAST(version AS INTEGER) <= %d", acknowledged))
	want(t, "versions that were acknowledged", got, strconv.Itoa(acknowledged+1))
}

// TestFullDiskKeepsWhatWasRecorded lets the file grow no more, and then again.
func TestFullDiskKeepsWhatWasRecorded(t *testing.T) {
	s := newStore(t)
	record(t, s, minute(0), true, install("a", "1.1.0"))
	if _, err := s.connection.ExecContext(context.Background(), "PRAGMA max_page_count = 1"); err != nil {
		t.Fatal(err) // it becomes the number of pages that there are
	}
	many := func(yield func(inventory.Facts) bool) {
		for i := range 2000 {
			if !yield(install(fmt.Sprint("cluster-", i), "1.2.0")) {
				return
			}
		}
	}
	if err := s.Record(context.Background(), Batch{Source: inventory.FromHub, At: minute(1), Facts: many}); err == nil {
		t.Fatal("the disk is full, and all was recorded")
	}
	want(t, "while the disk is full", query(t, s, minute(1), "SELECT cluster, version FROM installs"), "a 1.1.0")
	if _, err := s.connection.ExecContext(context.Background(), "PRAGMA max_page_count = 100000"); err != nil {
		t.Fatal(err)
	}
	if err := s.Record(context.Background(), Batch{Source: inventory.FromHub, At: minute(9), Facts: many}); err != nil {
		t.Fatal(err)
	}
	want(t, "with space", query(t, s, minute(9), "SELECT count(*) FROM installs"), "2001")
	want(
		t,
		"in the time that was not recorded",
		query(t, s, minute(5), "SELECT cluster, version, observed_until FROM installs"),
		"a 1.1.0 2026-11-24T10:00:00Z",
	)
}

// TestRetention removes the past by its age and by the size of the file.
func TestRetention(t *testing.T) {
	s := newStore(t)
	for i := range 600 {
		var facts []inventory.Facts
		for c := range 20 {
			facts = append(facts, install(fmt.Sprint("cluster-", c), strconv.Itoa(i)))
		}
		if i > 300 {
			facts = append(facts, install("gone", ""))
		} else {
			facts = append(facts, install("gone", "1"))
		}
		record(t, s, minute(i), i == 0, facts...)
	}
	now := minute(599)
	count := func() string { return query(t, s, now, "SELECT count(*) FROM installs_history") }
	since, err := s.Retain(context.Background(), now, Retention{Age: 100 * time.Minute, Bytes: 1 << 40})
	if err != nil || !since.Equal(minute(499)) {
		t.Fatalf("kept since %s, error %v", since, err)
	}
	want(t, "rows of 100 minutes", count(), strconv.Itoa(20*(100+1+1)))
	want(
		t,
		"a cluster that left",
		query(t, s, now, "SELECT count(*) FROM installs_history WHERE cluster = 'gone'"),
		"0",
	)
	want(t, "the first time that is kept", query(t, s, since, "SELECT DISTINCT version FROM installs"), "499")
	_, err = s.Query(context.Background(), inventory.Query{SQL: "SELECT 1", At: minute(400), Visible: everything})
	if !errors.Is(err, inventory.ErrRefused) {
		t.Errorf("a time that is not kept: error %v", err)
	}
	if since, err = s.Retain(context.Background(), now, Retention{Age: 100 * time.Minute, Bytes: 1}); err != nil {
		t.Fatal(err)
	}
	if since.Before(minute(599).Add(-MinAge)) || since.After(minute(599).Add(-MinAge)) {
		t.Errorf("a file that may have no size keeps the time since %s, want the last %s", since, MinAge)
	}
	want(t, "now", query(t, s, now, "SELECT count(*), min(version) FROM installs"), "20 599")
}
