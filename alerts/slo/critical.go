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

// Critical is the criticality of operators that have slices of CriticalStep beside
// those of Step. Budgets, tickets, and alerts about releases and clusters are made of
// the slices of Step only.
const Critical = "Critical"

const (
	// criticalMemory is how long a page of the critical tier stays after its burn rate,
	// if no release and no cluster was blamed in that time. It is as long as that of a tier
	// of 6 hours: an operator that is bad for a minute now and then is one page.
	criticalMemory = 30 * time.Minute
	// scrapes is the window in which scrapes of an agent are counted.
	scrapes = 2 * time.Minute
)

// critical are the operators of that criticality.
func (s Set) critical() []types.NamespacedName {
	var out []types.NamespacedName
	for _, op := range s.Operators {
		if op.Criticality == Critical {
			out = append(out, op.ID())
		}
	}
	return out
}

// tiers are those of the set: the critical tier only if there is a critical operator.
func (s Set) tiers() []Tier {
	if len(s.critical()) == 0 {
		return Tiers()
	}
	return append([]Tier{CriticalTier()}, Tiers()...)
}

// pagingTiers selects the tiers of the set that page.
func (s Set) pagingTiers() string { return selectTiers(s.tiers(), series.Page) }

// criticalGroup makes the pages about all operators, from slices of CriticalStep of the
// critical ones and from the burn rates of the other tiers: two rules that make the same
// alert would resolve each other's. What several operators of a cluster, or several
// clusters of a version, have in common is left to the slices of Step: otherwise the
// page of the cluster, or of the release, would come after the pages that it takes the
// place of.
func (s Set) criticalGroup(part Part) monitoringv1.RuleGroup {
	requests := s.requestSLIs()
	rules := append(s.criticalSlices(part), criticalSums()...)
	rules = append(rules, criticalCluster(requests), criticalRelease(requests), s.criticalBurn())
	page := s.pageOf(fmt.Sprintf("\n  %[1]s{%[2]s}\n  or max_over_time(%[1]s{%[3]s=%[4]q}[%[8]s])\n  unless %[5]s "+
		"min_over_time(%[6]s[%[8]s]) == 0\n  unless on (cluster) max_over_time(%[7]s[%[8]s])\n", series.SLOBurn,
		tiersOf(series.Page), series.Tier, CriticalTier().Name, on(budgetLabels), series.SLIBadCluster,
		series.SLOClusterBurn, duration(criticalMemory)))
	burns := fmt.Sprintf("%s{%s,%s}", series.SLOBurn, s.pagingTiers(), matching(installIdentity...))
	lately := fmt.Sprintf("max_over_time(%s[%s])", burns, duration(criticalMemory))
	return group("sli-critical", CriticalStep, append(rules, s.operatorAlert(series.Page, page, burns, lately))...)
}

// criticalSlices record the bad slices that a part makes of critical operators. On
// clusters that have one, they also record which operators are bad, and how many
// slices one sample of the agent is looked at in.
func (s Set) criticalSlices(part Part) []monitoringv1.Rule {
	of := operators{only: s.critical()}
	var rules []monitoringv1.Rule
	var anyBad []string
	for _, sli := range SLIs() {
		switch {
		case sli.gauges == nil:
		case sli.Name != Probe && part != Hub:
			rules = append(rules, record(series.SLIBadCritical, bad(sli.gauges(of)), series.SLI, sli.Name))
			anyBad = append(anyBad, bad(sli.expr))
		case sli.Name == Probe && part != Edge:
			rules = append(rules, record(series.SLIBadCritical, bad(sli.gauges(of))))
		}
	}
	if part == Hub {
		return rules
	}
	return append(rules,
		record(series.OperatorBadNow, fmt.Sprintf("%s\nand on (cluster) %s", aggregate("group", installLabels,
			strings.Join(anyBad, "\nor ")), series.SLIBadCritical)),
		record(series.AgentScrapeSlices, fmt.Sprintf("%s / %s\nand %s count_over_time(%s[%s])",
			number(CriticalTier().count(scrapes)), aggregate("max", installLabels,
				of.over("count_over_time", series.OperatorCSVSucceeded, scrapes)), on(installLabels),
			series.SLIBadCritical, duration(CriticalTier().Long))))
}

func bad(expr string) string { return fmt.Sprintf("(%s) > 0", expr) }

// over applies a function of windows to the series of a metric of some operators.
func (o operators) over(function, metric string, window time.Duration) string {
	var out []string
	for _, selected := range operatorSelectors(metric, o.only) {
		out = append(out, fmt.Sprintf("%s(%s[%s])", function, selected, duration(window)))
	}
	return strings.Join(out, " or ")
}

// criticalSums sum the slices of the tier's windows, and those of the short one also
// by the version that runs. An operator that is being upgraded may show two.
func criticalSums() []monitoringv1.Rule {
	t := CriticalTier()
	var rules []monitoringv1.Rule
	for _, w := range []time.Duration{t.Short, t.Long} {
		rules = append(rules, record(sum(series.SLIBadCriticalSum, w),
			fmt.Sprintf("sum_over_time(%s[%s])", series.SLIBadCritical, duration(w))))
	}
	short := sum(series.SLIBadCriticalSum, t.Short)
	return append(rules, record(series.SLIBadCriticalVersion, fmt.Sprintf("%[1]s\n* %[2]s group_left (%[3]s)\n"+
		"topk by (%[4]s) (1, %[5]s)", short, on(installLabels), series.Version, installLabels,
		aggregate("max", installLabels+", "+series.Version,
			fmt.Sprintf("%s and %s %s", series.OperatorInfo, on(installLabels), short)))))
}

// criticalCluster counts the operators of a cluster that are bad, by either kind of
// slices, while a critical one is.
func criticalCluster(requests requestSLIs) monitoringv1.Rule {
	t := CriticalTier()
	all := []string{
		fmt.Sprintf("present_over_time(%s[%s])", series.OperatorBadNow, duration(t.Short)),
		sum(series.SLIBadCriticalSum, t.Short),
		badOrPaging(requests),
	}
	return record(series.ClusterBadNow, fmt.Sprintf("count by (cluster) (\n  %s\n)\nand on (cluster) %s",
		aggregate("group", installLabels, strings.Join(all, " or ")), all[1]))
}

// criticalRelease counts the clusters of a version that are bad, by either kind of
// slices, and for which the cluster is not to blame.
func criticalRelease(requests requestSLIs) monitoringv1.Rule {
	clusters := aggregate("group", clusterReleaseLabels, series.SLIBadCriticalVersion+" or "+
		requests.badNow(`version!=""`))
	return record(series.ReleaseBadNow, fmt.Sprintf("%s\nand %s %s", aggregate("count", releaseLabels,
		fmt.Sprintf("\n  %s\n  unless on (cluster) %s\n  unless on (cluster) %s\n", clusters, series.SLOClusterBurn,
			clusterIsBad())), on(releaseLabels), series.SLIBadCriticalVersion))
}

// clusterIsBad has the clusters with as many bad operators as it takes to blame them.
func clusterIsBad() string { return fmt.Sprintf("%s >= %d", series.ClusterBadNow, clusterOperators) }

// criticalBurn is the burn rate of the critical tier. It takes more bad slices than a
// single sample makes, however seldom the agent is scraped. Of a version that is as new
// as the failure it may not be known yet how many clusters it takes to blame it.
func (s Set) criticalBurn() monitoringv1.Rule {
	t := CriticalTier()
	long, short := sum(series.SLIBadCriticalSum, t.Long), sum(series.SLIBadCriticalSum, t.Short)
	release := fmt.Sprintf("%[1]s >= %[2]s %[3]s or (%[1]s >= %[4]d unless %[5]s %[3]s)", series.ReleaseBadNow,
		ofVersion, series.ReleaseBlame, s.Blame.defaulted().Clusters, on(versionLabels))
	common := []string{
		fmt.Sprintf("%s (%s <= %s group_left () (0.5 + %s))", on(budgetLabels), long, on(installLabels),
			series.AgentScrapeSlices),
		fmt.Sprintf("on (cluster) (%s)", clusterIsBad()),
		fmt.Sprintf("on (cluster) %s", series.SLOClusterBurn),
		fmt.Sprintf("%s (%s and %s (%s))", on(budgetLabels), series.SLIBadCriticalVersion, on(releaseLabels), release),
		fmt.Sprintf("%s min_over_time(%s[%s]) == 0", on(budgetLabels), series.SLIBadCluster, duration(t.Long)),
		fmt.Sprintf("%s (%s)", on(budgetLabels), outsideOfInside(short)),
	}
	enough := fmt.Sprintf("%s > %s %s", long, ofSLO, series.SLOGuardCritical)
	burn := exceeded(t, series.SLIBadCriticalSum, enough) + "\nunless " + strings.Join(common, "\nunless ")
	return record(series.SLOBurn, untilHeard(burn, series.SLOBurn, budgetLabels, t), series.Tier, t.Name)
}

// outsideOfInside are the bad probes from outside of clusters that are bad inside too.
func outsideOfInside(bad string) string {
	of := func(matcher, pattern string) string {
		return fmt.Sprintf("label_replace(%s{sli=~%q}, \"inside\", \"$1\", \"sli\", %q)", bad, matcher, pattern)
	}
	return fmt.Sprintf("%s and on (%s, inside) %s", of(outsides, "(probe:[^:]+):.+"), installLabels,
		of(insides, "(.+)"))
}

// criticalGuards record how many slices have to be bad for the tier to alert. A probe's
// run is bad in every slice until the next run.
func (s Set) criticalGuards() []monitoringv1.Rule {
	of := operators{only: s.critical()}
	if len(of.only) == 0 {
		return nil
	}
	var slis []string
	for _, sli := range SLIs() {
		switch {
		case sli.Name == Probe:
			slis = append(slis, Probe+".+")
		case sli.gauges != nil:
			slis = append(slis, sli.Name)
		}
	}
	probes := aggregate("max", objectiveLabels, withProbeSLI(of.of(series.ProbeInterval)))
	return []monitoringv1.Rule{
		record(series.SLOGuardCritical, fmt.Sprintf("%s * clamp_min(%s / %s, 1)", number(Guard-0.5), probes,
			number(CriticalStep.Seconds()))),
		record(series.SLOGuardCritical, fmt.Sprintf("0 * %s + %s\nunless %s (%s)", selectOperators(series.SLOObjective,
			of.only, fmt.Sprintf("sli=~%q", strings.Join(slis, "|"))), number(Guard-0.5), on(objectiveLabels), probes)),
	}
}
