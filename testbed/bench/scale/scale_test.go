// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestFitPlane(t *testing.T) {
	want := plane{base: 50, x: 3, y: -2}
	var xs, ys, values []float64
	for _, x := range []float64{100, 300, 1000} {
		for _, y := range []float64{0, 100, 5000} {
			xs, ys, values = append(xs, x), append(ys, y), append(values, want.at(x, y))
		}
	}
	got, ok := fitPlane(xs, ys, values)
	if !ok || math.Abs(got.base-want.base)+math.Abs(got.x-want.x)+math.Abs(got.y-want.y) > 1e-6 {
		t.Errorf("fit: %+v %t, want %+v", got, ok, want)
	}
	if _, ok := fitPlane([]float64{1, 1}, []float64{0, 5}, []float64{1, 2}); ok {
		t.Error("two points of one size are fitted")
	}
}

func TestSharesAddUp(t *testing.T) {
	for _, n := range []int{1, 3, 7} {
		for _, number := range []int{0, 1, 20, 22} {
			sum := 0
			for i := range n {
				s := share(number, i, n)
				if s < number/n || s > number/n+1 {
					t.Errorf("part %d of %d of %d is %d", i, n, number, s)
				}
				sum += s
			}
			if sum != number {
				t.Errorf("the %d parts of %d add up to %d", n, number, sum)
			}
		}
	}
}

// TestReport judges what was measured: a ratio that is too high, and memory by its slope over sizes.
func TestReport(t *testing.T) {
	var all fleets
	for _, clusters := range []int{100, 300, 1000} {
		s := size{clusters, 10}
		took := time.Duration(clusters) * 10 * time.Millisecond
		writes := map[operation]int{{"PATCH", groupInstalls, status}: 5 * s.installs()}
		all.rollouts = append(all.rollouts,
			converged{size: s, waves: 1, took: took, floor: took / 2, writes: writes},
			converged{size: s, waves: 5, took: took, floor: took * 4 / 5, writes: writes})
		for _, installed := range []bool{false, true} {
			bytes := int64(40<<20 + clusters*(32<<10))
			if installed {
				bytes += int64(s.installs() * (20 << 10))
			}
			all.rests = append(all.rests, rest{size: s, installed: installed, resident: bytes, heap: bytes / 2})
		}
		all.restarts = append(all.restarts, restarted{s, time.Duration(clusters) * 10 * time.Millisecond})
	}
	all.unmeasured = []size{{10_000, 30}}
	section := report(Options{Idle: time.Minute, LeaseEvery: 10 * time.Second}, all)
	missed := strings.Join(section.Missed(), "; ")
	if want := "1000 clusters × 10, one wave; hub's resident memory per OperatorInstall"; missed != want {
		t.Errorf("missed: %s\nwant: %s", missed, want)
	}
	for _, part := range []string{"32.0 KiB per cluster and 20.0 KiB per OperatorInstall",
		"| patch operatorinstalls/status | 50000 | 5.00 |",
		"| 10000 clusters × 30 | 300000 | not measured | not measured | 6211.9 MiB, extrapolated | not measured |",
		"images/bench/scale-rollout.svg"} {
		if !strings.Contains(section.Detail, part) {
			t.Errorf("the detail has no %q:\n%s", part, section.Detail)
		}
	}
	for name, plot := range section.Pictures {
		if svg, err := plot.SVG(); err != nil || !strings.Contains(svg, "<svg") {
			t.Errorf("%s is not drawn: %v", name, err)
		}
	}
}
