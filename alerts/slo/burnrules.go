// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

const (
	ofSLO     = "on (" + objectiveLabels + ") group_left ()"
	ofVersion = "on (" + versionLabels + ") group_left ()"
	threshold = "bellwether:slo_threshold:ratio"
	// running counts the clusters that run a version.
	running = "bellwether:operator_version:clusters"
)

// What it takes for more than one operator on one cluster to be blamed.
const (
	// clusterOperators is how many operators have to be bad on a cluster.
	clusterOperators = 3
	// badNow is how many slices of the last 5 minutes have to be bad for an operator
	// to count: one less than Guard, since clusters are not scraped at the same time.
	badNow = "> 1.5"
	// comparable is the part of the worst version's share of bad clusters from which
	// another version is blamed too.
	comparable = "0.5"
)

// Blame is what it takes for a release to be blamed: this many clusters of a
// version and this share of them, bad at the same time. If a wave of the version's
// rollout was judged failed, one cluster is enough.
type Blame struct {
	// Clusters at least. Default: 2.
	Clusters int
	// Share of the clusters that run the version, at least. Default: 5 %.
	Share PPM
}

func (b Blame) defaulted() Blame {
	if b.Clusters <= 0 {
		b.Clusters = 2
	}
	if b.Share <= 0 {
		b.Share = 50_000
	}
	return b
}

// sum is the name of a sum over a window.
func sum(prefix string, window time.Duration) string { return prefix + duration(window) }

// tiersOf selects the tiers of a severity.
func tiersOf(severity string) string { return selectTiers(Tiers(), severity) }

func selectTiers(tiers []Tier, severity string) string {
	var names []string
	for _, t := range tiers {
		if t.Severity == severity {
			names = append(names, t.Name)
		}
	}
	return fmt.Sprintf("%s=~%q", series.Tier, strings.Join(names, "|"))
}

// versionRules sum the bad slices of a tier's windows by version, and record the
// burn rates that are above its threshold.
func (s Set) versionRules(t Tier) []monitoringv1.Rule {
	requests := s.requestSLIs()
	var rules []monitoringv1.Rule
	if len(requests) > 0 {
		rules = sums(t, series.SLIRequestsSum, func(w time.Duration) string {
			return fmt.Sprintf("sum_over_time(%s[%s])", series.SLIRequests, duration(w))
		})
	}
	rules = append(rules, sums(t, series.SLIBadVersionSum, func(w time.Duration) string {
		return fmt.Sprintf("sum without (%s) (%s)", series.Release, requests.sum(series.SLIBadVersion, w))
	})...)
	enough := guarded(t, series.SLIBadVersionSum, clusterReleaseLabels, confirmedLately())
	burn := requests.enough(exceeded(t, series.SLIBadVersionSum, enough), clusterReleaseLabels,
		series.SLIBadVersionSum, t)
	return append(rules, record(series.SLOVersionBurn, untilHeard(burn, series.SLOVersionBurn, clusterReleaseLabels, t)+
		s.untilMeasured(series.SLOVersionBurn, clusterReleaseLabels, t), series.Tier, t.Name))
}

// clusterRules do that with the slices that no release and no cluster is blamed
// for. Slices that were blamed later than they were counted are still in the
// windows; so a tier waits until there is none in its short window.
//
// Nothing else reads the sums over a ticket's long window, so those that are too small
// for any objective are not recorded: on a large fleet they are most of them.
func (s Set) clusterRules(t Tier) []monitoringv1.Rule {
	requests := s.requestSLIs()
	rules := sums(t, series.SLIBadClusterSum, func(w time.Duration) string {
		if t.Severity == series.Ticket && w == t.Long {
			return fmt.Sprintf("(%s) > %s", requests.sum(series.SLIBadCluster, w), number(s.leastSum(t)))
		}
		return requests.sum(series.SLIBadCluster, w)
	})
	enough := guarded(t, series.SLIBadClusterSum, budgetLabels, "("+confirmedAlone()+")")
	burn := fmt.Sprintf("%s\nunless %s min_over_time(%s[%s]) == 0", requests.enough(exceeded(t,
		series.SLIBadClusterSum, enough), budgetLabels, series.SLIBadClusterSum, t), on(budgetLabels),
		series.SLIBadCluster, duration(t.Short))
	return append(rules, record(series.SLOBurn, untilHeard(burn, series.SLOBurn, budgetLabels, t)+
		s.untilMeasured(series.SLOBurn, budgetLabels, t), series.Tier, t.Name))
}

// tierGroup has the rules of a slower tier. Those of the fastest one are in the
// group that records slices.
func (s Set) tierGroup(t Tier) monitoringv1.RuleGroup {
	return group("burn-"+t.Name, t.Interval, append(s.versionRules(t), s.clusterRules(t)...)...)
}

// leastSum is how many slices of a tier's long window may be bad before any objective
// calls for an alert, in whole slices.
func (s Set) leastSum(t Tier) float64 {
	objectives := slices.Clone(s.Default)
	for _, op := range s.Operators {
		objectives = append(objectives, op.Objectives...)
	}
	least := t.count(t.Long)
	for _, o := range objectives {
		least = min(least, math.Floor(t.Threshold(o.Target, o.period())*t.count(t.Long)))
	}
	return least
}

func sums(t Tier, prefix string, over func(time.Duration) string) []monitoringv1.Rule {
	var rules []monitoringv1.Rule
	for _, w := range []time.Duration{t.Short, t.Long} {
		if !recordedEarlier(t, w) {
			rules = append(rules, record(sum(prefix, w), over(w)))
		}
	}
	return rules
}

// recordedEarlier is true for a window that another tier's group sums already.
func recordedEarlier(t Tier, w time.Duration) bool {
	for _, earlier := range Tiers() {
		if earlier.Name == t.Name {
			return false
		}
		if earlier.Short == w || earlier.Long == w {
			return true
		}
	}
	return false
}

// exceeded is the burn rate of sums that are above a tier's threshold in both windows,
// where a further condition is met.
func exceeded(t Tier, prefix, enough string) string {
	over := fmt.Sprintf("%s %s{tier=%q}", ofSLO, threshold, t.Name)
	long, short := sum(prefix, t.Long), sum(prefix, t.Short)
	// Both sides of a condition that is a quotient have lost their name.
	return fmt.Sprintf("(\n  %s / %s > %s\n  and %s / %s > %s\n  and %s\n) / %s (1 - %s)",
		long, number(t.count(t.Long)), over, short, number(t.count(t.Short)), over, enough, ofSLO,
		series.SLOObjective)
}

// untilHeard keeps what a tier recorded of clusters that are silent now: a failure
// is not over because nothing is known of it. It ends when the hub no longer has
// the cluster; while nothing is known of the hub either, it does not end.
func untilHeard(expr, name, identity string, t Tier) string {
	last := fmt.Sprintf("%s{tier=%q}", name, t.Name)
	return fmt.Sprintf("%s\nor %s (%s and on (cluster) %s)\nor %s (%s unless on (cluster) %s unless on () %s)", expr,
		on(identity), last, series.ClusterSilent, on(identity), last, series.ClusterMeasured, series.FleetClusters)
}

// untilMeasured keeps what a tier recorded of own SLIs that have lost their series, until there is an alert about that.
func (s Set) untilMeasured(name, identity string, t Tier) string {
	own := s.ownSLIs()
	if own == "" {
		return ""
	}
	return fmt.Sprintf("\nor %s (%s{tier=%q,%s} unless %[5]s %[6]s and %[5]s present_over_time(%[6]s{%[4]s}[%[7]s]))",
		on(identity), name, t.Name, own, on(budgetLabels), series.SLIBad, duration(vanishedHold))
}

// clusterBlame blames a cluster if several of its operators are bad at the same
// time and one of them at least calls for a page. SLIs that never page do not
// count: a container that reached its memory limit is not its cluster's fault.
func clusterBlame(requests requestSLIs) monitoringv1.Rule {
	return record(series.SLOClusterBurn, fmt.Sprintf("count by (cluster) (\n  %s\n) >= %d\nand on (cluster) %s",
		aggregate("group", installLabels, badOrPaging(requests)), clusterOperators, pagingOfClusters()))
}

func pagingOfClusters() string {
	return fmt.Sprintf("%s{cluster!=\"\",%s}", series.SLOVersionBurn, tiersOf(series.Page))
}

// badOrPaging are the operators that count when a cluster is blamed: those that are bad
// at the same time, and those that call for a page.
func badOrPaging(requests requestSLIs) string {
	return requests.badNow(`cluster!="",`+mayPage()) + " or " + pagingOfClusters()
}

// releaseRules blame versions. A page begins when enough clusters of a version are
// bad at the same time, at least half as large a share as of any other version, and
// lasts until fewer clusters burn. A ticket needs enough clusters that burn. What
// whole clusters are blamed for counts for none.
func (s Set) releaseRules(requests requestSLIs) []monitoringv1.Rule {
	burning := func(severity string) string {
		return fmt.Sprintf("%s{version!=\"\",%s}", series.SLOVersionBurn, tiersOf(severity))
	}
	paging := fmt.Sprintf("(%s unless on (cluster) %s)", burning(series.Page), series.SLOClusterBurn)
	// What paged for a cluster is no reason for a ticket about its release.
	slow := fmt.Sprintf("(%s unless on (cluster) max_over_time(%s[%s]) unless %s max_over_time(%s{%s}[%s]))",
		burning(series.Ticket), series.SLOClusterBurn, duration(pageMemory), on(budgetLabels), series.SLOBurn,
		s.pagingTiers(), duration(pageMemory))
	clusters := func(burning string) string {
		return aggregate("count", releaseLabels, aggregate("group", clusterReleaseLabels, burning))
	}
	now := series.SLIBadVersionClusters
	share := fmt.Sprintf("%s / %s %s", now, ofVersion, running)
	page := fmt.Sprintf("%s{severity=%q}", series.SLOReleaseBurn, series.Page)
	// A minimum that is not known ends nothing.
	begins := fmt.Sprintf("%s >= %s %s\n  and %s >= %s %s * max by (%s) (%s)", now, ofVersion, series.ReleaseBlame,
		share, ofSLO, comparable, objectiveLabels, share)
	lasts := fmt.Sprintf("(%s unless %s %s < %s %s)", page, on(releaseLabels), clusters(paging), ofVersion,
		series.ReleaseBlame)
	return []monitoringv1.Rule{
		record(now, aggregate("count", releaseLabels, fmt.Sprintf("\n  %s\n  unless on (cluster) %s\n",
			aggregate("group", clusterReleaseLabels, fmt.Sprintf("\n  %s\n  or %s\n", requests.badNow(`version!=""`),
				badOnMost(s.Blame))), series.SLOClusterBurn))),
		record(series.SLOReleaseBurn, fmt.Sprintf("%s\nand %s (\n  %s\n  or %s %s\n)",
			aggregate("max", releaseLabels, paging), on(releaseLabels), begins, on(releaseLabels), lasts),
			series.Severity, series.Page),
		record(series.SLOReleaseBurn, fmt.Sprintf("%s\nand %s %s >= %s %s\nunless %s max_over_time(%s[%s])",
			aggregate("max", releaseLabels, slow), on(releaseLabels), clusters(slow),
			ofVersion, series.ReleaseBlame, on(releaseLabels), page, duration(pageMemory)),
			series.Severity, series.Ticket),
	}
}

// slicesOfClusters record each bad slice for its own cluster: as 0 if a release or the
// whole cluster is blamed for it now, at the time of the slice; and those once more.
func slicesOfClusters() []monitoringv1.Rule {
	return []monitoringv1.Rule{
		record(series.SLIBadCluster, fmt.Sprintf("%[1]s\nunless on (cluster) %[2]s\nunless %[3]s (%[4]s and %[5]s "+
			"%[6]s{severity=%[7]q})\nunless %[3]s (%[4]s and %[8]s %[9]s)\nor %[3]s 0 * %[1]s", series.SLIBadSlice,
			series.SLOClusterBurn, on(budgetLabels), series.SLIBadVersion, on(releaseLabels), series.SLOReleaseBurn,
			series.Page, on(versionLabels), failedReleases())),
		record(series.SLIBadBlamed, fmt.Sprintf("%s and %s %s == 0", series.SLIBadSlice, on(budgetLabels),
			series.SLIBadCluster)),
	}
}

// fastest is the tier that is evaluated with the slices.
func fastest() Tier { return Tiers()[0] }
