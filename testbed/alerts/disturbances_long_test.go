// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package alerts

import (
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// longDisturbances are those with many installs or many hours.
var longDisturbances = map[string]scenario{
	"3 of 20 clusters with all of their 60 operators are broken": {
		set: &onlyCSV, fleet: fleet{minutes: 150, installs: onAll(20, 60, 3, span{60, 110})},
		alerts: map[alert]float64{ofCluster("c0"): 1, ofCluster("c1"): 1, ofCluster("c2"): 1},
	},
	"budgets that a release spent": {
		fleet: fleet{minutes: 800, installs: clusters(5, func(_ int, in *install) {
			in.bad = failing("csv", span{60, 180})
		})},
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 1},
	},
	"budgets that a broken cluster spent": {
		set: &onlyCSV, fleet: fleet{minutes: 800, installs: onAll(1, 6, 1, span{60, 180})},
		alerts: map[alert]float64{ofCluster("c0"): 1},
	},
	"a budget that is spent slowly": {
		fleet: fleet{minutes: 1000, installs: clusters(1, func(_ int, in *install) {
			in.bad = failing("csv", append(every(20, 60, 61), every(12, 60, 612)...)...)
		})},
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "page"): 1, ofBudget("c0", "csv"): 1},
		open:   []alert{ofBudget("c0", "csv")},
	},
	"the hub is lost for more than a day": {
		fleet:  fleet{minutes: 1620, hubDark: []span{{60, 1620}}, installs: clusters(1, nil)},
		alerts: map[alert]float64{hubDown: 1},
		open:   []alert{hubDown},
	},
	"a slow burn becomes fast": {
		fleet: fleet{minutes: 1500, installs: clusters(3, func(i int, in *install) {
			if i == 0 {
				in.bad = failing("csv", append(every(250, 60, 1260), span{1300, 1320})...)
			}
		})},
		alerts: map[alert]float64{ofInstallOf("c0", "csv", "ticket"): 1, ofInstallOf("c0", "csv", "page"): 1},
	},
}

// TestLongDisturbances counts, over whole runs, how often each alert begins to fire.
func TestLongDisturbances(t *testing.T) { play(t, longDisturbances, slo.Whole) }

// TestAllInParts expects the same of both parts of the rules.
func TestAllInParts(t *testing.T) {
	play(t, scenarios, inParts...)
	play(t, disturbances, inParts...)
	play(t, longDisturbances, inParts...)
}
