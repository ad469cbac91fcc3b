// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// span is a range of minutes, from inclusive, to exclusive.
type span struct{ from, to int }

func contains(spans []span, minute int) bool {
	for _, s := range spans {
		if minute >= s.from && minute < s.to {
			return true
		}
	}
	return false
}

// every returns spans of one minute in every period of minutes.
func every(period, from, to int) []span {
	var out []span
	for m := from; m < to; m += period {
		out = append(out, span{m, m + 1})
	}
	return out
}

// change is the minute from which a version is installed.
type change struct {
	from    int
	version string
}

// install is an operator on a cluster, with what happens to it.
type install struct {
	cluster, operator string
	// versions that are installed, the first one from minute 0. Default: 1.0.0.
	versions []change
	// bad are the minutes in which an SLI is bad: csv, catalog or available. Missing are those without its series, and
	// nan those in which it is not a number.
	bad, missing, nan map[string][]span
	// dark are the minutes in which nothing of the cluster is scraped.
	dark []span
	// joins is the minute in which the cluster joins the fleet, and leaves the one in which it leaves. Zero: never.
	joins, leaves int
	// onlyCSV leaves out the series of other SLIs: promtool gives a query no more than 10,000 samples.
	onlyCSV bool
}

// fleet is a number of installs with a hub that lists them.
type fleet struct {
	minutes  int
	installs []install
	// hubDark are the minutes in which nothing of the hub is scraped.
	hubDark []span
	// extra series of a scenario.
	extra []testInput
}

// exists tells whether the cluster of an install is in the fleet.
func (in install) exists(minute int) bool {
	return minute >= in.joins && (in.leaves == 0 || minute < in.leaves)
}

// scraped tells whether the agent of an install is scraped.
func (in install) scraped(minute int) bool { return in.exists(minute) && !contains(in.dark, minute) }

// version is what is installed in a minute.
func (in install) version(minute int) string {
	out := "1.0.0"
	for _, c := range in.versions {
		if c.from <= minute {
			out = c.version
		}
	}
	return out
}

func (in install) labels() string {
	return fmt.Sprintf("cluster=%q,operator_namespace=\"fleet\",operator=%q", in.cluster, in.operator)
}

// series are those that the agent of an install exports.
func (in install) series(minutes int) []testInput {
	versions := in.versions
	if len(versions) == 0 {
		versions = []change{{0, "1.0.0"}}
	}
	var out []testInput
	for _, c := range versions {
		labels := in.labels() + fmt.Sprintf(",namespace=%q,csv=\"v%s\",version=%q,release=%q", in.operator, c.version,
			c.version, "of "+c.version)
		out = append(out, testInput{info + "{" + labels + "}", slo.Samples(minutes, func(m int) string {
			if !in.scraped(m) || in.version(m) != c.version {
				return ""
			}
			return "1"
		})})
	}
	gauge := func(metric, sli, good, bad string, further ...string) {
		out = append(out, testInput{id(metric, in.labels(), further), slo.Samples(minutes, func(m int) string {
			switch {
			case !in.scraped(m) || contains(in.missing[sli], m):
				return ""
			case contains(in.nan[sli], m):
				return "NaN"
			case contains(in.bad[sli], m):
				return bad
			}
			return good
		})})
	}
	gauge(csv, "csv", "1", "0")
	if in.onlyCSV {
		return out
	}
	gauge(catalog, "catalog", "1", "0")
	gauge(desired, "", "3", "3", `deployment="d"`)
	gauge(available, "available", "3", "0", `deployment="d"`)
	return out
}

// series are those of all agents and of the hub.
func (f fleet) series() []testInput {
	out := append([]testInput{{`bellwether_fleet_clusters{state="online"}`, slo.Samples(f.minutes, func(m int) string {
		if contains(f.hubDark, m) {
			return ""
		}
		return "1"
	})}}, f.extra...)
	seen := map[string]bool{}
	for _, in := range f.installs {
		known := slo.Samples(f.minutes, func(m int) string {
			if !in.exists(m) || contains(f.hubDark, m) {
				return ""
			}
			return "1"
		})
		if !seen[in.cluster] {
			seen[in.cluster] = true
			out = append(out, testInput{fmt.Sprintf("bellwether_fleet_cluster_online{cluster=%q}", in.cluster), known})
		}
		out = append(out, testInput{"bellwether_operator_expected{" + in.labels() + `,pod="hub"}`, known})
		out = append(out, in.series(f.minutes)...)
	}
	return out
}

// clusters returns installs of the operator echo on clusters c0, c1 and so on.
func clusters(n int, each func(i int, in *install)) []install {
	out := make([]install, n)
	for i := range out {
		out[i] = install{cluster: "c" + strconv.Itoa(i), operator: "echo"}
		if each != nil {
			each(i, &out[i])
		}
	}
	return out
}

// failing is an SLI that is bad in some minutes.
func failing(sli string, spans ...span) map[string][]span { return map[string][]span{sli: spans} }

// strict are the objectives of scenarios.
var strict = slo.Set{Default: []slo.Objective{
	{SLI: "csv", Target: 999_000}, {SLI: "available", Target: 999_000}, {SLI: "catalog", Target: 999_000},
}}

// alert identifies an alert in what a scenario expects.
type alert struct{ name, severity, cluster, operator, sli, version string }

func (a alert) labels() string {
	var parts []string
	for _, l := range [][2]string{{"alertname", a.name}, {"severity", a.severity}, {"cluster", a.cluster},
		{"operator", a.operator}, {"sli", a.sli}, {"version", a.version}} {
		if l[1] != "" {
			parts = append(parts, fmt.Sprintf("%s=%q", l[0], l[1]))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// Alerts of scenarios.
func ofInstallOf(cluster, sli, severity string) alert {
	return alert{name: "BellwetherOperatorSLOBurn", severity: severity, cluster: cluster, operator: "echo", sli: sli}
}

func ofBudget(cluster, sli string) alert {
	return alert{name: "BellwetherErrorBudgetExhausted", severity: "ticket", cluster: cluster, operator: "echo",
		sli: sli}
}

func ofRelease(version, sli, severity string) alert {
	return alert{name: "BellwetherReleaseSLOBurn", severity: severity, operator: "echo", sli: sli, version: version}
}

func ofCluster(cluster string) alert {
	return alert{name: "BellwetherClusterFailing", severity: "page", cluster: cluster}
}

var hubDown = alert{name: "BellwetherHubDown", severity: "page"}

// byIdentity counts how often each alert began to fire until now, however long it fired.
func byIdentity(minutes int) string {
	const firing = `ALERTS{alertstate="firing",severity=~"page|ticket"}`
	return fmt.Sprintf("sum by (alertname, severity, cluster, operator, sli, version) "+
		"(count_over_time((%s unless (%s offset 1m))[%dm:1m]))", firing, firing, minutes)
}

// neverAtOnce expects that until now no ticket fired at the same evaluation as a page of the same identity.
func neverAtOnce(minutes int) testExpr {
	const identity = "alertname, scope, cluster, operator_namespace, operator, sli, version"
	return testExpr{At: fmt.Sprintf("%dm", minutes-1), Expr: fmt.Sprintf(
		`max_over_time((ALERTS{alertstate="firing",severity="ticket"} and on (%s) `+
			`ALERTS{alertstate="firing",severity="page"})[%dm:1m])`, identity, minutes)}
}
