// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// TestSameName has two operators of one name, from two namespaces of the hub, on one cluster: one is bad and one is
// good. Slices, budgets, alerts and absence are those of each.
func TestSameName(t *testing.T) {
	in := func(metric, namespace string, labels ...string) string {
		return id(metric, `cluster="c",operator="echo",operator_namespace="`+namespace+`"`, labels)
	}
	all := []testInput{{`bellwether_fleet_clusters{state="online"}`, "1x120"}}
	for namespace, succeeded := range map[string]string{"fleet": "1x30 0x90", "staging": "1x120"} {
		all = append(all,
			testInput{in("bellwether_operator_expected", namespace), "1x120"},
			testInput{in(info, namespace, `namespace="`+namespace+`-echo"`, `csv="echo.v1"`, `version="1.0.0"`,
				`release="aaaaaaaaaaaa"`), "1x120"},
			testInput{in(csv, namespace), succeeded},
			testInput{in(catalog, namespace), "1x120"},
			testInput{in(desired, namespace, `deployment="a"`), "1x120"},
		)
	}
	all = append(all, testInput{in(available, "fleet", `deployment="a"`), "1x120"},
		testInput{in(available, "staging", `deployment="a"`), "1x120"})
	run(t, slo.Set{Default: slo.DefaultProfile()}, testCase{
		Name: "operators of one name in two namespaces", Series: all,
		Exprs: []testExpr{
			{Expr: `sum by (operator_namespace) (sum_over_time(bellwether:sli_bad:slice{sli="csv"}[2h]))`, At: "90m",
				Samples: []testSample{{`{operator_namespace="fleet"}`, 60}}},
			{Expr: `bellwether:sli_bad:bool{sli="csv"}`, At: "90m", Samples: []testSample{
				{`bellwether:sli_bad:bool{cluster="c",operator_namespace="fleet",operator="echo",sli="csv"}`, 1},
				{`bellwether:sli_bad:bool{cluster="c",operator_namespace="staging",operator="echo",sli="csv"}`, 0},
			}},
			{Expr: `bellwether:slo_budget_left:ratio{sli="csv"} == bool 1`, At: "90m", Samples: []testSample{
				{`{cluster="c",operator_namespace="fleet",operator="echo",sli="csv"}`, 0},
				{`{cluster="c",operator_namespace="staging",operator="echo",sli="csv"}`, 1},
			}},
			{Expr: `count by (alertname, operator_namespace, operator, sli, slo) (ALERTS{alertstate="firing",severity="page"})`,
				At: "90m", Samples: []testSample{{`{alertname="BellwetherOperatorSLOBurn",operator_namespace="fleet",` +
					`operator="echo",sli="csv",slo="fleet/echo/csv"}`, 1}}},
		},
	})
}
