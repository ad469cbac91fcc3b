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

// Alert is everything that the rules say of the alerts of one name.
type Alert struct {
	Name string
	// Rules make it: one for each severity.
	Rules []Rule
}

// Rule makes an alert.
type Rule struct {
	monitoringv1.Rule
	Labels labels
	// Interval is how often it is evaluated.
	Interval string
}

// Variants are the rule sets that an alert can be in: of a fleet with and without a
// critical operator, and in the form for one Prometheus and for one in each cluster.
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

// Alerts are all that rules can make, by name.
func Alerts() ([]Alert, error) {
	var out []Alert
	variants := Variants()
	for _, variant := range []string{"plain", "critical", "plain hub", "critical hub"} {
		for _, g := range variants[variant] {
			for _, r := range g.Rules {
				if r.Alert == "" {
					continue
				}
				found, err := labelsOf(r)
				if err != nil {
					return nil, err
				}
				out = add(out, Rule{r, found, string(*g.Interval)})
			}
		}
	}
	slices.SortFunc(out, func(a, b Alert) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// add takes the first rule of each name and severity. Other variants repeat it, and may
// make alerts with fewer labels.
func add(to []Alert, r Rule) []Alert {
	i := slices.IndexFunc(to, func(a Alert) bool { return a.Name == r.Alert })
	if i < 0 {
		return append(to, Alert{r.Alert, []Rule{r}})
	}
	j := slices.IndexFunc(to[i].Rules, func(o Rule) bool { return o.severity() == r.severity() })
	if j < 0 {
		to[i].Rules = append(to[i].Rules, r)
	} else {
		to[i].Rules[j].Labels = either(to[i].Rules[j].Labels, r.Labels)
	}
	return to
}

func (r Rule) severity() string { return r.Rule.Labels[series.Severity] }

// severities lists them, as in "page, ticket".
func (a Alert) severities() string {
	var out []string
	for _, r := range a.Rules {
		out = append(out, r.severity())
	}
	return strings.Join(out, ", ")
}

func (a Alert) scope() string { return a.Rules[0].Rule.Labels[series.Scope] }

// of says what the scope of the alert is.
func (a Alert) of() string {
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

// fires says how long it takes until the alert fires.
func (a Alert) fires() string {
	return a.bySeverity(func(r Rule) string {
		if r.For == nil {
			return "as soon as this is so. Looked at every " + every(r.Interval)
		}
		return "when this has been so for " + spell(string(*r.For)) + ". Looked at every " + every(r.Interval)
	})
}

// ends says how long the alert goes on.
func (a Alert) ends() string {
	return a.bySeverity(func(r Rule) string {
		if r.KeepFiringFor == nil {
			return "when this is no longer so"
		}
		return spell(string(*r.KeepFiringFor)) + " after this is no longer so"
	})
}

// bySeverity says something of each rule, or once what is the same for all.
func (a Alert) bySeverity(say func(Rule) string) string {
	var out []string
	for _, r := range a.Rules {
		out = append(out, say(r))
	}
	if len(slices.Compact(slices.Clone(out))) == 1 {
		return out[0]
	}
	for i, r := range a.Rules {
		out[i] = r.severity() + ": " + out[i]
	}
	return strings.Join(out, ". ")
}

// switchedOff says how the alert is switched off.
func (a Alert) switchedOff() string {
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

// spell writes a duration of Prometheus in words.
func spell(duration string) string {
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

// every writes a duration so that it can follow the word every.
func every(duration string) string { return strings.TrimPrefix(spell(duration), "1 ") }
