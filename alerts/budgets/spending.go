// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package budgets

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Spending is an objective with its worst cluster, by remaining or by lost budget.
type Spending struct {
	// Namespace and Operator identify the ManagedOperator.
	Namespace string `json:"namespace"`
	Operator  string `json:"operator"`
	SLI       string `json:"sli"`
	// Cluster is the worst cluster. Clusters is the number of clusters that meet the condition of the query.
	Cluster  string `json:"cluster"`
	Clusters int    `json:"clusters"`
	// Left is the remaining part of the cluster's budget: 1 is the
	// whole budget, and a negative value is overspent. Nil: unknown.
	Left *float64 `json:"left"`
	// LeftExcluding is the remaining part without the time that
	// AlertSilences exclude. It equals Left if no time is excluded.
	LeftExcluding *float64 `json:"leftExcluding"`
	// Lost is the part of the cluster's budget that was lost in the
	// requested time. It is nil in the results of ReadLow.
	Lost *float64 `json:"lost,omitempty"`
}

// ReadLow returns the objectives for which any cluster has less than the part `below` of its budget left, the worst
// first. A namespace limits the result to its operators. The error wraps ErrNoRules if there are no budgets at all.
func ReadLow(ctx context.Context, from Prometheus, namespace string, now time.Time, below float64) ([]Spending, error) {
	r := spendingReader{from, namespace, now}
	low := fmt.Sprintf("%s < %s", r.selectBudgets(), formatDecimal(below))
	worst, err := r.readWorst(ctx, "bottomk", low)
	if err != nil {
		return nil, err
	}
	counts, err := r.Query(ctx, "count by ("+objectiveLabels+") ("+low+")", now)
	if err != nil {
		return nil, err
	}
	if len(worst) == 0 {
		return nil, r.checkRules(ctx)
	}
	excluding, err := r.readExcluding(ctx)
	if err != nil {
		return nil, err
	}
	var out []Spending
	for k, remaining := range worst {
		s := newSpending(k)
		s.Left, s.LeftExcluding = &remaining, findLeftExcluding(excluding, k, remaining)
		out = append(out, s)
	}
	setClusterCounts(out, counts)
	slices.SortFunc(out, func(a, b Spending) int { return cmp.Or(compareParts(a.Left, b.Left), compareNames(a, b)) })
	return out, nil
}

// ReadLost returns the objectives for which any cluster lost more than the part `above` of its
// budget in the time `since` before now, the largest loss first. It ignores budgets that
// did not exist at the start of that time. The namespace and the error are as for ReadLow.
func ReadLost(ctx context.Context, from Prometheus, namespace string, now time.Time, since time.Duration,
	above float64) ([]Spending, error) {
	r := spendingReader{from, namespace, now}
	lost := fmt.Sprintf("%[1]s offset %[2]ds - %[1]s > %[3]s", r.selectBudgets(), int(since.Seconds()),
		formatDecimal(above))
	worst, err := r.readWorst(ctx, "topk", lost)
	if err != nil {
		return nil, err
	}
	counts, err := r.Query(ctx, "count by ("+objectiveLabels+") ("+lost+")", now)
	if err != nil {
		return nil, err
	}
	if len(worst) == 0 {
		return nil, r.checkRules(ctx)
	}
	// Read the remaining budgets of the clusters with the largest losses only.
	remaining, err := reader{from, Query{Now: now}}.readVector(ctx,
		fmt.Sprintf("%s and on (%s, %s) topk by (%[2]s) (1, "+
			"%[4]s)", r.selectBudgets(), objectiveLabels, series.Cluster, lost), true)
	if err != nil {
		return nil, err
	}
	excluding, err := r.readExcluding(ctx)
	if err != nil {
		return nil, err
	}
	var out []Spending
	for k, part := range worst {
		s := newSpending(k)
		s.Lost = &part
		if v, ok := remaining[k]; ok {
			s.Left, s.LeftExcluding = &v, findLeftExcluding(excluding, k, v)
		}
		out = append(out, s)
	}
	setClusterCounts(out, counts)
	slices.SortFunc(out, func(a, b Spending) int { return cmp.Or(compareParts(b.Lost, a.Lost), compareNames(a, b)) })
	return out, nil
}

type spendingReader struct {
	Prometheus
	namespace string
	now       time.Time
}

// selectBudgets returns a selector of the remaining budgets.
func (r spendingReader) selectBudgets() string { return r.selectMetric(series.SLOBudgetLeft) }

// selectMetric returns a selector of a metric for the operators of the namespace.
func (r spendingReader) selectMetric(metric string) string {
	if r.namespace == "" {
		return metric
	}
	return fmt.Sprintf("%s{%s=%q}", metric, series.OperatorNamespace, r.namespace)
}

// readExcluding reads the remaining budgets without excluded time, for budgets with excluded time.
func (r spendingReader) readExcluding(ctx context.Context) (map[key]float64, error) {
	return reader{r.Prometheus, Query{Now: r.now}}.readVector(ctx, r.selectMetric(series.SLOBudgetExcluding), true)
}

// readWorst returns the worst value of an expression for each objective, by the
// objective and its cluster. choose is topk or bottomk, for the highest or the lowest value.
func (r spendingReader) readWorst(ctx context.Context, choose, expr string) (map[key]float64, error) {
	return reader{r.Prometheus, Query{Now: r.now}}.readVector(ctx, choose+" by ("+objectiveLabels+") (1, "+expr+")",
		true)
}

// checkRules returns ErrNoRules if there are no budgets. It distinguishes "nothing is lost" from "no data".
func (r spendingReader) checkRules(ctx context.Context) error {
	all, err := r.Query(ctx, "count("+series.SLOBudgetLeft+")", r.now)
	if err == nil && len(all) == 0 {
		return ErrNoRules
	}
	return err
}

func newSpending(k key) Spending {
	return Spending{Namespace: k.operator.Namespace, Operator: k.operator.Name, SLI: k.sli, Cluster: k.cluster}
}

// objectiveKey returns the key without the cluster.
func (s Spending) objectiveKey() key {
	return key{operator: types.NamespacedName{Namespace: s.Namespace, Name: s.Operator}, sli: s.SLI}
}

// setClusterCounts sets the number of clusters of each objective in the list. It is at
// least 1, because the query of the counts may miss a cluster that the first query found.
func setClusterCounts(list []Spending, counts model.Vector) {
	numbers := map[key]int{}
	for _, s := range counts {
		numbers[toKey(s.Metric, false)] = int(s.Value)
	}
	for i := range list {
		list[i].Clusters = max(numbers[list[i].objectiveKey()], 1)
	}
}

func compareParts(a, b *float64) int { return cmp.Compare(*a, *b) }

func compareNames(a, b Spending) int {
	return cmp.Or(cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.SLI, b.SLI))
}

func formatDecimal(part float64) string { return strconv.FormatFloat(part, 'f', -1, 64) }
