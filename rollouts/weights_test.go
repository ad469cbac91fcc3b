// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

func ofCluster(cluster string, value float64) rollouts.Sample {
	return rollouts.Sample{Labels: map[string]string{"sli": "available", "cluster": cluster}, Value: value}
}

// numbers are the results of a query by cluster.
type numbers map[string]float64

func (n numbers) result() rollouts.Result {
	out := vector()
	for cluster, value := range n {
		out.Samples = append(out.Samples, ofCluster(cluster, value))
	}
	return out
}

// TestOneClusterDecidesNoGate checks that no report of a cluster counts for more than the cluster's share, and that
// the gate lists the clusters behind a verdict. One bad cluster can still fail a gate.
func TestOneClusterDecidesNoGate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		bad, samples numbers
		want         string
	}{
		"all are good": {numbers{}, numbers{"a": 30, "b": 30, "c": 30}, "Passed: available: burn rate 0"},
		"all are bad": {numbers{"a": 30, "b": 30, "c": 30}, numbers{"a": 30, "b": 30, "c": 30},
			"Failed: available: burn rate 100 within 10m0s, at most 14.4 passes; 90 of 90 measurements are bad; most " +
				"on a (30 of 30), b (30 of 30), c (30 of 30)"},
		"bad ones, and one with many good ones": {numbers{"a": 30, "b": 30}, numbers{"a": 30, "b": 30, "c": 1e9},
			"Failed: available: burn rate 66.67 within 10m0s, at most 14.4 passes; 60 of 90 weighed measurements are " +
				"bad; most on a (30 of 30), b (30 of 30)"},
		"good ones, and one with many bad ones": {numbers{"c": 1e9}, numbers{"a": 1000, "b": 1000, "c": 1e9},
			"Failed: available: burn rate 33.33 within 10m0s, at most 14.4 passes; 1000 of 3000 weighed measurements " +
				"are bad; most on c (1000000000 of 1000000000)"},
		"less than nothing is bad": {numbers{"a": 30, "b": -100}, numbers{"a": 30, "b": 30, "c": 30},
			"Failed: available: burn rate 50"},
		"less than nothing is bad, and the others are good": {numbers{"b": -100}, numbers{"a": 30, "b": 30, "c": 30},
			"Waiting: measurements that cannot be: b reports -100 bad of 30 measurements of available"},
		"more is bad than there is": {numbers{"b": 1e9}, numbers{"a": 30, "b": 30, "c": 30},
			"Failed: available: burn rate 33.33"},
		"bad ones, and one of next to none": {numbers{"a": 60}, numbers{"a": 60, "b": 1e-6},
			"Failed: available: burn rate 100"},
		"an idle one has one bad request": {numbers{"b": 1}, numbers{"a": 1000, "b": 1, "c": 1000},
			"Passed: available: burn rate 0.04998"},
		"fewer than nothing": {numbers{}, numbers{"a": 30, "b": -30, "c": 30},
			"Waiting: measurements that cannot be: b reports 0 bad of -30 measurements"},
		"no number": {numbers{"b": math.NaN()}, numbers{"a": 30, "b": 30, "c": 30},
			"Waiting: measurements that cannot be: b reports NaN bad of 30 measurements"},
		"everything": {numbers{}, numbers{"a": 30, "b": math.Inf(1), "c": 30},
			"Waiting: measurements that cannot be: b reports 0 bad of +Inf measurements"},
		"bad ones without measurements": {numbers{"b": 5}, numbers{"a": 30, "c": 30},
			"Waiting: measurements that cannot be: b reports 5 bad of 0 measurements"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			f.judged(10*time.Minute, v1alpha1.Gate{Name: "budget", SLO: &v1alpha1.SLOGate{}})
			f.answer(t, map[string]rollouts.Result{
				"objectives": vector(ofSLI("available", 0.99)), "guards": vector(ofSLI("available", 2.5)),
				"bad": test.bad.result(), "samples": test.samples.result(),
				"covered": ofClusters("a", "b", "c"), "missing": vector(),
			})
			if got := gateText(rollouts.Next(f.Input)); !strings.HasPrefix(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestOneClusterDecidesNoComparison is the same for a comparison with other releases.
func TestOneClusterDecidesNoComparison(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		bad, samples, oldBad, oldSamples numbers
		want                             string
	}{
		"as bad as before": {numbers{"a": 3}, numbers{"a": 300}, numbers{"x": 3}, numbers{"x": 300}, "Passed"},
		"worse":            {numbers{"a": 150}, numbers{"a": 300}, numbers{"x": 3}, numbers{"x": 300}, "Failed"},
		"worse, and one of the others says the opposite": {numbers{"a": 150}, numbers{"a": 300}, numbers{"x": 3, "y": -50},
			numbers{"x": 300, "y": 300}, "Failed"},
		"good, and one of the others cannot be": {numbers{"a": 3}, numbers{"a": 300}, numbers{"x": 3, "y": -50},
			numbers{"x": 300, "y": 300}, "Waiting: measurements that cannot be: y reports -50 bad of 300"},
		"worse, and one of next to none": {numbers{"a": 150}, numbers{"a": 300, "b": 1e-6}, numbers{"x": 3, "y": 3},
			numbers{"x": 300, "y": 300}, "Failed"},
		"worse, and one of the others has next to none": {numbers{"a": 150}, numbers{"a": 300}, numbers{"x": 3},
			numbers{"x": 300, "y": 1e-6}, "Failed"},
		"all have next to none": {numbers{"a": 1}, numbers{"a": 1}, numbers{"x": 3}, numbers{"x": 300},
			"Waiting: available: 1 sample of the new release, at least 30 are needed"},
		"worse, and one has many good ones": {numbers{"a": 150, "b": 0}, numbers{"a": 300, "b": 1e9}, numbers{"x": 3},
			numbers{"x": 300}, "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			gate := baselineGate()
			gate.Baseline.SLI = "available"
			f.judged(time.Hour, gate)
			f.answer(t, map[string]rollouts.Result{"guards": vector(ofSLI("available", 2.5)),
				"bad": test.bad.result(), "samples": test.samples.result(), "baseline bad": test.oldBad.result(),
				"baseline samples": test.oldSamples.result(), "covered": ofClusters("a", "b"), "missing": vector()})
			if got := gateText(rollouts.Next(f.Input)); !strings.HasPrefix(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
