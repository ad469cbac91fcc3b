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
	onObjective     = "on (" + objectiveLabels + ") group_left ()"
	onVersion       = "on (" + versionLabels + ") group_left ()"
	thresholdMetric = "bellwether:slo_threshold:ratio"
	// runningMetric counts the clusters that run a version.
	runningMetric = "bellwether:operator_version:clusters"
)

// Conditions under which a release or a cluster is blamed instead of one operator on one cluster.
const (
	// clusterOperators is how many operators must be bad on a cluster.
	clusterOperators = 3
	// badNowCondition compares the number of bad slices in the last 5 minutes. An operator counts
	// with one bad slice less than Guard, because clusters are not scraped at the same time.
	badNowCondition = "> 1.5"
	// comparableShare is a part of the share of bad clusters of the
	// worst version. A version with at least this part is blamed too.
	comparableShare = "0.5"
)

// Blame configures when a release is blamed: when this number and this share of the clusters of a version
// are bad at the same time. If a wave of the version's rollout was judged failed, one cluster is enough.
type Blame struct {
	// Clusters is the minimum number of bad clusters. Default: 2.
	Clusters int
	// Share is the minimum share of the clusters that run the version. Default: 5 %.
	Share PPM
}

// applyDefaults returns the blame with the defaults in place of zero values.
func (b Blame) applyDefaults() Blame {
	if b.Clusters <= 0 {
		b.Clusters = 2
	}
	if b.Share <= 0 {
		b.Share = 50_000
	}
	return b
}

// nameSum returns the name of the series of a sum over a window.
func nameSum(prefix string, window time.Duration) string { return prefix + formatDuration(window) }

// matchTiers returns a matcher of the tiers of a severity.
func matchTiers(severity string) string { return matchTiersIn(Tiers(), severity) }

// matchTiersIn returns a matcher of those tiers that have a severity.
func matchTiersIn(tiers []Tier, severity string) string {
	var names []string
	for _, t := range tiers {
		if t.Severity == severity {
			names = append(names, t.Name)
		}
	}
	return fmt.Sprintf("%s=~%q", series.Tier, strings.Join(names, "|"))
}

// buildVersionRules returns the rules that sum the bad slices of a tier's
// windows by version, and that record the burn rates above the tier's threshold.
func (s Set) buildVersionRules(t Tier) []monitoringv1.Rule {
	requests := s.listRequestSLIs()
	var rules []monitoringv1.Rule
	if len(requests) > 0 {
		rules = buildSumRules(t, series.SLIRequestsSum, func(w time.Duration) string {
			return fmt.Sprintf("sum_over_time(%s[%s])", series.SLIRequests, formatDuration(w))
		})
	}
	rules = append(rules, buildSumRules(t, series.SLIBadVersionSum, func(w time.Duration) string {
		return fmt.Sprintf("sum without (%s) (%s)", series.Release, requests.buildSum(series.SLIBadVersion, w))
	})...)
	enough := requireGuard(t, series.SLIBadVersionSum, clusterReleaseLabels, selectRecentlyConfirmed())
	burn := requests.requireRequests(buildBurnRate(t, series.SLIBadVersionSum, enough), clusterReleaseLabels,
		series.SLIBadVersionSum, t)
	return append(rules, newRecord(series.SLOVersionBurn, keepWhileSilent(burn, series.SLOVersionBurn,
		clusterReleaseLabels, t)+
		s.keepWhileUnmeasured(series.SLOVersionBurn, clusterReleaseLabels, t), series.Tier, t.Name))
}

// buildClusterRules returns the rules that sum the bad slices for which no release and no
// cluster is blamed, and that record their burn rates. Slices that were blamed after they
// were counted are still in the windows, so a tier waits until its short window has none.
//
// The sums over a ticket's long window are read by this tier alone, so sums that are too
// small for any objective are not recorded: on a large fleet, most sums are too small.
func (s Set) buildClusterRules(t Tier) []monitoringv1.Rule {
	requests := s.listRequestSLIs()
	rules := buildSumRules(t, series.SLIBadClusterSum, func(w time.Duration) string {
		if t.Severity == series.Ticket && w == t.Long {
			return fmt.Sprintf("(%s) > %s", requests.buildSum(series.SLIBadCluster, w),
				formatNumber(s.computeLeastSum(t)))
		}
		return requests.buildSum(series.SLIBadCluster, w)
	})
	enough := requireGuard(t, series.SLIBadClusterSum, budgetLabels, "("+selectConfirmedAlone()+")")
	burn := fmt.Sprintf("%s\nunless %s min_over_time(%s[%s]) == 0", requests.requireRequests(buildBurnRate(t,
		series.SLIBadClusterSum, enough), budgetLabels, series.SLIBadClusterSum, t), matchOn(budgetLabels),
		series.SLIBadCluster, formatDuration(t.Short))
	return append(rules, newRecord(series.SLOBurn, keepWhileSilent(burn, series.SLOBurn, budgetLabels, t)+
		s.keepWhileUnmeasured(series.SLOBurn, budgetLabels, t), series.Tier, t.Name))
}

// buildTierGroup returns the group of a slower tier. The rules
// of the fastest tier are in the group that records slices.
func (s Set) buildTierGroup(t Tier) monitoringv1.RuleGroup {
	return newGroup("burn-"+t.Name, t.Interval, append(s.buildVersionRules(t), s.buildClusterRules(t)...)...)
}

// computeLeastSum returns the largest number of slices of a tier's
// long window that may be bad before any objective needs an alert.
func (s Set) computeLeastSum(t Tier) float64 {
	objectives := slices.Clone(s.Default)
	for _, op := range s.Operators {
		objectives = append(objectives, op.Objectives...)
	}
	lowest := t.countSlices(t.Long)
	for _, o := range objectives {
		lowest = min(lowest, math.Floor(t.Threshold(o.Target, o.period())*t.countSlices(t.Long)))
	}
	return lowest
}

// buildSumRules returns rules that record sums over the windows
// of a tier, without the windows that another tier records.
func buildSumRules(t Tier, prefix string, buildSum func(time.Duration) string) []monitoringv1.Rule {
	var rules []monitoringv1.Rule
	for _, w := range []time.Duration{t.Short, t.Long} {
		if !isRecordedEarlier(t, w) {
			rules = append(rules, newRecord(nameSum(prefix, w), buildSum(w)))
		}
	}
	return rules
}

// isRecordedEarlier reports whether the group of an earlier tier already sums over the window.
func isRecordedEarlier(t Tier, w time.Duration) bool {
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

// buildBurnRate returns PromQL for the burn rate in the long window of sums that are above a tier's threshold
// in both windows, if the condition enough is met. Other sums have no result. prefix is the prefix of the names
// of the sums.
func buildBurnRate(t Tier, prefix, enough string) string {
	threshold := fmt.Sprintf("%s %s{tier=%q}", onObjective, thresholdMetric, t.Name)
	long, short := nameSum(prefix, t.Long), nameSum(prefix, t.Short)
	// A quotient has no metric name, so both sides of its condition can be matched.
	return fmt.Sprintf("(\n  %s / %s > %s\n  and %s / %s > %s\n  and %s\n) / %s (1 - %s)",
		long, formatNumber(t.countSlices(t.Long)), threshold, short, formatNumber(t.countSlices(t.Short)), threshold,
		enough, onObjective, series.SLOObjective)
}

// keepWhileSilent adds to expr the last recorded values for clusters that are silent now:
// a failure does not end because there is no data. The values end when the hub removes
// the cluster from its list. While there is no data from the hub, they do not end.
func keepWhileSilent(expr, name, identity string, t Tier) string {
	lastValues := fmt.Sprintf("%s{tier=%q}", name, t.Name)
	return fmt.Sprintf("%s\nor %s (%s and on (cluster) %s)\nor %s (%s unless on (cluster) %s unless on () %s)", expr,
		matchOn(identity), lastValues, series.ClusterSilent, matchOn(identity), lastValues, series.ClusterMeasured,
		series.FleetClusters)
}

// keepWhileUnmeasured returns PromQL that keeps the last recorded values of a tier for own SLIs whose series
// are missing, until there is an alert about the missing series. It is empty if there are no own SLIs.
func (s Set) keepWhileUnmeasured(name, identity string, t Tier) string {
	own := s.matchOwnSLIs()
	if own == "" {
		return ""
	}
	return fmt.Sprintf("\nor %s (%s{tier=%q,%s} unless %[5]s %[6]s and %[5]s present_over_time(%[6]s{%[4]s}[%[7]s]))",
		matchOn(identity), name, t.Name, own, matchOn(budgetLabels), series.SLIBad, formatDuration(vanishedHold))
}

// buildClusterBlame returns the rule that blames a cluster if several of its operators
// are bad at the same time and at least one of them needs a page. SLIs that never page do
// not count: a container that reached its memory limit is not a failure of the cluster.
func buildClusterBlame(requests requestSLIs) monitoringv1.Rule {
	return newRecord(series.SLOClusterBurn, fmt.Sprintf("count by (cluster) (\n  %s\n) >= %d\nand on (cluster) %s",
		aggregate("group", installLabels, selectBadOrPaging(requests)), clusterOperators, selectPagingBurns()))
}

// selectPagingBurns selects the burn rates of operators on clusters that need a page.
func selectPagingBurns() string {
	return fmt.Sprintf("%s{cluster!=\"\",%s}", series.SLOVersionBurn, matchTiers(series.Page))
}

// selectBadOrPaging returns PromQL for the operators that count when a cluster is
// blamed: operators that are bad at the same time, and operators that need a page.
func selectBadOrPaging(requests requestSLIs) string {
	return requests.selectBadNow(`cluster!="",`+matchPagingSLIs()) + " or " + selectPagingBurns()
}

// buildReleaseRules returns the rules that blame versions. A page begins when enough clusters of a version are bad at
// the same time, and their share is at least half of the share of any other version. It lasts until fewer clusters
// burn. A ticket needs enough clusters that burn. Failures for which a whole cluster is blamed do not count.
func (s Set) buildReleaseRules(requests requestSLIs) []monitoringv1.Rule {
	selectBurning := func(severity string) string {
		return fmt.Sprintf("%s{version!=\"\",%s}", series.SLOVersionBurn, matchTiers(severity))
	}
	paging := fmt.Sprintf("(%s unless on (cluster) %s)", selectBurning(series.Page), series.SLOClusterBurn)
	// A failure that paged for a cluster is not a reason for a ticket about the release.
	slow := fmt.Sprintf("(%s unless on (cluster) max_over_time(%s[%s]) unless %s max_over_time(%s{%s}[%s]))",
		selectBurning(series.Ticket), series.SLOClusterBurn, formatDuration(pageMemory), matchOn(budgetLabels),
		series.SLOBurn, s.matchPagingTiers(), formatDuration(pageMemory))
	countClusters := func(burning string) string {
		return aggregate("count", releaseLabels, aggregate("group", clusterReleaseLabels, burning))
	}
	badClusters := series.SLIBadVersionClusters
	share := fmt.Sprintf("%s / %s %s", badClusters, onVersion, runningMetric)
	page := fmt.Sprintf("%s{severity=%q}", series.SLOReleaseBurn, series.Page)
	// While the minimum number of clusters is unknown, a page does not end.
	begins := fmt.Sprintf("%s >= %s %s\n  and %s >= %s %s * max by (%s) (%s)", badClusters, onVersion,
		series.ReleaseBlame, share, onObjective, comparableShare, objectiveLabels, share)
	lasts := fmt.Sprintf("(%s unless %s %s < %s %s)", page, matchOn(releaseLabels), countClusters(paging), onVersion,
		series.ReleaseBlame)
	return []monitoringv1.Rule{
		newRecord(badClusters, aggregate("count", releaseLabels, fmt.Sprintf("\n  %s\n  unless on (cluster) %s\n",
			aggregate("group", clusterReleaseLabels,
				fmt.Sprintf("\n  %s\n  or %s\n", requests.selectBadNow(`version!=""`),
					selectBadOnMost(s.Blame))), series.SLOClusterBurn))),
		newRecord(series.SLOReleaseBurn, fmt.Sprintf("%s\nand %s (\n  %s\n  or %s %s\n)",
			aggregate("max", releaseLabels, paging), matchOn(releaseLabels), begins, matchOn(releaseLabels), lasts),
			series.Severity, series.Page),
		newRecord(series.SLOReleaseBurn, fmt.Sprintf("%s\nand %s %s >= %s %s\nunless %s max_over_time(%s[%s])",
			aggregate("max", releaseLabels, slow), matchOn(releaseLabels), countClusters(slow),
			onVersion, series.ReleaseBlame, matchOn(releaseLabels), page, formatDuration(pageMemory)),
			series.Severity, series.Ticket),
	}
}

// buildClusterSlices returns the rules that record each bad slice for its own cluster: as 0 if a release or the
// whole cluster is blamed for it at the time of the slice. The blamed slices are also recorded as a separate series.
func buildClusterSlices() []monitoringv1.Rule {
	return []monitoringv1.Rule{
		newRecord(series.SLIBadCluster, fmt.Sprintf("%[1]s\nunless on (cluster) %[2]s\nunless %[3]s (%[4]s and %[5]s "+
			"%[6]s{severity=%[7]q})\nunless %[3]s (%[4]s and %[8]s %[9]s)\nor %[3]s 0 * %[1]s", series.SLIBadSlice,
			series.SLOClusterBurn, matchOn(budgetLabels), series.SLIBadVersion, matchOn(releaseLabels),
			series.SLOReleaseBurn, series.Page, matchOn(versionLabels), selectFailedReleases())),
		newRecord(series.SLIBadBlamed, fmt.Sprintf("%s and %s %s == 0", series.SLIBadSlice, matchOn(budgetLabels),
			series.SLIBadCluster)),
	}
}

// pickFastestTier returns the tier that is evaluated together with the slices.
func pickFastestTier() Tier { return Tiers()[0] }
