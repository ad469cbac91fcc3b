// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// A page about a budget ends with its burn rate. One that begins anew soon after is about
// something that comes and goes: it is held, so that it is not a page each time. The page
// about a whole cluster, which is also about missing data, goes on for keepFiring instead.
const (
	// recurs is the time in which a burn rate has to begin twice for its page to be held.
	recurs = 6 * time.Hour
	// recurringHold is how long such a page goes on after the last burn rate.
	recurringHold = 65 * time.Minute
	// leastBegins is how often a burn rate has to begin.
	leastBegins = 2
)

// held are the last burn rates of those that began twice lately. The burn rates are selected
// by a name with matchers, and those of one page have the same identity.
func held(burns, identity string) string {
	begins := fmt.Sprintf("%[1]s unless %[2]s %[3]s offset %[4]s", aggregate("group", identity, burns), on(identity),
		burns, duration(Step))
	return fmt.Sprintf("%s\n  and %s count_over_time((%s)[%s:%s]) >= %d", aggregate("max", identity,
		fmt.Sprintf("last_over_time(%s[%s])", burns, duration(recurringHold))), on(identity), begins, duration(recurs),
		duration(Step), leastBegins)
}

// heldPages are the pages about operators on a cluster that are held. What a release or the
// cluster was blamed for since is theirs, and a cluster that left the fleet has none.
func (s Set) heldPages() string {
	return fmt.Sprintf("%s\n  unless %s min_over_time(%s[%s]) == 0\n  unless on (cluster) max_over_time(%s[%s])\n"+
		"  and on (cluster) (%s or %s)", held(series.SLOBurn+"{"+s.pagingTiers()+"}", budgetLabels), on(budgetLabels),
		series.SLIBadCluster, duration(recurringHold), series.SLOClusterBurn, duration(recurringHold),
		series.ClusterMeasured, series.ClusterSilent)
}

// releasePage records the burn rates of the pages about releases, and of those that are
// held while a cluster runs the version.
func releasePage() monitoringv1.Rule {
	burn := fmt.Sprintf("%s{severity=%q}", series.SLOReleaseBurn, series.Page)
	return record(series.SLOReleasePage, fmt.Sprintf("%s\nor\n(\n  %s\n  and %s %s\n)",
		aggregate("max", releaseLabels, burn), held(burn, releaseLabels), on(versionLabels), running))
}

// heldUntil is a query for when the hold of a page ends, which has no result unless the page is held.
// Burns selects its burn rates by labels of the alert, and lately those for which it also fires without being held.
func heldUntil(burns, lately string, labels ...string) string {
	return results(fmt.Sprintf("max(max_over_time(timestamp(%s)[%s:%s])) + %s unless on () (%s)", burns,
		duration(recurringHold), duration(Step), number(recurringHold.Seconds()), lately), labels...)
}

// ifHeld is a template of what a page says while it is held, where {{ . }} is when that ends, and
// otherwise.
func ifHeld(until, held, otherwise string) string {
	return fmt.Sprintf("{{ with %s }}%s{{ else }}%s{{ end }}", until, held, otherwise)
}

// heldUntilTime is an annotation with when the hold of a page ends. It is empty unless the page is held.
func heldUntilTime(until string) string { return ifHeld(until, endOfHold, "") }

var (
	// again follows the summary of a page that is held.
	again = " at least twice within " + duration(recurs) + "; held until " + endOfHold
	// isHeld describes it.
	isHeld = "The error budget burned too fast at least twice within " + duration(recurs) + ", and it does not now. " +
		"Because this recurs, the page is held until " + endOfHold + ", and longer if it burns again, so that " +
		"each time is not another page."
)

// endOfHold is a template of the time that heldUntil found.
const endOfHold = `{{ (. | first | value | toTime).UTC.Format "2006-01-02 15:04" }} UTC`
