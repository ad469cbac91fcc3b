// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/testbed/bench/slo/fleet"
)

func make3Days(t *testing.T, seed uint64) *fleet.Fleet {
	t.Helper()
	f, err := fleet.New(fleet.Size{Operators: 6, Clusters: 8, History: 3 * 24 * 60, Ahead: 60, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSeedDecides(t *testing.T) {
	a, b, other := make3Days(t, 1), make3Days(t, 1), make3Days(t, 2)
	differ := false
	for c := range 8 {
		for o := range 6 {
			for sli := fleet.CSV; sli <= fleet.Latency; sli++ {
				if diff := cmp.Diff(a.Bad(c, o, sli), b.Bad(c, o, sli)); diff != "" {
					t.Fatalf("the same seed made something else:\n%s", diff)
				}
				differ = differ || !cmp.Equal(a.Bad(c, o, sli), other.Bad(c, o, sli))
			}
		}
	}
	if !differ {
		t.Error("another seed made the same")
	}
}

func TestSpansAreInOrderAndApart(t *testing.T) {
	f := make3Days(t, 1)
	end := f.Size().History + f.Size().Ahead
	for c := range 8 {
		for o := range 6 {
			for sli := fleet.CSV; sli <= fleet.Latency; sli++ {
				at := -1
				for _, s := range f.Bad(c, o, sli) {
					if s.From <= at || s.To <= s.From || s.To > end {
						t.Fatalf("cluster %d, operator %d, SLI %d: %v", c, o, sli, f.Bad(c, o, sli))
					}
					at = s.To
				}
			}
		}
	}
}

// TestSeriesSayWhatIsBad reads the trouble back out of what is exported.
func TestSeriesSayWhatIsBad(t *testing.T) {
	f := make3Days(t, 1)
	now := f.Size().History - 1
	csv, errors, versions := map[string]float64{}, map[string]float64{}, map[string]string{}
	for s := range f.Exported(0) {
		operator := s.Labels[series.Operator] + s.Labels[series.Namespace]
		value, ok := s.At(now)
		before, _ := s.At(now - 10)
		switch s.Labels[fleet.Name] {
		case series.OperatorCSVSucceeded:
			csv[operator] = value
		case series.ReconcileErrorsTotal:
			errors[operator] = value - before
		case series.OperatorInfo:
			if ok {
				versions[s.Labels[series.Operator]] += s.Labels[series.Version]
			}
		}
	}
	bad := fleet.Operator(3)
	if csv[bad] != 0 || errors[bad] != 150 {
		t.Errorf("the bad release has CSV succeeded %v and %v errors in ten minutes", csv[bad], errors[bad])
	}
	want := map[string]string{}
	for o := range 6 {
		want[fleet.Operator(o)] = "1.0.0"
	}
	want[bad], want[fleet.Operator(2)] = "1.1.0", "1.1.1"
	if diff := cmp.Diff(want, versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

func TestRuns(t *testing.T) {
	in := []fleet.Span{{From: 2, To: 4}, {From: 5, To: 9}}
	for name, tc := range map[string]struct {
		runs []fleet.Run
		want []float64 // -1: none
	}{
		"gauge":   {fleet.Gauge(7, in, 1, 0), []float64{0, 0, 1, 1, 0, 1, 1, -1}},
		"only":    {fleet.Only(7, in, 3), []float64{-1, -1, 3, 3, -1, 3, 3, -1}},
		"nothing": {fleet.Gauge(3, nil, 1, 5), []float64{5, 5, 5, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []float64
			for i := range tc.want {
				value, ok := fleet.Series{Runs: tc.runs}.At(i)
				if !ok {
					value = -1
				}
				got = append(got, value)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("samples (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCountersOnlyGrow(t *testing.T) {
	f := make3Days(t, 1)
	for s := range f.Exported(0) {
		switch s.Labels[fleet.Name] {
		case series.ReconcileTotal, series.ReconcileErrorsTotal, series.ReconcileTimeBucket, series.ReconcileTimeCount:
			last := 0.0
			for m := range f.Size().History {
				value, ok := s.At(m)
				if !ok || value < last {
					t.Fatalf("%v: %v after %v in minute %d", s.Labels, value, last, m)
				}
				last = value
			}
		}
	}
}

func TestSmallFleetIsRefused(t *testing.T) {
	if _, err := fleet.New(fleet.Size{Operators: 1, Clusters: 200, History: 60}); err == nil {
		t.Error("one operator has no room for all the trouble")
	}
}
