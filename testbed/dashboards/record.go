// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/utils/ptr"

	grafana "github.com/bellwether-dev/bellwether/dashboards"
	"github.com/bellwether-dev/bellwether/dashboards/draw"
	"github.com/bellwether-dev/bellwether/dashboards/lint"
)

// steps is how many values a line has in a picture.
const steps = 60

// Record asks a Prometheus all queries of the panels of a dashboard about a time, as Grafana would, with these values
// of variables; of the others everything is chosen.
func Record(ctx context.Context, api promv1.API, d grafana.Dashboard, from, to time.Time,
	variables map[string]string) (draw.Data, error) {
	values := map[string]string{"__range": strconv.Itoa(int(to.Sub(from).Seconds())) + "s", "__interval": "1m",
		"__rate_interval": "1m"}
	for name, value := range variables {
		values[name] = value
	}
	out := draw.Data{Minutes: math.Round(to.Sub(from).Minutes()), Queries: map[string]map[string]draw.Answer{}}
	for _, q := range lint.ListQueries(d) {
		if q.Kind != lint.KindPanel {
			continue
		}
		found, err := ask(ctx, api, lint.Expand(q.Expr, values), q.Instant, from, to)
		if err != nil {
			return out, fmt.Errorf("%s, panel %q: %w", ptr.Deref(d.Uid, ""), q.Where, err)
		}
		if out.Queries[q.Where] == nil {
			out.Queries[q.Where] = map[string]draw.Answer{}
		}
		out.Queries[q.Where][q.Ref] = draw.Answer{Expr: q.Expr, Series: found}
	}
	return out, nil
}

func ask(ctx context.Context, api promv1.API, promql string, instant bool, from, to time.Time) ([]draw.Series,
	error) {
	if instant {
		value, _, _, err := api.Query(ctx, promql, to)
		if err != nil {
			return nil, fmt.Errorf("query %s: %w", promql, err)
		}
		return now(value), nil
	}
	step := to.Sub(from) / (steps - 1)
	value, _, _, err := api.QueryRange(ctx, promql, promv1.Range{Start: from, End: to, Step: step})
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", promql, err)
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("query %s: it gives a %s", promql, value.Type())
	}
	var out []draw.Series
	for _, stream := range matrix {
		s := draw.Series{Labels: labels(stream.Metric), Values: make([]*float64, steps)}
		for _, pair := range stream.Values {
			i := int(math.Round(float64(pair.Timestamp.Time().Sub(from)) / float64(step)))
			if i >= 0 && i < steps {
				s.Values[i] = rounded(pair.Value)
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// now are the series of an instant query.
func now(value model.Value) []draw.Series {
	var out []draw.Series
	switch v := value.(type) {
	case model.Vector:
		for _, sample := range v {
			out = append(out, draw.Series{Labels: labels(sample.Metric), Values: []*float64{rounded(sample.Value)}})
		}
	case *model.Scalar:
		out = append(out, draw.Series{Values: []*float64{rounded(v.Value)}})
	}
	return out
}

func labels(metric model.Metric) map[string]string {
	out := map[string]string{}
	for name, value := range metric {
		if name != model.MetricNameLabel {
			out[string(name)] = string(value)
		}
	}
	return out
}

// rounded keeps five digits, and nothing of what is no number.
func rounded(value model.SampleValue) *float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(float64(value), 'g', 5, 64), 64)
	if err != nil || math.IsNaN(short) || math.IsInf(short, 0) {
		return nil
	}
	return &short
}
