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

func contains(spans []Span, minute int) bool {
	for _, s := range spans {
		if minute >= s.From && minute < s.To {
			return true
		}
	}
	return false
}

// every returns spans of one minute in every period of minutes.
func every(period int, within Span) []Span {
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

// install is an operator on a cluster, with what happens to it.
type install struct {
	cluster, operator string
	// versions that are installed, the first one from minute 0. Default: 1.0.0.
	versions []change
	// bad are the minutes in which an SLI is bad.
	bad map[string][]Span
	// dark are the minutes in which nothing of the cluster is scraped.
	dark []Span
	// onlyCSV leaves out the series of other SLIs. Fewer series are played faster.
	onlyCSV bool
}

// version is what is installed in a minute.
func (in install) version(minute int) string {
	out := in.versions[0].version
	for _, c := range in.versions {
		if c.from <= minute {
			out = c.version
		}
	}
	return out
}

func (in install) labels() string {
	return fmt.Sprintf("%s=%q,%s=\"fleet\",%s=%q", series.Cluster, in.cluster, series.OperatorNamespace,
		series.Operator, in.operator)
}

// series are those that the agent of an install exports.
func (in install) series(minutes int) []input {
	if len(in.versions) == 0 {
		in.versions = []change{{0, "1.0.0"}}
	}
	var out []input
	for _, c := range in.versions {
		labels := in.labels() + fmt.Sprintf(",%s=%q,%s=\"v%s\",%s=%q,%s=\"of %s\"", series.Namespace, in.operator,
			series.CSV, c.version, series.Version, c.version, series.Release, c.version)
		out = append(out, input{series.OperatorInfo + "{" + labels + "}", slo.Samples(minutes, func(m int) string {
			if contains(in.dark, m) || in.version(m) != c.version {
				return ""
			}
			return "1"
		})})
	}
	gauge := func(metric, sli, good, bad, further string) {
		out = append(out, input{metric + "{" + in.labels() + further + "}", slo.Samples(minutes, func(m int) string {
			switch {
			case contains(in.dark, m):
				return ""
			case contains(in.bad[sli], m):
				return bad
			}
			return good
		})})
	}
	gauge(series.OperatorCSVSucceeded, csv, "1", "0", "")
	if in.onlyCSV {
		return out
	}
	gauge(series.OperatorCatalogReady, catalog, "1", "0", "")
	deployment := fmt.Sprintf(",%s=\"d\"", series.Deployment)
	gauge(series.OperatorReplicasDesired, "", "3", "3", deployment)
	gauge(series.OperatorReplicasAvailable, available, "3", "0", deployment)
	return out
}

// fleet is a number of installs with a hub that lists them.
type fleet struct {
	installs []install
	// hubDark are the minutes in which nothing of the hub is scraped.
	hubDark []Span
}

// series are those of all agents and of the hub.
func (f fleet) series(minutes int) []input {
	known := slo.Samples(minutes, func(m int) string {
		if contains(f.hubDark, m) {
			return ""
		}
		return "1"
	})
	out := []input{{series.FleetClusters + `{state="online"}`, known}}
	seen := map[string]bool{}
	for _, in := range f.installs {
		if !seen[in.cluster] {
			seen[in.cluster] = true
			out = append(out, input{fmt.Sprintf("%s{%s=%q}", series.ClusterOnline, series.Cluster, in.cluster), known})
		}
		out = append(out, input{series.OperatorExpected + "{" + in.labels() + `,pod="hub"}`, known})
		out = append(out, in.series(minutes)...)
	}
	return out
}

// apart returns a fleet for each install to which something happens, and one for
// all others, which are alike.
func (f fleet) apart() []fleet {
	var out []fleet
	healthy := false
	for _, in := range f.installs {
		if len(in.bad)+len(in.dark) == 0 {
			if healthy {
				continue
			}
			healthy = true
		}
		out = append(out, fleet{[]install{in}, f.hubDark})
	}
	return out
}

// onClusters returns installs of the operator echo on clusters c0, c1 and so on.
func onClusters(n int, each func(i int, in *install)) []install {
	out := make([]install, n)
	for i := range out {
		out[i] = install{cluster: fmt.Sprintf("c%d", i), operator: "echo"}
		each(i, &out[i])
	}
	return out
}

// onAll returns installs of several operators on each of several clusters, of which
// the first ones are bad for a while.
func onAll(clusters, operators, broken int, when Span) []install {
	var out []install
	for c := range clusters {
		for o := range operators {
			in := install{cluster: fmt.Sprintf("c%d", c), operator: fmt.Sprintf("operator-%d", o), onlyCSV: true}
			if c < broken {
				in.bad = failing(csv, when)
			}
			out = append(out, in)
		}
	}
	return out
}

// failing is an SLI that is bad in some minutes.
func failing(sli string, spans ...Span) map[string][]Span { return map[string][]Span{sli: spans} }
