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

// Spending is an objective, with the cluster that is the worst in some respect.
type Spending struct {
	// Namespace and Operator are those of the ManagedOperator.
	Namespace string `json:"namespace"`
	Operator  string `json:"operator"`
	SLI       string `json:"sli"`
	// Cluster is the worst one of Clusters, which counts those that are meant.
	Cluster  string `json:"cluster"`
	Clusters int    `json:"clusters"`
	// Left is the part of the cluster's budget that is left: 1 is all, less than 0
	// overspent. Nil: not known.
	Left *float64 `json:"left"`
	// LeftExcluding is that without the time that AlertSilences exclude. It is Left where
	// they exclude none.
	LeftExcluding *float64 `json:"leftExcluding"`
	// Lost is the part of the cluster's budget that was lost in the time that was
	// asked for; nil where it was not asked for.
	Lost *float64 `json:"lost,omitempty"`
}

// Low returns the objectives of which some cluster has less than a part of its
// budget left, the worst first. A namespace limits them to its operators. The error
// wraps ErrNoRules if there are no budgets at all.
func Low(ctx context.Context, from Prometheus, namespace string, now time.Time, below float64) ([]Spending, error) {
	r := spendingReader{from, namespace, now}
	low := fmt.Sprintf("%s < %s", r.budgets(), decimal(below))
	worst, err := r.worst(ctx, "bottomk", low)
	if err != nil {
		return nil, err
	}
	counts, err := r.Query(ctx, "count by ("+objectiveLabels+") ("+low+")", now)
	if err != nil {
		return nil, err
	}
	if len(worst) == 0 {
		return nil, r.check(ctx)
	}
	excluding, err := r.excluding(ctx)
	if err != nil {
		return nil, err
	}
	var out []Spending
	for k, left := range worst {
		s := spendingOf(k)
		s.Left, s.LeftExcluding = &left, leftExcluding(excluding, k, left)
		out = append(out, s)
	}
	count(out, counts)
	slices.SortFunc(out, func(a, b Spending) int { return cmp.Or(compareParts(a.Left, b.Left), compareNames(a, b)) })
	return out, nil
}

// Lost returns the objectives of which some cluster lost more than a part of its
// budget in the time before now, the largest loss first. Budgets that did not exist
// before are left out. Otherwise it is as Low.
func Lost(ctx context.Context, from Prometheus, namespace string, now time.Time, since time.Duration,
	above float64) ([]Spending, error) {
	r := spendingReader{from, namespace, now}
	lost := fmt.Sprintf("%[1]s offset %[2]ds - %[1]s > %[3]s", r.budgets(), int(since.Seconds()), decimal(above))
	worst, err := r.worst(ctx, "topk", lost)
	if err != nil {
		return nil, err
	}
	counts, err := r.Query(ctx, "count by ("+objectiveLabels+") ("+lost+")", now)
	if err != nil {
		return nil, err
	}
	if len(worst) == 0 {
		return nil, r.check(ctx)
	}
	left, err := reader{from, Query{Now: now}}.vector(ctx, fmt.Sprintf("%s and on (%s, %s) topk by (%[2]s) (1, "+
		"%[4]s)", r.budgets(), objectiveLabels, series.Cluster, lost), true)
	if err != nil {
		return nil, err
	}
	excluding, err := r.excluding(ctx)
	if err != nil {
		return nil, err
	}
	var out []Spending
	for k, part := range worst {
		s := spendingOf(k)
		s.Lost = &part
		if v, ok := left[k]; ok {
			s.Left, s.LeftExcluding = &v, leftExcluding(excluding, k, v)
		}
		out = append(out, s)
	}
	count(out, counts)
	slices.SortFunc(out, func(a, b Spending) int { return cmp.Or(compareParts(b.Lost, a.Lost), compareNames(a, b)) })
	return out, nil
}

type spendingReader struct {
	Prometheus
	namespace string
	now       time.Time
}

// budgets selects what is left of budgets.
func (r spendingReader) budgets() string { return r.selected(series.SLOBudgetLeft) }

func (r spendingReader) selected(metric string) string {
	if r.namespace == "" {
		return metric
	}
	return fmt.Sprintf("%s{%s=%q}", metric, series.OperatorNamespace, r.namespace)
}

// excluding reads what would be left without excluded time, where there is some.
func (r spendingReader) excluding(ctx context.Context) (map[key]float64, error) {
	return reader{r.Prometheus, Query{Now: r.now}}.vector(ctx, r.selected(series.SLOBudgetExcluding), true)
}

// worst reads one cluster of each objective.
func (r spendingReader) worst(ctx context.Context, choose, expr string) (map[key]float64, error) {
	return reader{r.Prometheus, Query{Now: r.now}}.vector(ctx, choose+" by ("+objectiveLabels+") (1, "+expr+")", true)
}

// check tells "nothing is lost" from "nothing is known".
func (r spendingReader) check(ctx context.Context) error {
	all, err := r.Query(ctx, "count("+series.SLOBudgetLeft+")", r.now)
	if err == nil && len(all) == 0 {
		return ErrNoRules
	}
	return err
}

func spendingOf(k key) Spending {
	return Spending{Namespace: k.operator.Namespace, Operator: k.operator.Name, SLI: k.sli, Cluster: k.cluster}
}

func (s Spending) objective() key {
	return key{operator: types.NamespacedName{Namespace: s.Namespace, Name: s.Operator}, sli: s.SLI}
}

// count fills in the numbers of clusters.
func count(list []Spending, counts model.Vector) {
	numbers := map[key]int{}
	for _, s := range counts {
		numbers[keyOf(s.Metric, false)] = int(s.Value)
	}
	for i := range list {
		list[i].Clusters = max(numbers[list[i].objective()], 1)
	}
}

func compareParts(a, b *float64) int { return cmp.Compare(*a, *b) }

func compareNames(a, b Spending) int {
	return cmp.Or(cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.SLI, b.SLI))
}

func decimal(part float64) string { return strconv.FormatFloat(part, 'f', -1, 64) }
