// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Rules are the rules of a Set.
type Rules struct {
	// Groups serve every operator. They need Prometheus 3.
	Groups []monitoringv1.RuleGroup
	// Own has a group for each operator with own SLIs. These groups are separate because they
	// contain queries of users: if Prometheus refuses one of them, all other rules must still load.
	Own []OwnGroup
}

// OwnGroup records the own SLIs of an operator.
type OwnGroup struct {
	Operator types.NamespacedName
	Group    monitoringv1.RuleGroup
}

// All returns every group.
func (r *Rules) All() []monitoringv1.RuleGroup {
	out := append([]monitoringv1.RuleGroup{}, r.Groups...)
	for _, o := range r.Own {
		out = append(out, o.Group)
	}
	return out
}

// Count returns the number of recording and alerting rules.
func (r *Rules) Count() (recording, alerting int) {
	for _, g := range r.All() {
		for _, rule := range g.Rules {
			if rule.Alert != "" {
				alerting++
			} else {
				recording++
			}
		}
	}
	return recording, alerting
}

// Order returns the names of the groups in an order in which each group can read in
// the same evaluation what earlier groups recorded: groups of own SLIs are first.
func (r *Rules) Order() []string {
	var out []string
	for _, own := range r.Own {
		out = append(out, own.Group.Name)
	}
	for _, g := range r.Groups {
		out = append(out, g.Name)
	}
	return out
}

// Build returns the rules of a set for one Prometheus that scrapes all
// clusters. The error contains everything that is invalid in the set.
func Build(s Set) (*Rules, error) { return BuildPart(s, Whole) }

// BuildPart returns a part of the rules of a set. The error contains everything that is invalid in the set.
func BuildPart(s Set, part Part) (*Rules, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	r := &Rules{}
	if part == Edge {
		r.Groups = []monitoringv1.RuleGroup{newGroup("slices", Step, s.buildSliceRules(Edge)...)}
		if len(s.listCritical()) > 0 {
			r.Groups = append(r.Groups, newGroup("slices-critical", CriticalStep, s.buildCriticalSlices(Edge)...))
		}
	} else {
		r.Groups = s.buildGroups(part)
	}
	if part == Hub { // own SLIs are measured on the clusters
		setQueryOffset(r.Groups)
		return r, nil
	}
	for _, op := range s.Operators {
		if len(op.Own) > 0 {
			r.Own = append(r.Own, OwnGroup{op.ID(), buildOwnGroup(op)})
		}
	}
	return r, nil
}

// buildGroups returns the groups of the hub part or of the whole.
func (s Set) buildGroups(part Part) []monitoringv1.RuleGroup {
	groups := []monitoringv1.RuleGroup{buildFastGroup(s, part)}
	if len(s.listCritical()) > 0 {
		groups = append(groups, s.buildCriticalGroup(part))
	}
	groups = append(groups, buildObjectiveGroup(s))
	for _, t := range Tiers()[1:] {
		groups = append(groups, s.buildTierGroup(t))
	}
	groups = append(groups, buildBudgetGroup(s), buildAbsenceGroup(s), buildHealthGroup())
	s.addRunbooks(groups)
	s.addTexts(groups)
	return s.removeDisabledAlerts(groups)
}

// newGroup returns a rule group with the prefix bellwether- in its name.
func newGroup(name string, interval time.Duration, rules ...monitoringv1.Rule) monitoringv1.RuleGroup {
	d := monitoringv1.Duration(formatDuration(interval))
	return monitoringv1.RuleGroup{Name: "bellwether-" + name, Interval: &d, Rules: rules}
}

// newRecord returns a recording rule. labels are pairs of a name and a value.
func newRecord(name, expr string, labels ...string) monitoringv1.Rule {
	r := monitoringv1.Rule{Record: name, Expr: intstr.FromString(expr)}
	for i := 0; i+1 < len(labels); i += 2 {
		if r.Labels == nil {
			r.Labels = map[string]string{}
		}
		r.Labels[labels[i]] = labels[i+1]
	}
	return r
}

// merge joins rules that record the same series with the same labels. Each rule has
// different operators, but Prometheus warns about two rules that may record the same series.
func merge(rules []monitoringv1.Rule) []monitoringv1.Rule {
	var out []monitoringv1.Rule
	for _, r := range rules {
		i := slices.IndexFunc(out, func(o monitoringv1.Rule) bool {
			return o.Record == r.Record &&
				maps.Equal(o.Labels, r.Labels)
		})
		if i < 0 {
			out = append(out, r)
			continue
		}
		out[i].Expr = intstr.FromString(fmt.Sprintf("(%s)\nor (%s)", out[i].Expr.String(), r.Expr.String()))
	}
	return out
}

// buildFastGroup returns the group with everything that a page of the fastest tier needs, in
// order, so that one evaluation is enough: the slices, their burn rates, the blame, the alerts.
func buildFastGroup(s Set, part Part) monitoringv1.RuleGroup {
	requests := s.listRequestSLIs()
	rules := append(append(s.buildSliceRules(part), buildExcludedSlices()), buildClusterStates()...)
	rules = append(rules, s.buildVersionRules(pickFastestTier())...)
	rules = append(rules, buildClusterBlame(requests))
	rules = append(append(rules, s.buildReleaseRules(requests)...), buildReleasePage())
	rules = append(rules, buildRegrownReleases()...)
	rules = append(rules, buildClusterSlices()...)
	rules = append(rules, s.buildClusterRules(pickFastestTier())...)
	rules = append(rules, s.buildBurnAlerts()...)
	return newGroup("sli", Step, append(rules, newRecord(series.RulesEvaluated, "time()"))...)
}

// buildSliceRules returns the rules that record the slices of a part: all slices, then only
// the bad slices, then the bad slices with their version, which is empty if it is unknown.
func (s Set) buildSliceRules(part Part) []monitoringv1.Rule {
	var rules []monitoringv1.Rule
	if part != Hub {
		rules = append(s.buildLimitRules(), buildEvidenceRule(), buildAloneRule())
	}
	for _, sli := range SLIs() {
		// The hub part makes the slices of probes, because it has the results from all vantage points.
		switch {
		case sli.Name == Probe && part != Edge:
			rules = append(rules, newRecord(series.SLIBad, sli.expr))
		case sli.Name != Probe && part != Hub:
			rules = append(rules, newRecord(series.SLIBad, s.buildExpr(sli), series.SLI, sli.Name))
		}
	}
	bad := series.SLIBadSlice + part.matchSlices()
	// An operator that is being upgraded may report two versions. topk chooses any of them.
	const ran = series.Version + ", " + series.Release
	version := fmt.Sprintf("%[1]s\n* %[2]s group_left (%[3]s)\ntopk by (%[4]s) (1, %[5]s)\nor %[6]s %[1]s",
		bad, matchOn(installLabels), ran, installLabels, aggregate("max", installLabels+", "+ran,
			fmt.Sprintf("%s and %s %s", series.OperatorInfo, matchOn(installLabels), bad)), matchOn(budgetLabels))
	requests := s.listRequestSLIs()
	if part == Hub {
		requests = nil // slices of own SLIs are made on the clusters
	}
	rules = append(rules, newRecord(series.SLIBadSlice, requests.weigh(s.selectBadSlices(part))),
		newRecord(series.SLIBadVersion, version))
	if part != Hub {
		rules = append(rules, buildConfirmedSlices(), buildHeartbeat())
	}
	return rules
}

// buildOwnGroup returns the group that records the own SLIs of an operator.
func buildOwnGroup(op Operator) monitoringv1.RuleGroup {
	var rules []monitoringv1.Rule
	for _, own := range op.Own {
		rules = append(rules, own.buildRules(op)...)
	}
	return newGroup("sli-own-"+op.ID().String(), Step, rules...)
}

// budgetInterval is how often budgets are evaluated.
const budgetInterval = 4 * time.Minute

// buildBudgetGroup returns the group that records the remaining budgets and alerts if nothing is
// left. A budget is for the whole period, also for an operator that has existed for a shorter time.
func buildBudgetGroup(s Set) monitoringv1.RuleGroup {
	var rules []monitoringv1.Rule
	for _, part := range s.listBudgetParts() {
		for _, p := range part.periods {
			rules = append(rules, part.newRecord(series.SLOBudgetLeft, fmt.Sprintf("%s\nor %s\n(1 + 0 * %s{%s} and %s)",
				s.buildBudgetLeft(part, p), matchOn(budgetLabels), series.SLIBad, part.matcher, matchPeriod(p))))
		}
	}
	for _, p := range s.listPeriods() {
		rules = append(rules, newRecord(series.SLOBudgetExcluding, s.buildBudgetExcluding(p)))
	}
	rules = append(merge(rules), s.buildExhaustedRules()...)
	return newGroup("budget", budgetInterval, append(rules, buildMissingSlices())...)
}

// budgetPart contains the budgets that one rule records. A rule reads the slices
// of a whole period, and Prometheus keeps everything that a query selects in
// memory, so one rule for each SLI needs less memory than one rule for all SLIs.
type budgetPart struct {
	// sli is an SLI that every operator has. It is empty for all
	// other SLIs: SLIs of probes, and own SLIs of operators.
	sli string
	// matcher selects the SLIs.
	matcher string
	// periods are the periods of the objectives, the shortest first.
	periods []time.Duration
	// requests are the SLIs of the part whose budgets count requests.
	requests requestSLIs
}

// listBudgetParts returns parts that contain each budget exactly once.
func (s Set) listBudgetParts() []budgetPart {
	var out []budgetPart
	var names []string
	for _, sli := range SLIs() {
		periods := s.listPeriodsWhere(func(o Objective) bool { return o.SLI == sli.Name })
		if sli.Name == Probe || len(periods) == 0 {
			continue
		}
		names = append(names, sli.Name)
		out = append(out, budgetPart{sli: sli.Name, matcher: fmt.Sprintf("sli=%q", sli.Name), periods: periods})
	}
	isOther := func(o Objective) bool { return !slices.Contains(names, o.SLI) }
	if periods := s.listPeriodsWhere(isOther); len(periods) > 0 {
		out = append(out, budgetPart{matcher: fmt.Sprintf("sli!~%q", strings.Join(names, "|")), periods: periods,
			requests: s.listRequestSLIs()})
	}
	return out
}

// newRecord returns a recording rule of the part. All results already have the label;
// on the rule it avoids the warning of Prometheus about two rules with the same labels.
func (b budgetPart) newRecord(name, expr string) monitoringv1.Rule {
	if b.sli == "" {
		return newRecord(name, expr)
	}
	return newRecord(name, expr, series.SLI, b.sli)
}

// buildBudgetLeft returns PromQL for the remaining budgets of a part and a period.
func (s Set) buildBudgetLeft(part budgetPart, p time.Duration) string {
	return fmt.Sprintf("1 -\n%s\n/ %s %s", part.buildSpent(p), onObjective, s.buildBudget(p))
}

// buildShare returns PromQL for the part of the budgets of a period that the bad slices in metric used. Bad
// requests are compared with all bad requests, which costs less than counting all requests of the period.
func (s Set) buildShare(metric string, p time.Duration) string {
	sumOver := func(metric, matcher string) string {
		return fmt.Sprintf("sum_over_time(%s%s[%s])", metric, matcher, formatDuration(p))
	}
	requests := s.listRequestSLIs()
	if len(requests) == 0 {
		return fmt.Sprintf("%s\n/ %s %s", sumOver(metric, ""), onObjective, s.buildBudget(p))
	}
	matcher := "{" + requests.matchNames() + "}"
	return fmt.Sprintf("(\n  (%[1]s unless %[2]s %[3]s)\n/ %[4]s %[5]s\n  or %[6]s %[7]s / %[6]s %[8]s * %[6]s "+
		"(1 - %[9]s and %[10]s)\n)", sumOver(metric, ""), matchOn(objectiveLabels), series.SLOMinRequests, onObjective,
		s.buildBudget(p), matchOn(budgetLabels), sumOver(metric, matcher), sumOver(series.SLIBadSlice, matcher),
		series.SLOBudgetLeft, matchPeriod(p))
}

// buildBudget returns PromQL for the number of slices of a period that may be bad.
func (Set) buildBudget(p time.Duration) string {
	return fmt.Sprintf("(%s * (1 - %s and %s))", formatNumber(countSlices(p)), series.SLOObjective, matchPeriod(p))
}

// matchPeriod returns the right side of an `and` that keeps the objectives with a period.
func matchPeriod(p time.Duration) string {
	return fmt.Sprintf("%s %s == %d", matchOn(objectiveLabels), series.SLOPeriod, int(p.Seconds()))
}
