// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// A bad slice is confirmed if the two newest scrapes were bad. The fastest tier then does not
// wait for Guard slices: two bad scrapes in a row are not an accident, and a page about an outage
// begins up to two minutes sooner. Slices are confirmed only for SLIs that read gauges of the
// agent. A rate already covers two scrapes, and two scrapes may read the same run of a probe.
const (
	// twoScrapes is the window in which the two newest scrapes are searched.
	// It always contains two scrapes if their interval is at most 90 s.
	twoScrapes = 3 * time.Minute
	// unconfirmedShare is the share of the clusters that run a version from which slices
	// that are not confirmed yet count too. Clusters are not scraped at the same time,
	// and a version that is bad on most clusters should not page for the first of them.
	unconfirmedShare = "0.5"
)

// selectPreviousScrape returns PromQL for the value of a gauge at the scrape
// before the newest one. There is no result without a recent earlier scrape.
func selectPreviousScrape(gauge string) string {
	return fmt.Sprintf("(%[1]s - idelta(%[1]s[%[2]s]))", gauge, formatDuration(twoScrapes))
}

// checkPreviousCSV, checkPreviousCatalog and checkPreviousAvailable return PromQL that is 1 if
// the SLI was bad at the scrape before the newest one. A value that is not a number is not bad.
func checkPreviousCSV() string { return checkPreviousGauge(series.OperatorCSVSucceeded) }

func checkPreviousCatalog() string { return checkPreviousGauge(series.OperatorCatalogReady) }

func checkPreviousGauge(gauge string) string {
	return aggregate("max", installLabels, selectPreviousScrape(gauge)+" == bool 0")
}

func checkPreviousAvailable() string {
	each := installLabels + ", " + series.Deployment
	return aggregate("max", installLabels, fmt.Sprintf("%s < bool ceil(%s / 2)",
		aggregate("min", each, selectPreviousScrape(series.OperatorReplicasAvailable)),
		aggregate("max", each, selectPreviousScrape(series.OperatorReplicasDesired))))
}

// matchConfirmedSLIs returns a matcher of the SLIs whose slices can be confirmed.
func matchConfirmedSLIs() string {
	var names []string
	for _, sli := range SLIs() {
		if sli.previous != "" {
			names = append(names, sli.Name)
		}
	}
	return fmt.Sprintf("%s=~%q", series.SLI, strings.Join(names, "|"))
}

// buildConfirmedSlices returns the rule that records for each bad slice whether it is confirmed, with
// the version that ran. There is no result if the data is missing, as on clusters with older rules.
func buildConfirmedSlices() monitoringv1.Rule {
	var previous []string
	for _, sli := range SLIs() {
		if sli.previous != "" {
			previous = append(previous,
				fmt.Sprintf("label_replace(%s, \"sli\", %q, \"\", \"\")", sli.previous, sli.Name))
		}
	}
	return newRecord(series.SLIBadConfirmed, fmt.Sprintf("%s{%s}\n* %s group_left () (\n  %s\n)", series.SLIBadVersion,
		matchConfirmedSLIs(), matchOn(budgetLabels), strings.Join(previous, "\n  or ")))
}

// selectRecentlyConfirmed returns PromQL for the slices that were confirmed in the short window
// of the fastest tier. The burn rate then ends with that window, as it does after Guard slices.
func selectRecentlyConfirmed() string {
	return fmt.Sprintf("(max_over_time(%s[%s]) > 0)", series.SLIBadConfirmed, formatDuration(pickFastestTier().Short))
}

// selectConfirmedAlone returns PromQL for the confirmed slices for which a single cluster may page at once. The
// page waits in two cases. If enough clusters of the version, or operators of the cluster, are bad now to be blamed
// together, it waits until all of them are confirmed. If the version has just changed, it waits for Guard slices.
func selectConfirmedAlone() string {
	selectBad := func(matchers string) string {
		return fmt.Sprintf("%s{%s%s}", series.SLIBadVersion, matchers, matchConfirmedSLIs())
	}
	selectUnconfirmed := func(matchers string) string {
		return fmt.Sprintf("(%s unless %s %s > 0)", selectBad(matchers), matchOn(clusterReleaseLabels),
			series.SLIBadConfirmed)
	}
	const released = `version!="",`
	return fmt.Sprintf("\n    %[1]s\n    unless %[2]s (%[3]s >= %[4]s %[5]s and %[2]s %[6]s)\n    unless on (cluster) "+
		"(%[7]s >= %[8]d and on (cluster) %[9]s)\n    unless %[10]s (%[11]s)\n  ", selectRecentlyConfirmed(),
		matchOn(releaseLabels), aggregate("count", releaseLabels, selectBad(released)), onVersion, series.ReleaseBlame,
		selectUnconfirmed(released), aggregate("count", series.Cluster,
			aggregate("group", installLabels, selectBad(""))), clusterOperators,
		selectUnconfirmed(""), matchOn(installLabels), selectChangedVersions())
}

// selectChangedVersions returns PromQL for the operators on clusters that have two versions in the
// long window of the fastest tier: the version at the start of the window, and the versions of bad
// slices. The gates of its wave judge a new version on a cluster. If they find it bad, the page is
// about the release, and an earlier page about the canary alone would be a second incident. After
// a rollback, one of the two scrapes of a confirmed slice may belong to the previous version.
func selectChangedVersions() string {
	const released = `{version!=""}`
	long := formatDuration(pickFastestTier().Long)
	return fmt.Sprintf("%s > 1", aggregate("count", installLabels, aggregate("group", installLabels+", "+series.Version,
		fmt.Sprintf("last_over_time(%s%s[%s]) or %s%s offset %s", series.SLIBadVersion, released, long,
			series.OperatorInfo, released, long))))
}

// selectBadOnMost returns PromQL for the bad slices of versions that are bad on most of their clusters
// while the failure is too new for Guard slices. At least as many clusters must be confirmed as are
// needed to blame any version: one bad scrape on a second cluster is not a failure of the release.
func selectBadOnMost(blame Blame) string {
	bad := fmt.Sprintf("%s{version!=\"\",%s}", series.SLIBadVersion, matchConfirmedSLIs())
	return fmt.Sprintf("%[1]s\n  and %[2]s (%[3]s >= %[4]s %[5]s * %[6]s)\n  and %[2]s %[7]s >= %[8]d\n  "+
		"unless %[2]s %[9]s > %[10]s", bad, matchOn(releaseLabels), aggregate("count", releaseLabels, bad), onVersion,
		unconfirmedShare, runningMetric, aggregate("count", releaseLabels, series.SLIBadConfirmed+" > 0"),
		blame.applyDefaults().Clusters, nameSum(series.SLIBadVersionSum, pickFastestTier().Short),
		formatNumber(Guard-0.5))
}

// countGuardScrapes returns the minimum number of bad scrapes if this number of slices must be bad and each
// slice reads two scrapes. If there were no such minimum, three separate bad scrapes in 6 hours would be enough.
func countGuardScrapes(slices int) int { return 2*slices - 1 }

// requireGuard returns the condition that enough slices of a tier's long window are bad.
// prefix is the prefix of the names of the sums, identity are their labels, and confirmed
// selects the confirmed slices. For the fastest tier, one confirmed slice is enough. Tiers that
// count scrapes also need countGuardScrapes bad scrapes: each confirmed slice counts as two.
func requireGuard(t Tier, prefix, identity, confirmed string) string {
	long := nameSum(prefix, t.Long)
	enough := fmt.Sprintf("%s > %s %s", long, onObjective, series.SLOGuard)
	if t.needsScrapes() {
		enough = fmt.Sprintf("(%[1]s unless %[2]s (\n    %[3]s{%[4]s} + %[2]s group_left () %[5]s < %[6]s\n  ))",
			enough, matchOn(identity), long, matchConfirmedSLIs(),
			aggregate("sum", identity, fmt.Sprintf("sum_over_time(%s[%s])",
				series.SLIBadConfirmed, formatDuration(t.Long))), formatNumber(float64(countGuardScrapes(Guard))-0.5))
	}
	if t != pickFastestTier() {
		return enough
	}
	return fmt.Sprintf("(%s or %s and %s %s)", enough, long, matchOn(identity), confirmed)
}
