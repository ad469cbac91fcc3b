// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("c-%d", i)
	}
	return all
}

func TestTheSameSeedDrawsTheSame(t *testing.T) {
	trouble := Trouble{Share: 0.2, Up: Delay{Median: time.Minute, Spread: 1}, Down: Delay{Median: time.Second}}
	all := func(seed uint64, clusters []string) map[string]any {
		b := Behaviour{Seed: seed, Install: Delay{Median: time.Minute, Spread: 0.5}, FailureShare: 0.3}
		drawn := map[string]any{}
		for _, c := range clusters {
			drawn[c] = []any{b.Of(c, "op.v1"), b.Of(c, "op.v2"), b.Outages(trouble, c, time.Hour),
				slices.Contains(b.Hit(trouble, names(50)), c)}
		}
		return drawn
	}
	backwards := names(50)
	slices.Reverse(backwards)
	if diff := cmp.Diff(all(1, names(50)), all(1, backwards)); diff != "" {
		t.Errorf("the same seed in another order (-want +got):\n%s", diff)
	}
	if cmp.Equal(all(1, names(50)), all(2, names(50))) {
		t.Error("two seeds draw the same")
	}
}

func TestSharesAndDelaysAreAsAskedFor(t *testing.T) {
	clusters := names(2000)
	b := Behaviour{Seed: 3, Install: Delay{Median: time.Minute, Spread: 0.5}, FailureShare: 0.2, Bad: []string{"bad"}}
	var failed, above int
	for _, c := range clusters {
		i := b.Of(c, "good")
		if i.Fails {
			failed++
		}
		if i.Install > time.Minute {
			above++
		}
		if !b.Of(c, "bad").Fails {
			t.Errorf("the bad bundle does not fail on %s", c)
		}
	}
	near := func(what string, got, of int, want float64) {
		t.Helper()
		if share := float64(got) / float64(of); math.Abs(share-want) > 0.04 {
			t.Errorf("%s: %.3f, want %.2f", what, share, want)
		}
	}
	near("failures", failed, len(clusters), 0.2)
	near("installations longer than the median", above, len(clusters), 0.5)
	for _, share := range []float64{0, 0.05, 0.2, 0.5, 1} {
		if got := len(b.Hit(Trouble{Share: share}, clusters)); got != int(share*2000) {
			t.Errorf("trouble of %.2f hits %d of 2000 clusters", share, got)
		}
	}
}

func TestOutages(t *testing.T) {
	b := Behaviour{Seed: 4}
	for name, tc := range map[string]struct {
		trouble Trouble
		down    float64
	}{
		"for good": {Trouble{}, 1},
		"flapping": {Trouble{Up: Delay{Median: 3 * time.Minute, Spread: 0.3}, Down: Delay{Median: time.Minute,
			Spread: 0.3}}, 0.25},
	} {
		t.Run(name, func(t *testing.T) {
			const hours = 100 * time.Hour
			var down, end time.Duration
			for _, o := range b.Outages(tc.trouble, "c", hours) {
				if o.From < end || o.Until < o.From || o.Until > hours {
					t.Fatalf("outage %v after one until %v", o, end)
				}
				down, end = down+o.Until-o.From, o.Until
			}
			if share := down.Hours() / hours.Hours(); math.Abs(share-tc.down) > 0.03 {
				t.Errorf("down %.2f of the time, want %.2f", share, tc.down)
			}
		})
	}
}

func TestNamespaceOf(t *testing.T) {
	for path, want := range map[string]string{
		"/apis/bellwether.dev/v1alpha1/namespaces/bellwether-c/operatorinstalls/x/status": "bellwether-c",
		"/api/v1/namespaces/bellwether-c":                                                 "bellwether-c",
		"/apis/bellwether.dev/v1alpha1/operatorinstalls":                                  "",
	} {
		if got := namespaceOf(path); got != want {
			t.Errorf("namespace of %s: %q, want %q", path, got, want)
		}
	}
}
