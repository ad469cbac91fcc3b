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

// Rules are what is made of a Set.
type Rules struct {
	// Groups serve every operator. They need Prometheus 3.
	Groups []monitoringv1.RuleGroup
	// Own has a group for each operator with own SLIs. They are apart because
	// they contain queries of other people: one that Prometheus refuses must not
	// take everybody's rules with it.
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

// Count counts recording and alerting rules.
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

// Order is the order of the groups in which what one records is seen by the next
// ones in the same evaluation: those of own SLIs first.
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

// Build makes the rules of a set for one Prometheus that scrapes all clusters, or
// says all that is wrong with the set.
func Build(s Set) (*Rules, error) { return BuildPart(s, Whole) }

// BuildPart makes a part of the rules of a set, or says all that is wrong with the
// set.
func BuildPart(s Set, part Part) (*Rules, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	r := &Rules{}
	if part == Edge {
		r.Groups = []monitoringv1.RuleGroup{group("slices", Step, s.sliceRules(Edge)...)}
		if len(s.critical()) > 0 {
			r.Groups = append(r.Groups, group("slices-critical", CriticalStep, s.criticalSlices(Edge)...))
		}
	} else {
		r.Groups = s.groups(part)
	}
	if part == Hub {
		delay(r.Groups)
		return r, nil
	}
	for _, op := range s.Operators {
		if len(op.Own) > 0 {
			r.Own = append(r.Own, OwnGroup{op.ID(), ownGroup(op)})
		}
	}
	return r, nil
}

// groups are those of the hub part or of the whole.
func (s Set) groups(part Part) []monitoringv1.RuleGroup {
	groups := []monitoringv1.RuleGroup{fastGroup(s, part)}
	if len(s.critical()) > 0 {
		groups = append(groups, s.criticalGroup(part))
	}
	groups = append(groups, objectiveGroup(s))
	for _, t := range Tiers()[1:] {
		groups = append(groups, s.tierGroup(t))
	}
	groups = append(groups, budgetGroup(s), absenceGroup(s), healthGroup())
	s.addRunbooks(groups)
	s.withTexts(groups)
	return s.leaveOut(groups)
}

func group(name string, interval time.Duration, rules ...monitoringv1.Rule) monitoringv1.RuleGroup {
	d := monitoringv1.Duration(duration(interval))
	return monitoringv1.RuleGroup{Name: "bellwether-" + name, Interval: &d, Rules: rules}
}

func record(name, expr string, labels ...string) monitoringv1.Rule {
	r := monitoringv1.Rule{Record: name, Expr: intstr.FromString(expr)}
	for i := 0; i+1 < len(labels); i += 2 {
		if r.Labels == nil {
			r.Labels = map[string]string{}
		}
		r.Labels[labels[i]] = labels[i+1]
	}
	return r
}

// merge joins rules that record the same series with the same labels: each has
// its own operators, and Prometheus warns of two rules that may meet.
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

// fastGroup has all that a page of the fastest tier needs, in order, so that it
// takes one evaluation: the slices, their burn rate, who is to blame, the alerts.
func fastGroup(s Set, part Part) monitoringv1.RuleGroup {
	requests := s.requestSLIs()
	rules := append(append(s.sliceRules(part), excludedSlices()), clusterStates()...)
	rules = append(rules, s.versionRules(fastest())...)
	rules = append(rules, clusterBlame(requests))
	rules = append(append(rules, s.releaseRules(requests)...), releasePage())
	rules = append(rules, regrownReleases()...)
	rules = append(rules, slicesOfClusters()...)
	rules = append(rules, s.clusterRules(fastest())...)
	rules = append(rules, s.burnAlerts()...)
	return group("sli", Step, append(rules, record(series.RulesEvaluated, "time()"))...)
}

// sliceRules record the slices that a part makes: densely, then the bad ones only,
// then with the version, which is empty where it is not known.
func (s Set) sliceRules(part Part) []monitoringv1.Rule {
	var rules []monitoringv1.Rule
	if part != Hub {
		rules = append(s.limits(), evidence(), aloneInNamespace())
	}
	for _, sli := range SLIs() {
		switch {
		case sli.Name == Probe && part != Edge:
			rules = append(rules, record(series.SLIBad, sli.expr))
		case sli.Name != Probe && part != Hub:
			rules = append(rules, record(series.SLIBad, s.exprOf(sli), series.SLI, sli.Name))
		}
	}
	bad := series.SLIBadSlice + part.slices()
	// An operator that is being upgraded may show two versions; one of them is as good as none.
	const ran = series.Version + ", " + series.Release
	version := fmt.Sprintf("%[1]s\n* %[2]s group_left (%[3]s)\ntopk by (%[4]s) (1, %[5]s)\nor %[6]s %[1]s",
		bad, on(installLabels), ran, installLabels, aggregate("max", installLabels+", "+ran,
			fmt.Sprintf("%s and %s %s", series.OperatorInfo, on(installLabels), bad)), on(budgetLabels))
	requests := s.requestSLIs()
	if part == Hub {
		requests = nil // slices of own SLIs are made on the clusters
	}
	rules = append(rules, record(series.SLIBadSlice, requests.weigh(s.badSlices(part))),
		record(series.SLIBadVersion, version))
	if part != Hub {
		rules = append(rules, confirmedSlices(), heartbeat())
	}
	return rules
}

func ownGroup(op Operator) monitoringv1.RuleGroup {
	var rules []monitoringv1.Rule
	for _, own := range op.Own {
		rules = append(rules, own.rules(op)...)
	}
	return group("sli-own-"+op.ID().String(), Step, rules...)
}

// budgetInterval is how often budgets are evaluated.
const budgetInterval = 4 * time.Minute

// budgetGroup says what is left of each budget, and alerts if it is nothing. A budget is
// that of the whole period, also for who has not been there for all of it.
func budgetGroup(s Set) monitoringv1.RuleGroup {
	var rules []monitoringv1.Rule
	for _, part := range s.budgetParts() {
		for _, p := range part.periods {
			rules = append(rules, part.record(series.SLOBudgetLeft, fmt.Sprintf("%s\nor %s\n(1 + 0 * %s{%s} and %s)",
				s.budgetLeft(part, p), on(budgetLabels), series.SLIBad, part.matcher,
				ofPeriod(p))))
		}
	}
	for _, p := range s.periods() {
		rules = append(rules, record(series.SLOBudgetExcluding, s.budgetExcluding(p)))
	}
	rules = append(merge(rules), s.exhaustedRules()...)
	return group("budget", budgetInterval, append(rules, missingSlices())...)
}

// budgetPart are the budgets that one rule records. A rule reads the slices of a whole
// period, and Prometheus holds all that a query selects in memory: with a rule for each
// SLI that is a part of what one rule for all of them takes.
type budgetPart struct {
	// sli is the SLI of all operators, or empty for all other SLIs: those of probes, and
	// operators' own.
	sli string
	// matcher selects the SLIs.
	matcher string
	// periods are those of the objectives, the shortest first.
	periods []time.Duration
	// requests are those of the SLIs whose budgets count requests.
	requests requestSLIs
}

// budgetParts are all budgets, each in one of them.
func (s Set) budgetParts() []budgetPart {
	var out []budgetPart
	var names []string
	for _, sli := range SLIs() {
		periods := s.periodsOf(func(o Objective) bool { return o.SLI == sli.Name })
		if sli.Name == Probe || len(periods) == 0 {
			continue
		}
		names = append(names, sli.Name)
		out = append(out, budgetPart{sli: sli.Name, matcher: fmt.Sprintf("sli=%q", sli.Name), periods: periods})
	}
	isOther := func(o Objective) bool { return !slices.Contains(names, o.SLI) }
	if periods := s.periodsOf(isOther); len(periods) > 0 {
		out = append(out, budgetPart{matcher: fmt.Sprintf("sli!~%q", strings.Join(names, "|")), periods: periods,
			requests: s.requestSLIs()})
	}
	return out
}

// record makes a rule of the part. The label is that of all results already. It tells
// the rule from those of other parts: Prometheus warns of two with the same labels.
func (b budgetPart) record(name, expr string) monitoringv1.Rule {
	if b.sli == "" {
		return record(name, expr)
	}
	return record(name, expr, series.SLI, b.sli)
}

// budgetLeft is what bad slices left of the budgets of a part and a period.
func (s Set) budgetLeft(part budgetPart, p time.Duration) string {
	return fmt.Sprintf("1 -\n%s\n/ %s %s", part.spent(p), ofSLO, s.budget(p))
}

// share is what some of the bad slices took of the budgets of a period. Bad requests are
// compared with all bad ones, which costs less than to count all requests of the period.
func (s Set) share(some string, p time.Duration) string {
	over := func(metric, matcher string) string {
		return fmt.Sprintf("sum_over_time(%s%s[%s])", metric, matcher, duration(p))
	}
	requests := s.requestSLIs()
	if len(requests) == 0 {
		return fmt.Sprintf("%s\n/ %s %s", over(some, ""), ofSLO, s.budget(p))
	}
	of := "{" + requests.matcher() + "}"
	return fmt.Sprintf("(\n  (%[1]s unless %[2]s %[3]s)\n/ %[4]s %[5]s\n  or %[6]s %[7]s / %[6]s %[8]s * %[6]s "+
		"(1 - %[9]s and %[10]s)\n)", over(some, ""), on(objectiveLabels), series.SLOMinRequests, ofSLO, s.budget(p),
		on(budgetLabels), over(some, of), over(series.SLIBadSlice, of), series.SLOBudgetLeft, ofPeriod(p))
}

// budget is how many slices of a period may be bad.
func (Set) budget(p time.Duration) string {
	return fmt.Sprintf("(%s * (1 - %s and %s))", number(count(p)), series.SLOObjective, ofPeriod(p))
}

// ofPeriod selects, after `and`, the objectives with a period.
func ofPeriod(p time.Duration) string {
	return fmt.Sprintf("%s %s == %d", on(objectiveLabels), series.SLOPeriod, int(p.Seconds()))
}
