// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// Minutes of stories about what an alert says: an outage begins, and is read an hour later, when a whole window is bad.
const (
	outageFrom = 60
	outageRead = outageFrom + 59
	outageTo   = outageRead + 1
)

// rolledOut is what the hub exports of a rollout.
type rolledOut struct {
	name, version, from, kind, wave, approvedBy string
	start                                       time.Time
	// newest is true for the newest rollout of the operator.
	newest bool
}

// series are there until a minute.
func (r rolledOut) series(until int) []testInput {
	const operator = `operator_namespace="fleet",operator="echo"`
	constant := func(value string) string {
		return slo.Samples(outageTo, func(m int) string {
			if m >= until {
				return ""
			}
			return value
		})
	}
	out := []testInput{{fmt.Sprintf("bellwether_rollout_change_start_timestamp_seconds{%s,rollout=%q,version=%q,"+
		"from=%q,kind=%q,wave=%q,approved_by=%q}", operator, r.name, r.version, r.from, r.kind, r.wave, r.approvedBy),
		constant(fmt.Sprint(r.start.Unix()))}}
	if r.newest {
		out = append(out, testInput{fmt.Sprintf("bellwether_rollout_info{%s,rollout=%q,version=%q,release=\"r\"}",
			operator, r.name, r.version), constant("1")})
	}
	return out
}

// releaseStory is a version that fails on some clusters, and what the alert about it says beside what it always does.
type releaseStory struct {
	clusters int
	rollouts []rolledOut
	// hubUntil is the minute from which nothing is known of rollouts. Zero: never.
	hubUntil int
	version  string
	// versions run on one cluster each, in place of version.
	versions []string
	extra    []testInput
	says     map[string]string
}

func (s releaseStory) test(name string) testCase {
	until := s.hubUntil
	if until == 0 {
		until = outageTo
	}
	fleet := fleet{minutes: outageTo, extra: s.extra}
	for _, r := range s.rollouts {
		fleet.extra = append(fleet.extra, r.series(until)...)
	}
	fleet.installs = clusters(s.clusters, func(i int, in *install) {
		version := s.version
		if s.versions != nil {
			version = s.versions[i%len(s.versions)]
		}
		in.versions, in.onlyCSV = []change{{0, version}}, true
		in.bad = failing("csv", span{outageFrom, outageTo})
		if i >= 20 { // the worst ones are listed
			in.bad = failing("csv", span{outageRead - 20, outageTo})
		}
	})
	labels := map[string]string{"severity": "page", "scope": "release", "operator_namespace": "fleet",
		"operator": "echo", "sli": "csv", "slo": "fleet/echo/csv"}
	if s.version != "" {
		labels["version"] = s.version
	}
	annotations := map[string]string{
		"description": "Several clusters fail in the same way. At this rate the error budget is gone before its period is " +
			"over. The value is that of the worst cluster.",
		// 59 slices of a month's 43.2 that may be bad: the budget is that of the evaluation before.
		"burn": "1000.0", "window": "1h", "held_until": "", "criticality": "Standard", "budget_left": "-36.57%",
		"rollout": "", "wave": "", "change": "", "rollback": "", "look": "bellwether operator get echo -n fleet",
	}
	maps.Copy(annotations, s.says)
	return testCase{Name: name, Series: fleet.series(), Alerts: []testAlert{{At: fmt.Sprintf("%dm", outageRead),
		Alert: "BellwetherReleaseSLOBurn", Alerts: []testFired{{labels, annotations}}}}}
}

var (
	first   = rolledOut{name: "echo-1", version: "1.0.0", kind: "rollout", wave: "all", start: startOf(20, 9, 0)}
	upgrade = rolledOut{name: "echo-2", version: "1.1.0", from: "1.0.0", kind: "rollout", wave: "canary",
		start: startOf(22, 18, 34)}
	rollback = rolledOut{name: "echo-3", version: "1.0.0", from: "1.1.0", kind: "automatic rollback", wave: "rollback",
		start: startOf(22, 18, 50), newest: true}
)

// startOf is a time in November 2026.
func startOf(day, hour, minute int) time.Time {
	return time.Date(2026, time.November, day, hour, minute, 12, 0, time.UTC)
}

func (r rolledOut) with(change func(*rolledOut)) rolledOut { change(&r); return r }

func isNewest(r *rolledOut)   { r.newest = true }
func isApproved(r *rolledOut) { r.newest, r.approvedBy = true, "jane@example.com" }

// summaryOf is what an alert says of a version.
func summaryOf(in string) string {
	return "fleet/echo burns its csv budget 1000.0 times too fast in " + in
}

// says adds to what an alert says.
func says(in string, count int, clusters string, more ...string) map[string]string {
	out := map[string]string{"summary": summaryOf(in), "cluster_count": fmt.Sprint(count), "clusters": clusters}
	for i := 0; i+1 < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

var releaseStories = map[string]releaseStory{
	"a rollout that somebody approved": {
		clusters: 2, version: "1.1.0", rollouts: []rolledOut{first, upgrade.with(isApproved)},
		says: says("version 1.1.0 on 2 clusters", 2, "c0, c1", "rollout", "fleet/echo-2", "wave", "canary",
			"change", "1.0.0 -> 1.1.0, started 2026-11-22 18:34 UTC, approved by jane@example.com",
			"look", "bellwether rollout get echo-2 -n fleet",
			"rollback", `bellwether rollout rollback echo-2 -n fleet --reason "1.1.0 burns its csv budget"`),
	},
	"a hub that is not scraped for 9 minutes": {
		clusters: 2, version: "1.1.0", rollouts: []rolledOut{first, upgrade.with(isNewest)}, hubUntil: outageRead - 8,
		says: says("version 1.1.0 on 2 clusters", 2, "c0, c1", "rollout", "fleet/echo-2", "wave", "canary",
			"change", "1.0.0 -> 1.1.0, started 2026-11-22 18:34 UTC",
			"look", "bellwether rollout get echo-2 -n fleet",
			"rollback", `bellwether rollout rollback echo-2 -n fleet --reason "1.1.0 burns its csv budget"`),
	},
	"no rollout of the version": {
		clusters: 2, version: "1.1.0", rollouts: []rolledOut{first.with(isNewest)},
		says: says("version 1.1.0 on 2 clusters", 2, "c0, c1"),
	},
	"more clusters than are listed": {
		clusters: 25, version: "1.1.0", rollouts: []rolledOut{upgrade.with(isNewest)},
		says: says("version 1.1.0 on 25 clusters", 25, listedClusters(), "rollout", "fleet/echo-2", "wave", "canary",
			"change", "1.0.0 -> 1.1.0, started 2026-11-22 18:34 UTC",
			"look", "bellwether rollout get echo-2 -n fleet",
			"rollback", `bellwether rollout rollback echo-2 -n fleet --reason "1.1.0 burns its csv budget"`),
	},
	"one cluster, of a wave that was judged failed, on which nothing ran before": {
		clusters: 1, version: "1.1.0",
		rollouts: []rolledOut{upgrade.with(func(r *rolledOut) { r.newest, r.from = true, "" })},
		extra: []testInput{{`bellwether_rollout_wave_failed{operator_namespace="fleet",operator="echo",wave="canary",` +
			`version="1.1.0",release="r"}`, fmt.Sprintf("1x%d", outageTo)}},
		says: says("version 1.1.0 on 1 cluster", 1, "c0", "rollout", "fleet/echo-2", "wave", "canary",
			"change", "1.1.0, started 2026-11-22 18:34 UTC", "look", "bellwether rollout get echo-2 -n fleet",
			"description", "A wave of the rollout was judged failed. At this rate the error budget is gone before "+
				"its period is over."),
	},
	"a rollout that ended more than a day ago": {
		clusters: 2, version: "1.1.0", rollouts: []rolledOut{first, upgrade.with(isNewest)},
		extra: []testInput{{`bellwether_rollout_start_timestamp_seconds{operator_namespace="fleet",operator="echo"}`,
			fmt.Sprintf("-90000x%d", outageTo)}, {`bellwether_rollout_end_timestamp_seconds{operator_namespace="fleet",operator="echo"}`,
			fmt.Sprintf("-80000x%d", outageTo)}},
		says: says("version 1.1.0 on 2 clusters", 2, "c0, c1", "rollout", "fleet/echo-2", "wave", "canary",
			"change", "1.0.0 -> 1.1.0, started 2026-11-22 18:34 UTC",
			"look", "bellwether rollout get echo-2 -n fleet"),
	},
	"a rollout that ended an hour ago": {
		clusters: 2, version: "1.1.0", rollouts: []rolledOut{first, upgrade.with(isNewest)},
		extra: []testInput{{`bellwether_rollout_start_timestamp_seconds{operator_namespace="fleet",operator="echo"}`,
			fmt.Sprintf("-90000x%d", outageTo)}, {`bellwether_rollout_end_timestamp_seconds{operator_namespace="fleet",operator="echo"}`,
			fmt.Sprintf("3600x%d", outageTo)}},
		says: says("version 1.1.0 on 2 clusters", 2, "c0, c1", "rollout", "fleet/echo-2", "wave", "canary",
			"change", "1.0.0 -> 1.1.0, started 2026-11-22 18:34 UTC",
			"look", "bellwether rollout get echo-2 -n fleet",
			"rollback", `bellwether rollout rollback echo-2 -n fleet --reason "1.1.0 burns its csv budget"`),
	},
	"a rollout that began when the one before had ended more than a day ago": {
		clusters: 2, version: "1.1.0", rollouts: []rolledOut{first, upgrade.with(isNewest)},
		extra: []testInput{
			{`bellwether_rollout_start_timestamp_seconds{operator_namespace="fleet",operator="echo"}`,
				fmt.Sprintf("-90000x%d %dx%d", outageRead-6, (outageRead-5)*60, 6)},
			{`bellwether_rollout_end_timestamp_seconds{operator_namespace="fleet",operator="echo"}`,
				fmt.Sprintf("-89000x%d stale", outageRead-6)}},
		says: says("version 1.1.0 on 2 clusters", 2, "c0, c1", "rollout", "fleet/echo-2", "wave", "canary",
			"change", "1.0.0 -> 1.1.0, started 2026-11-22 18:34 UTC",
			"look", "bellwether rollout get echo-2 -n fleet",
			"rollback", `bellwether rollout rollback echo-2 -n fleet --reason "1.1.0 burns its csv budget"`),
	},
	"a rollout that is being rolled back": {
		clusters: 2, version: "1.1.0", rollouts: []rolledOut{upgrade, rollback},
		says: says("version 1.1.0 on 2 clusters", 2, "c0, c1", "rollout", "fleet/echo-2", "wave", "canary", "change",
			"1.0.0 -> 1.1.0, started 2026-11-22 18:34 UTC; automatic rollback fleet/echo-3 started 2026-11-22 18:50 "+
				"UTC",
			"look", "bellwether rollout get echo-2 -n fleet"),
	},
	"a version that was rolled out again after a rollback": {
		clusters: 2, version: "1.1.0", rollouts: []rolledOut{rollback.with(func(r *rolledOut) { r.newest = false }),
			upgrade.with(func(r *rolledOut) { r.name, r.newest, r.start = "echo-4", true, startOf(23, 1, 2) })},
		says: says("version 1.1.0 on 2 clusters", 2, "c0, c1", "rollout", "fleet/echo-4", "wave", "canary",
			"change", "1.0.0 -> 1.1.0, started 2026-11-23 01:02 UTC", "look", "bellwether rollout get echo-4 -n fleet",
			"rollback", `bellwether rollout rollback echo-4 -n fleet --reason "1.1.0 burns its csv budget"`),
	},
	"the version that was gone back to": {
		clusters: 2, version: "1.0.0", rollouts: []rolledOut{upgrade, rollback},
		says: says("version 1.0.0 on 2 clusters", 2, "c0, c1", "rollout", "fleet/echo-3", "wave", "rollback",
			"change", "1.1.0 -> 1.0.0, automatic rollback, started 2026-11-22 18:50 UTC",
			"look", "bellwether rollout get echo-3 -n fleet"),
	},
	"a rollout of other settings": {
		clusters: 2, version: "1.1.0",
		rollouts: []rolledOut{upgrade.with(func(r *rolledOut) { r.newest, r.from = true, "1.1.0" })},
		says: says("version 1.1.0 on 2 clusters", 2, "c0, c1", "rollout", "fleet/echo-2", "wave", "canary",
			"change", "1.1.0 -> 1.1.0 (same version), started 2026-11-22 18:34 UTC",
			"look", "bellwether rollout get echo-2 -n fleet",
			"rollback", `bellwether rollout rollback echo-2 -n fleet --reason "1.1.0 burns its csv budget"`),
	},
	"several versions at once": {
		clusters: 4, versions: []string{"1.0.0", "1.1.0"}, rollouts: []rolledOut{first, upgrade.with(isNewest)},
		says: says("several versions on 4 clusters", 4, "c0, c1, c2, c3"),
	},
}

// listedClusters are the 20 worst ones, by name.
func listedClusters() string {
	var out []string
	for i := range 20 {
		out = append(out, fmt.Sprintf("c%d", i))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// TestAlertsSayWhatChanged reads whole alerts about releases.
func TestAlertsSayWhatChanged(t *testing.T) {
	t.Parallel()
	var cases []testCase
	for _, name := range slices.Sorted(maps.Keys(releaseStories)) {
		cases = append(cases, releaseStories[name].test(name))
	}
	run(t, onlyCSV, cases...)
}

// TestAlertSaysWhatFailsOnACluster reads the whole alert about a cluster.
func TestAlertSaysWhatFailsOnACluster(t *testing.T) {
	t.Parallel()
	fleet := fleet{minutes: outageTo, installs: onAll(2, 3, 1, span{outageFrom, outageTo})}
	run(t, onlyCSV, testCase{Name: "a cluster on which all operators fail", Series: fleet.series(),
		Alerts: []testAlert{{At: fmt.Sprintf("%dm", outageRead), Alert: "BellwetherClusterFailing",
			Alerts: []testFired{{
				map[string]string{"severity": "page", "scope": "cluster", "cluster": "c0"},
				map[string]string{
					"summary": "3 operators fail on cluster c0",
					"description": "Several operators of the cluster fail at the same time. There is no page for each of " +
						"them.",
					"operators": "fleet/operator-0, fleet/operator-1, fleet/operator-2",
					"look":      "bellwether fleet get c0",
				}}}}}})
}

// TestFirstPageNamesAllClusters reads a page about a release in the minute in which it begins: one cluster burns its
// budget, and another one has just been confirmed.
func TestFirstPageNamesAllClusters(t *testing.T) {
	t.Parallel()
	const read = 62
	story := releaseStory{version: "1.0.0", says: says("version 1.0.0 on 2 clusters", 2, "c0, c1")}.
		test("the first minute")
	fleet := fleet{minutes: read + 1, installs: clusters(2, func(i int, in *install) {
		in.onlyCSV, in.bad = true, failing("csv", span{60 + i, read + 1})
	})}
	story.Series, story.Alerts[0].At = fleet.series(), fmt.Sprintf("%dm", read)
	said := story.Alerts[0].Alerts[0].Annotations
	said["summary"] = "fleet/echo burns its csv budget 50.0 times too fast in version 1.0.0 on 2 clusters"
	said["burn"], said["budget_left"] = "50.0", "95.37%"
	run(t, onlyCSV, story)
}
