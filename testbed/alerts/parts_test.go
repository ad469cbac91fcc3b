// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"maps"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// inParts are the two parts of the rules in two files. All clusters' series are in one Prometheus here: no rule of the
// edge part looks at more than one cluster, and no rule of the hub part reads other series of clusters than those that
// travel, which tests of package slo see to.
var inParts = []slo.Part{slo.Edge, slo.Hub}

// TestParts expects of both parts of the rules the alerts that are expected of the whole, in one scenario of each
// scope.
func TestParts(t *testing.T) {
	played := map[string]scenario{}
	for _, name := range []string{"outage of 10 minutes", "a bad release and then the fix",
		"a cluster goes dark during a page", "all scraping is lost during a page"} {
		played[name] = scenarios[name]
	}
	play(t, played, inParts...)
}

// probed has the hub probe a cluster, whatever becomes of the cluster.
func probed(cluster string, minutes int) testInput {
	return testInput{id(probe, fmt.Sprintf(`cluster=%q,operator_namespace="fleet",operator="echo"`, cluster),
		[]string{`probe="api"`, `vantage="hub"`}), fmt.Sprintf("1x%d", minutes)}
}

// silent are clusters that fall silent, and of which the hub still has what it measures itself.
var silent = map[string]scenario{
	"a cluster goes dark that the hub probes": {
		fleet: fleet{minutes: 180, extra: []testInput{probed("c0", 180)},
			installs: clusters(5, func(i int, in *install) {
				if i == 0 {
					in.dark = []span{{60, 180}}
				}
			})},
		alerts: map[alert]float64{ofCluster("c0"): 1},
		open:   []alert{ofCluster("c0")},
	},
	"most clusters go dark": {
		fleet: fleet{minutes: 180, extra: []testInput{probed("c1", 180)},
			installs: clusters(5, func(i int, in *install) {
				if i > 0 {
					in.dark = []span{{60, 180}}
				}
			})},
		alerts: map[alert]float64{{name: "BellwetherFleetSilent", severity: "page"}: 1},
		open:   []alert{{name: "BellwetherFleetSilent", severity: "page"}},
	},
}

// TestSilentClusters plays the same in one Prometheus and in two parts.
func TestSilentClusters(t *testing.T) {
	play(t, silent, slo.Whole)
	both := maps.Clone(silent)
	for name, s := range silent {
		delete(both, name)
		both[name+", in parts"] = s
	}
	play(t, both, inParts...)
}

// arriving are the series of a cluster as the hub's Prometheus receives them. Heartbeats of late ones tell an earlier
// time.
func arriving(cluster, schema, heartbeats, slices string) []testInput {
	of := fmt.Sprintf(`cluster=%q,operator_namespace="fleet",operator="echo"`, cluster)
	return []testInput{
		{id("bellwether_operator_expected", of, []string{`pod="hub"`}), "1x180"},
		{fmt.Sprintf("bellwether_fleet_cluster_online{cluster=%q}", cluster), "1x180"},
		{fmt.Sprintf("bellwether:slices_recorded:timestamp{cluster=%q,schema=%q}", cluster, schema), heartbeats},
		{id("bellwether:sli_bad:bool", of, []string{`sli="csv"`}), slices},
	}
}

// TestLateIsNotGone has the hub part tell clusters of which measurements arrive late from those that nothing is known
// of, and from those whose measurements it does not know.
func TestLateIsNotGone(t *testing.T) {
	const onTime, stops, late = "0+60x180", "0+60x60", "0+60x60 3600x10 3060+60x108"
	series := []testInput{{`bellwether_fleet_clusters{state="online"}`, "1x180"}}
	for _, in := range [][]testInput{
		arriving("well", "1", onTime, "0x180"), arriving("well-too", "1", onTime, "0x180"),
		arriving("well-again", "1", onTime, "0x180"),
		arriving("gone", "1", stops, "0x60"), arriving("late", "1", late, "0x60"),
		arriving("newer", "2", onTime, "0x180"),
	} {
		series = append(series, in...)
	}
	runParts(t, strict, []slo.Part{slo.Hub}, testCase{Name: "late is not gone", Series: series, Exprs: []testExpr{
		{Expr: `bellwether:slices_recorded:age{cluster="late"} > 600`, At: "170m",
			Samples: []testSample{{`bellwether:slices_recorded:age{cluster="late"}`, 1290}}},
		{Expr: `bellwether:cluster:lost or bellwether:cluster:late`, At: "170m", Samples: []testSample{
			{`bellwether:cluster:lost{cluster="gone"}`, 1}, {`bellwether:cluster:late{cluster="late"}`, 1}}},
		{Expr: `count by (alertname, cluster, schema) (ALERTS{alertstate="firing",scope="cluster"})`, At: "170m",
			Samples: []testSample{
				{`{alertname="BellwetherClusterFailing",cluster="gone"}`, 1},
				{`{alertname="BellwetherMeasurementsLate",cluster="late"}`, 1},
				{`{alertname="BellwetherSliceSchemaUnknown",cluster="newer",schema="2"}`, 1},
			}},
	}})
}

// TestTimeIsExcludedOnTheHub has slices of two clusters arrive, and the hub exclude time of one of them.
func TestTimeIsExcludedOnTheHub(t *testing.T) {
	const of = `operator_namespace="fleet",operator="echo"`
	var series []testInput
	for _, cluster := range []string{"maintained", "other"} {
		series = append(series, arriving(cluster, "1", "0+60x120", "1x120")...)
		series = append(series, testInput{fmt.Sprintf(`bellwether:sli_bad:slice{cluster=%q,%s,sli="csv"}`, cluster, of),
			"1x120"})
	}
	series = append(series, testInput{`bellwether_slo_budget_excluded{cluster="maintained",` + of +
		`,silence="disks",owner="anna"}`, "_x60 1x29 stale"})
	runParts(t, strict, []slo.Part{slo.Hub}, testCase{Name: "time is excluded", Series: series, Exprs: []testExpr{
		{Expr: `sum by (cluster) (sum_over_time(bellwether:sli_bad_excluded:slice[1d]))`, At: "119m",
			Samples: []testSample{{`{cluster="maintained"}`, 30}}},
		{Expr: `round((1 - bellwether:slo_budget_excluding:ratio) / (1 - bellwether:slo_budget_left:ratio), 0.01)`,
			At:      "119m",
			Samples: []testSample{{`{cluster="maintained",` + of + `,sli="csv"}`, 0.75}}},
	}})
}
