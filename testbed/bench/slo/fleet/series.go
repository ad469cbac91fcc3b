// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"iter"

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

// Drop leaves out the first minutes of a series; what was after them is at minute 0.
func (s Series) Drop(minutes int) Series {
	out := Series{Labels: s.Labels}
	for _, r := range s.Runs {
		if minutes >= r.Count {
			minutes -= r.Count
			continue
		}
		r.Count, r.First, minutes = r.Count-minutes, r.First+r.Step*float64(minutes), 0
		out.Runs = append(out.Runs, r)
	}
	return out
}

// Hide has no samples in the first minutes of a series.
func (s Series) Hide(minutes int) Series {
	out := s.Drop(minutes)
	out.Runs = append([]Run{{Count: minutes, Absent: true}}, out.Runs...)
	return out
}

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
	// answered are the requests of a webhook in a minute, and refused are those of them that are server errors while
	// Webhook is bad.
	answered, refused = 60, 6
	// operands of an operator, and those of them that are not ready while Operands is bad.
	operands, notReady = 100, 10
	replicas           = 3
	// stuck is how long a work item has been running while Queue is bad, in seconds.
	stuck = 400
)

// ErrorRatio is the share of what fails while an SLI is bad, as a ratio of events or of time sees it.
func ErrorRatio(sli SLI) float64 {
	switch sli {
	case Reconcile:
		return float64(failing) / all
	case Latency:
		return float64(slow) / all
	case Panic:
		return 1. / all
	case Webhook:
		return float64(refused) / answered
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
		say(series.ProbeInterval, Gauge(end, nil, 0, 60), series.Probe, "api", series.Vantage, "cluster"),
		say(series.ProbeInterval, Gauge(end, nil, 0, 60), series.Probe, "api", series.Vantage, "hub"),
		say(series.OperatorReplicasDesired, Gauge(end, nil, 0, replicas), series.Deployment, "main"),
		say(series.OperatorReplicasAvailable, Gauge(end, f.Bad(cluster, operator, Available), 0, replicas),
			series.Deployment, "main"),
		say(series.OperatorOperands, Gauge(end, f.Bad(cluster, operator, Operands), operands-notReady, operands),
			series.Kind, "Echo", series.Ready, series.ReadyTrue),
		say(series.OperatorOperands, Gauge(end, f.Bad(cluster, operator, Operands), notReady, 0),
			series.Kind, "Echo", series.Ready, series.ReadyFalse),
		say(series.OperatorWebhook, Gauge(end, nil, 0, 1), series.Name, name+".example.com"),
		labelled(series.AdmissionRequestsTotal, counter(end, nil, 0, answered), series.Name, name+".example.com"),
		// What the peers have in place of several metrics.
		say(series.OperatorConditionStatus, down(Available), series.ConditionType, "Available"),
		say(series.OperatorConditionStatus, down(Queue), series.ConditionType, "QueueShort"),
		say(series.OperatorConditionStatus, down(Operands), series.ConditionType, "OperandsReady"),
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
	refusing := f.Bad(cluster, operator, Webhook)
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
		say(series.ReconcilePanicsTotal, counter(end, f.Bad(cluster, operator, Panic), 1, 0)),
		say(series.QueueLongestRunning, Gauge(end, f.Bad(cluster, operator, Queue), stuck, 0)),
		say(series.QueueDepth, Gauge(end, nil, 0, 0)),
		say(series.LeaderStatus, Gauge(end, f.Bad(cluster, operator, Leader), 0, 1), series.Name, "lock"),
		say(series.WebhookRequestsTotal, counter(end, refusing, answered-refused, answered), "code", "200"),
		say(series.WebhookRequestsTotal, counter(end, refusing, refused, 0), "code", "500"),
	}
}

func labelled(metric string, runs []Run, labels ...string) Series {
	s := Series{Labels: map[string]string{Name: metric}, Runs: runs}
	for i := 0; i+1 < len(labels); i += 2 {
		s.Labels[labels[i]] = labels[i+1]
	}
	return s
}

// Hub yields what is scraped of the hub.
func (f *Fleet) Hub() iter.Seq[Series] {
	one := Gauge(f.minutes(), nil, 0, 1)
	return func(yield func(Series) bool) {
		if !yield(labelled(series.FleetClusters, Gauge(f.minutes(), nil, 0, float64(f.size.Clusters)), series.State,
			"online")) {
			return
		}
		for c := range f.size.Clusters {
			if !yield(labelled(series.ClusterOnline, one, series.Cluster, Cluster(c))) {
				return
			}
			for o := range f.size.Operators {
				if !yield(labelled(series.OperatorExpected, one, series.Cluster, Cluster(c), series.OperatorNamespace,
					Namespace, series.Operator, Operator(o))) {
					return
				}
			}
		}
	}
}

// Target are the labels of a cluster's target.
func Target(cluster int) map[string]string {
	return map[string]string{series.Cluster: Cluster(cluster), "instance": Cluster(cluster), "job": "fleet"}
}
