// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// A page about a budget ends with its burn rate. If the burn rate begins again soon after, the
// failure recurs, and the page is held, so that each recurrence is not another page. The page
// about a whole cluster, which is also about missing data, continues for keepFiring instead.
const (
	// recurrenceWindow is the time in which a burn rate must begin at least twice for its page to be held.
	recurrenceWindow = 6 * time.Hour
	// recurringHold is how long such a page continues after the last burn rate.
	recurringHold = 65 * time.Minute
	// minBegins is how often a burn rate must begin.
	minBegins = 2
)

// selectHeld returns PromQL for the last values of burn rates that existed within recurringHold and began at least
// minBegins times within recurrenceWindow. burns is a metric name with matchers, and identity are the labels that
// identify a page.
func selectHeld(burns, identity string) string {
	begins := fmt.Sprintf("%[1]s unless %[2]s %[3]s offset %[4]s", aggregate("group", identity, burns),
		matchOn(identity),
		burns, formatDuration(Step))
	return fmt.Sprintf("%s\n  and %s count_over_time((%s)[%s:%s]) >= %d", aggregate("max", identity,
		fmt.Sprintf("last_over_time(%s[%s])", burns,
			formatDuration(recurringHold))), matchOn(identity), begins, formatDuration(recurrenceWindow),
		formatDuration(Step), minBegins)
}

// selectHeldPages returns PromQL for the held pages about operators on a cluster. It excludes failures
// for which a release or the cluster has been blamed since, and clusters that left the fleet.
func (s Set) selectHeldPages() string {
	return fmt.Sprintf("%s\n  unless %s min_over_time(%s[%s]) == 0\n  unless on (cluster) max_over_time(%s[%s])\n"+
		"  and on (cluster) (%s or %s)", selectHeld(series.SLOBurn+"{"+s.matchPagingTiers()+"}", budgetLabels),
		matchOn(budgetLabels), series.SLIBadCluster, formatDuration(recurringHold), series.SLOClusterBurn,
		formatDuration(recurringHold), series.ClusterMeasured, series.ClusterSilent)
}

// buildReleasePage returns the rule that records the burn rates of the pages about
// releases, including the burn rates that are held while a cluster runs the version.
func buildReleasePage() monitoringv1.Rule {
	burn := fmt.Sprintf("%s{severity=%q}", series.SLOReleaseBurn, series.Page)
	return newRecord(series.SLOReleasePage, fmt.Sprintf("%s\nor\n(\n  %s\n  and %s %s\n)",
		aggregate("max", releaseLabels, burn), selectHeld(burn, releaseLabels), matchOn(versionLabels), runningMetric))
}

// queryHeldUntil returns a query for the end of a page's hold, which has no result
// unless the page is held. burns selects the burn rates by labels of the alert, and
// recent selects the burn rates for which the page also fires without being held.
func queryHeldUntil(burns, recent string, labels ...string) string {
	return formatQuery(fmt.Sprintf("max(max_over_time(timestamp(%s)[%s:%s])) + %s unless on () (%s)", burns,
		formatDuration(recurringHold), formatDuration(Step), formatNumber(recurringHold.Seconds()), recent), labels...)
}

// chooseIfHeld returns a template that shows held while a page is held,
// and otherwise the other text. In held, {{ . }} is the end of the hold.
func chooseIfHeld(until, held, notHeld string) string {
	return fmt.Sprintf("{{ with %s }}%s{{ else }}%s{{ end }}", until, held, notHeld)
}

// formatHeldUntil returns an annotation with the end of a page's hold. It is empty unless the page is held.
func formatHeldUntil(until string) string { return chooseIfHeld(until, endOfHold, "") }

var (
	// heldSummary follows the summary of a page that is held.
	heldSummary = " at least twice within " + formatDuration(recurrenceWindow) + "; held until " + endOfHold
	// heldDescription is the description of a page that is held.
	heldDescription = "The error budget burned too fast at least twice within " + formatDuration(recurrenceWindow) +
		", and it does not now. " +
		"Because this recurs, the page is held until " + endOfHold + ", and longer if it burns again, so that " +
		"each time is not another page."
)

// endOfHold is a template of the time that queryHeldUntil returns.
const endOfHold = `{{ (. | first | value | toTime).UTC.Format "2006-01-02 15:04" }} UTC`
