// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// Span is a range of minutes, From inclusive, To exclusive.
type Span struct{ From, To int }

// hasMinute reports whether a minute is in any of the spans.
func hasMinute(spans []Span, minute int) bool {
	for _, s := range spans {
		if minute >= s.From && minute < s.To {
			return true
		}
	}
	return false
}

// repeatMinutes returns a span of one minute at the start of every period of the given minutes.
func repeatMinutes(period int, within Span) []Span {
	var out []Span
	for m := within.From; m < within.To; m += period {
		out = append(out, Span{m, m + 1})
	}
	return out
}

// SLIs of the operators in scenarios.
const (
	csv       = "csv"
	available = "available"
	catalog   = "catalog"
)

// change is the minute from which a version is installed.
type change struct {
	from    int
	version string
}

// install is an operator on a cluster, with the events that happen to it.
type install struct {
	cluster, operator string
	// versions are the installed versions, the first one from minute 0. Default: 1.0.0.
	versions []change
	// bad are the minutes in which an SLI is bad.
	bad map[string][]Span
	// unscraped are the minutes in which nothing of the cluster is scraped.
	unscraped []Span
	// onlyCSV omits the series of other SLIs, because promtool evaluates fewer series faster.
	onlyCSV bool
}

// findVersion returns the version that is installed in a minute.
func (in install) findVersion(minute int) string {
	out := in.versions[0].version
	for _, c := range in.versions {
		if c.from <= minute {
			out = c.version
		}
	}
	return out
}

// formatLabels returns the labels that identify the install in its series.
func (in install) formatLabels() string {
	return fmt.Sprintf("%s=%q,%s=\"fleet\",%s=%q", series.Cluster, in.cluster, series.OperatorNamespace,
		series.Operator, in.operator)
}

// listSeries returns the series that the agent of an install exports.
func (in install) listSeries(minutes int) []input {
	if len(in.versions) == 0 {
		in.versions = []change{{0, "1.0.0"}}
	}
	var out []input
	for _, c := range in.versions {
		labels := in.formatLabels() + fmt.Sprintf(",%s=%q,%s=\"v%s\",%s=%q,%s=\"of %s\"", series.Namespace, in.operator,
			series.CSV, c.version, series.Version, c.version, series.Release, c.version)
		out = append(out, input{series.OperatorInfo + "{" + labels + "}", slo.Samples(minutes, func(m int) string {
			if hasMinute(in.unscraped, m) || in.findVersion(m) != c.version {
				return ""
			}
			return "1"
		})})
	}
	addGauge := func(metric, sli, good, bad, further string) {
		out = append(out, input{metric + "{" + in.formatLabels() + further + "}",
			slo.Samples(minutes, func(m int) string {
				switch {
				case hasMinute(in.unscraped, m):
					return ""
				case hasMinute(in.bad[sli], m):
					return bad
				}
				return good
			})})
	}
	addGauge(series.OperatorCSVSucceeded, csv, "1", "0", "")
	if in.onlyCSV {
		return out
	}
	addGauge(series.OperatorCatalogReady, catalog, "1", "0", "")
	deployment := fmt.Sprintf(",%s=\"d\"", series.Deployment)
	addGauge(series.OperatorReplicasDesired, "", "3", "3", deployment)
	addGauge(series.OperatorReplicasAvailable, available, "3", "0", deployment)
	return out
}

// fleet contains installs and a hub that lists them.
type fleet struct {
	installs []install
	// hubUnscraped are the minutes in which nothing of the hub is scraped.
	hubUnscraped []Span
}

// listSeries returns the series of all agents and of the hub.
func (f fleet) listSeries(minutes int) []input {
	scraped := slo.Samples(minutes, func(m int) string {
		if hasMinute(f.hubUnscraped, m) {
			return ""
		}
		return "1"
	})
	out := []input{{series.FleetClusters + `{state="online"}`, scraped}}
	added := map[string]bool{}
	for _, in := range f.installs {
		if !added[in.cluster] {
			added[in.cluster] = true
			name := fmt.Sprintf("%s{%s=%q}", series.ClusterOnline, series.Cluster, in.cluster)
			out = append(out, input{name, scraped})
		}
		out = append(out, input{series.OperatorExpected + "{" + in.formatLabels() + `,pod="hub"}`, scraped})
		out = append(out, in.listSeries(minutes)...)
	}
	return out
}

// splitFleet returns one fleet for each install with events, and one fleet for
// an install without events, which represents all installs without events.
func (f fleet) splitFleet() []fleet {
	var out []fleet
	hasHealthy := false
	for _, in := range f.installs {
		if len(in.bad)+len(in.unscraped) == 0 {
			if hasHealthy {
				continue
			}
			hasHealthy = true
		}
		out = append(out, fleet{[]install{in}, f.hubUnscraped})
	}
	return out
}

// newInstalls returns installs of the operator echo on clusters
// c0, c1 and so on, after edit has changed each of them.
func newInstalls(n int, edit func(i int, in *install)) []install {
	out := make([]install, n)
	for i := range out {
		out[i] = install{cluster: fmt.Sprintf("c%d", i), operator: "echo"}
		edit(i, &out[i])
	}
	return out
}

// newInstallsOnAll returns installs of several operators on each of
// several clusters. The first `broken` clusters are bad in the given span.
func newInstallsOnAll(clusters, operators, broken int, outage Span) []install {
	var out []install
	for c := range clusters {
		for o := range operators {
			in := install{cluster: fmt.Sprintf("c%d", c), operator: fmt.Sprintf("operator-%d", o), onlyCSV: true}
			if c < broken {
				in.bad = failSLI(csv, outage)
			}
			out = append(out, in)
		}
	}
	return out
}

// failSLI returns the bad minutes of one SLI.
func failSLI(sli string, spans ...Span) map[string][]Span { return map[string][]Span{sli: spans} }
