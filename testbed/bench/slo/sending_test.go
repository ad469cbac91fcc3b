// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/labels"
	stale "github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/alerts/telemetry"
	"github.com/bellwether-dev/bellwether/testbed/bench/slo/fleet"
)

// sent1m is what a cluster sends in a minute.
type sent1m struct {
	// recorded are the series that rules record each minute, and scraped those that are sent as they are scraped.
	recorded, scraped int
	// bytes is the size of one request with all of it, compressed.
	bytes int
}

// samples is how many samples there are in a second, if agents are scraped every 30 s as the chart's PodMonitor does.
func (s sent1m) samples() float64 { return float64(s.recorded)/60 + float64(s.scraped)/30 }

// sendingOf evaluates the edge part of the default profile on what is scraped of the first operators of a cluster, and
// returns what travels in the last minute. While bad, no operator is available and no catalog is ready.
func sendingOf(t *testing.T, operators int, bad bool) sent1m {
	t.Helper()
	const minutes = 20
	f, err := fleet.New(fleet.Size{Operators: max(operators, fleet.LeastOperators), Clusters: fleet.LeastClusters,
		History: minutes, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := slo.BuildPart(slo.Set{Default: slo.DefaultProfile()}, slo.Edge)
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := telemetry.NewEvaluator(fleet.Cluster(0), rules.All())
	if err != nil {
		t.Fatal(err)
	}
	var scraped, recorded []telemetry.Sample
	for minute := range minutes {
		now := time.Unix(1_800_000_000, 0).Add(time.Duration(minute) * time.Minute)
		scraped = evaluator.Observe(scrape(f, operators, minute, bad), now)
		if recorded, err = evaluator.Evaluate(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	request := &prompb.WriteRequest{}
	out := sent1m{}
	for i, s := range slices.Concat(scraped, recorded) {
		if stale.IsStaleNaN(s.V) {
			continue
		}
		if i < len(scraped) {
			out.scraped++
		} else {
			out.recorded++
		}
		request.Timeseries = append(request.Timeseries, prompb.TimeSeries{Labels: prompb.FromLabels(s.Labels, nil),
			Samples: []prompb.Sample{{Timestamp: s.T, Value: s.V}}})
	}
	raw, err := request.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	out.bytes = len(snappy.Encode(nil, raw))
	return out
}

// scrape is what a cluster exposes of its first operators. What Prometheus adds, a Prometheus of a cluster adds too.
func scrape(f *fleet.Fleet, operators, minute int, bad bool) []*dto.MetricFamily {
	ours := map[string]bool{}
	for i := range operators {
		ours[fleet.Operator(i)] = true
	}
	families := map[string]*dto.MetricFamily{}
	for s := range f.Exported(0) {
		name := s.Labels[fleet.Name]
		// The hub's own results are sent by nobody.
		of := s.Labels[series.Operator] + s.Labels[series.Namespace]
		if s.Labels[series.Operator] != "" {
			of = s.Labels[series.Operator]
		}
		v, there := s.At(minute)
		if !there || !ours[of] && !strings.HasPrefix(name, "apiserver_") || s.Labels[series.Vantage] == "hub" {
			continue
		}
		if bad && slices.Contains([]string{series.OperatorReplicasAvailable, series.OperatorCatalogReady,
			series.OperatorCSVSucceeded}, name) {
			v = 0
		}
		if families[name] == nil {
			families[name] = &dto.MetricFamily{Name: &name}
		}
		m := &dto.Metric{Untyped: &dto.Untyped{Value: &v}}
		for l, content := range maps.All(s.Labels) {
			if l != fleet.Name {
				m.Label = append(m.Label, &dto.LabelPair{Name: &l, Value: &content})
			}
		}
		// A scrape adds these.
		for l, content := range map[string]string{"instance": "10.128.0.17:8080", "job": "bellwether-system/agent",
			"pod": "bellwether-agent-7b5f9cd4f6-abcde", "container": "agent", "endpoint": "metrics"} {
			m.Label = append(m.Label, &dto.LabelPair{Name: &l, Value: &content})
		}
		families[name].Metric = append(families[name].Metric, m)
	}
	return slices.Collect(maps.Values(families))
}

// TestSendingIsBounded holds what a cluster sends to the figures of docs/benchmarks.md: so many series and samples for
// each operator, and next to nothing for the cluster itself. What makes more of it has to say so there.
func TestSendingIsBounded(t *testing.T) {
	const (
		perOperator, perCluster = 16, 1
		// A slice that is bad is three more series: that it is, of which version, and whether it is confirmed.
		perBadSlice = 3
	)
	for _, operators := range []int{1, 10, 30} {
		good, bad := sendingOf(t, operators, false), sendingOf(t, operators, true)
		all := good.recorded + good.scraped
		t.Logf("| %d | %d | %.2f | %.1f KiB | %d |", operators, all, good.samples(), float64(good.bytes)/1024,
			bad.recorded+bad.scraped)
		if most := perCluster + perOperator*operators; all > most || all < most/2 {
			t.Errorf("%d operators: %d series are sent, want at most %d, and not less than half", operators, all, most)
		}
		if more := bad.recorded + bad.scraped - all; more < operators*perBadSlice ||
			more > 3*perBadSlice*operators {
			t.Errorf("%d operators: %d more series are sent while three SLIs are bad", operators, more)
		}
	}
}

// TestSendingKeepsLabels wants that what is sent says whose it is, by the labels that the hub's rules join by.
func TestSendingKeepsLabels(t *testing.T) {
	rules, err := slo.BuildPart(slo.Set{Default: slo.DefaultProfile()}, slo.Edge)
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := telemetry.NewEvaluator("prod-eu", rules.All())
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) *string { return &s }
	one := 1.
	family := func(name string) *dto.MetricFamily {
		return &dto.MetricFamily{Name: &name, Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: &one},
			Label: []*dto.LabelPair{{Name: text("operator"), Value: text("echo")},
				{Name: text("operator_namespace"), Value: text("fleet")}}}}}
	}
	now := time.Unix(1_800_000_000, 0)
	families := []*dto.MetricFamily{family(series.OperatorExpected), family(series.OperatorCSVSucceeded),
		family(series.OperatorUpgrading)}
	evaluator.Observe(families, now)
	recorded, err := evaluator.Evaluate(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	want := labels.FromStrings("__name__", series.SLIBad, "cluster", "prod-eu", "operator", "echo",
		"operator_namespace", "fleet", "sli", "csv")
	if !slices.ContainsFunc(recorded, func(s telemetry.Sample) bool {
		return labels.Equal(s.Labels, want) && s.V == 0
	}) {
		t.Errorf("no good slice of csv: %v", fmt.Sprint(recorded))
	}
}
