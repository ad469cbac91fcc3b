// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// A page about a release continues after its failure: as long as its burn rate, and longer if it is held. A new
// failure in that time would notify no user, even if it is much larger. So a version that has recovered and then
// fails on more clusters than before gets another alert, which replaces the first one: it has the label
// RecoveredClusters, and is a separate incident. While a failure only grows without a recovery, nothing changes.

// regrownBy is the factor by which the number of failing clusters must exceed the
// number before the recovery. In a recurring failure the number of bad clusters varies.
const regrownBy = "1.5"

// selectPagedVersions returns PromQL for the versions that had a page at the previous evaluation.
func selectPagedVersions() string {
	return aggregate("group", versionLabels, fmt.Sprintf("ALERTS{alertname=%q,alertstate=\"firing\",severity=%q}",
		AlertRelease, series.Page))
}

// buildRegrownReleases returns the rules that record on how many clusters a version was bad before
// it recovered, and the versions that have since failed on more clusters. SLIs that never page do
// not count. A version has recovered when each SLI is bad on fewer clusters than are needed to blame
// a release, by the slices of the last 5 minutes: one cluster that is always bad is not a failure of
// the version. The number before the recovery is the maximum over recurringHold before the first
// recovery, so that the clusters of an earlier page do not hide the clusters of this page.
func buildRegrownReleases() []monitoringv1.Rule {
	badClusters := series.SLIBadVersionClusters
	pages := fmt.Sprintf("and %s %s{tier=%q}", matchOn(objectiveLabels), thresholdMetric, pickFastestTier().Name)
	// While the minimum number of clusters is unknown, there is no recovery. After a verdict
	// on a wave one cluster is enough, which ReleaseBlame records some minutes later.
	fewClusters := fmt.Sprintf("(%s < %s %s unless %s %s)", badClusters, onVersion, series.ReleaseBlame,
		matchOn(versionLabels), series.RolloutWaveFailed)
	failing := fmt.Sprintf("(%s %s unless %s)", badClusters, pages, fewClusters)
	maxClusters := aggregate("max", versionLabels, fmt.Sprintf("max_over_time(%s[%s]) %s or %s", badClusters,
		formatDuration(recurringHold), pages, series.ReleaseRecovered))
	moreClusters := fmt.Sprintf("%[1]s and %[2]s (%[3]s >= %[2]s %[4]s * %[1]s)", series.ReleaseRecovered,
		matchOn(versionLabels),
		aggregate("max", versionLabels, failing), regrownBy)
	// ReleaseRecovered has only the labels of a version, so "by" is not needed.
	return []monitoringv1.Rule{
		newRecord(series.ReleaseRecovered, fmt.Sprintf("(\n  %[1]s\n  unless %[2]s %[3]s\n  or %[2]s %[4]s\n)"+
			"\nand %[2]s %[5]s", maxClusters, matchOn(versionLabels), failing, series.ReleaseRecovered,
			selectPagedVersions())),
		newRecord(series.ReleaseRegrown, fmt.Sprintf("count_values without () (%[1]q, %[2]s)\nor %[3]s "+
			"(%[4]s and %[3]s %[5]s)", series.RecoveredClusters, moreClusters, matchOn(versionLabels),
			selectOneRegrown(), selectPagedVersions())),
	}
}

// selectOneRegrown returns PromQL for one series of ReleaseRegrown for each version. After a restart of
// Prometheus there may be two series for some minutes: the last series from before the restart, and the new one.
func selectOneRegrown() string {
	return fmt.Sprintf("topk by (%s) (1, %s)", versionLabels, series.ReleaseRegrown)
}

// addRegrown adds the label RecoveredClusters to pages about versions that
// failed again on more clusters. identity are the labels that identify a page.
func addRegrown(pages, identity string) string {
	return fmt.Sprintf("(\n  (%[1]s) * %[2]s group_left (%[3]s) %[4]s\n  or %[5]s (%[1]s)\n)", pages,
		matchOn(versionLabels),
		series.RecoveredClusters, selectOneRegrown(), matchOn(identity))
}
