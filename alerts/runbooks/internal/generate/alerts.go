// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// Alert contains all rules that make alerts with one name.
type Alert struct {
	Name string
	// Rules has one rule for each severity.
	Rules []Rule
}

// Rule is a rule that makes an alert.
type Rule struct {
	monitoringv1.Rule
	Labels labels
	// Interval is how often it is evaluated.
	Interval string
}

// Variants returns the rule sets that alerts can be in: for a fleet with and without
// a critical operator, and for one Prometheus and for one Prometheus in each cluster.
// The keys have the form "critical hub"; the whole set of rules has no second word.
func Variants() map[string][]monitoringv1.RuleGroup {
	plain := slo.Set{Default: slo.DefaultProfile(), RunbookURL: slo.DefaultRunbooks}
	critical := plain
	critical.Operators = []slo.Operator{{Namespace: "fleet", Name: "echo", Criticality: slo.Critical,
		Objectives: []slo.Objective{{SLI: "requests", Target: 999_000}, {SLI: "probe:api", Target: 999_000}},
		Own:        []slo.OwnSLI{slo.RequestRatio("requests", "http_requests_total", nil, nil)}}}
	out := map[string][]monitoringv1.RuleGroup{}
	for name, set := range map[string]slo.Set{"plain": plain, "critical": critical} {
		for _, part := range []slo.Part{slo.Whole, slo.Edge, slo.Hub} {
			rules, err := slo.BuildPart(set, part)
			if err != nil {
				panic(err) // the sets are constant
			}
			out[strings.TrimSpace(name+" "+string(part))] = rules.All()
		}
	}
	return out
}

// Alerts returns all alerts that rules can make, sorted by name.
func Alerts() ([]Alert, error) {
	var out []Alert
	variants := Variants()
	for _, variant := range []string{"plain", "critical", "plain hub", "critical hub"} {
		for _, g := range variants[variant] {
			for _, r := range g.Rules {
				if r.Alert == "" {
					continue
				}
				found, err := readRuleLabels(r)
				if err != nil {
					return nil, err
				}
				out = addRule(out, Rule{r, found, string(*g.Interval)})
			}
		}
	}
	slices.SortFunc(out, func(a, b Alert) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// addRule adds the first rule of each name and severity. Rules of other variants are
// equal except that their alerts may have fewer labels, so only their labels are merged.
func addRule(alerts []Alert, r Rule) []Alert {
	i := slices.IndexFunc(alerts, func(a Alert) bool { return a.Name == r.Alert })
	if i < 0 {
		return append(alerts, Alert{r.Alert, []Rule{r}})
	}
	j := slices.IndexFunc(alerts[i].Rules, func(o Rule) bool { return o.severity() == r.severity() })
	if j < 0 {
		alerts[i].Rules = append(alerts[i].Rules, r)
	} else {
		alerts[i].Rules[j].Labels = mergeAlternatives(alerts[i].Rules[j].Labels, r.Labels)
	}
	return alerts
}

func (r Rule) severity() string { return r.Rule.Labels[series.Severity] }

// listSeverities returns the severities as text, as in "page, ticket".
func (a Alert) listSeverities() string {
	var out []string
	for _, r := range a.Rules {
		out = append(out, r.severity())
	}
	return strings.Join(out, ", ")
}

func (a Alert) scope() string { return a.Rules[0].Rule.Labels[series.Scope] }

// describeScope describes the scope of the alert.
func (a Alert) describeScope() string {
	switch {
	case slo.IsAboutSLI(a.Name) && a.scope() == series.ScopeOperator:
		return "one SLI of one operator on one cluster"
	case slo.IsAboutSLI(a.Name):
		return "one SLI of a version of an operator, on several clusters"
	case a.scope() == series.ScopeOperator:
		return "one operator on one cluster"
	case a.scope() == series.ScopeRelease:
		return "one operator, and its rollout"
	case a.scope() == series.ScopeCluster:
		return "one cluster"
	}
	return "the fleet as a whole"
}

// describeFiring describes how long it takes until the alert fires.
func (a Alert) describeFiring() string {
	return a.describeBySeverity(func(r Rule) string {
		if r.For == nil {
			return "as soon as this is so. Looked at every " + spellInterval(r.Interval)
		}
		return "when this has been so for " + spellDuration(string(*r.For)) + ". Looked at every " +
			spellInterval(r.Interval)
	})
}

// describeEnd describes how long the alert continues.
func (a Alert) describeEnd() string {
	return a.describeBySeverity(func(r Rule) string {
		if r.KeepFiringFor == nil {
			return "when this is no longer so"
		}
		return spellDuration(string(*r.KeepFiringFor)) + " after this is no longer so"
	})
}

// describeBySeverity describes each rule with its severity, or
// returns a single text if the description is equal for all rules.
func (a Alert) describeBySeverity(describe func(Rule) string) string {
	var out []string
	for _, r := range a.Rules {
		out = append(out, describe(r))
	}
	if len(slices.Compact(slices.Clone(out))) == 1 {
		return out[0]
	}
	for i, r := range a.Rules {
		out[i] = r.severity() + ": " + out[i]
	}
	return strings.Join(out, ". ")
}

// describeSwitch describes how the alert can be disabled.
func (a Alert) describeSwitch() string {
	switch {
	case slices.Contains(slo.SwitchableAlerts(), a.Name):
		return fmt.Sprintf("by its name: `hub.slo.withoutAlerts: [%s]` in the chart, or `--without-alert` of "+
			"`bellwether slo generate`", a.Name)
	case slo.IsAboutSLI(a.Name):
		return "by objective: `alerts: Tickets` leaves out pages, `alerts: None` leaves out all " +
			"([settings of an objective](" + guide + "#make-the-rules-without-a-hub))"
	}
	return "no, because it takes the place of other alerts"
}

// spellDuration returns a duration of Prometheus in words, in the largest unit with a whole number;
// one day is 24 hours. It returns a text that time.ParseDuration does not accept unchanged.
func spellDuration(duration string) string {
	d, err := time.ParseDuration(duration)
	if err != nil {
		return duration
	}
	unit, n := "second", int(d.Seconds())
	switch {
	case d > 24*time.Hour && d%(24*time.Hour) == 0:
		unit, n = "day", int(d.Hours())/24
	case d%time.Hour == 0:
		unit, n = "hour", int(d.Hours())
	case d%time.Minute == 0:
		unit, n = "minute", int(d.Minutes())
	}
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// spellInterval returns a duration in a form that can follow the word every.
func spellInterval(duration string) string { return strings.TrimPrefix(spellDuration(duration), "1 ") }
