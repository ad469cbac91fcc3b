// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// Failure is something that a person has to be paged for, once.
type Failure struct {
	// Cluster is where it is. Empty: on several clusters, or on the hub.
	Cluster string
	// SLI that is bad. Empty: several, or none is measured.
	SLI string
	// When it lasts. If it lasts until the end of the scenario, To is the end.
	When Span
}

// Scenario is what happens in a fleet.
type Scenario struct {
	Name string
	// Minutes is how long it is.
	Minutes  int
	fleet    fleet
	Failures []Failure
}

// Set returns the objectives of scenarios: csv, available and catalog with one
// target, over 30 days.
func Set(target slo.PPM) slo.Set {
	return slo.Set{Default: []slo.Objective{
		{SLI: csv, Target: target}, {SLI: available, Target: target}, {SLI: catalog, Target: target},
	}}
}

// onOne is a failure of csv on cluster c0 of three.
func onOne(name string, minutes int, bad ...Span) Scenario {
	return Scenario{
		Name: name, Minutes: minutes,
		fleet: fleet{installs: onClusters(3, func(i int, in *install) {
			if i == 0 {
				in.bad = failing(csv, bad...)
			}
		})},
		Failures: []Failure{{"c0", csv, Span{bad[0].From, bad[len(bad)-1].To}}},
	}
}

// withoutPage is the same for failures that are too small for a page.
func withoutPage(s Scenario) Scenario {
	s.Failures = nil
	return s
}

// hour in minutes.
const hour = 60

// All returns the scenarios. They suit a target of 99.9 %.
func All() []Scenario {
	return slices.Concat(ofOneCluster(), ofReleases(), ofBrokenClusters(), withoutData())
}

func ofOneCluster() []Scenario {
	day := Span{hour, 25 * hour}
	return []Scenario{
		onOne("outage of 5 minutes on one cluster", 10*hour, Span{60, 65}),
		onOne("outage of 10 minutes on one cluster", 10*hour, Span{60, 70}),
		onOne("outage of 60 minutes on one cluster", 15*hour, Span{60, 120}),
		onOne("1 bad minute in 20, for 8 hours", 18*hour, every(20, Span{60, 540})...),
		withoutPage(onOne("1 bad minute in 6 hours, for a day", 26*hour, every(6*hour, day)...)),
	}
}

func ofReleases() []Scenario {
	return []Scenario{
		{
			Name: "a release burns an SLI of 10 clusters, and another SLI is bad on one of them", Minutes: 7 * hour,
			fleet: fleet{installs: onClusters(10, func(i int, in *install) {
				in.bad = failing(catalog, Span{60, 360})
				if i == 0 {
					in.bad[available] = []Span{{60, 360}}
				}
			})},
			Failures: []Failure{{"", catalog, Span{60, 360}}, {"c0", available, Span{60, 360}}},
		},
		{
			Name: "a bad release on 20 clusters, then its fix", Minutes: 500,
			fleet: fleet{installs: onClusters(20, func(_ int, in *install) {
				in.versions = []change{{0, "1.0.0"}, {60, "2.0.0"}, {180, "2.0.1"}}
				in.bad = failing(csv, Span{60, 180})
			})},
			Failures: []Failure{{"", csv, Span{60, 180}}},
		},
		{
			Name: "2 of 200 clusters are bad, then a third", Minutes: 400,
			fleet: fleet{installs: onClusters(200, func(i int, in *install) {
				in.onlyCSV = true
				switch i {
				case 0, 1:
					in.bad = failing(csv, Span{60, 400})
				case 2:
					in.bad = failing(csv, Span{360, 400})
				}
			})},
			Failures: []Failure{{"c0", csv, Span{60, 400}}, {"c1", csv, Span{60, 400}}, {"c2", csv, Span{360, 400}}},
		},
		{
			Name: "a quota on one cluster, 20 minutes after 2 bad minutes on another", Minutes: 5 * hour,
			fleet: fleet{installs: onClusters(20, func(i int, in *install) {
				switch i {
				case 0:
					in.bad = failing(csv, Span{60, 62})
				case 1:
					in.bad = failing(csv, Span{82, 300})
				}
			})},
			Failures: []Failure{{"c0", csv, Span{60, 62}}, {"c1", csv, Span{82, 300}}},
		},
	}
}

func ofBrokenClusters() []Scenario {
	return []Scenario{
		{
			Name: "1 cluster with 30 operators is broken", Minutes: 7 * hour,
			fleet:    fleet{installs: onAll(1, 30, 1, Span{60, 180})},
			Failures: []Failure{{"c0", "", Span{60, 180}}},
		},
		{
			Name: "3 of 20 clusters with all of their 12 operators are broken", Minutes: 5 * hour,
			fleet: fleet{installs: onAll(20, 12, 3, Span{60, 180})},
			Failures: []Failure{{"c0", "", Span{60, 180}}, {"c1", "", Span{60, 180}},
				{"c2", "", Span{60, 180}}},
		},
	}
}

func withoutData() []Scenario {
	return []Scenario{
		{
			Name: "all scraping is lost during an outage of one cluster", Minutes: 5 * hour,
			fleet: fleet{
				hubDark: []Span{{90, 300}},
				installs: onClusters(5, func(i int, in *install) {
					in.dark = []Span{{90, 300}}
					if i == 0 {
						in.bad = failing(csv, Span{60, 300})
					}
				}),
			},
			Failures: []Failure{{"c0", csv, Span{60, 300}}, {"", "", Span{90, 300}}},
		},
		{
			Name: "a cluster goes dark during an outage", Minutes: 5 * hour,
			fleet: fleet{installs: onClusters(5, func(i int, in *install) {
				if i == 0 {
					in.bad = failing(csv, Span{60, 300})
					in.dark = []Span{{90, 300}}
				}
			})},
			Failures: []Failure{{"c0", csv, Span{60, 300}}, {"c0", "", Span{90, 300}}},
		},
	}
}
