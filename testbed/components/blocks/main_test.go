// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

var hour = grid{start: time.Unix(1_700_000_000, 0), step: time.Minute, blocks: []time.Duration{time.Hour},
	samples: 150}

// samples reads all samples of a series by their index on the grid.
func samples(t *testing.T, dir, name string) map[int]float64 {
	t.Helper()
	db, err := tsdb.OpenDBReadOnly(dir, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	q, err := db.Querier(0, hour.at(1000))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = q.Close() }() // else the database waits for it
	found := map[int]float64{}
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchEqual, labels.MetricName, name))
	for set.Next() {
		it := set.At().Iterator(nil)
		for it.Next() == chunkenc.ValFloat {
			at, value := it.At()
			found[int(time.UnixMilli(at).Sub(hour.start)/time.Minute)] = value
		}
	}
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSamplesComeBack(t *testing.T) {
	dir := t.TempDir()
	// A reader wants the log of what is in no block yet, too.
	if err := os.Mkdir(filepath.Join(dir, "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	const in = `{"labels":{"__name__":"up","job":"a"},"runs":[{"count":70,"first":1},{"count":20,"absent":true},` +
		`{"count":90,"first":5,"step":2}]}
{"labels":{"__name__":"down","job":"a"},"runs":[{"count":10,"first":1}]}
`
	if err := run(t.Context(), strings.NewReader(in), dir, hour); err != nil {
		t.Fatal(err)
	}
	up := samples(t, dir, "up")
	for i := range hour.samples + 10 {
		want, there := 1.0, i < 70 || i >= 90 && i < hour.samples
		if i >= 90 {
			want = 5 + 2*float64(i-90)
		}
		if value, ok := up[i]; ok != there || ok && value != want {
			t.Errorf("sample %d is %v (%t), want %v (%t)", i, value, ok, want, there)
		}
	}
	if down := samples(t, dir, "down"); len(down) != 10 {
		t.Errorf("%d samples of the short series, want 10", len(down))
	}
}

func TestInputIsChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		grid grid
	}{
		"no JSON":    {"up 1", hour},
		"twice":      {`{"labels":{"__name__":"up"}}{"labels":{"__name__":"up"}}`, hour},
		"no samples": {"", grid{start: hour.start, step: time.Minute, blocks: hour.blocks}},
		"small blocks": {"", grid{start: hour.start, step: time.Minute, blocks: []time.Duration{time.Second},
			samples: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), strings.NewReader(tc.in), t.TempDir(), tc.grid); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestBlocksGetSmaller(t *testing.T) {
	for name, tc := range map[string]struct {
		blocks  []time.Duration
		minutes int
		want    []samplesOf
	}{
		"one size": {[]time.Duration{time.Hour}, 150, []samplesOf{{0, 60}, {60, 120}, {120, 150}}},
		"two sizes": {[]time.Duration{time.Hour, 20 * time.Minute}, 150,
			[]samplesOf{{0, 60}, {60, 90}, {90, 110}, {110, 130}, {130, 150}}},
		"too short for one": {[]time.Duration{time.Hour, 20 * time.Minute}, 30, []samplesOf{{0, 20}, {20, 30}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := grid{step: time.Minute, blocks: tc.blocks, samples: tc.minutes}
			if got := g.ranges(); !slices.Equal(got, tc.want) {
				t.Errorf("blocks %v, want %v", got, tc.want)
			}
		})
	}
}
