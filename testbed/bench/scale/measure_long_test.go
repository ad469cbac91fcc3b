// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package scale

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
)

// TestMeasure runs each benchmark on a small fleet. It judges no time.
func TestMeasure(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	const every = 2 * time.Second
	for name, measure := range map[string]func(context.Context) (figure.Section, error){
		"sizes": func(ctx context.Context) (figure.Section, error) {
			return Measure(ctx, t.Output(), Options{Clusters: []int{5, 10}, Operators: []int{1, 2}, MaxInstalls: 20,
				Limit: time.Hour, Idle: 5 * time.Second, LeaseEvery: every})
		},
		"placements": func(ctx context.Context) (figure.Section, error) {
			return MeasurePlacements(ctx, t.Output(), PlacementOptions{Clusters: 20, Placements: 20, Rollouts: 4,
				LeaseEvery: every})
		},
		"trouble": func(ctx context.Context) (figure.Section, error) {
			return MeasureTrouble(ctx, t.Output(), TroubleOptions{Clusters: 10, Shares: []float64{0.5},
				LeaseEvery: every})
		},
		"recovery": func(ctx context.Context) (figure.Section, error) {
			return MeasureRecovery(ctx, t.Output(), RecoveryOptions{Clusters: 10, Operators: 2, LeaseEvery: every})
		},
		"scan": func(ctx context.Context) (figure.Section, error) {
			return MeasureScan(ctx, t.Output(), ScanOptions{Clusters: 10, Operators: 2, Runs: 1, LeaseEvery: every})
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
			defer cancel()
			section, err := measure(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if len(section.Rows) == 0 {
				t.Error("nothing was measured")
			}
			for _, row := range section.Rows {
				if row.Ours == (figure.Quantity{}) || row.Ours.String() == "0 ms" {
					t.Errorf("%s is %q", row.Name, row.Ours)
				}
			}
		})
	}
}
