// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package budgets_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/alerts/series"
)

// answers is a Prometheus that answers by how a query begins.
type answers map[string]model.Vector

func (a answers) Query(_ context.Context, query string, _ time.Time) (model.Vector, error) {
	for prefix, answer := range a {
		if strings.HasPrefix(query, prefix) {
			return answer, nil
		}
	}
	return nil, nil
}

func (a answers) QueryRange(context.Context, string, time.Time, time.Time, time.Duration) (model.Matrix, error) {
	return nil, errors.New("no range is queried for what is left")
}

func sample(value float64, operator, cluster string) *model.Sample {
	m := model.Metric{series.OperatorNamespace: "fleet", series.Operator: model.LabelValue(operator),
		series.SLI: "available"}
	if cluster != "" {
		m[series.Cluster] = model.LabelValue(cluster)
	}
	return &model.Sample{Value: model.SampleValue(value), Metric: m}
}

func part(of float64) *float64 { return &of }

func spending(operator, cluster string, clusters int, left, lost *float64) budgets.Spending {
	return budgets.Spending{Namespace: "fleet", Operator: operator, SLI: "available", Cluster: cluster,
		Clusters: clusters, Left: left, LeftExcluding: left, Lost: lost}
}

// excluding is an objective of which time was excluded.
func excluding(s budgets.Spending, left float64) budgets.Spending {
	s.LeftExcluding = &left
	return s
}

// TestSpending checks the worst cluster of each objective, the worst objective
// first. testbed/integration/cli tests the queries with a real Prometheus.
func TestSpending(t *testing.T) {
	some := model.Vector{sample(4, "", "")}
	for name, test := range map[string]struct {
		in        answers
		low, lost []budgets.Spending
		err       error
	}{
		"no budgets": {in: answers{}, err: budgets.ErrNoRules},
		"no losses":  {in: answers{"count(": some}},
		"several operators": {
			in: answers{"count(": some,
				"bottomk": {sample(0.1, "backup", "prod-2"), sample(-0.5, "echo", "prod-1"),
					sample(0.1, "alpha", "prod-3")},
				"topk":                             {sample(0.02, "backup", "prod-2"), sample(1.25, "echo", "prod-1")},
				"count by":                         {sample(1, "backup", ""), sample(7, "echo", "")},
				"bellwether:slo_budget_left:ratio": {sample(-0.5, "echo", "prod-1"), sample(0.3, "echo", "prod-2")},
				// The value of prod-2 is larger than the value of prod-1, but prod-2 is not the worst cluster.
				"bellwether:slo_budget_excluding:ratio": {sample(0.25, "echo", "prod-1"),
					sample(0.9, "echo", "prod-2")}},
			low: []budgets.Spending{excluding(spending("echo", "prod-1", 7, part(-0.5), nil), 0.25),
				spending("alpha", "prod-3", 1, part(0.1), nil), spending("backup", "prod-2", 1, part(0.1), nil)},
			lost: []budgets.Spending{excluding(spending("echo", "prod-1", 7, part(-0.5), part(1.25)), 0.25),
				spending("backup", "prod-2", 1, nil, part(0.02))}},
	} {
		t.Run(name, func(t *testing.T) {
			low, err := budgets.ReadLow(t.Context(), test.in, "", time.Unix(0, 0), 0.2)
			if diff := cmp.Diff(test.low, low); diff != "" || !errors.Is(err, test.err) {
				t.Errorf("low (%v, -want +got):\n%s", err, diff)
			}
			lost, err := budgets.ReadLost(t.Context(), test.in, "", time.Unix(0, 0), time.Hour, 0.01)
			if diff := cmp.Diff(test.lost, lost); diff != "" || !errors.Is(err, test.err) {
				t.Errorf("lost (%v, -want +got):\n%s", err, diff)
			}
		})
	}
}
