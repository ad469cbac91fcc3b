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

// A bad slice is confirmed if the two newest scrapes were bad. The fastest tier does not
// wait for Guard slices then: two bad scrapes in a row are no accident, and a page about an
// outage begins up to two minutes sooner. Only SLIs that look at gauges of the agent are
// confirmed. A rate is over two scrapes already, and two scrapes may see the same run of
// a probe.
const (
	// twoScrapes is how far back the two newest scrapes are looked for. Two scrapes at
	// intervals of up to 90 s are always in it.
	twoScrapes = 3 * time.Minute
	// badNowConfirmed is the part of the clusters that run a version from which on slices
	// that are not confirmed yet count too: clusters are not scraped at the same time, and a
	// version that is bad on most clusters should not page for the first of them.
	badNowConfirmed = "0.5"
)

// scrapeBefore is a gauge as the scrape before the newest one had it. There is no result
// if there was none lately.
func scrapeBefore(gauge string) string {
	return fmt.Sprintf("(%[1]s - idelta(%[1]s[%[2]s]))", gauge, duration(twoScrapes))
}

// csvBefore, catalogBefore and availableBefore are 1 where the SLI was bad by the scrape
// before the newest one. A value that is not a number confirms nothing.
func csvBefore() string { return gaugeBefore(series.OperatorCSVSucceeded) }

func catalogBefore() string { return gaugeBefore(series.OperatorCatalogReady) }

func gaugeBefore(gauge string) string {
	return aggregate("max", installLabels, scrapeBefore(gauge)+" == bool 0")
}

func availableBefore() string {
	each := installLabels + ", " + series.Deployment
	return aggregate("max", installLabels, fmt.Sprintf("%s < bool ceil(%s / 2)",
		aggregate("min", each, scrapeBefore(series.OperatorReplicasAvailable)),
		aggregate("max", each, scrapeBefore(series.OperatorReplicasDesired))))
}

// confirmedSLIs matches the SLIs whose slices can be confirmed.
func confirmedSLIs() string {
	var names []string
	for _, sli := range SLIs() {
		if sli.before != "" {
			names = append(names, sli.Name)
		}
	}
	return fmt.Sprintf("%s=~%q", series.SLI, strings.Join(names, "|"))
}

// confirmedSlices record of each bad slice whether it is confirmed, with the version that ran. There is none where it
// cannot be known, such as of clusters whose rules are older.
func confirmedSlices() monitoringv1.Rule {
	var before []string
	for _, sli := range SLIs() {
		if sli.before != "" {
			before = append(before, fmt.Sprintf("label_replace(%s, \"sli\", %q, \"\", \"\")", sli.before, sli.Name))
		}
	}
	return record(series.SLIBadConfirmed, fmt.Sprintf("%s{%s}\n* %s group_left () (\n  %s\n)", series.SLIBadVersion,
		confirmedSLIs(), on(budgetLabels), strings.Join(before, "\n  or ")))
}

// confirmedLately are those of the fastest tier's short window, so that its burn rate ends
// with that window, as it does after Guard slices.
func confirmedLately() string {
	return fmt.Sprintf("(max_over_time(%s[%s]) > 0)", series.SLIBadConfirmed, duration(fastest().Short))
}

// confirmedAlone are the confirmed slices for which a single cluster may page at once. Where
// enough clusters of the version, or operators of the cluster, are bad at this moment to be
// blamed together, and some of them are not confirmed yet, it waits for them. Where the version
// has just changed, it waits for Guard slices.
func confirmedAlone() string {
	bad := func(matchers string) string {
		return fmt.Sprintf("%s{%s%s}", series.SLIBadVersion, matchers, confirmedSLIs())
	}
	unconfirmed := func(matchers string) string {
		return fmt.Sprintf("(%s unless %s %s > 0)", bad(matchers), on(clusterReleaseLabels), series.SLIBadConfirmed)
	}
	const released = `version!="",`
	return fmt.Sprintf("\n    %[1]s\n    unless %[2]s (%[3]s >= %[4]s %[5]s and %[2]s %[6]s)\n    unless on (cluster) "+
		"(%[7]s >= %[8]d and on (cluster) %[9]s)\n    unless %[10]s (%[11]s)\n  ", confirmedLately(), on(releaseLabels),
		aggregate("count", releaseLabels, bad(released)), ofVersion, series.ReleaseBlame, unconfirmed(released),
		aggregate("count", series.Cluster, aggregate("group", installLabels, bad(""))), clusterOperators,
		unconfirmed(""), on(installLabels), changedVersion())
}

// changedVersion are the operators on clusters of which there are two versions in the long window of the fastest
// tier: the one that ran when it began, and those of bad slices. A version that is new on a cluster is
// being judged by the gates of its wave. If they find it bad, the page is about the release, and one that came
// before, about the canary alone, would be a second incident. Where it was rolled back, one of the two scrapes of a
// confirmed slice may be of the version before.
func changedVersion() string {
	const released = `{version!=""}`
	long := duration(fastest().Long)
	return fmt.Sprintf("%s > 1", aggregate("count", installLabels, aggregate("group", installLabels+", "+series.Version,
		fmt.Sprintf("last_over_time(%s%s[%s]) or %s%s offset %s", series.SLIBadVersion, released, long,
			series.OperatorInfo, released, long))))
}

// badOnMost are the bad slices of versions that are bad on most of their clusters, while
// the failure is too young for Guard slices. As many clusters as it takes to blame any version
// have to be confirmed: one bad scrape on a second cluster is no failure of the release.
func badOnMost(blame Blame) string {
	bad := fmt.Sprintf("%s{version!=\"\",%s}", series.SLIBadVersion, confirmedSLIs())
	return fmt.Sprintf("%[1]s\n  and %[2]s (%[3]s >= %[4]s %[5]s * %[6]s)\n  and %[2]s %[7]s >= %[8]d\n  "+
		"unless %[2]s %[9]s > %[10]s", bad, on(releaseLabels), aggregate("count", releaseLabels, bad), ofVersion,
		badNowConfirmed, running, aggregate("count", releaseLabels, series.SLIBadConfirmed+" > 0"),
		blame.defaulted().Clusters, sum(series.SLIBadVersionSum, fastest().Short), number(Guard-0.5))
}

// guardScrapes is how many bad scrapes it takes at least where so many slices have to be bad,
// each of which looks at two of them. Single bad scrapes that are apart are soon three in 6 hours.
func guardScrapes(slices int) int { return 2*slices - 1 }

// guarded is the condition that enough slices of a tier's long window are bad. For the
// fastest tier one that is confirmed is enough.
func guarded(t Tier, prefix, identity, confirmed string) string {
	long := sum(prefix, t.Long)
	enough := fmt.Sprintf("%s > %s %s", long, ofSLO, series.SLOGuard)
	if t.looksAtScrapes() {
		enough = fmt.Sprintf("(%[1]s unless %[2]s (\n    %[3]s{%[4]s} + %[2]s group_left () %[5]s < %[6]s\n  ))",
			enough, on(identity), long, confirmedSLIs(), aggregate("sum", identity, fmt.Sprintf("sum_over_time(%s[%s])",
				series.SLIBadConfirmed, duration(t.Long))), number(float64(guardScrapes(Guard))-0.5))
	}
	if t != fastest() {
		return enough
	}
	return fmt.Sprintf("(%s or %s and %s %s)", enough, long, on(identity), confirmed)
}
