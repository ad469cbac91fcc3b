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

// known is 1 for each operator that is expected anywhere.
const known = "bellwether:operator:known"

// objectiveGroup records objectives as series. Operators of the same target
// share a rule, so their number is that of different targets, not of operators.
func objectiveGroup(s Set) monitoringv1.RuleGroup {
	rules := []monitoringv1.Rule{
		// Alerts are joined with these, so they stay while nothing is known of the hub.
		record(known, fmt.Sprintf("%s\nor (%s unless on () %s)",
			aggregate("group", operatorLabels, series.OperatorExpected), known, series.FleetClusters)),
		record(running, fmt.Sprintf("%s\nor (%s unless on () %s)", aggregate("count", versionLabels,
			aggregate("group", series.Cluster+", "+versionLabels, series.OperatorInfo)), running,
			series.FleetClusters)),
		record(series.ReleaseBlame, fmt.Sprintf("%s\nor clamp_min(%s * %s, %d)",
			aggregate("group", versionLabels, series.RolloutWaveFailed), s.Blame.defaulted().Share.decimal(), running,
			s.Blame.defaulted().Clusters)),
		record(series.ClusterExpected, aggregate("count", series.Cluster, aggregate("group", installLabels,
			series.OperatorExpected))),
	}
	rules = append(rules, s.targets()...)
	rules = append(rules, attribute(series.SLOPeriod, number(DefaultPeriod.Seconds()), s.otherPeriods())...)
	rules = append(rules, s.guards()...)
	rules = append(rules, s.minRequests()...)
	rules = append(rules, s.criticalGuards()...)
	for _, t := range s.tiers() {
		rules = append(rules, record(threshold, fmt.Sprintf("clamp_max(%s * %s / %s * (1 - %s), %s)",
			number(t.Factor(DefaultPeriod)), series.SLOPeriod, number(DefaultPeriod.Seconds()), s.alerting(t),
			MaxThreshold.decimal()), series.Tier, t.Name))
	}
	rules = append(rules, s.owners()...)
	rules = append(rules, s.expected()...)
	changes := func(metric, of string) string {
		return fmt.Sprintf("label_replace(changes(%s[1d]), \"of\", %q, \"\", \"\")", metric, of)
	}
	edited := aggregate("max", objectiveLabels,
		changes(series.SLOObjective, "target")+" or "+changes(series.SLOPeriod, "period"))
	return group("objectives", 2*time.Minute,
		append(merge(rules), record(series.SLOEdited, edited+" > bool 0 == 1"))...)
}

// targets gives each operator the default's objectives but for what it sets itself.
func (s Set) targets() []monitoringv1.Rule {
	var rules []monitoringv1.Rule
	for _, o := range s.Default {
		var except []types.NamespacedName
		for _, op := range s.Operators {
			if o.SLI != Probe && (op.has(o.SLI) || slices.Contains(op.Without, o.SLI)) {
				except = append(except, op.ID())
			}
		}
		if o.SLI == Probe {
			rules = append(rules, s.probeTarget(o))
			continue
		}
		rules = append(rules, record(series.SLOObjective, o.Target.decimal()+" * "+selectOthers(known, except),
			series.SLI, o.SLI))
	}
	type key struct {
		sli    string
		target PPM
	}
	same := map[key][]types.NamespacedName{}
	for _, op := range s.Operators {
		for _, o := range op.Objectives {
			k := key{o.SLI, o.Target}
			same[k] = append(same[k], op.ID())
		}
	}
	keys := slices.SortedFunc(maps.Keys(same), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.sli, b.sli), cmp.Compare(a.target, b.target))
	})
	for _, k := range keys {
		rules = append(rules, record(series.SLOObjective, k.target.decimal()+" * "+selectOperators(known, same[k]),
			series.SLI, k.sli))
	}
	return rules
}

func (op Operator) has(sli string) bool {
	return slices.ContainsFunc(op.Objectives, func(o Objective) bool { return o.SLI == sli })
}

// attribute records a number for every objective: the default, and what some
// objectives have instead, selected by value.
func attribute(name, otherwise string, exceptions map[string][]string) []monitoringv1.Rule {
	base := fmt.Sprintf("0 * %s + %s", series.SLOObjective, otherwise)
	if len(exceptions) == 0 {
		return []monitoringv1.Rule{record(name, base)}
	}
	var rules []monitoringv1.Rule
	var all []string
	for _, value := range slices.Sorted(maps.Keys(exceptions)) {
		some := strings.Join(exceptions[value], " or ")
		all = append(all, some)
		rules = append(rules, record(name, fmt.Sprintf("0 * (%s) + %s", some, value)))
	}
	return append(rules, record(name, fmt.Sprintf("%s\nunless %s (%s)", base, on(objectiveLabels),
		strings.Join(all, " or "))))
}

// otherPeriods selects the objectives whose period is not the default one.
func (s Set) otherPeriods() map[string][]string {
	out := map[string][]string{}
	for _, p := range s.periods() {
		if p == DefaultPeriod {
			continue
		}
		hasPeriod := func(o Objective) bool { return o.period() == p }
		if some := s.selectObjectives(series.SLOObjective, hasPeriod); len(some) > 0 {
			out[number(p.Seconds())] = some
		}
	}
	return out
}

// mayPage matches the SLIs that may page.
func mayPage() string { return fmt.Sprintf("sli!~%q", strings.Join(neverPaging(), "|")) }

// neverPaging are the SLIs that only make tickets.
func neverPaging() []string {
	var names []string
	for _, s := range SLIs() {
		if s.Ticket {
			names = append(names, s.Name)
		}
	}
	return names
}

func (o Objective) isOfProbe() bool { return strings.HasPrefix(o.SLI, Probe) }

// guards are how many slices have to be bad, where that is not Guard. One event
// makes two slices of some SLIs bad. A probe's run is bad in every slice until the
// next run. Slices of own SLIs are shares or numbers of requests, and need several
// bad requests already.
func (s Set) guards() []monitoringv1.Rule {
	twice := fmt.Sprintf("%s{sli=~%q}", series.SLOObjective, "panic|webhook")
	probes := probeIntervals()
	rules := []monitoringv1.Rule{
		record(series.SLOGuard, fmt.Sprintf("0 * %s + %s", twice, number(2*Guard-1.5))),
		record(series.SLOGuard, fmt.Sprintf("%s * clamp_min(%s / %s, 1)", number(Guard-0.5), probes,
			number(Step.Seconds()))),
	}
	all := []string{twice, probes}
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
		rules = append(rules, record(series.SLOGuard, fmt.Sprintf("0 * (%s)", strings.Join(own, " or "))))
		all = append(all, own...)
	}
	return append(rules, record(series.SLOGuard, fmt.Sprintf("0 * %s + %s\nunless %s (%s)", series.SLOObjective,
		number(Guard-0.5), on(objectiveLabels), strings.Join(all, " or "))))
}

// periods are all that are in use, the shortest first.
func (s Set) periods() []time.Duration { return s.periodsOf(func(Objective) bool { return true }) }

// periodsOf are the periods of the objectives that meet a condition, the shortest first.
func (s Set) periodsOf(meets func(Objective) bool) []time.Duration {
	seen := map[time.Duration]bool{}
	note := func(all []Objective) {
		for _, o := range all {
			if meets(o) {
				seen[o.period()] = true
			}
		}
	}
	note(s.Default)
	for _, op := range s.Operators {
		note(op.Objectives)
	}
	return slices.Sorted(maps.Keys(seen))
}

// standard is the criticality of an operator that has no other.
const standard = "Standard"

// owner is who an operator belongs to, how important it is, and the labels of its
// alerts, sorted and written as PromQL does.
type owner struct{ team, criticality, labels string }

func labelMatchers(labels map[string]string) []Matcher {
	var out []Matcher
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, Matcher{name, "=", labels[name]})
	}
	return out
}

// owners records who owns which operator, and how important it is. An operator
// without a team has a series too, without the label: alerts are joined with it,
// and must not be lost.
func (s Set) owners() []monitoringv1.Rule {
	members, labelsOf := map[owner][]types.NamespacedName{}, map[owner]map[string]string{}
	var named []types.NamespacedName
	for _, op := range s.Operators {
		of := owner{op.Team, cmp.Or(op.Criticality, standard), selector("", labelMatchers(op.Labels))}
		if of != (owner{"", standard, "{}"}) {
			members[of] = append(members[of], op.ID())
			labelsOf[of] = op.Labels
			named = append(named, op.ID())
		}
	}
	rules := []monitoringv1.Rule{record(series.SLOTeam, selectOthers(known, named), series.Criticality, standard)}
	for _, of := range slices.SortedFunc(maps.Keys(members), func(a, b owner) int {
		return cmp.Or(cmp.Compare(a.team, b.team), cmp.Compare(a.criticality, b.criticality),
			cmp.Compare(a.labels, b.labels))
	}) {
		labels := []string{series.Criticality, of.criticality}
		if of.team != "" {
			labels = append(labels, series.Team, of.team)
		}
		for _, name := range slices.Sorted(maps.Keys(labelsOf[of])) {
			labels = append(labels, name, labelsOf[of][name])
		}
		rules = append(rules, record(series.SLOTeam, selectOperators(known, members[of]), labels...))
	}
	return rules
}

// expected says which slices there have to be: those of required SLIs of the
// default, and those that an operator names itself. Probes come and go with
// their objects, and own SLIs need not be by cluster.
func (s Set) expected() []monitoringv1.Rule {
	var rules []monitoringv1.Rule
	for _, sli := range SLIs() {
		if operators := s.expecting(sli); operators != "" {
			rules = append(rules, record(series.SLIExpected, aggregate("group", installLabels, operators), series.SLI,
				sli.Name))
		}
	}
	return rules
}

// expecting selects the operators that have to have slices of an SLI; empty if there is none.
func (s Set) expecting(sli SLI) string {
	byDefault, named, without := s.withAlerts(sli.Name)
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

// expectedSLIs are the SLIs that any operator has to have slices of.
func (s Set) expectedSLIs() []string {
	var names []string
	for _, sli := range SLIs() {
		if s.expecting(sli) != "" {
			names = append(names, sli.Name)
		}
	}
	return names
}
