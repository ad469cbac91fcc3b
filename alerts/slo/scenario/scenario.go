// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// Failure is a failure that needs one page.
type Failure struct {
	// Cluster is the cluster that fails. Empty: several clusters, or the hub.
	Cluster string
	// SLI is the SLI that is bad. Empty: several SLIs, or no SLI is measured.
	SLI string
	// When is the time of the failure. If it lasts until the end of the scenario, To is the end.
	When Span
}

// Scenario is a sequence of events in a fleet.
type Scenario struct {
	Name string
	// Minutes is its length.
	Minutes  int
	fleet    fleet
	Failures []Failure
}

// Set returns the objectives of scenarios: csv, available and catalog with one target, over 30 days.
func Set(target slo.PPM) slo.Set {
	return slo.Set{Default: []slo.Objective{
		{SLI: csv, Target: target}, {SLI: available, Target: target}, {SLI: catalog, Target: target},
	}}
}

// newSingleFailure returns a scenario in which csv fails on cluster c0 of three
// clusters. All bad spans together are one failure, which needs one page.
func newSingleFailure(name string, minutes int, bad ...Span) Scenario {
	return Scenario{
		Name: name, Minutes: minutes,
		fleet: fleet{installs: newInstalls(3, func(i int, in *install) {
			if i == 0 {
				in.bad = failSLI(csv, bad...)
			}
		})},
		Failures: []Failure{{"c0", csv, Span{bad[0].From, bad[len(bad)-1].To}}},
	}
}

// removeFailures returns the scenario without failures that need a page, for failures that are too small.
func removeFailures(s Scenario) Scenario {
	s.Failures = nil
	return s
}

// hour in minutes.
const hour = 60

// All returns the scenarios. They are made for a target of 99.9 %.
func All() []Scenario {
	return slices.Concat(listClusterScenarios(), listReleaseScenarios(), listBrokenClusterScenarios(),
		listNoDataScenarios())
}

func listClusterScenarios() []Scenario {
	day := Span{hour, 25 * hour}
	return []Scenario{
		newSingleFailure("outage of 5 minutes on one cluster", 10*hour, Span{60, 65}),
		newSingleFailure("outage of 10 minutes on one cluster", 10*hour, Span{60, 70}),
		newSingleFailure("outage of 60 minutes on one cluster", 15*hour, Span{60, 120}),
		newSingleFailure("1 bad minute in 20, for 8 hours", 18*hour, repeatMinutes(20, Span{60, 540})...),
		removeFailures(newSingleFailure("1 bad minute in 6 hours, for a day", 26*hour, repeatMinutes(6*hour, day)...)),
	}
}

func listReleaseScenarios() []Scenario {
	return []Scenario{
		{
			Name: "a release burns an SLI of 10 clusters, and another SLI is bad on one of them", Minutes: 7 * hour,
			fleet: fleet{installs: newInstalls(10, func(i int, in *install) {
				in.bad = failSLI(catalog, Span{60, 360})
				if i == 0 {
					in.bad[available] = []Span{{60, 360}}
				}
			})},
			Failures: []Failure{{"", catalog, Span{60, 360}}, {"c0", available, Span{60, 360}}},
		},
		{
			Name: "a bad release on 20 clusters, then its fix", Minutes: 500,
			fleet: fleet{installs: newInstalls(20, func(_ int, in *install) {
				in.versions = []change{{0, "1.0.0"}, {60, "2.0.0"}, {180, "2.0.1"}}
				in.bad = failSLI(csv, Span{60, 180})
			})},
			Failures: []Failure{{"", csv, Span{60, 180}}},
		},
		{
			Name: "2 of 200 clusters are bad, then a third", Minutes: 400,
			fleet: fleet{installs: newInstalls(200, func(i int, in *install) {
				in.onlyCSV = true
				switch i {
				case 0, 1:
					in.bad = failSLI(csv, Span{60, 400})
				case 2:
					in.bad = failSLI(csv, Span{360, 400})
				}
			})},
			Failures: []Failure{{"c0", csv, Span{60, 400}}, {"c1", csv, Span{60, 400}}, {"c2", csv, Span{360, 400}}},
		},
		{
			Name: "a quota on one cluster, 20 minutes after 2 bad minutes on another", Minutes: 5 * hour,
			fleet: fleet{installs: newInstalls(20, func(i int, in *install) {
				switch i {
				case 0:
					in.bad = failSLI(csv, Span{60, 62})
				case 1:
					in.bad = failSLI(csv, Span{82, 300})
				}
			})},
			Failures: []Failure{{"c0", csv, Span{60, 62}}, {"c1", csv, Span{82, 300}}},
		},
	}
}

func listBrokenClusterScenarios() []Scenario {
	return []Scenario{
		{
			Name: "1 cluster with 30 operators is broken", Minutes: 7 * hour,
			fleet:    fleet{installs: newInstallsOnAll(1, 30, 1, Span{60, 180})},
			Failures: []Failure{{"c0", "", Span{60, 180}}},
		},
		{
			Name: "3 of 20 clusters with all of their 12 operators are broken", Minutes: 5 * hour,
			fleet: fleet{installs: newInstallsOnAll(20, 12, 3, Span{60, 180})},
			Failures: []Failure{{"c0", "", Span{60, 180}}, {"c1", "", Span{60, 180}},
				{"c2", "", Span{60, 180}}},
		},
	}
}

func listNoDataScenarios() []Scenario {
	return []Scenario{
		{
			Name: "all scraping is lost during an outage of one cluster", Minutes: 5 * hour,
			fleet: fleet{
				hubUnscraped: []Span{{90, 300}},
				installs: newInstalls(5, func(i int, in *install) {
					in.unscraped = []Span{{90, 300}}
					if i == 0 {
						in.bad = failSLI(csv, Span{60, 300})
					}
				}),
			},
			Failures: []Failure{{"c0", csv, Span{60, 300}}, {"", "", Span{90, 300}}},
		},
		{
			Name: "a cluster goes dark during an outage", Minutes: 5 * hour,
			fleet: fleet{installs: newInstalls(5, func(i int, in *install) {
				if i == 0 {
					in.bad = failSLI(csv, Span{60, 300})
					in.unscraped = []Span{{90, 300}}
				}
			})},
			Failures: []Failure{{"c0", csv, Span{60, 300}}, {"c0", "", Span{90, 300}}},
		},
	}
}
