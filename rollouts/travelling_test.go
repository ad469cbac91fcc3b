// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestGatesReadWhatTravels looks for series in the queries of gates that the Prometheus of a hub does not have if the
// clusters have Prometheuses of their own: what it neither records itself nor gets.
func TestGatesReadWhatTravels(t *testing.T) {
	there := map[string]bool{}
	for _, name := range series.Travelling() {
		there[name] = true
	}
	// These series are recorded on the hub. Slices from clusters are sent to the hub, or are missing.
	for _, name := range []string{series.SLOObjective, series.SLOGuard, series.SLIExpected} {
		there[name] = true
	}
	q := newQuery(&v1alpha1.OperatorRollout{}, "0123456789abcdef", "canary", time.Hour, "a|b")
	all := map[string]string{"burn": q.buildBurnQuery("csv")}
	maps.Copy(all, q.buildSLOQueries(&v1alpha1.SLOGate{Objectives: []string{"csv"}}))
	for name, query := range q.buildBaselineQueries(&v1alpha1.BaselineGate{SLI: "csv"}) {
		all["baseline "+name] = query
	}
	if len(all) < 10 {
		t.Fatalf("only %d queries", len(all))
	}
	for name, query := range all {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if s, ok := node.(*parser.VectorSelector); ok && !there[s.Name] {
				t.Errorf("%s reads %s of clusters, which do not send it", name, s.Name)
			}
			return nil
		})
	}
}
