// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// scrapedHalfMinutely leaves out every second sample, the even or the odd ones: an agent that is scraped every 30 s.
// Its series do not end between two scrapes, and are not missing anywhere else.
func scrapedHalfMinutely(inputs []testInput, samples int, odd bool) []testInput {
	out := slices.Clone(inputs)
	for i, in := range out {
		all := values(in.Values)
		var kept []string
		for j := range samples {
			value := all[min(j, len(all)-1)]
			if (j%2 == 1) != odd {
				value = "_"
			}
			kept = append(kept, value)
		}
		out[i].Values = strings.Join(kept, " ")
	}
	return out
}

// values are those of the notation of promtool that series of fleets have.
func values(notation string) []string {
	var out []string
	for _, part := range strings.Fields(notation) {
		value, times := part, 0
		if i := strings.LastIndex(part, "x"); i > 0 {
			value = part[:i]
			if _, err := fmt.Sscan(part[i+1:], &times); err != nil {
				panic(err)
			}
		}
		out = append(out, slices.Repeat([]string{value}, times+1)...)
	}
	return out
}

// scrapedInTurn is a fleet whose clusters are scraped every 30 s, the odd ones 15 s later.
func scrapedInTurn(f fleet) fleet {
	hub := f
	hub.installs = nil
	for i, in := range f.installs {
		hub.extra = append(hub.extra, scrapedHalfMinutely(in.series(f.minutes), f.minutes, i%2 == 1)...)
		known := fmt.Sprintf("1x%d", f.minutes)
		hub.extra = append(hub.extra, testInput{"bellwether_operator_expected{" + in.labels() + `,pod="hub"}`, known},
			testInput{fmt.Sprintf("bellwether_fleet_cluster_online{cluster=%q,pod=%q}", in.cluster, in.operator),
				known})
	}
	return hub
}

var standardSet = slo.Set{Default: []slo.Objective{{SLI: "csv", Target: 999_000}, {SLI: "available", Target: 999_000}}}

// outages are played with samples every 15 s. The whole minute of an evaluation is a multiple of 4 samples.
var outages = map[string]quickScenario{
	"scraped every 15 s": {
		fleet: oneBad(200, span{begin + 1, 200}), alerts: map[alert]float64{pageOfEcho: 1}, open: []alert{pageOfEcho},
		// Two bad scrapes, and the next evaluation.
		pages: map[int][]alert{begin + 3: nil, begin + 4: {pageOfEcho}},
	},
	"scraped every 30 s": {
		fleet:  scrapedInTurn(oneBad(200, span{begin + 1, 200})),
		alerts: map[alert]float64{pageOfEcho: 1}, open: []alert{pageOfEcho},
		pages: map[int][]alert{begin + 3: nil, begin + 4: {pageOfEcho}},
	},
	"scraped every 30 s, from an evaluation on": {
		fleet:  scrapedInTurn(oneBad(200, span{begin, 200})),
		alerts: map[alert]float64{pageOfEcho: 1}, open: []alert{pageOfEcho},
		pages: map[int][]alert{begin: nil, begin + 3: nil, begin + 4: {pageOfEcho}},
	},
	"replicas are not available": {
		fleet: fleet{minutes: 200, installs: clusters(2, func(i int, in *install) {
			if i == 0 {
				in.bad = failing("available", span{begin + 1, 200})
			}
		})},
		alerts: map[alert]float64{ofInstallOf("c0", "available", "page"): 1},
		open:   []alert{ofInstallOf("c0", "available", "page")},
		pages:  map[int][]alert{begin + 3: nil, begin + 4: {ofInstallOf("c0", "available", "page")}},
	},
	"one bad scrape": {
		fleet: scrapedInTurn(oneBad(200, span{begin - 1, begin + 1})),
	},
	"two bad scrapes, 20 minutes apart": {
		fleet: scrapedInTurn(oneBad(300, span{begin - 1, begin + 1}, span{begin + 79, begin + 81})),
	},
	"three bad scrapes within an hour": {
		fleet: scrapedInTurn(oneBad(300, span{begin - 1, begin + 1}, span{begin + 79, begin + 81},
			span{begin + 159, begin + 161})),
	},
	"one bad sample of three": {
		fleet: oneBad(300, span{begin, begin + 1}, span{begin + 4, begin + 5}),
	},
	"a release on clusters that are scraped in turn": {
		fleet: scrapedInTurn(fleet{minutes: 200, installs: clusters(4, func(_ int, in *install) {
			in.onlyCSV = true
			in.bad = failing("csv", span{begin + 2, 200}) // the odd clusters have one bad scrape at begin + 4
		})},
		),
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 1},
		open:   []alert{ofRelease("1.0.0", "csv", "page")},
		pages:  map[int][]alert{begin + 3: nil, begin + 4: {ofRelease("1.0.0", "csv", "page")}},
	},
	"a release fails on one cluster first": {
		fleet: fleet{minutes: 200, installs: clusters(5, func(i int, in *install) {
			in.onlyCSV = true
			in.bad = failing("csv", span{begin + 4, 200})
			if i == 0 {
				in.bad = failing("csv", span{begin + 2, 200})
			}
		})},
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 1},
		open:   []alert{ofRelease("1.0.0", "csv", "page")},
		pages:  map[int][]alert{begin + 4: nil, begin + 8: {ofRelease("1.0.0", "csv", "page")}},
	},
	// It takes three of 60 clusters to blame a release. Two are confirmed, and all are bad.
	"a release fails on two clusters of many first": {
		fleet: fleet{minutes: 60, installs: clusters(60, func(i int, in *install) {
			in.onlyCSV = true
			in.bad = failing("csv", span{begin + 4, 60})
			if i < 2 {
				in.bad = failing("csv", span{begin + 2, 60})
			}
		})},
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 1},
		open:   []alert{ofRelease("1.0.0", "csv", "page")},
		pages:  map[int][]alert{begin + 4: {ofRelease("1.0.0", "csv", "page")}},
	},
	"one bad scrape on the other of two clusters, when a failure begins": {
		fleet: fleet{minutes: 200, installs: clusters(2, func(i int, in *install) {
			in.onlyCSV = true
			in.bad = failing("csv", span{begin + 2, 200})
			if i == 1 {
				in.bad = failing("csv", span{begin + 4, begin + 5})
			}
		})},
		// What the clusters have in common is known at the next evaluation.
		alerts: map[alert]float64{pageOfEcho: 1}, open: []alert{pageOfEcho},
		pages: map[int][]alert{begin + 4: nil, begin + 8: {pageOfEcho}},
	},
	// Two of five are not most of them, and one has to be confirmed first.
	"a release fails on two clusters of five, one after the other": {
		fleet: fleet{minutes: 200, installs: clusters(5, func(i int, in *install) {
			in.onlyCSV = true
			switch i {
			case 0:
				in.bad = failing("csv", span{begin + 2, 200})
			case 1:
				in.bad = failing("csv", span{begin + 4, 200})
			}
		})},
		alerts: map[alert]float64{ofRelease("1.0.0", "csv", "page"): 1},
		open:   []alert{ofRelease("1.0.0", "csv", "page")},
		pages:  map[int][]alert{begin + 4: nil, begin + 8: {ofRelease("1.0.0", "csv", "page")}},
	},
	"one bad scrape on another cluster, when a failure begins": {
		fleet: fleet{minutes: 200, installs: clusters(5, func(i int, in *install) {
			in.onlyCSV = true
			switch i {
			case 0:
				in.bad = failing("csv", span{begin + 2, 200})
			case 1:
				in.bad = failing("csv", span{begin + 4, begin + 5}, span{begin + 64, begin + 65})
			}
		})},
		alerts: map[alert]float64{pageOfEcho: 1}, open: []alert{pageOfEcho},
		pages: map[int][]alert{begin + 4: nil, begin + 8: {pageOfEcho}},
	},
	"a cluster with three operators": {
		fleet:  fleet{minutes: 200, installs: onAll(1, 3, 1, span{begin + 1, 200})},
		alerts: map[alert]float64{ofCluster("c0"): 1}, open: []alert{ofCluster("c0")},
		pages: map[int][]alert{begin + 3: nil, begin + 4: {ofCluster("c0")}},
	},
	"a cluster with three operators that fail one after the other": {
		fleet: fleet{minutes: 200, installs: oneAfterTheOther(onAll(1, 3, 1, span{begin, 200}))},
		// At the next evaluation all of them are confirmed.
		alerts: map[alert]float64{ofCluster("c0"): 1}, open: []alert{ofCluster("c0")},
		pages: map[int][]alert{begin + 4: nil, begin + 8: {ofCluster("c0")}},
	},
}

func oneAfterTheOther(installs []install) []install {
	for i := range installs {
		installs[i].bad = failing("csv", span{begin + 2 + i, 200})
	}
	return installs
}

// TestOutages looks at when pages about total outages begin: after two bad scrapes and the next evaluation. What
// several clusters or operators have in common is one page, and pages at the same time.
func TestOutages(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(outages)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runQuick(t, standardSet, []slo.Part{slo.Whole}, outages[name].test(name))
		})
	}
}

// TestOutagesInParts expects the same of both parts of the rules.
func TestOutagesInParts(t *testing.T) {
	for _, name := range []string{"scraped every 30 s", "one bad scrape", "a cluster with three operators",
		"a release on clusters that are scraped in turn"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runQuick(t, standardSet, inParts, outages[name].test(name))
		})
	}
}

// outageMutants are mistakes in what makes pages about outages early, and the outage that is played differently by it.
var outageMutants = map[string]struct{ from, to, outage string }{
	"guard of scrapes": {"< 4.5", "< 0.5", "three bad scrapes within an hour"},
	"what is confirmed": {"max_over_time(bellwether:sli_bad_confirmed:slice[5m:1m]) > 0",
		"max_over_time(bellwether:sli_bad_confirmed:slice[5m:1m]) >= 0", "one bad scrape"},
	"most clusters of a version": {"0.5 * bellwether:operator_version:clusters",
		"2 * bellwether:operator_version:clusters", "a release fails on two clusters of many first"},
	"confirmed clusters of a release": {"(bellwether:sli_bad_confirmed:slice > 0) >= 2",
		"(bellwether:sli_bad_confirmed:slice > 0) >= 1",
		"one bad scrape on the other of two clusters, when a failure begins"},
	"a cluster waits for its version": {
		`and on (operator_namespace, operator, sli, version) (bellwether:sli_bad_version:slice{version!="",` +
			`sli=~"csv|available|catalog"} unless`,
		`and on (operator_namespace, operator, sli, version) (bellwether:sli_no_version:slice{version!="",` +
			`sli=~"csv|available|catalog"} unless`, "a release fails on one cluster first"},
	"an operator waits for its cluster": {">= 3 and on (cluster) (bellwether:sli_bad_version:slice",
		">= 30 and on (cluster) (bellwether:sli_bad_version:slice",
		"a cluster with three operators that fail one after the other"},
}

// TestMutantsOfOutages makes these mistakes in the rules, one at a time.
func TestMutantsOfOutages(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(outageMutants)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := outageMutants[name]
			if playQuick(t, standardSet, []slo.Part{slo.Whole}, m.from, m.to, outages[m.outage].test(m.outage)) == nil {
				t.Errorf("%q passes with %q for %q", m.outage, m.to, m.from)
			}
		})
	}
}
