// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// knownMetric is 1 for each operator that is expected on any cluster.
const knownMetric = "bellwether:operator:known"

// buildObjectiveGroup returns the group that records objectives as series. Operators with the
// same target share a rule, so the number of rules depends on the number of different targets.
func buildObjectiveGroup(s Set) monitoringv1.RuleGroup {
	rules := []monitoringv1.Rule{
		// Alerts are joined with these series, so the series stay while there is no data from the hub.
		newRecord(knownMetric, fmt.Sprintf("%s\nor (%s unless on () %s)",
			aggregate("group", operatorLabels, series.OperatorExpected), knownMetric, series.FleetClusters)),
		newRecord(runningMetric, fmt.Sprintf("%s\nor (%s unless on () %s)", aggregate("count", versionLabels,
			aggregate("group", series.Cluster+", "+versionLabels, series.OperatorInfo)), runningMetric,
			series.FleetClusters)),
		newRecord(series.ReleaseBlame, fmt.Sprintf("%s\nor clamp_min(%s * %s, %d)",
			aggregate("group", versionLabels, series.RolloutWaveFailed), s.Blame.applyDefaults().Share.formatDecimal(),
			runningMetric, s.Blame.applyDefaults().Clusters)),
		newRecord(series.ClusterExpected, aggregate("count", series.Cluster, aggregate("group", installLabels,
			series.OperatorExpected))),
	}
	rules = append(rules, s.buildTargets()...)
	rules = append(rules, buildAttribute(series.SLOPeriod, formatNumber(DefaultPeriod.Seconds()),
		s.selectOtherPeriods())...)
	rules = append(rules, s.buildGuards()...)
	rules = append(rules, s.buildMinRequests()...)
	rules = append(rules, s.buildCriticalGuards()...)
	for _, t := range s.listTiers() {
		rules = append(rules, newRecord(thresholdMetric, fmt.Sprintf("clamp_max(%s * %s / %s * (1 - %s), %s)",
			formatNumber(t.Factor(DefaultPeriod)), series.SLOPeriod, formatNumber(DefaultPeriod.Seconds()),
			s.selectAlertedObjectives(t), MaxThreshold.formatDecimal()), series.Tier, t.Name))
	}
	rules = append(rules, s.buildOwners()...)
	rules = append(rules, s.buildExpected()...)
	selectChanges := func(metric, field string) string {
		return fmt.Sprintf("label_replace(changes(%s[1d]), \"of\", %q, \"\", \"\")", metric, field)
	}
	edited := aggregate("max", objectiveLabels,
		selectChanges(series.SLOObjective, "target")+" or "+selectChanges(series.SLOPeriod, "period"))
	return newGroup("objectives", 2*time.Minute,
		append(merge(rules), newRecord(series.SLOEdited, edited+" > bool 0 == 1"))...)
}

// buildTargets returns the rules that give each operator the objectives
// of the default, except for the SLIs that it configures itself.
func (s Set) buildTargets() []monitoringv1.Rule {
	var rules []monitoringv1.Rule
	for _, o := range s.Default {
		var except []types.NamespacedName
		for _, op := range s.Operators {
			if o.SLI != Probe && (op.hasObjective(o.SLI) || slices.Contains(op.Without, o.SLI)) {
				except = append(except, op.ID())
			}
		}
		if o.SLI == Probe {
			rules = append(rules, s.buildProbeTarget(o))
			continue
		}
		rules = append(rules, newRecord(series.SLOObjective, o.Target.formatDecimal()+" * "+selectOthers(knownMetric,
			except),
			series.SLI, o.SLI))
	}
	type key struct {
		sli    string
		target PPM
	}
	operatorsByKey := map[key][]types.NamespacedName{}
	for _, op := range s.Operators {
		for _, o := range op.Objectives {
			k := key{o.SLI, o.Target}
			operatorsByKey[k] = append(operatorsByKey[k], op.ID())
		}
	}
	keys := slices.SortedFunc(maps.Keys(operatorsByKey), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.sli, b.sli), cmp.Compare(a.target, b.target))
	})
	for _, k := range keys {
		rules = append(rules, newRecord(series.SLOObjective, k.target.formatDecimal()+" * "+selectOperators(knownMetric,
			operatorsByKey[k]),
			series.SLI, k.sli))
	}
	return rules
}

// hasObjective reports whether the operator configures an objective for an SLI.
func (op Operator) hasObjective(sli string) bool {
	return slices.ContainsFunc(op.Objectives, func(o Objective) bool { return o.SLI == sli })
}

// buildAttribute returns the rules that record a number for every objective: the
// default, and for some objectives another value, whose selectors are in exceptions.
func buildAttribute(name, defaultValue string, exceptions map[string][]string) []monitoringv1.Rule {
	base := fmt.Sprintf("0 * %s + %s", series.SLOObjective, defaultValue)
	if len(exceptions) == 0 {
		return []monitoringv1.Rule{newRecord(name, base)}
	}
	var rules []monitoringv1.Rule
	var exceptional []string
	for _, value := range slices.Sorted(maps.Keys(exceptions)) {
		selected := strings.Join(exceptions[value], " or ")
		exceptional = append(exceptional, selected)
		rules = append(rules, newRecord(name, fmt.Sprintf("0 * (%s) + %s", selected, value)))
	}
	return append(rules, newRecord(name, fmt.Sprintf("%s\nunless %s (%s)", base, matchOn(objectiveLabels),
		strings.Join(exceptional, " or "))))
}

// selectOtherPeriods returns selectors of the objectives with another period than the default, by period in seconds.
func (s Set) selectOtherPeriods() map[string][]string {
	out := map[string][]string{}
	for _, p := range s.listPeriods() {
		if p == DefaultPeriod {
			continue
		}
		hasPeriod := func(o Objective) bool { return o.period() == p }
		if selected := s.selectObjectives(series.SLOObjective, hasPeriod); len(selected) > 0 {
			out[formatNumber(p.Seconds())] = selected
		}
	}
	return out
}

// matchPagingSLIs returns a matcher of the SLIs that may page.
func matchPagingSLIs() string { return fmt.Sprintf("sli!~%q", strings.Join(listTicketSLIs(), "|")) }

// listTicketSLIs returns the names of the SLIs that make only tickets.
func listTicketSLIs() []string {
	var names []string
	for _, s := range SLIs() {
		if s.Ticket {
			names = append(names, s.Name)
		}
	}
	return names
}

// isForProbe reports whether the objective is about a probe.
func (o Objective) isForProbe() bool { return strings.HasPrefix(o.SLI, Probe) }

// buildGuards returns the rules that record how many slices must be bad, as a number that the sum of bad slices
// must exceed. A run of a probe is bad in every slice until the next run, so probes with a longer interval need
// more slices. Slices of own SLIs with requests already need several bad requests, so their number is 0.
func (s Set) buildGuards() []monitoringv1.Rule {
	// One event makes up to two slices of these SLIs bad. More than 2*Guard-1.5 bad slices are at least Guard events.
	twice := fmt.Sprintf("%s{sli=~%q}", series.SLOObjective, "panic|webhook")
	probes := selectProbeIntervals()
	rules := []monitoringv1.Rule{
		newRecord(series.SLOGuard, fmt.Sprintf("0 * %s + %s", twice, formatNumber(2*Guard-1.5))),
		newRecord(series.SLOGuard, fmt.Sprintf("%s * clamp_min(%s / %s, 1)", formatNumber(Guard-0.5), probes,
			formatNumber(Step.Seconds()))),
	}
	otherGuards := []string{twice, probes}
	var own []string
	for _, op := range s.Operators {
		for _, sli := range op.Own {
			if sli.Good != "" {
				continue
			}
			own = append(own, fmt.Sprintf("%s{%s,sli=%q}", series.SLOObjective, matchOperator(op.ID()), sli.Name))
		}
	}
	if len(own) > 0 {
		rules = append(rules, newRecord(series.SLOGuard, fmt.Sprintf("0 * (%s)", strings.Join(own, " or "))))
		otherGuards = append(otherGuards, own...)
	}
	return append(rules, newRecord(series.SLOGuard, fmt.Sprintf("0 * %s + %s\nunless %s (%s)", series.SLOObjective,
		formatNumber(Guard-0.5), matchOn(objectiveLabels), strings.Join(otherGuards, " or "))))
}

// listPeriods returns all periods that are in use, the shortest first.
func (s Set) listPeriods() []time.Duration {
	return s.listPeriodsWhere(func(Objective) bool { return true })
}

// listPeriodsWhere returns the periods of the objectives that meet a condition, the shortest first.
func (s Set) listPeriodsWhere(meets func(Objective) bool) []time.Duration {
	used := map[time.Duration]bool{}
	addPeriods := func(all []Objective) {
		for _, o := range all {
			if meets(o) {
				used[o.period()] = true
			}
		}
	}
	addPeriods(s.Default)
	for _, op := range s.Operators {
		addPeriods(op.Objectives)
	}
	return slices.Sorted(maps.Keys(used))
}

// criticalityStandard is the criticality of an operator without another one.
const criticalityStandard = "Standard"

// owner is the team of an operator, its criticality, and the
// labels of its alerts, sorted and in the notation of PromQL.
type owner struct{ team, criticality, labels string }

// toMatchers returns an equality matcher for each label, sorted by name.
func toMatchers(labels map[string]string) []Matcher {
	var out []Matcher
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, Matcher{name, "=", labels[name]})
	}
	return out
}

// buildOwners returns the rules that record the owner and the criticality of each operator. An operator without
// a team also has a series, without the label, because alerts are joined with the series and must not be lost.
func (s Set) buildOwners() []monitoringv1.Rule {
	members, labelsOf := map[owner][]types.NamespacedName{}, map[owner]map[string]string{}
	var named []types.NamespacedName
	for _, op := range s.Operators {
		key := owner{team: op.Team, criticality: cmp.Or(op.Criticality, criticalityStandard),
			labels: buildSelector("", toMatchers(op.Labels))}
		if key != (owner{criticality: criticalityStandard, labels: "{}"}) { // not the default
			members[key] = append(members[key], op.ID())
			labelsOf[key] = op.Labels
			named = append(named, op.ID())
		}
	}
	rules := []monitoringv1.Rule{newRecord(series.SLOTeam, selectOthers(knownMetric, named), series.Criticality,
		criticalityStandard)}
	for _, key := range slices.SortedFunc(maps.Keys(members), func(a, b owner) int {
		return cmp.Or(cmp.Compare(a.team, b.team), cmp.Compare(a.criticality, b.criticality),
			cmp.Compare(a.labels, b.labels))
	}) {
		labels := []string{series.Criticality, key.criticality}
		if key.team != "" {
			labels = append(labels, series.Team, key.team)
		}
		for _, name := range slices.Sorted(maps.Keys(labelsOf[key])) {
			labels = append(labels, name, labelsOf[key][name])
		}
		rules = append(rules, newRecord(series.SLOTeam, selectOperators(knownMetric, members[key]), labels...))
	}
	return rules
}

// buildExpected returns the rules that record which slices must exist: slices of required SLIs of the
// default, and of SLIs for which an operator has its own objective. Probes are excluded because they
// are created and deleted with their objects, and own SLIs because they need not have a cluster.
func (s Set) buildExpected() []monitoringv1.Rule {
	var rules []monitoringv1.Rule
	for _, sli := range SLIs() {
		if operators := s.selectExpecting(sli); operators != "" {
			rules = append(rules, newRecord(series.SLIExpected, aggregate("group", installLabels, operators),
				series.SLI,
				sli.Name))
		}
	}
	return rules
}

// selectExpecting selects the operators that must have slices of an SLI. It is empty if there are none.
func (s Set) selectExpecting(sli SLI) string {
	byDefault, named, without := s.splitByAlerts(sli.Name)
	switch {
	case sli.Name == Probe:
		return ""
	case byDefault && sli.Required:
		return selectOthers(series.OperatorExpected, without)
	case len(named) > 0:
		return selectOperators(series.OperatorExpected, named)
	}
	return ""
}

// listExpectedSLIs returns the names of the SLIs that any operator must have slices of.
func (s Set) listExpectedSLIs() []string {
	var names []string
	for _, sli := range SLIs() {
		if s.selectExpecting(sli) != "" {
			names = append(names, sli.Name)
		}
	}
	return names
}
