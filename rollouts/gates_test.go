// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

func sloGate() v1alpha1.Gate {
	return v1alpha1.Gate{Name: "budget", SLO: &v1alpha1.SLOGate{}}
}

func baselineGate() v1alpha1.Gate {
	return v1alpha1.Gate{Name: "compare", Baseline: &v1alpha1.BaselineGate{SLI: "reconcile"}}
}

func queryGate() v1alpha1.Gate {
	return v1alpha1.Gate{Name: "query", PromQL: &v1alpha1.PromQLGate{
		Query: `sum(rate(errors_total{cluster=~"${clusters}"}[${window}]))`, Operator: v1alpha1.LessThan,
		Threshold: "0.5"}}
}

// judged gives the first wave a gate, and lets it soak for ten minutes, of which so
// much is over.
func (f *fixture) judged(elapsed time.Duration, g v1alpha1.Gate) {
	f.soaking()
	f.wave(0).Gates = []v1alpha1.Gate{g}
	f.ro.Spec.Strategy = rollouts.Defaulted(f.ro.Spec.Strategy)
	f.ro.Status.Waves[0].UpdatedAt = ago(elapsed)
}

// answer answers the current questions, and advances the clock by a second.
func (f *fixture) answer(t *testing.T, results map[string]rollouts.Result) {
	t.Helper()
	questions := rollouts.Next(f.Input).Questions
	if len(questions) == 0 {
		t.Fatal("nothing is asked")
	}
	for _, q := range questions {
		f.Answers = append(f.Answers, rollouts.Answer{Question: q, Results: results})
	}
	f.Now = f.Now.Add(time.Second)
}

// fail answers the current questions with an error.
func (f *fixture) fail(t *testing.T, why string) {
	t.Helper()
	f.answer(t, nil)
	for i := range f.Answers {
		f.Answers[i].Failure = why
	}
}

// gateText is the status of the first gate of the first wave, in short.
func gateText(d rollouts.Decision) string {
	g := d.Status.Waves[0].Gates[0]
	return fmt.Sprintf("%s: %s", g.Verdict, g.Evidence)
}

func vector(samples ...rollouts.Sample) rollouts.Result {
	return rollouts.Result{Type: "vector", Samples: samples}
}

func ofSLI(sli string, value float64) rollouts.Sample {
	return rollouts.Sample{Labels: map[string]string{"sli": sli}, Value: value}
}

func ofClusters(names ...string) rollouts.Result {
	r := rollouts.Result{Type: "vector"}
	for _, n := range names {
		r.Samples = append(r.Samples, rollouts.Sample{Labels: map[string]string{"cluster": n}, Value: 1})
	}
	return r
}

// sloResults returns results for the SLIs available (99 %) and panic (99.9 %) with these numbers of bad slices
// of 1000.
func sloResults(badAvailable, badPanic float64) map[string]rollouts.Result {
	return map[string]rollouts.Result{
		"objectives": vector(ofSLI("available", 0.99), ofSLI("panic", 0.999)),
		"guards":     vector(ofSLI("available", 2.5), ofSLI("panic", 4.5)),
		"bad":        onCluster(ofSLI("available", badAvailable), ofSLI("panic", badPanic)),
		"samples":    onCluster(ofSLI("available", 1000), ofSLI("panic", 1000)),
		"covered":    ofClusters("a", "b"),
		"missing":    vector(),
	}
}

// onCluster are measurements of one cluster.
func onCluster(samples ...rollouts.Sample) rollouts.Result {
	for _, s := range samples {
		s.Labels["cluster"] = "a"
	}
	return vector(samples...)
}

func with(results map[string]rollouts.Result, name string, r rollouts.Result) map[string]rollouts.Result {
	out := maps.Clone(results)
	out[name] = r
	return out
}

func TestSLOGate(t *testing.T) {
	t.Parallel()
	const over = 10 * time.Minute
	tests := map[string]struct {
		elapsed time.Duration
		gate    func(*v1alpha1.SLOGate)
		results map[string]rollouts.Result
		failure string
		want    string
	}{
		"nothing is bad": {
			elapsed: over, results: with(sloResults(0, 0), "bad", vector()),
			want: "Passed: available: burn rate 0 within 10m0s, at most 14.4 passes; 0 of 1000 measurements " +
				"are bad",
		},
		"below the burn rate": {
			elapsed: over, results: sloResults(144, 3),
			want: "Passed: available: burn rate 14.4 within 10m0s, at most 14.4 passes; 144 of 1000 measurements " +
				"are bad",
		},
		"above the burn rate": {
			elapsed: over, results: sloResults(145, 0),
			want: "Failed: available: burn rate 14.5 within 10m0s, at most 14.4 passes; 145 of 1000 measurements " +
				"are bad",
		},
		"the worst SLI decides": {
			elapsed: over, results: sloResults(10, 15),
			want: "Failed: panic: burn rate 15 within 10m0s, at most 14.4 passes; 15 of 1000 measurements " +
				"are bad",
		},
		"too few bad slices for a verdict of failure": {
			elapsed: over,
			results: with(sloResults(0, 4), "samples", onCluster(ofSLI("available", 20), ofSLI("panic", 20))),
			want: "Passed: panic: burn rate 200 within 10m0s, at most 14.4 passes; 4 of 20 measurements " +
				"are bad",
		},
		"another burn rate": {
			elapsed: over, gate: func(g *v1alpha1.SLOGate) { g.MaxBurnRate = "2" }, results: sloResults(30, 0),
			want: "Failed: available: burn rate 3 within 10m0s, at most 2 passes; 30 of 1000 measurements " +
				"are bad",
		},
		"a total outage fails a low objective": {
			elapsed: over, results: with(sloResults(950, 0), "objectives", vector(ofSLI("available", 0.8))),
			want: "Failed: available: burn rate 4.75 within 10m0s, at most 14.4 passes; 950 of 1000 measurements " +
				"are bad",
		},
		"good so far": {
			elapsed: 5 * time.Minute, results: sloResults(3, 0),
			want: "Waiting: available: burn rate 0.3 within 5m0s, at most 14.4 passes; 3 of 1000 measurements are " +
				"bad; measured until 2026-03-01T12:05:00Z",
		},
		"bad so far, which may still change": {
			elapsed: 5 * time.Minute, results: sloResults(200, 0),
			want: "Waiting: available: burn rate 20 within 5m0s, at most 14.4 passes; 200 of 1000 measurements " +
				"are bad; measured until 2026-03-01T12:05:00Z",
		},
		"bad, and the rest of the window cannot change it": {
			elapsed: 5 * time.Minute, results: sloResults(300, 0),
			want: "Failed: available: burn rate 30 within 5m0s, at most 14.4 passes; 300 of 1000 measurements are " +
				"bad",
		},
		"bad, although other data is missing": {
			elapsed: over, results: with(sloResults(300, 0), "covered", ofClusters("a")),
			want: "Failed: available: burn rate 30 within 10m0s, at most 14.4 passes; 300 of 1000 measurements " +
				"are bad",
		},
		"no objectives": {
			elapsed: over, results: with(sloResults(0, 0), "objectives", vector()),
			want: "Waiting: no objective is recorded (series bellwether:slo_objective:ratio): check that the rules " +
				"of " +
				"the operator's objectives are loaded",
		},
		"an SLI without an objective": {
			elapsed: over, gate: func(g *v1alpha1.SLOGate) { g.Objectives = []string{"available", "own"} },
			results: sloResults(0, 0),
			want:    "Waiting: there is no objective for SLI own (series bellwether:slo_objective:ratio)",
		},
		"an SLI that is asked for and has no slices": {
			elapsed: over, gate: func(g *v1alpha1.SLOGate) { g.Objectives = []string{"panic"} },
			results: with(sloResults(0, 0), "samples", onCluster(ofSLI("available", 10))),
			want:    "Waiting: there are no slices of SLI panic (series bellwether:sli_bad:bool)",
		},
		"no slices at all": {
			elapsed: over, results: with(sloResults(0, 0), "samples", vector()),
			want: "Waiting: there are no slices of any SLI with an objective (series bellwether:sli_bad:bool)",
		},
		"a cluster without measurements": {
			elapsed: over, results: with(sloResults(0, 0), "covered", ofClusters("b")),
			want: "Waiting: too few measurements of the new release from 1 cluster (a): series " +
				"bellwether:sli_bad:bool " +
				"or bellwether_operator_info is missing or has gaps",
		},
		"an SLI that must be measured": {
			elapsed: over,
			results: with(sloResults(0, 0), "missing", vector(rollouts.Sample{
				Labels: map[string]string{"cluster": "b", "sli": "csv"}, Value: 1})),
			want: "Waiting: too few slices of csv on b: series bellwether:sli_bad:bool is missing or has gaps",
		},
		"Prometheus is down": {
			elapsed: over, failure: "Prometheus cannot be reached: connection refused",
			want: "Waiting: no measurement: Prometheus cannot be reached: connection refused",
		},
		"NaN": {
			elapsed: over, results: sloResults(math.NaN(), 0),
			want: "Waiting: measurements that cannot be: a reports NaN bad of 1000 measurements of available",
		},
		"infinite": {
			elapsed: over, results: with(sloResults(0, 0), "objectives", vector(ofSLI("available", math.Inf(1)))),
			want: `Waiting: no measurement: query "objectives" for SLI "available": the result is not a number: +Inf`,
		},
		"several results for one SLI": {
			elapsed: over, results: with(sloResults(0, 0), "samples", onCluster(ofSLI("panic", 1), ofSLI("panic", 2))),
			want: `Waiting: no measurement: query "samples" has several results for SLI "panic" of cluster "a"`,
		},
		"a string": {
			elapsed: over, results: with(sloResults(0, 0), "guards", rollouts.Result{Type: "string"}),
			want: `Waiting: no measurement: query "guards": the result is a string and not a vector`,
		},
		"a query without an answer": {
			elapsed: over, results: map[string]rollouts.Result{},
			want: `Waiting: no measurement: query "objectives": there is no result`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := sloGate()
			if test.gate != nil {
				test.gate(g.SLO)
			}
			f := newFixture()
			f.judged(test.elapsed, g)
			if test.failure != "" {
				f.fail(t, test.failure)
			} else {
				f.answer(t, test.results)
			}
			if diff := cmp.Diff(test.want, gateText(rollouts.Next(f.Input))); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

// baselineResults are x of n bad slices on the new release, and y of m on others.
func baselineResults(x, n, y, m float64) map[string]rollouts.Result {
	of := func(v float64) rollouts.Result { return onCluster(ofSLI("reconcile", v)) }
	return map[string]rollouts.Result{"guards": of(2.5), "bad": of(x), "samples": of(n), "baseline bad": of(y),
		"baseline samples": of(m), "covered": ofClusters("a", "b"), "missing": vector()}
}

func TestBaselineGate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		results map[string]rollouts.Result
		want    string
	}{
		"nothing is bad": {
			results: baselineResults(0, 100, 0, 1000),
			want: "Passed: reconcile: 0 % of 100 samples are bad on the new release, 0 % of 1000 on others; " +
				"z-score 0, at " +
				"most 2.326 passes (99 % confidence)",
		},
		"a worked example of textbooks: 140 of 200 and 255 of 340": {
			results: baselineResults(140, 200, 255, 340),
			want: "Passed: reconcile: 70 % of 200 samples are bad on the new release, 75 % of 340 on others; z-score " +
				"-1.266, at most 2.326 passes (99 % confidence)",
		},
		"worse, but not significantly": {
			results: baselineResults(52, 200, 38, 200),
			want: "Passed: reconcile: 26 % of 200 samples are bad on the new release, 19 % of 200 on others; z-score " +
				"1.676, at most 2.326 passes (99 % confidence)",
		},
		"significantly worse": {
			results: baselineResults(20, 100, 50, 1000),
			want: "Failed: reconcile: 20 % of 100 samples are bad on the new release, 5 % of 1000 on others; z-score " +
				"5.859, at most 2.326 passes (99 % confidence)",
		},
		"significantly better": {
			results: baselineResults(0, 100, 500, 1000),
			want: "Passed: reconcile: 0 % of 100 samples are bad on the new release, 50 % of 1000 on others; z-score " +
				"-9.574, at most 2.326 passes (99 % confidence)",
		},
		"everything is bad on both sides": {
			results: baselineResults(100, 100, 100, 100),
			want: "Passed: reconcile: 100 % of 100 samples are bad on the new release, 100 % of 100 on others; " +
				"z-score 0, " +
				"at most 2.326 passes (99 % confidence)",
		},
		"significant, but by chance: fewer bad slices than the guard": {
			results: baselineResults(2, 30, 0, 1000),
			want: "Passed: reconcile: 6.667 % of 30 samples are bad on the new release, 0 % of 1000 on others; " +
				"z-score " +
				"8.173, at most 2.326 passes (99 % confidence)",
		},
		"too few samples of the new release": {
			results: baselineResults(9, 29, 0, 1000),
			want: "Waiting: reconcile: 29 samples of the new release, at least 30 are needed (series " +
				"bellwether:sli_bad:bool)",
		},
		"too few samples of others": {
			results: baselineResults(9, 30, 0, 29),
			want: "Waiting: reconcile: 29 samples of clusters on other releases, at least 30 are needed (series " +
				"bellwether:sli_bad:bool)",
		},
		"no samples of others": {
			results: with(baselineResults(0, 30, 0, 0), "baseline samples", vector()),
			want: "Waiting: reconcile: 0 samples of clusters on other releases, at least 30 are needed (series " +
				"bellwether:sli_bad:bool)",
		},
		"good, but a cluster was not measured": {
			results: with(baselineResults(0, 100, 0, 100), "covered", vector()),
			want: "Waiting: too few measurements of the new release from 2 clusters (a, b): series " +
				"bellwether:sli_bad:bool or bellwether_operator_info is missing or has gaps",
		},
		"NaN": {
			results: baselineResults(0, 100, math.NaN(), 100),
			want:    "Waiting: measurements that cannot be: a reports NaN bad of 100 measurements of reconcile",
		},
		"a matrix": {
			results: with(baselineResults(0, 100, 0, 100), "bad", rollouts.Result{Type: "matrix"}),
			want:    `Waiting: no measurement: query "bad": the result is a matrix and not a vector`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			f.judged(10*time.Minute, baselineGate())
			f.answer(t, test.results)
			if diff := cmp.Diff(test.want, gateText(rollouts.Next(f.Input))); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func number64(v float64) map[string]rollouts.Result {
	return map[string]rollouts.Result{"value": vector(rollouts.Sample{Value: v})}
}

func TestPromQLGate(t *testing.T) {
	t.Parallel()
	value := func(r rollouts.Result) map[string]rollouts.Result { return map[string]rollouts.Result{"value": r} }
	comparing := func(operator v1alpha1.ComparisonOperator) func(*v1alpha1.PromQLGate) {
		return func(g *v1alpha1.PromQLGate) { g.Operator, g.FailureLimit = operator, new(int32) }
	}
	tests := map[string]struct {
		gate    func(*v1alpha1.PromQLGate)
		results map[string]rollouts.Result
		failure string
		want    string
	}{
		"a vector of one number": {results: number64(0.4),
			want: "Passed: the query returned 0.4, and passes if it is < 0.5"},
		"a scalar": {results: value(rollouts.Result{Type: "scalar", Samples: []rollouts.Sample{{Value: 0}}}),
			want: "Passed: the query returned 0, and passes if it is < 0.5"},
		"missed once": {results: number64(0.5),
			want: "Waiting: the query returned 0.5, and passes if it is < 0.5; missed 1 time in a row " +
				"(failureLimit 2)"},
		"missed, and that is not allowed": {gate: comparing(v1alpha1.LessThan), results: number64(0.5),
			want: "Failed: the query returned 0.5, and passes if it is < 0.5; missed 1 time in a row (failureLimit 0)"},
		"equal is not above": {gate: comparing(v1alpha1.GreaterThan), results: number64(0.5),
			want: "Failed: the query returned 0.5, and passes if it is > 0.5; missed 1 time in a row (failureLimit 0)"},
		"equal is at most": {gate: comparing(v1alpha1.LessOrEqual), results: number64(0.5),
			want: "Passed: the query returned 0.5, and passes if it is <= 0.5"},
		"equal is at least": {gate: comparing(v1alpha1.GreaterOrEqual), results: number64(0.5),
			want: "Passed: the query returned 0.5, and passes if it is >= 0.5"},
		"an operator that does not exist": {gate: comparing("~"), results: number64(0),
			want: "Failed: the query returned 0, and passes if it is ~ 0.5; missed 1 time in a row (failureLimit 0)"},
		"a threshold that is no number": {gate: func(g *v1alpha1.PromQLGate) { g.Threshold = "low" },
			results: number64(0), want: `Waiting: threshold "low" is not a number`},
		"large": {gate: comparing(v1alpha1.GreaterThan), results: number64(1e300),
			want: "Passed: the query returned 1e+300, and passes if it is > 0.5"},
		"no series": {results: value(vector()),
			want: "Waiting: no measurement: there is no result: the query matches no series"},
		"several series": {results: value(vector(rollouts.Sample{}, rollouts.Sample{})),
			want: "Waiting: no measurement: the query returned several series and not one: aggregate them, as with " +
				"sum() or max()"},
		"NaN": {results: number64(math.NaN()), want: "Waiting: no measurement: the result is not a number: NaN"},
		"infinite, although it compares": {gate: comparing(v1alpha1.GreaterThan), results: number64(math.Inf(1)),
			want: "Waiting: no measurement: the result is not a number: +Inf"},
		"minus infinite": {results: number64(math.Inf(-1)),
			want: "Waiting: no measurement: the result is not a number: -Inf"},
		"a string": {results: value(rollouts.Result{Type: "string"}),
			want: "Waiting: no measurement: the result is not a number: it is a string"},
		"a matrix": {results: value(rollouts.Result{Type: "matrix"}),
			want: "Waiting: no measurement: the result is not a number: it is a matrix"},
		"nothing": {results: map[string]rollouts.Result{},
			want: "Waiting: no measurement: the result is not a number: it is a missing result"},
		"an error is never a success, whatever comes with it": {results: number64(0), failure: "timed out",
			want: "Waiting: no measurement: timed out"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := queryGate()
			if test.gate != nil {
				test.gate(g.PromQL)
			}
			f := newFixture()
			f.judged(10*time.Minute, g)
			f.answer(t, test.results)
			f.Answers[0].Failure = test.failure
			if diff := cmp.Diff(test.want, gateText(rollouts.Next(f.Input))); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGatesHoldTheWave is about what a verdict does to the wave and the rollout.
func TestGatesHoldTheWave(t *testing.T) {
	t.Parallel()
	const over = 10 * time.Minute
	failed := func(t *testing.T, f *fixture) {
		f.judged(over, sloGate())
		f.answer(t, sloResults(300, 0))
	}
	tests := map[string]struct {
		given func(*testing.T, *fixture)
		want  string
	}{
		"not measured yet": {
			given: func(_ *testing.T, f *fixture) { f.judged(over, sloGate()) },
			want: "Progressing, one Verifying, two Waiting: wave one waits for 1 gate: gate budget has no verdict: " +
				"not " +
				"measured yet",
		},
		"while it soaks": {
			given: func(t *testing.T, f *fixture) { f.judged(time.Minute, sloGate()); f.answer(t, sloResults(0, 0)) },
			want: "Progressing, one Soaking, two Waiting: wave one soaks until 2026-03-01T12:09:00Z: 2 of 2 " +
				"clusters updated",
		},
		"the window is longer than the soak": {
			given: func(t *testing.T, f *fixture) {
				g := sloGate()
				g.SLO.Window = &metav1.Duration{Duration: time.Hour}
				f.judged(over, g)
				f.answer(t, sloResults(0, 0))
			},
			want: "Progressing, one Verifying, two Waiting: wave one waits for 1 gate: gate budget has no verdict: " +
				"available: burn rate 0 within 10m0s, at most 14.4 passes; 0 of 1000 measurements are bad; " +
				"measured " +
				"until 2026-03-01T12:50:00Z",
		},
		"passed": {
			given: func(t *testing.T, f *fixture) { f.judged(over, sloGate()); f.answer(t, sloResults(0, 0)) },
			want:  "Progressing, one Verified, two Waiting: wave two: 0 of 2 clusters updated, 0 in progress",
		},
		"passed, and the view is a cached one": {
			given: func(t *testing.T, f *fixture) {
				f.judged(over, sloGate())
				f.answer(t, sloResults(0, 0))
				f.Live = false
			},
			want: "wants a live view",
		},
		"failed": {
			given: failed,
			want: "Halted, one Verifying, two Waiting: gate budget of wave one failed: available: burn rate 30 " +
				"within " +
				"10m0s, at most 14.4 passes; 300 of 1000 measurements are bad; nothing more is admitted: set " +
				"another version, retry the rollout to have the wave judged again, or override the gate",
		},
		"failed, and the policy is abort": {
			given: func(t *testing.T, f *fixture) {
				failed(t, f)
				f.ro.Spec.Strategy.OnFailure = v1alpha1.FailureAbort
			},
			want: "Aborted, one Verifying, two Waiting: aborted, as its failure policy says: gate budget of wave one " +
				"failed: available: burn rate 30 within 10m0s, at most 14.4 passes; 300 of 1000 measurements " +
				"are bad",
		},
		"failed in the soak": {
			given: func(t *testing.T, f *fixture) {
				f.judged(5*time.Minute, sloGate())
				f.answer(t, sloResults(300, 0))
			},
			want: "Halted, one Verifying, two Waiting: gate budget of wave one failed: available: burn rate 30 " +
				"within " +
				"5m0s, at most 14.4 passes; 300 of 1000 measurements are bad; nothing more is admitted: set " +
				"another " +
				"version, retry the rollout to have the wave judged again, or override the gate",
		},
		"failed and overridden": {
			given: func(t *testing.T, f *fixture) { failed(t, f); f.override("one", "budget") },
			want:  "Progressing, one Verified, two Waiting: wave two: 0 of 2 clusters updated, 0 in progress",
		},
		"another gate is overridden": {
			given: func(_ *testing.T, f *fixture) {
				f.judged(over, sloGate())
				f.override("one", "other")
				f.override("two", "budget")
			},
			want: "Progressing, one Verifying, two Waiting: wave one waits for 1 gate: gate budget has no verdict: " +
				"not " +
				"measured yet",
		},
		"an approval cannot be overridden": {
			given: func(_ *testing.T, f *fixture) {
				f.wave(0).Gates = []v1alpha1.Gate{{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}}
				f.override("one", "sre")
			},
			want: "Progressing, one Gated, two Waiting: wave one waits for gate sre: 2 clusters have to be approved",
		},
		"an approval does not pass a gate that measures": {
			given: func(_ *testing.T, f *fixture) {
				f.judged(over, sloGate())
				f.ro.Spec.Approvals = []v1alpha1.Approval{{Wave: "one", Gate: "budget", By: "ann", Reason: "go"}}
			},
			want: "Progressing, one Verifying, two Waiting: wave one waits for 1 gate: gate budget has no verdict: " +
				"not " +
				"measured yet",
		},
		"a gate that measures does not hold the admission back": {
			given: func(_ *testing.T, f *fixture) { f.wave(0).Gates = []v1alpha1.Gate{sloGate()} },
			want: "Progressing, one Updating, two Waiting, batch a b: wave one: 0 of 2 clusters updated, 2 in " +
				"progress",
		},
		"a wave whose clusters all left has nothing to measure, and is not verified": {
			given: func(_ *testing.T, f *fixture) {
				f.judged(over, sloGate())
				f.Clusters, f.ro.Spec.Release.Version = f.Clusters[2:], "1.2.0"
			},
			want: "Progressing, one Verifying, two Waiting: wave one is not verified: no cluster of the wave is " +
				"left to show that 1.2.0 works: 2 clusters left the fleet or the selection before the wave was " +
				"verified" + advice,
		},
		"no cluster of the wave can be measured": {
			given: func(_ *testing.T, f *fixture) {
				f.judged(over, sloGate())
				f.wave(0).MaxFailures, f.ro.Spec.Release.Version = number(2), "1.2.0"
				for i := range 2 {
					f.Installs[i].SucceededHash, f.Installs[i].Stalled, f.Installs[i].Ready = "", true, false
				}
			},
			want: "Progressing, one Verifying, two Waiting: wave one is not verified: no cluster of the wave was " +
				"observed to run 1.2.0: 2 clusters failed, as maxFailures permits" + advice,
		},
		"an answer about another soak": {
			given: func(t *testing.T, f *fixture) {
				f.judged(over, sloGate())
				f.answer(t, sloResults(0, 0))
				f.ro.Status.Waves[0].UpdatedAt = ago(over - time.Second)
			},
			want: "Progressing, one Verifying, two Waiting: wave one waits for 1 gate: gate budget has no verdict: " +
				"not " +
				"measured yet",
		},
		"an answer about other clusters": {
			given: func(t *testing.T, f *fixture) {
				f.judged(over, sloGate())
				f.answer(t, sloResults(0, 0))
				f.Answers[0].Clusters = []string{"a"}
			},
			want: "Progressing, one Verifying, two Waiting: wave one waits for 1 gate: gate budget has no verdict: " +
				"not " +
				"measured yet",
		},
		"an answer that is too old": {
			given: func(t *testing.T, f *fixture) {
				f.judged(over, sloGate())
				f.answer(t, sloResults(0, 0))
				f.Now = f.Now.Add(3 * time.Minute)
			},
			want: "Progressing, one Verifying, two Waiting: wave one waits for 1 gate: gate budget has no verdict: " +
				"not " +
				"measured yet",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			test.given(t, f)
			if diff := cmp.Diff(test.want, summarize(rollouts.Next(f.Input))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func (f *fixture) override(wave, gate string) {
	f.ro.Spec.Overrides = append(f.ro.Spec.Overrides, v1alpha1.GateOverride{Wave: wave, Gate: gate, By: "ann",
		Reason: "known noise", At: *ago(0)})
}

// next takes the decision's status over, as the hub does.
func (f *fixture) next() rollouts.Decision {
	d := rollouts.Next(f.Input)
	f.ro.Status = d.Status
	return d
}

func eventsOf(d rollouts.Decision) []string {
	var out []string
	for _, e := range d.Events {
		out = append(out, e.Reason)
	}
	return out
}

// A failure stays although the window moves past the bad measurements, until a person overrides the gate or retries
// the wave.
func TestFailedGateStays(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.judged(10*time.Minute, sloGate())
	f.answer(t, sloResults(300, 0))
	d := f.next()
	if diff := cmp.Diff([]string{"GateFailed"}, eventsOf(d)); diff != "" || len(d.Questions) > 0 {
		t.Errorf("events (-want +got):\n%s\nand %d questions", diff, len(d.Questions))
	}
	if !rollouts.IsJudgedFailed(d.Status.Waves[0]) {
		t.Error("the wave is not judged failed")
	}
	f.Answers[0].At, f.Answers[0].Results = f.Now, sloResults(0, 0)
	if d := f.next(); d.Status.Phase != v1alpha1.RolloutHalted || len(d.Events) > 0 {
		t.Errorf("later: %s, events %v", summarize(d), d.Events)
	}
	t.Run("overridden", func(t *testing.T) {
		f := &fixture{ro: f.ro.DeepCopy(), Input: f.Input}
		f.Rollout = f.ro
		f.override("one", "budget")
		d := f.next()
		want := "Overridden: overridden by ann: known noise; the gate had failed: available: burn rate 30 within " +
			"10m0s, " +
			"at most 14.4 passes; 300 of 1000 measurements are bad"
		if diff := cmp.Diff(want, gateText(d)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"WaveVerified", "GateOverridden"}, eventsOf(d)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if g := d.Status.Waves[0].Gates[0]; g.Measurement == nil || g.Measurement.Value != "30" ||
			!g.DecidedAt.Time.Equal(noon) {
			t.Errorf("%+v", g)
		}
	})
	t.Run("tried again", func(t *testing.T) {
		f := &fixture{ro: f.ro.DeepCopy(), Input: f.Input}
		f.Rollout = f.ro
		f.ro.Spec.Retries++
		d := f.next()
		if got := summarize(d); !strings.HasPrefix(got, "Progressing, one Soaking, two Waiting: wave one soaks until") {
			t.Error(got)
		}
		if g := d.Status.Waves[0].Gates[0]; g.Verdict != v1alpha1.GateWaiting || g.Measurement != nil {
			t.Errorf("%+v", g)
		}
		if at := d.Status.Waves[0].UpdatedAt; !at.Time.Equal(f.Now) {
			t.Errorf("the soak began at %s, want %s", at, f.Now)
		}
	})
}

// A query must miss its threshold several times in a row. A measurement that is read twice counts once.
func TestFailuresAreCounted(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.judged(10*time.Minute, queryGate())
	measure := func(v float64) rollouts.Decision {
		f.Now = f.Now.Add(rollouts.MeasureInterval)
		f.answer(t, number64(v))
		f.next()
		return f.next()
	}
	for i, want := range []string{"Waiting", "Waiting", "Passed"} {
		if i == 2 {
			f.wave(0).Soak.Duration = time.Hour // a verdict does not verify the wave
		}
		value := 0.9
		if want == "Passed" {
			value = 0.1
		}
		if g := measure(value).Status.Waves[0].Gates[0]; string(g.Verdict) != want {
			t.Fatalf("measurement %d: %s, want %s: %s", i, g.Verdict, want, g.Evidence)
		}
	}
	for i, want := range []string{"Waiting", "Waiting", "Failed"} {
		g := measure(0.9).Status.Waves[0].Gates[0]
		if string(g.Verdict) != want || g.Measurement.Failures != int32(i+1) {
			t.Fatalf("measurement %d after a pass: %s, want %s: %s", i, g.Verdict, want, g.Evidence)
		}
	}
}

// A restarted hub has no answers, but uses the verdicts in the status for a limited time.
func TestRestartKeepsRecentVerdicts(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.judged(10*time.Minute, sloGate())
	f.wave(0).Gates = append(f.wave(0).Gates, rollouts.Defaulted(v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{{
		Gates: []v1alpha1.Gate{queryGate()}}}}).Waves[0].Gates...)
	f.answer(t, sloResults(0, 0)) // there is no result for the other one
	if d := f.next(); d.Status.Waves[0].Gates[0].Verdict != v1alpha1.GatePassed {
		t.Fatal(summarize(d))
	}
	f.Answers = nil
	if d := f.next(); d.Status.Waves[0].Gates[0].Verdict != v1alpha1.GatePassed || len(d.Events) > 0 {
		t.Errorf("%s, events %v", summarize(d), d.Events)
	}
	f.Now = f.Now.Add(3 * time.Minute)
	d := f.next()
	if got, want := gateText(d), "Waiting: nothing was measured since 2026-03-01T12:00:00Z"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !slices.Contains(eventsOf(d), "GateUndecided") {
		t.Errorf("events %v", d.Events)
	}
}

// A wave that waits only for a gate is announced once, with the start of the wait.
func TestWaitingIsAnnounced(t *testing.T) {
	t.Parallel()
	t.Run("a measurement", func(t *testing.T) {
		t.Parallel()
		f := newFixture()
		f.judged(9*time.Minute, sloGate())
		if d := f.next(); len(d.Events) > 0 {
			t.Errorf("events in the soak: %v", d.Events)
		}
		f.Now = noon.Add(2 * time.Minute)
		f.fail(t, "connection refused")
		d := f.next()
		if diff := cmp.Diff([]string{"GateWaiting"}, eventsOf(d)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if at := d.Status.Waves[0].Gates[0].WaitingSince; at == nil || !at.Time.Equal(noon.Add(time.Minute)) {
			t.Errorf("waiting since %s", at)
		}
		if d := f.next(); len(d.Events) > 0 {
			t.Errorf("a second time: %v", d.Events)
		}
	})
	t.Run("an approval", func(t *testing.T) {
		t.Parallel()
		f := newFixture()
		f.wave(0).Gates = []v1alpha1.Gate{{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}}
		f.wave(1).Gates = f.wave(0).Gates
		d := f.next()
		if diff := cmp.Diff([]string{"GateWaiting"}, eventsOf(d)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if at := d.Status.Waves[0].Gates[0].WaitingSince; at == nil || !at.Time.Equal(noon) {
			t.Errorf("waiting since %s", at)
		}
		if at := d.Status.Waves[1].Gates[0].WaitingSince; at != nil {
			t.Errorf("the next wave waits since %s", at)
		}
		f.Now = f.Now.Add(time.Hour)
		if d := f.next(); len(d.Events) > 0 || !d.Status.Waves[0].Gates[0].WaitingSince.Time.Equal(noon) {
			t.Errorf("a second time: %v", d.Events)
		}
		f.ro.Spec.Approvals = []v1alpha1.Approval{{Wave: "one", Gate: "sre", By: "ann", Reason: "go"}}
		d = f.next()
		if diff := cmp.Diff([]string{"WaveStarted", "GatePassed"}, eventsOf(d)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if at := d.Status.Waves[0].Gates[0].WaitingSince; at != nil {
			t.Errorf("still waiting since %s", at)
		}
	})
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.judged(10*time.Minute, queryGate())
	f.ro.Namespace, f.ro.Spec.Operator.Name = "ops", "echo"
	f.ro.Status.ReleaseHash, f.ro.Spec.Release.Version = "new", "1.1.0"
	f.wave(0).Gates[0].PromQL.Query = `x{cluster=~"${clusters}",r="${release}",v="${version}",` +
		`o="${operator_namespace}/${operator}",n="${namespace}",w="${wave}$1"} offset ${window}`
	f.ro.Spec.Release.Install.Namespace = "echo-system"
	want := []rollouts.Question{{Wave: "one", Gate: "query", Since: noon.Add(-10 * time.Minute), At: noon,
		Clusters: []string{"a", "b"}, Custom: true, Queries: map[string]string{
			"value": `topk(2, x{cluster=~"a|b",cluster=~"a|b",n="echo-system",namespace="echo-system",o="ops/echo",` +
				`r="new",v="1.1.0",w="one$1"} offset 10m)`}}}
	d := rollouts.Next(f.Input)
	if diff := cmp.Diff(want, d.Questions); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
	if d.RecheckAfter != rollouts.MeasureInterval {
		t.Errorf("recheck after %s", d.RecheckAfter)
	}
	f.answer(t, number64(1))
	if d := f.next(); len(d.Questions) > 0 {
		t.Errorf("asked again at once: %+v", d.Questions)
	}
	f.Now = f.Now.Add(rollouts.MeasureInterval)
	if d := f.next(); len(d.Questions) != 1 {
		t.Errorf("not asked again: %+v", d.Questions)
	}
}

// The stored query is short, however many clusters the wave has.
func TestStoredQueryIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.Clusters, f.Installs = nil, nil
	for i := range 200 {
		name := fmt.Sprintf("cluster-with-a-long-name-%03d", i)
		f.Clusters = append(f.Clusters, rollouts.Cluster{Name: name, Enrolled: true, Online: true})
		f.Installs = append(f.Installs, rollouts.Install{Cluster: name, Rollout: "echo-2", Wave: "one", Ready: true,
			Stamp: rollouts.Stamp{RolloutUID: "uid-2", Hash: "new", AdmittedAt: noon}, SucceededHash: "new"})
	}
	f.wave(0).Gates = []v1alpha1.Gate{queryGate()}
	f.ro.Spec.Strategy = rollouts.Defaulted(f.ro.Spec.Strategy)
	f.ro.Status.Waves[0] = v1alpha1.WaveStatus{Name: "one", Phase: v1alpha1.WaveSoaking, Updated: 200,
		UpdatedAt: ago(5 * time.Minute), WaveCounts: v1alpha1.WaveCounts{Total: 200, Succeeded: 200}}
	f.answer(t, number64(0))
	if q := f.Answers[0].Queries["value"]; !strings.Contains(q, "name-199") {
		t.Errorf("a cluster is not asked about: %s", q)
	}
	if q := f.next().Status.Waves[0].Gates[0].Measurement.Query; !strings.Contains(q, "004|... (195 more)") {
		t.Errorf("stored %s", q)
	}
}

func TestGateDefaults(t *testing.T) {
	t.Parallel()
	given := v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{
		{Name: "short", Gates: []v1alpha1.Gate{sloGate(), baselineGate(), queryGate()}},
		{Name: "long", Soak: &metav1.Duration{Duration: time.Hour}, Gates: []v1alpha1.Gate{sloGate()}},
	}}
	explicit := rollouts.Defaulted(given)
	if given.Waves[0].Gates[0].SLO.Window != nil {
		t.Error("the argument was changed")
	}
	gates := explicit.Waves[0].Gates
	if s := gates[0].SLO; s.MaxBurnRate != "14.4" || s.Window.Duration != 5*time.Minute {
		t.Errorf("slo: %+v", s)
	}
	if b := gates[1].Baseline; *b.Confidence != 99 || *b.MinSamples != 30 || b.Window.Duration != 5*time.Minute {
		t.Errorf("baseline: %+v", b)
	}
	if q := gates[2].PromQL; *q.FailureLimit != 2 || q.Window.Duration != 5*time.Minute {
		t.Errorf("promQL: %+v", q)
	}
	if w := explicit.Waves[1].Gates[0].SLO.Window.Duration; w != time.Hour {
		t.Errorf("the window of a long soak is %s", w)
	}
	if diff := cmp.Diff(explicit, rollouts.Defaulted(explicit)); diff != "" {
		t.Errorf("an explicit strategy changed (-want +got):\n%s", diff)
	}
}

func TestValidateGates(t *testing.T) {
	t.Parallel()
	query := func(text string) v1alpha1.Gate {
		g := queryGate()
		g.PromQL.Query = text
		return g
	}
	tests := map[string]struct {
		gate v1alpha1.Gate
		all  bool
		want string
	}{
		"slo":      {gate: sloGate()},
		"baseline": {gate: baselineGate()},
		"promQL":   {gate: queryGate()},
		"approval": {gate: v1alpha1.Gate{Name: "go", Approval: &v1alpha1.ApprovalGate{}}},
		"no kind": {gate: v1alpha1.Gate{Name: "odd"}, want: "exactly one of approval, slo, baseline, " +
			"promQL and job"},
		"two kinds": {gate: v1alpha1.Gate{Approval: &v1alpha1.ApprovalGate{}, SLO: &v1alpha1.SLOGate{}},
			want: "exactly one"},
		"all clusters, compared": {gate: baselineGate(), all: true, want: "none remains on another release"},
		"all clusters, judged":   {gate: sloGate(), all: true},
		"not a burn " +
			"rate": {gate: v1alpha1.Gate{SLO: &v1alpha1.SLOGate{MaxBurnRate: "fast"}}, want: "decimal number"},
		"a short window": {gate: v1alpha1.Gate{SLO: &v1alpha1.SLOGate{
			Window: &metav1.Duration{Duration: time.Second}}}, want: "must be at least 1m"},
		"an unknown variable": {gate: query("up{cluster=~\"${clusters}\",x=\"${pod}\"}"), want: "use one of " +
			"clusters, hash"},
		"a query of all clusters": {gate: query("sum(rate(x[${window}]))"),
			want: "must use ${clusters} or ${release}"},
		"by release": {gate: query(`x{release="${release}"}`)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wave := v1alpha1.Wave{Name: "one", Size: number(1), Gates: []v1alpha1.Gate{test.gate}}
			if test.all {
				wave.Size = nil
			}
			err := rollouts.Validate(metav1.LabelSelector{}, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave}})
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("%v, want it to contain %q", err, test.want)
			}
		})
	}
}

// TestApprovalOnlyForNewPermissions checks that a rollout waits for a person if the release requires more rights than
// the installed release, or if that is not known.
func TestApprovalOnlyForNewPermissions(t *testing.T) {
	t.Parallel()
	grown := []v1alpha1.AddedPermissions{{From: "echo.v1.0.0", Rights: []string{"list secrets", "get pods"}}}
	for name, test := range map[string]struct {
		needs *v1alpha1.ReleaseRequirements
		want  string
	}{
		"not known": {nil, "Waiting: not approved yet; it is not known whether the release asks for new permissions"},
		"not read": {&v1alpha1.ReleaseRequirements{NotRead: "no registry"},
			"Waiting: not approved yet; it is not known whether the release asks for new permissions: no registry"},
		"none": {&v1alpha1.ReleaseRequirements{}, "Passed: the release asks for no new permissions"},
		"some": {&v1alpha1.ReleaseRequirements{AddedPermissions: grown}, "Waiting: not approved yet; the release asks " +
			"for permissions that echo.v1.0.0 does not have: list secrets, get pods"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			f.wave(0).Gates = []v1alpha1.Gate{{Name: "rights",
				Approval: &v1alpha1.ApprovalGate{OnlyForNewPermissions: true}}}
			f.ro.Spec.Requirements = test.needs
			if got := gateText(f.next()); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			f.ro.Spec.Approvals = []v1alpha1.Approval{{Wave: "one", Gate: "rights", By: "ann", Reason: "go"}}
			if got := gateText(f.next()); got != "Passed: approved by ann: go" {
				t.Errorf("approved: %s", got)
			}
		})
	}
}
