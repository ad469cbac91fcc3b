// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// A page about a release goes on after its failure: as long as its burn rate, and longer if it is
// held. A failure that begins meanwhile would notify nobody, however large it is. So a version that
// has recovered and then fails on more clusters than before has another alert, which takes the place of
// the first one: it has the label RecoveredClusters, and is an incident of its own. While a
// failure only grows, nothing changes.

// regrownBy is how many times as many clusters have to fail as before the recovery. Where a
// failure comes and goes, the clusters that are bad at once are not always the same number.
const regrownBy = "1.5"

// pagedReleases are the versions about which there was a page at the evaluation before.
func pagedReleases() string {
	return aggregate("group", versionLabels, fmt.Sprintf("ALERTS{alertname=%q,alertstate=\"firing\",severity=%q}",
		AlertRelease, series.Page))
}

// regrownReleases record on how many clusters a version was bad before it recovered, and the versions
// that have failed on more since. SLIs that never page do not count. A version has recovered when each SLI is bad on
// fewer clusters than it takes to blame a release, by the slices of the last 5 minutes: one cluster that is always bad
// is no failure of the version. How many were bad before is the most of recurringHold before the first recovery, so
// that the clusters of an earlier page do not hide those of this one.
func regrownReleases() []monitoringv1.Rule {
	bad := series.SLIBadVersionClusters
	pages := fmt.Sprintf("and %s %s{tier=%q}", on(objectiveLabels), threshold, fastest().Name)
	// A minimum that is not known means no recovery. After a verdict on a wave it takes one cluster, which
	// ReleaseBlame says some minutes later.
	few := fmt.Sprintf("(%s < %s %s unless %s %s)", bad, ofVersion, series.ReleaseBlame, on(versionLabels),
		series.RolloutWaveFailed)
	failing := fmt.Sprintf("(%s %s unless %s)", bad, pages, few)
	peak := aggregate("max", versionLabels, fmt.Sprintf("max_over_time(%s[%s]) %s or %s", bad,
		duration(recurringHold), pages, series.ReleaseRecovered))
	more := fmt.Sprintf("%[1]s and %[2]s (%[3]s >= %[2]s %[4]s * %[1]s)", series.ReleaseRecovered, on(versionLabels),
		aggregate("max", versionLabels, failing), regrownBy)
	// ReleaseRecovered has no other labels than those of a version, so that it takes no "by".
	return []monitoringv1.Rule{
		record(series.ReleaseRecovered, fmt.Sprintf("(\n  %[1]s\n  unless %[2]s %[3]s\n  or %[2]s %[4]s\n)"+
			"\nand %[2]s %[5]s", peak, on(versionLabels), failing, series.ReleaseRecovered, pagedReleases())),
		record(series.ReleaseRegrown, fmt.Sprintf("count_values without () (%[1]q, %[2]s)\nor %[3]s "+
			"(%[4]s and %[3]s %[5]s)", series.RecoveredClusters, more, on(versionLabels), oneRegrown(),
			pagedReleases())),
	}
}

// oneRegrown is one series of ReleaseRegrown for each version. After a restart of Prometheus there may be two for some
// minutes: the last one from before it and the one that is recorded since.
func oneRegrown() string {
	return fmt.Sprintf("topk by (%s) (1, %s)", versionLabels, series.ReleaseRegrown)
}

// withRegrown gives pages about versions that failed anew on more clusters their label. The
// identity are the labels of the pages.
func withRegrown(pages, identity string) string {
	return fmt.Sprintf("(\n  (%[1]s) * %[2]s group_left (%[3]s) %[4]s\n  or %[5]s (%[1]s)\n)", pages, on(versionLabels),
		series.RecoveredClusters, oneRegrown(), on(identity))
}
