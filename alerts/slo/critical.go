// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Critical is the criticality of operators that have slices of CriticalStep in addition to slices
// of Step. Budgets, tickets, and alerts about releases and clusters use only the slices of Step.
const Critical = "Critical"

const (
	// criticalMemory is how long a page of the critical tier stays after its burn rate, if
	// no release and no cluster was blamed in that time. It equals the short window of the
	// 6 h tier: an operator that is bad for a minute from time to time makes one page.
	criticalMemory = 30 * time.Minute
	// scrapeWindow is the window in which scrapes of an agent are counted.
	scrapeWindow = 2 * time.Minute
)

// listCritical returns the operators with the criticality Critical.
func (s Set) listCritical() []types.NamespacedName {
	var out []types.NamespacedName
	for _, op := range s.Operators {
		if op.Criticality == Critical {
			out = append(out, op.ID())
		}
	}
	return out
}

// listTiers returns the tiers of the set. The critical tier is included only if there is a critical operator.
func (s Set) listTiers() []Tier {
	if len(s.listCritical()) == 0 {
		return Tiers()
	}
	return append([]Tier{CriticalTier()}, Tiers()...)
}

// matchPagingTiers returns a matcher of the tiers of the set that page.
func (s Set) matchPagingTiers() string { return matchTiersIn(s.listTiers(), series.Page) }

// buildCriticalGroup returns the group with the pages about all operators. It uses slices of
// CriticalStep for critical operators, and the burn rates of the other tiers. One rule makes all pages,
// because two rules that make the same alert would resolve each other's alert. Failures that several
// operators of a cluster, or several clusters of a version, have in common use only the slices of Step:
// otherwise the page about the cluster or the release would come after the pages that it replaces.
func (s Set) buildCriticalGroup(part Part) monitoringv1.RuleGroup {
	requests := s.listRequestSLIs()
	rules := append(s.buildCriticalSlices(part), buildCriticalSums()...)
	rules = append(rules, buildCriticalCluster(requests), buildCriticalRelease(requests), s.buildCriticalBurn())
	page := s.buildPageExpr(fmt.Sprintf(
		"\n  %[1]s{%[2]s}\n  or max_over_time(%[1]s{%[3]s=%[4]q}[%[8]s])\n  unless %[5]s "+
			"min_over_time(%[6]s[%[8]s]) == 0\n  unless on (cluster) max_over_time(%[7]s[%[8]s])\n", series.SLOBurn,
		matchTiers(series.Page), series.Tier, CriticalTier().Name, matchOn(budgetLabels), series.SLIBadCluster,
		series.SLOClusterBurn, formatDuration(criticalMemory)))
	burns := fmt.Sprintf("%s{%s,%s}", series.SLOBurn, s.matchPagingTiers(), matchAlertLabels(installIdentity...))
	recent := fmt.Sprintf("max_over_time(%s[%s])", burns, formatDuration(criticalMemory))
	return newGroup("sli-critical", CriticalStep, append(rules, s.buildOperatorAlert(series.Page, page, burns,
		recent))...)
}

// buildCriticalSlices returns the rules that record the bad slices of critical
// operators in a part. On clusters with a bad critical operator, the rules also record
// which operators are bad, and how many slices read the same sample of the agent.
func (s Set) buildCriticalSlices(part Part) []monitoringv1.Rule {
	critical := operators{only: s.listCritical()}
	var rules []monitoringv1.Rule
	var anyBad []string
	for _, sli := range SLIs() {
		switch {
		case sli.buildExpr == nil: // the SLI has no slices of CriticalStep
		case sli.Name != Probe && part != Hub:
			rules = append(rules, newRecord(series.SLIBadCritical, selectBad(sli.buildExpr(critical)), series.SLI,
				sli.Name))
			anyBad = append(anyBad, selectBad(sli.expr))
		case sli.Name == Probe && part != Edge:
			rules = append(rules, newRecord(series.SLIBadCritical, selectBad(sli.buildExpr(critical))))
		}
	}
	if part == Hub {
		return rules
	}
	return append(rules,
		newRecord(series.OperatorBadNow, fmt.Sprintf("%s\nand on (cluster) %s", aggregate("group", installLabels,
			strings.Join(anyBad, "\nor ")), series.SLIBadCritical)),
		newRecord(series.AgentScrapeSlices, fmt.Sprintf("%s / %s\nand %s count_over_time(%s[%s])",
			formatNumber(CriticalTier().countSlices(scrapeWindow)), aggregate("max", installLabels,
				critical.applyOver("count_over_time", series.OperatorCSVSucceeded,
					scrapeWindow)), matchOn(installLabels),
			series.SLIBadCritical, formatDuration(CriticalTier().Long))))
}

// selectBad returns PromQL that keeps the results of expr that are above 0.
func selectBad(expr string) string { return fmt.Sprintf("(%s) > 0", expr) }

// applyOver returns PromQL that applies a function over a window to the series of a metric of some operators.
func (o operators) applyOver(function, metric string, window time.Duration) string {
	var out []string
	for _, selected := range listOperatorSelectors(metric, o.only) {
		out = append(out, fmt.Sprintf("%s(%s[%s])", function, selected, formatDuration(window)))
	}
	return strings.Join(out, " or ")
}

// buildCriticalSums returns the rules that sum the slices of the tier's windows, and the slices of the
// short window also by the installed version. During an upgrade an operator may have two versions.
func buildCriticalSums() []monitoringv1.Rule {
	t := CriticalTier()
	var rules []monitoringv1.Rule
	for _, w := range []time.Duration{t.Short, t.Long} {
		rules = append(rules, newRecord(nameSum(series.SLIBadCriticalSum, w),
			fmt.Sprintf("sum_over_time(%s[%s])", series.SLIBadCritical, formatDuration(w))))
	}
	short := nameSum(series.SLIBadCriticalSum, t.Short)
	return append(rules, newRecord(series.SLIBadCriticalVersion, fmt.Sprintf("%[1]s\n* %[2]s group_left (%[3]s)\n"+
		"topk by (%[4]s) (1, %[5]s)", short, matchOn(installLabels), series.Version, installLabels,
		aggregate("max", installLabels+", "+series.Version,
			fmt.Sprintf("%s and %s %s", series.OperatorInfo, matchOn(installLabels), short)))))
}

// buildCriticalCluster returns the rule that counts the operators of a cluster
// that are bad, by slices of either length, while a critical operator is bad.
func buildCriticalCluster(requests requestSLIs) monitoringv1.Rule {
	t := CriticalTier()
	bad := []string{
		fmt.Sprintf("present_over_time(%s[%s])", series.OperatorBadNow, formatDuration(t.Short)),
		nameSum(series.SLIBadCriticalSum, t.Short),
		selectBadOrPaging(requests),
	}
	return newRecord(series.ClusterBadNow, fmt.Sprintf("count by (cluster) (\n  %s\n)\nand on (cluster) %s",
		aggregate("group", installLabels, strings.Join(bad, " or ")), bad[1]))
}

// buildCriticalRelease returns the rule that counts the clusters on which a version
// is bad, by slices of either length, without clusters that are blamed themselves.
func buildCriticalRelease(requests requestSLIs) monitoringv1.Rule {
	clusters := aggregate("group", clusterReleaseLabels, series.SLIBadCriticalVersion+" or "+
		requests.selectBadNow(`version!=""`))
	return newRecord(series.ReleaseBadNow, fmt.Sprintf("%s\nand %s %s", aggregate("count", releaseLabels,
		fmt.Sprintf("\n  %s\n  unless on (cluster) %s\n  unless on (cluster) %s\n", clusters, series.SLOClusterBurn,
			selectBadClusters())), matchOn(releaseLabels), series.SLIBadCriticalVersion))
}

// selectBadClusters returns PromQL for the clusters with enough bad operators to blame the cluster.
func selectBadClusters() string {
	return fmt.Sprintf("%s >= %d", series.ClusterBadNow, clusterOperators)
}

// buildCriticalBurn returns the rule that records the burn rate of the critical tier. It needs more
// bad slices than one sample makes, even if the agent is scraped rarely. For a version that is as
// new as the failure, the number of clusters that is needed to blame it might not be recorded yet.
func (s Set) buildCriticalBurn() monitoringv1.Rule {
	t := CriticalTier()
	long, short := nameSum(series.SLIBadCriticalSum, t.Long), nameSum(series.SLIBadCriticalSum, t.Short)
	release := fmt.Sprintf("%[1]s >= %[2]s %[3]s or (%[1]s >= %[4]d unless %[5]s %[3]s)", series.ReleaseBadNow,
		onVersion, series.ReleaseBlame, s.Blame.applyDefaults().Clusters, matchOn(versionLabels))
	// The tier does not alert if all bad slices read one sample, if the cluster or the release
	// is blamed or will be blamed, or for a probe from outside that also fails inside the cluster.
	exceptions := []string{
		fmt.Sprintf("%s (%s <= %s group_left () (0.5 + %s))", matchOn(budgetLabels), long, matchOn(installLabels),
			series.AgentScrapeSlices),
		fmt.Sprintf("on (cluster) (%s)", selectBadClusters()),
		fmt.Sprintf("on (cluster) %s", series.SLOClusterBurn),
		fmt.Sprintf("%s (%s and %s (%s))", matchOn(budgetLabels), series.SLIBadCriticalVersion, matchOn(releaseLabels),
			release),
		fmt.Sprintf("%s min_over_time(%s[%s]) == 0", matchOn(budgetLabels), series.SLIBadCluster,
			formatDuration(t.Long)),
		fmt.Sprintf("%s (%s)", matchOn(budgetLabels), selectOutsideOfInside(short)),
	}
	enough := fmt.Sprintf("%s > %s %s", long, onObjective, series.SLOGuardCritical)
	burn := buildBurnRate(t, series.SLIBadCriticalSum, enough) + "\nunless " + strings.Join(exceptions, "\nunless ")
	return newRecord(series.SLOBurn, keepWhileSilent(burn, series.SLOBurn, budgetLabels, t), series.Tier, t.Name)
}

// selectOutsideOfInside returns PromQL for the bad probes from outside of clusters that are also bad inside.
func selectOutsideOfInside(bad string) string {
	addInsideLabel := func(matcher, pattern string) string {
		return fmt.Sprintf("label_replace(%s{sli=~%q}, \"inside\", \"$1\", \"sli\", %q)", bad, matcher, pattern)
	}
	return fmt.Sprintf("%s and on (%s, inside) %s", addInsideLabel(outsidePattern, "(probe:[^:]+):.+"), installLabels,
		addInsideLabel(insidePattern, "(.+)"))
}

// buildCriticalGuards returns the rules that record how many slices must be bad
// before the tier alerts. A run of a probe is bad in every slice until the next run.
func (s Set) buildCriticalGuards() []monitoringv1.Rule {
	critical := operators{only: s.listCritical()}
	if len(critical.only) == 0 {
		return nil
	}
	var slis []string
	for _, sli := range SLIs() {
		switch {
		case sli.Name == Probe:
			slis = append(slis, Probe+".+")
		case sli.buildExpr != nil:
			slis = append(slis, sli.Name)
		}
	}
	probes := aggregate("max", objectiveLabels, addProbeSLI(critical.selectSeries(series.ProbeInterval)))
	return []monitoringv1.Rule{
		newRecord(series.SLOGuardCritical, fmt.Sprintf("%s * clamp_min(%s / %s, 1)", formatNumber(Guard-0.5), probes,
			formatNumber(CriticalStep.Seconds()))),
		newRecord(series.SLOGuardCritical, fmt.Sprintf("0 * %s + %s\nunless %s (%s)",
			selectOperators(series.SLOObjective,
				critical.only, fmt.Sprintf("sli=~%q",
					strings.Join(slis, "|"))), formatNumber(Guard-0.5), matchOn(objectiveLabels), probes)),
	}
}
