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

// ErrAlert is wrapped by errors about alerts that are switched off, and about their labels and annotations.
var ErrAlert = errors.New("invalid alerts")

// Alerting selects the alerts of an objective.
type Alerting string

const (
	// AlertsAll is the default.
	AlertsAll Alerting = "All"
	// AlertsTickets disables pages.
	AlertsTickets Alerting = "Tickets"
	// AlertsPages disables tickets about the budget. Tickets about missing data stay.
	AlertsPages Alerting = "Pages"
	// AlertsNone disables all alerts, also alerts about missing data. The budget is still recorded.
	AlertsNone Alerting = "None"
)

// hasAlerts reports whether an objective has alerts of a severity.
func (a Alerting) hasAlerts(severity string) bool {
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

// splitByAlerts reports whether operators have alerts about an SLI by default. It also returns the
// operators whose own objectives enable alerts about the SLI, and the operators that disable them.
func (s Set) splitByAlerts(sli string) (byDefault bool, alerted, silenced []types.NamespacedName) {
	isAlerted := func(o Objective) bool { return o.SLI == sli && o.Alerts != AlertsNone }
	for _, op := range s.Operators {
		switch {
		case slices.ContainsFunc(op.Objectives, isAlerted):
			alerted = append(alerted, op.ID())
		// The operator's own objective has no alerts, or the operator does not have the SLI.
		case op.hasObjective(sli) || slices.Contains(op.Without, sli):
			silenced = append(silenced, op.ID())
		}
	}
	return slices.ContainsFunc(s.Default, isAlerted), alerted, silenced
}

// selectObjectives returns PromQL selectors of the objectives that meet a condition:
// one selector for each such objective of the default and of the operators.
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

// selectDefault selects the series of an SLI for the operators that have the default objective of the SLI.
func (s Set) selectDefault(metric, sli string) string {
	matcher := fmt.Sprintf("sli=%q", sli)
	if sli == Probe {
		matcher = `sli=~"probe:.+"`
	}
	var except []types.NamespacedName
	for _, op := range s.Operators {
		if op.hasObjective(sli) || sli == Probe && slices.ContainsFunc(op.Objectives, Objective.isForProbe) {
			except = append(except, op.ID())
		}
	}
	return selectOthers(metric, except, matcher)
}

// selectAlertedObjectives returns PromQL for the objectives that have alerts of a tier.
func (s Set) selectAlertedObjectives(t Tier) string {
	objective := series.SLOObjective
	switch {
	case t == CriticalTier():
		objective = selectOperators(objective, s.listCritical(), matchPagingSLIs())
	case t.Severity == series.Page: // objectives without a threshold have no page
		objective += "{" + matchPagingSLIs() + "}"
	}
	without := s.selectObjectives(series.SLOObjective,
		func(o Objective) bool { return !o.Alerts.hasAlerts(t.Severity) })
	if len(without) == 0 {
		return objective
	}
	return fmt.Sprintf("(%s unless %s (%s))", objective, matchOn(objectiveLabels), strings.Join(without, " or "))
}

// SwitchableAlerts returns the sorted names of the alerts that a Set may disable. Alerts about burning budgets are
// not among them, because objectives disable them; nor are alerts about clusters, because they replace other alerts.
func SwitchableAlerts() []string {
	var out []string
	for _, g := range (Set{Default: DefaultProfile()}).buildGroups(Whole) {
		for _, r := range g.Rules {
			if r.Alert != "" && !slices.Contains([]string{AlertOperator, AlertRelease, AlertCluster}, r.Alert) {
				out = append(out, r.Alert)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// CheckAlert returns an error if an alert cannot be disabled by its name. The error suggests the nearest name.
func CheckAlert(name string) error {
	switchable := SwitchableAlerts()
	switch {
	case slices.Contains(switchable, name):
		return nil
	case name == AlertOperator || name == AlertRelease:
		return fmt.Errorf("%w: %s is switched off by objective: set alerts to %s or %s in an OperatorSLO", ErrAlert,
			name, AlertsTickets, AlertsNone)
	case name == AlertCluster:
		return fmt.Errorf("%w: %s takes the place of alerts about the operators of a cluster, so it cannot be left out",
			ErrAlert, name)
	}
	if near := findNearest(name, switchable); near != "" {
		return fmt.Errorf("%w: there is no alert %q: did you mean %s?", ErrAlert, name, near)
	}
	return fmt.Errorf("%w: there is no alert %q: choose one of %s", ErrAlert, name, strings.Join(switchable, ", "))
}

// removeDisabledAlerts returns the groups without the alerts of WithoutAlerts. It omits groups that become empty.
func (s Set) removeDisabledAlerts(groups []monitoringv1.RuleGroup) []monitoringv1.RuleGroup {
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

// Limits for the labels and annotations of an operator's alerts: their number, and their lengths in bytes.
const (
	maxTexts      = 20
	maxLabel      = 200
	maxAnnotation = 2048
)

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// IsLabelName reports whether PromQL accepts a label name without quotes.
func IsLabelName(name string) bool { return labelName.MatchString(name) }

// reservedLabels are the labels that alerts already have, and the labels that identify where a series comes from.
var reservedLabels = []string{"alertname", "alertstate", series.Severity, series.Scope, series.Cluster,
	series.OperatorNamespace, series.Operator, series.SLI, series.SLO, series.Version, series.Release, series.Team,
	series.Criticality, series.Tier, series.Wave, series.Phase, series.Probe, series.Kind, series.Schema}

// reservedAnnotations are the annotations that alerts already have.
var reservedAnnotations = []string{"summary", "description", "burn", "window", "held_until", "budget_left", "clusters",
	"cluster_count", "operators", "criticality", "restarts", "custom_resources", "rollout", "wave", "change", "look",
	"rollback", "dashboard_url", AnnotationRunbook}

// CheckLabel returns an error if alerts of an operator cannot have the label.
func CheckLabel(name, value string) error {
	switch {
	case slices.Contains(reservedLabels, name):
		return fmt.Errorf("%w: label %s is Bellwether's own: choose another name", ErrAlert, name)
	case !IsLabelName(name) || strings.HasPrefix(name, "__"):
		return fmt.Errorf("%w: %q is no name of a label", ErrAlert, name)
	case value == "" || len(value) > maxLabel || !utf8.ValidString(value):
		return fmt.Errorf("%w: label %s: its value needs 1 to %d bytes of UTF-8", ErrAlert, name, maxLabel)
	}
	return nil
}

// CheckAnnotation returns an error if alerts of an operator cannot
// have the annotation. The text is used literally, not as a template.
func CheckAnnotation(name, text string) error {
	switch {
	case name == AnnotationRunbook:
		return fmt.Errorf("%w: annotation %s: set runbookURL in place of it", ErrAlert, name)
	case slices.Contains(reservedAnnotations, name):
		return fmt.Errorf("%w: annotation %s is Bellwether's own: choose another name", ErrAlert, name)
	case !IsLabelName(name):
		return fmt.Errorf("%w: %q is no name of an annotation", ErrAlert, name)
	case text == "" || len(text) > maxAnnotation || !utf8.ValidString(text):
		return fmt.Errorf("%w: annotation %s: its text needs 1 to %d bytes of UTF-8", ErrAlert, name, maxAnnotation)
	}
	return nil
}

// checkAlertTexts returns the errors in the labels and annotations of an operator's alerts.
func (op Operator) checkAlertTexts() []error {
	var errs []error
	for _, texts := range []struct {
		byName map[string]string
		check  func(name, value string) error
	}{{op.Labels, CheckLabel}, {op.Annotations, CheckAnnotation}} {
		if len(texts.byName) > maxTexts {
			errs = append(errs, fmt.Errorf("%w: more than %d labels or annotations", ErrAlert, maxTexts))
		}
		for _, name := range slices.Sorted(maps.Keys(texts.byName)) {
			if err := texts.check(name, texts.byName[name]); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// joinTeam is the PromQL that joins alerts with the series of
// their operator's team. addTexts adds the labels of a set to it.
const joinTeam = "group_left (" + series.Team + ") " + series.SLOTeam

// listAlertLabels returns the names of the labels that alerts get from the series of the team.
func (s Set) listAlertLabels() []string {
	names := map[string]bool{}
	for _, op := range s.Operators {
		for name := range op.Labels {
			names[name] = true
		}
	}
	return append([]string{series.Team}, slices.Sorted(maps.Keys(names))...)
}

// addTexts changes the alerts about operators in place: it adds the labels, which
// come from the series of the team, and the annotations of their operators.
func (s Set) addTexts(groups []monitoringv1.RuleGroup) {
	names := map[string]bool{}
	for _, op := range s.Operators {
		for name := range op.Annotations {
			names[name] = true
		}
	}
	join := fmt.Sprintf("group_left (%s) %s", strings.Join(s.listAlertLabels(), ", "), series.SLOTeam)
	for _, g := range groups {
		for i := range g.Rules {
			r := &g.Rules[i]
			if scope := r.Labels[series.Scope]; scope != series.ScopeOperator && scope != series.ScopeRelease {
				continue
			}
			r.Expr = intstr.FromString(strings.ReplaceAll(r.Expr.String(), joinTeam, join))
			for name := range names {
				r.Annotations[name] = s.buildAnnotation(name)
			}
		}
	}
}

// buildAnnotation returns the template of an annotation that operators define texts for.
func (s Set) buildAnnotation(name string) string {
	return s.chooseByOperator("", func(op Operator) string { return op.Annotations[name] })
}

// chooseByOperator returns a template that chooses a text by the operator
// of an alert. An operator with an empty text gets the default text.
func (s Set) chooseByOperator(defaultText string, textOf func(Operator) string) string {
	var out strings.Builder
	for _, op := range s.Operators {
		text := textOf(op)
		if text == "" || text == defaultText {
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
		return defaultText
	}
	return out.String() + "{{ else }}" + defaultText + "{{ end }}"
}
