// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"iter"
	"maps"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Series is a time series with a sample for each minute, but for gaps.
type Series struct {
	// Labels hold the name, too, as __name__.
	Labels map[string]string `json:"labels"`
	Runs   []Run             `json:"runs"`
}

// Run is Count samples: the first is First, and each is Step more than the one before.
type Run struct {
	Count int     `json:"count"`
	First float64 `json:"first"`
	Step  float64 `json:"step,omitempty"`
	// Absent says that there are none.
	Absent bool `json:"absent,omitempty"`
}

// Name is the label that holds a series' name.
const Name = "__name__"

// At returns the sample of a minute; false if there is none.
func (s Series) At(minute int) (float64, bool) {
	for _, r := range s.Runs {
		if minute < r.Count {
			return r.First + r.Step*float64(minute), !r.Absent
		}
		minute -= r.Count
	}
	return 0, false
}

// Gauge is one value in the given minutes and another one in all others, up to and without end.
func Gauge(end int, in []Span, then, otherwise float64) []Run {
	return pieces(end, in, func(_ int, inside bool, count int) Run {
		if inside {
			return Run{Count: count, First: then}
		}
		return Run{Count: count, First: otherwise}
	})
}

// Only has samples of one value in the given minutes, and no others.
func Only(end int, in []Span, value float64) []Run {
	return pieces(end, in, func(_ int, inside bool,
		count int) Run {
		return Run{Count: count, First: value, Absent: !inside}
	})
}

// counter grows by then in each of the given minutes and by otherwise in all others.
func counter(end int, in []Span, then, otherwise float64) []Run {
	value := 0.0
	return pieces(end, in, func(_ int, inside bool, count int) Run {
		r := Run{Count: count, First: value, Step: otherwise}
		if inside {
			r.Step = then
		}
		value += float64(count) * r.Step
		return r
	})
}

// pieces makes a run of each span, and of each gap between two.
func pieces(end int, in []Span, run func(from int, inside bool, count int) Run) []Run {
	var out []Run
	at := 0
	add := func(to int, inside bool) {
		if to > at {
			out = append(out, run(at, inside, to-at))
			at = to
		}
	}
	for _, s := range in {
		add(min(s.From, end), false)
		add(min(s.To, end), true)
	}
	add(end, false)
	return out
}

// Rates of one controller, in reconciles a minute.
const (
	succeed, requeue, requeueAfter = 30, 2, 5
	all                            = succeed + requeue + requeueAfter
	// failing of them are errors while Reconcile is bad: four in ten.
	failing = 15
	// slow of them take longer than 10 s while Latency is bad: two in ten.
	slow = 8
)

// ErrorRatio is the share of what fails while an SLI is bad, as a ratio of events or of time sees it.
func ErrorRatio(sli SLI) float64 {
	switch sli {
	case Reconcile:
		return float64(failing) / all
	case Latency:
		return float64(slow) / all
	}
	return 1
}

// Exported yields what is scraped of one cluster, with all labels but those that come from the target: cluster,
// instance and job.
func (f *Fleet) Exported(cluster int) iter.Seq[Series] {
	return func(yield func(Series) bool) {
		for o := range f.size.Operators {
			for _, s := range append(f.agent(cluster, o), f.controller(cluster, o)...) {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// agent is what an agent says of an operator.
func (f *Fleet) agent(cluster, operator int) []Series {
	end, name := f.minutes(), Operator(operator)
	say := func(metric string, runs []Run, labels ...string) Series {
		return labelled(metric, runs, append(labels, series.OperatorNamespace, Namespace, series.Operator, name)...)
	}
	down := func(sli SLI) []Run { return Gauge(end, f.Bad(cluster, operator, sli), 0, 1) }
	out := []Series{
		say(series.OperatorExpected, Gauge(end, nil, 0, 1)),
		say(series.OperatorUpgrading, Gauge(end, nil, 0, 0)),
		say(series.OperatorCSVSucceeded, down(CSV)),
		say(series.OperatorCatalogReady, down(Catalog)),
		say(series.ProbeSuccess, down(Probe), series.Probe, "api", series.Vantage, "cluster"),
		say(series.ProbeSuccess, down(Probe), series.Probe, "api", series.Vantage, "hub"),
	}
	for _, r := range f.releases(cluster, operator) {
		out = append(out, say(series.OperatorInfo, Only(end, []Span{r.Span}, 1),
			series.Namespace, name, series.Version, r.Version, series.CSV, name+".v"+r.Version,
			series.Release, ReleaseOf(r.Version)))
	}
	return out
}

// controller is what the operator says of itself.
func (f *Fleet) controller(cluster, operator int) []Series {
	end, name := f.minutes(), Operator(operator)
	say := func(metric string, runs []Run, labels ...string) Series {
		return labelled(metric, runs, append(labels, series.Namespace, name, "controller", "main")...)
	}
	failed, late := f.Bad(cluster, operator, Reconcile), f.Bad(cluster, operator, Latency)
	return []Series{
		say(series.ReconcileTotal, counter(end, failed, succeed-failing, succeed), "result", "success"),
		say(series.ReconcileTotal, counter(end, failed, failing, 0), "result", "error"),
		say(series.ReconcileTotal, counter(end, nil, 0, requeue), "result", "requeue"),
		say(series.ReconcileTotal, counter(end, nil, 0, requeueAfter), "result", "requeue_after"),
		say(series.ReconcileErrorsTotal, counter(end, failed, failing, 0)),
		say(series.ReconcileTimeBucket, counter(end, late, all-2*slow, all-2), "le", "1.0"),
		say(series.ReconcileTimeBucket, counter(end, late, all-slow, all), "le", "10.0"),
		say(series.ReconcileTimeBucket, counter(end, nil, 0, all), "le", "+Inf"),
		say(series.ReconcileTimeCount, counter(end, nil, 0, all)),
	}
}

func labelled(metric string, runs []Run, labels ...string) Series {
	s := Series{Labels: map[string]string{Name: metric}, Runs: runs}
	for i := 0; i+1 < len(labels); i += 2 {
		s.Labels[labels[i]] = labels[i+1]
	}
	return s
}

// Target are the labels of a cluster's target.
func Target(cluster int) map[string]string {
	return map[string]string{series.Cluster: Cluster(cluster), "instance": Cluster(cluster), "job": "fleet"}
}

// Scraped yields what Prometheus has of the whole fleet.
func (f *Fleet) Scraped() iter.Seq[Series] {
	return func(yield func(Series) bool) {
		for c := range f.size.Clusters {
			target := Target(c)
			for s := range f.Exported(c) {
				maps.Copy(s.Labels, target)
				if !yield(s) {
					return
				}
			}
		}
	}
}
