// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// ErrAlert says what is wrong with alerts that are switched off, or with their
// labels and annotations.
var ErrAlert = errors.New("invalid alerts")

// Alerting says which alerts an objective has.
type Alerting string

const (
	// AlertsAll is the default.
	AlertsAll Alerting = "All"
	// AlertsTickets leaves out pages.
	AlertsTickets Alerting = "Tickets"
	// AlertsPages leaves out tickets about the budget. Those about missing data stay.
	AlertsPages Alerting = "Pages"
	// AlertsNone leaves out all alerts, also those about missing data. The budget is
	// recorded.
	AlertsNone Alerting = "None"
)

// has tells whether an objective has alerts of a severity.
func (a Alerting) has(severity string) bool {
	switch a {
	case AlertsNone:
		return false
	case AlertsTickets:
		return severity != series.Page
	case AlertsPages:
		return severity == series.Page
	}
	return true
}

// withAlerts tells whether operators have alerts about an SLI by default, and which
// of them have alerts or none by what they set themselves.
func (s Set) withAlerts(sli string) (byDefault bool, with, without []types.NamespacedName) {
	alerts := func(o Objective) bool { return o.SLI == sli && o.Alerts != AlertsNone }
	for _, op := range s.Operators {
		switch {
		case slices.ContainsFunc(op.Objectives, alerts):
			with = append(with, op.ID())
		case op.has(sli) || slices.Contains(op.Without, sli):
			without = append(without, op.ID())
		}
	}
	return slices.ContainsFunc(s.Default, alerts), with, without
}

// selectObjectives selects the series of the objectives that meet a condition: one
// selector for each objective of the default and of operators.
func (s Set) selectObjectives(metric string, meets func(Objective) bool) []string {
	var out []string
	for _, o := range s.Default {
		if meets(o) {
			out = append(out, s.selectDefault(metric, o.SLI))
		}
	}
	for _, op := range s.Operators {
		for _, o := range op.Objectives {
			if meets(o) {
				out = append(out, fmt.Sprintf("%s{sli=%q,%s}", metric, o.SLI, matchOperator(op.ID())))
			}
		}
	}
	return out
}

// selectDefault selects the series of an SLI of the operators that have the
// default's objective for it.
func (s Set) selectDefault(metric, sli string) string {
	matcher := fmt.Sprintf("sli=%q", sli)
	if sli == Probe {
		matcher = `sli=~"probe:.+"`
	}
	var except []types.NamespacedName
	for _, op := range s.Operators {
		if op.has(sli) || sli == Probe && slices.ContainsFunc(op.Objectives, Objective.isOfProbe) {
			except = append(except, op.ID())
		}
	}
	return selectOthers(metric, except, matcher)
}

// alerting selects the objectives with alerts of a tier.
func (s Set) alerting(t Tier) string {
	objective := series.SLOObjective
	switch {
	case t == CriticalTier():
		objective = selectOperators(objective, s.critical(), mayPage())
	case t.Severity == series.Page: // without a threshold there is no page
		objective += "{" + mayPage() + "}"
	}
	without := s.selectObjectives(series.SLOObjective, func(o Objective) bool { return !o.Alerts.has(t.Severity) })
	if len(without) == 0 {
		return objective
	}
	return fmt.Sprintf("(%s unless %s (%s))", objective, on(objectiveLabels), strings.Join(without, " or "))
}

// SwitchableAlerts are the names of alerts that a Set may leave out: all but those
// about budgets that burn, which objectives switch off, and about clusters, which
// take the place of others.
func SwitchableAlerts() []string {
	var out []string
	for _, g := range (Set{Default: DefaultProfile()}).groups(Whole) {
		for _, r := range g.Rules {
			if r.Alert != "" && !slices.Contains([]string{AlertOperator, AlertRelease, AlertCluster}, r.Alert) {
				out = append(out, r.Alert)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// CheckAlert says whether an alert can be left out by its name; the error suggests
// the nearest.
func CheckAlert(name string) error {
	known := SwitchableAlerts()
	switch {
	case slices.Contains(known, name):
		return nil
	case name == AlertOperator || name == AlertRelease:
		return fmt.Errorf("%w: %s is switched off by objective: set alerts to %s or %s in an OperatorSLO", ErrAlert,
			name, AlertsTickets, AlertsNone)
	case name == AlertCluster:
		return fmt.Errorf("%w: %s takes the place of alerts about the operators of a cluster, so it cannot be left out",
			ErrAlert, name)
	}
	if near := nearest(name, known); near != "" {
		return fmt.Errorf("%w: there is no alert %q: did you mean %s?", ErrAlert, name, near)
	}
	return fmt.Errorf("%w: there is no alert %q: choose one of %s", ErrAlert, name, strings.Join(known, ", "))
}

// leaveOut takes the alerts of WithoutAlerts out of groups, and groups that are empty
// then.
func (s Set) leaveOut(groups []monitoringv1.RuleGroup) []monitoringv1.RuleGroup {
	var out []monitoringv1.RuleGroup
	for _, g := range groups {
		g.Rules = slices.DeleteFunc(g.Rules, func(r monitoringv1.Rule) bool {
			return r.Alert != "" && slices.Contains(s.WithoutAlerts, r.Alert)
		})
		if len(g.Rules) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// Bounds of labels and annotations of an operator's alerts.
const (
	maxTexts      = 20
	maxLabel      = 200
	maxAnnotation = 2048
)

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// IsLabelName tells whether PromQL can have a label's name without quotes.
func IsLabelName(name string) bool { return labelName.MatchString(name) }

// ourLabels are labels that alerts have, or that tell where they come from.
var ourLabels = []string{"alertname", "alertstate", series.Severity, series.Scope, series.Cluster,
	series.OperatorNamespace, series.Operator, series.SLI, series.SLO, series.Version, series.Release, series.Team,
	series.Criticality, series.Tier, series.Wave, series.Phase, series.Probe, series.Kind, series.Schema}

// ourAnnotations are annotations that alerts have.
var ourAnnotations = []string{"summary", "description", "burn", "window", "held_until", "budget_left", "clusters",
	"cluster_count", "operators", "criticality", "restarts", "custom_resources", "rollout", "wave", "change", "look",
	"rollback", "dashboard_url", AnnotationRunbook}

// CheckLabel says whether alerts of an operator may have a label.
func CheckLabel(name, value string) error {
	switch {
	case slices.Contains(ourLabels, name):
		return fmt.Errorf("%w: label %s is Bellwether's own: choose another name", ErrAlert, name)
	case !IsLabelName(name) || strings.HasPrefix(name, "__"):
		return fmt.Errorf("%w: %q is no name of a label", ErrAlert, name)
	case value == "" || len(value) > maxLabel || !utf8.ValidString(value):
		return fmt.Errorf("%w: label %s: its value needs 1 to %d bytes of UTF-8", ErrAlert, name, maxLabel)
	}
	return nil
}

// CheckAnnotation says whether alerts of an operator may have an annotation. Its
// text is not a template.
func CheckAnnotation(name, text string) error {
	switch {
	case name == AnnotationRunbook:
		return fmt.Errorf("%w: annotation %s: set runbookURL in place of it", ErrAlert, name)
	case slices.Contains(ourAnnotations, name):
		return fmt.Errorf("%w: annotation %s is Bellwether's own: choose another name", ErrAlert, name)
	case !IsLabelName(name):
		return fmt.Errorf("%w: %q is no name of an annotation", ErrAlert, name)
	case text == "" || len(text) > maxAnnotation || !utf8.ValidString(text):
		return fmt.Errorf("%w: annotation %s: its text needs 1 to %d bytes of UTF-8", ErrAlert, name, maxAnnotation)
	}
	return nil
}

func (op Operator) checkAlertTexts() []error {
	var errs []error
	for _, texts := range []struct {
		of    map[string]string
		check func(name, value string) error
	}{{op.Labels, CheckLabel}, {op.Annotations, CheckAnnotation}} {
		if len(texts.of) > maxTexts {
			errs = append(errs, fmt.Errorf("%w: more than %d labels or annotations", ErrAlert, maxTexts))
		}
		for _, name := range slices.Sorted(maps.Keys(texts.of)) {
			if err := texts.check(name, texts.of[name]); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// joinTeam joins alerts with the series about the team of their operator. withTexts
// adds the labels of a set to it.
const joinTeam = "group_left (" + series.Team + ") " + series.SLOTeam

// labelNames are the names of labels that alerts get from the series about the team.
func (s Set) labelNames() []string {
	names := map[string]bool{}
	for _, op := range s.Operators {
		for name := range op.Labels {
			names[name] = true
		}
	}
	return append([]string{series.Team}, slices.Sorted(maps.Keys(names))...)
}

// withTexts gives alerts about operators their labels, which come from the series
// about the team, and the annotations of their operators.
func (s Set) withTexts(groups []monitoringv1.RuleGroup) {
	names := map[string]bool{}
	for _, op := range s.Operators {
		for name := range op.Annotations {
			names[name] = true
		}
	}
	join := fmt.Sprintf("group_left (%s) %s", strings.Join(s.labelNames(), ", "), series.SLOTeam)
	for _, g := range groups {
		for i := range g.Rules {
			r := &g.Rules[i]
			if scope := r.Labels[series.Scope]; scope != series.ScopeOperator && scope != series.ScopeRelease {
				continue
			}
			r.Expr = intstr.FromString(strings.ReplaceAll(r.Expr.String(), joinTeam, join))
			for name := range names {
				r.Annotations[name] = s.annotation(name)
			}
		}
	}
}

// annotation is a template of an annotation that operators have texts for.
func (s Set) annotation(name string) string {
	return s.byOperator("", func(op Operator) string { return op.Annotations[name] })
}

// byOperator is a template that chooses a text by the operator of an alert. Operators
// whose own text is empty have the usual one.
func (s Set) byOperator(usual string, of func(Operator) string) string {
	var out strings.Builder
	for _, op := range s.Operators {
		text := of(op)
		if text == "" || text == usual {
			continue
		}
		word := "if"
		if out.Len() > 0 {
			word = "else if"
		}
		fmt.Fprintf(&out, "{{ %s and (eq $labels.operator_namespace %q) (eq $labels.operator %q) }}{{ %q }}", word,
			op.Namespace, op.Name, text)
	}
	if out.Len() == 0 {
		return usual
	}
	return out.String() + "{{ else }}" + usual + "{{ end }}"
}
