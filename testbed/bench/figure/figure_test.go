// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package figure_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
)

const mebi = 1 << 20

func TestVerdicts(t *testing.T) {
	for name, tc := range map[string]struct {
		row    figure.Row
		missed bool
	}{
		"no promise":           {row: figure.Row{Ratio: 9}},
		"ratio at the limit":   {row: figure.Row{Ratio: 1.3, Promise: figure.AtMost(1.3)}},
		"ratio above":          {row: figure.Row{Ratio: 1.31, Promise: figure.AtMost(1.3)}, missed: true},
		"ratio never measured": {row: figure.Row{Promise: figure.AtMost(1.3)}, missed: true},
		"below": {row: figure.Row{Ours: figure.Bytes(63 * mebi),
			Promise: figure.Below(figure.Bytes(64 * mebi))}},
		"exactly there is above": {row: figure.Row{Ours: figure.Bytes(64 * mebi),
			Promise: figure.Below(figure.Bytes(64 * mebi))}, missed: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.row.Missed(); got != tc.missed {
				t.Errorf("missed %t, want %t", got, tc.missed)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	for name, tc := range map[string]struct {
		values []time.Duration
		want   time.Duration
	}{
		"none": {},
		"one":  {values: []time.Duration{3}, want: 3},
		"odd":  {values: []time.Duration{9, 1, 2}, want: 2},
		"even": {values: []time.Duration{8, 1, 2, 4}, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			if got := figure.Median(tc.values); got != tc.want {
				t.Errorf("median %d, want %d", got, tc.want)
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for name, tc := range map[string]struct {
		values []time.Duration
		q      float64
		want   time.Duration
	}{
		"none":         {q: 0.99},
		"one":          {values: []time.Duration{3}, q: 0.99, want: 3},
		"of a few":     {values: []time.Duration{5, 1, 2}, q: 0.99, want: 5},
		"of a hundred": {values: hundred, q: 0.99, want: 99},
		"all":          {values: hundred, q: 1, want: 100},
		"the least":    {values: hundred, q: 0, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := figure.Quantile(tc.values, tc.q); got != tc.want {
				t.Errorf("quantile %d, want %d", got, tc.want)
			}
		})
	}
}

func TestTable(t *testing.T) {
	ours, peer := figure.Duration(1500*time.Millisecond), figure.Duration(2*time.Second)
	got := figure.Table([]figure.Row{
		{Name: "upgrade", Ours: ours, Peer: peer, Ratio: figure.Ratio(ours, peer), Promise: figure.AtMost(1.3),
			Runs: 5},
		{Name: "memory", Ours: figure.Bytes(70 * mebi), Promise: figure.Below(figure.Bytes(64 * mebi)), Runs: 1},
		{Name: "quick", Ours: figure.Duration(20 * time.Millisecond), Runs: 1},
	})
	const want = `| figure | ours | peer | ratio | promise | verdict | runs |
|---|---:|---:|---:|---:|---:|---:|
| upgrade | 1.50 s | 2.00 s | 0.75 | ratio ≤ 1.3 | kept | 5 |
| memory | 70.0 MiB |  |  | below 64.0 MiB | **missed** | 1 |
| quick | 20 ms |  |  |  | for information | 1 |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestReplaceKeepsTheProse(t *testing.T) {
	const document = "# Title\n\n<!-- bench:a -->\nold\n<!-- /bench:a -->\n\nprose\n\n<!-- bench:b -->\n<!-- " +
		"/bench:b -->\n"
	got, err := figure.Replace(document, "a", "new\n")
	if err != nil {
		t.Fatal(err)
	}
	const want = "# Title\n\n<!-- bench:a -->\n\nnew\n\n<!-- /bench:a -->\n\nprose\n\n<!-- bench:b -->\n<!-- " +
		"/bench:b -->\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	again, err := figure.Replace(got, "a", "new")
	if err != nil || again != got {
		t.Errorf("doing it again changed the document: %v\n%s", err, cmp.Diff(got, again))
	}
	if _, err := figure.Replace(document, "c", "new"); !errors.Is(err, figure.ErrNoPlace) {
		t.Errorf("a section without a place gave %v", err)
	}
}
