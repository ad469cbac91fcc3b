// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// runsIn says that an operator runs in a namespace of cluster c.
func runsIn(operator, namespace, version string) testInput {
	return testInput{id(info, fmt.Sprintf(`cluster="c",operator_namespace="fleet",operator=%q`, operator),
		[]string{fmt.Sprintf("namespace=%q", namespace), fmt.Sprintf(`csv="%s.v%s"`, operator, version),
			fmt.Sprintf("version=%q", version)}), "1x400"}
}

// saidBy names a series that a pod in the namespace ns exports, and that names the operator.
func saidBy(metric, operator string, labels ...string) string {
	return ofPod(metric, append(labels, `operator_namespace="fleet"`, fmt.Sprintf("operator=%q", operator))...)
}

// controllerMetrics are what the pods of an operator export while all is well, or while every SLI of them is bad.
func controllerMetrics(name func(string, ...string) string, isBad bool) []testInput {
	bad := func(good, bad string) string {
		if isBad {
			return bad
		}
		return good
	}
	return []testInput{
		{name(total), "0+60x400"}, {name(reconcileErrors), bad("0x400", "0+30x400")},
		{name(panics), bad("0x400", "0+1x400")},
		{name(count), "0+60x400"}, {name(bucket, `le="10.0"`), bad("0+60x400", "0x400")},
		{name(longest), bad("0x400", "999x400")}, {name(depth), "0x400"},
		{name(leader, `name="lock"`), bad("1x400", "0x400")},
		{name(webhook, `code="500"`), bad("0x400", "0+60x400")}, {name(webhook, `code="200"`), "0+60x400"},
	}
}

// judged are the slices of the SLIs that look at metrics of pods.
func judged(bad map[string]float64) testExpr {
	out := testExpr{Expr: `bellwether:sli_bad:bool`, At: "25m"}
	for _, operator := range slices.Sorted(maps.Keys(bad)) {
		for _, sli := range []string{"reconcile", "latency", "panic", "queue", "leader", "webhook"} {
			out.Samples = append(out.Samples, testSample{fmt.Sprintf(`bellwether:sli_bad:bool{cluster="c",`+
				`operator_namespace="fleet",operator=%q,sli=%q}`, operator, sli), bad[operator]})
		}
	}
	return out
}

// TestSharedNamespace has operators in one namespace, as OLM's namespace "operators" does: what their pods export is of
// the operator that its labels name, and of the only operator of the namespace if it names none.
func TestSharedNamespace(t *testing.T) {
	t.Parallel()
	saidByNobody := func(metric string, labels ...string) string { return ofPod(metric, labels...) }
	by := func(operator string) func(string, ...string) string {
		return func(metric string, labels ...string) string { return saidBy(metric, operator, labels...) }
	}
	shared := []testInput{runsIn("echo", "ns", "1.0.0"), runsIn("other", "ns", "1.0.0")}
	expected := func(operator string) testInput {
		return testInput{fmt.Sprintf(`bellwether_operator_expected{cluster="c",operator_namespace="fleet",operator=%q}`,
			operator), "1x400"}
	}
	run(t, slo.Set{Default: slo.DefaultProfile()},
		testCase{Name: "each names its operator, and one fails",
			Series: slices.Concat(shared, controllerMetrics(by("echo"), true), controllerMetrics(by("other"), false),
				[]testInput{expected("echo"), expected("other")}),
			Exprs: []testExpr{judged(map[string]float64{"echo": 1, "other": 0}), {
				Expr: `count by (operator, sli) (ALERTS{alertstate="firing",severity="page",sli!=""})`, At: "200m",
				Samples: []testSample{{`{operator="echo",sli="reconcile"}`, 1}, {`{operator="echo",sli="latency"}`, 1},
					{`{operator="echo",sli="panic"}`, 1}, {`{operator="echo",sli="queue"}`, 1},
					{`{operator="echo",sli="leader"}`, 1}, {`{operator="echo",sli="webhook"}`, 1}},
			}}},
		testCase{Name: "nothing names an operator of several",
			Series: slices.Concat(shared, controllerMetrics(saidByNobody, true)), Exprs: []testExpr{judged(nil)}},
		testCase{Name: "one of two is named, and something else fails",
			Series: slices.Concat(shared, controllerMetrics(by("echo"), false), controllerMetrics(saidByNobody, true)),
			Exprs:  []testExpr{judged(map[string]float64{"echo": 0})}},
		testCase{Name: "another operator of the namespace is named",
			Series: slices.Concat(shared, controllerMetrics(by("other"), true)),
			Exprs:  []testExpr{judged(map[string]float64{"other": 1})}},
		testCase{Name: "an operator is named that runs elsewhere",
			Series: slices.Concat([]testInput{runsIn("echo", "ns", "1.0.0"), runsIn("other", "elsewhere", "1.0.0")},
				controllerMetrics(by("other"), true)), Exprs: []testExpr{judged(nil)}},
		testCase{Name: "an exporter has a label operator of its own",
			Series: slices.Concat([]testInput{runsIn("echo", "ns", "1.0.0")},
				controllerMetrics(func(metric string, labels ...string) string {
					return ofPod(metric, append(labels, `operator="theirs"`)...)
				}, true)), Exprs: []testExpr{judged(map[string]float64{"echo": 1})}},
		testCase{Name: "the only operator is being upgraded",
			Series: slices.Concat([]testInput{runsIn("echo", "ns", "1.0.0"), runsIn("echo", "ns", "2.0.0")},
				controllerMetrics(saidByNobody, true)),
			Exprs: []testExpr{judged(map[string]float64{"echo": 1}), {
				// Each slice is one version's: the sum of a release would count it twice.
				Expr: `count by (operator) (bellwether:sli_bad_version:slice{sli="reconcile"})`, At: "25m",
				Samples: []testSample{{`{operator="echo"}`, 1}},
			}}})
}
