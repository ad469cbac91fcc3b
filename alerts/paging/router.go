// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/alertmanager/config"
	"github.com/prometheus/alertmanager/dispatch"
	"github.com/prometheus/alertmanager/notify"
	"github.com/prometheus/common/model"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Router computes the routes of alerts in a configuration of Alertmanager.
type Router struct {
	root      *dispatch.Route
	receivers map[string]config.Receiver
}

// NewRouter reads a configuration, of Bellwether or of another source.
func NewRouter(text []byte) (*Router, error) {
	c, err := config.Load(string(text))
	if err != nil {
		return nil, fmt.Errorf("read configuration of Alertmanager: %w", err)
	}
	r := &Router{root: dispatch.NewRoute(c.Route, nil), receivers: map[string]config.Receiver{}}
	for _, receiver := range c.Receivers {
		r.receivers[receiver.Name] = receiver
	}
	return r, nil
}

// Incident is the group that an alert belongs to at one receiver.
type Incident struct {
	// Receiver is its name in the configuration.
	Receiver string `json:"receiver"`
	// Notifies are the kinds of notification, such as pagerduty, sorted. Empty: no user is notified.
	Notifies []string `json:"notifies"`
	// Labels are the labels that all alerts of the group have in common.
	Labels map[string]string `json:"labels"`
	// DedupKey is PagerDuty's key of the incident.
	DedupKey string `json:"dedupKey"`
	// Hours are the names of the intervals in which notifications are sent.
	Hours []string `json:"hours,omitempty"`
	// Repeat is the time after which Alertmanager repeats a notification if nothing has changed.
	Repeat time.Duration `json:"-"`
}

// Incidents returns the groups that an alert with these labels belongs to: one group for each route that matches.
func (r *Router) Incidents(labels map[string]string) []Incident {
	set := model.LabelSet{}
	for name, value := range labels {
		if value != "" { // an empty label equals no label
			set[model.LabelName(name)] = model.LabelValue(value)
		}
	}
	var out []Incident
	for _, route := range r.root.Match(set) {
		group := selectGroupLabels(route, set)
		key := notify.Key(route.Key() + ":" + group.String())
		in := Incident{Receiver: route.RouteOpts.Receiver, Notifies: r.listIntegrations(route.RouteOpts.Receiver),
			Labels: map[string]string{}, DedupKey: key.Hash(), Hours: route.RouteOpts.ActiveTimeIntervals,
			Repeat: route.RouteOpts.RepeatInterval}
		for name, value := range group {
			in.Labels[string(name)] = string(value)
		}
		out = append(out, in)
	}
	return out
}

// selectGroupLabels returns the labels that a route groups by, as Alertmanager's dispatcher computes them.
func selectGroupLabels(route *dispatch.Route, labels model.LabelSet) model.LabelSet {
	group := model.LabelSet{}
	for name, value := range labels {
		if _, grouped := route.RouteOpts.GroupBy[name]; grouped || route.RouteOpts.GroupByAll {
			group[name] = value
		}
	}
	return group
}

// listIntegrations returns the kinds of notification of a receiver.
func (r *Router) listIntegrations(name string) []string {
	return slices.Sorted(maps.Keys(r.Integrations(name)))
}

// Integrations counts the notifications of a receiver by their kind, such as pagerduty.
func (r *Router) Integrations(receiver string) map[string]int {
	found := r.receivers[receiver]
	counts := map[string]int{
		"pagerduty": len(found.PagerdutyConfigs), "slack": len(found.SlackConfigs),
		"webhook": len(found.WebhookConfigs), "email": len(found.EmailConfigs),
		"opsgenie": len(found.OpsGenieConfigs), "discord": len(found.DiscordConfigs),
		"victorops": len(found.VictorOpsConfigs),
		"msteams":   len(found.MSTeamsConfigs) + len(found.MSTeamsV2Configs),
		"telegram":  len(found.TelegramConfigs), "pushover": len(found.PushoverConfigs),
		"sns": len(found.SNSConfigs), "webex": len(found.WebexConfigs), "jira": len(found.JiraConfigs),
		"rocketchat": len(found.RocketchatConfigs), "wechat": len(found.WechatConfigs),
		"incidentio": len(found.IncidentioConfigs), "mattermost": len(found.MattermostConfigs),
	}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	return counts
}

// Alert is an alert that rules can make.
type Alert struct {
	Name, Severity, Scope string
	// Labels are the labels of an example.
	Labels map[string]string
}

// Alerts returns the alerts that rules can make, one for each name, severity and
// operator. Alerts about an operator are repeated for each of the operators.
func Alerts(groups []monitoringv1.RuleGroup, operators []Operator) []Alert {
	var out []Alert
	added := map[string]bool{}
	add := func(a Alert) {
		id := strings.Join(
			[]string{a.Name, a.Severity, a.Labels[series.OperatorNamespace], a.Labels[series.Operator]},
			"/",
		)
		if !added[id] {
			added[id] = true
			out = append(out, a)
		}
	}
	for _, g := range groups {
		for _, rule := range g.Rules {
			if rule.Alert == "" {
				continue
			}
			a := Alert{Name: rule.Alert, Severity: rule.Labels[series.Severity], Scope: rule.Labels[series.Scope]}
			base := map[string]string{"alertname": a.Name, series.Severity: a.Severity, series.Scope: a.Scope}
			for _, labels := range buildExamples(a.Scope, base, operators) {
				add(Alert{Name: a.Name, Severity: a.Severity, Scope: a.Scope, Labels: labels})
			}
		}
	}
	return out
}

// buildExamples returns example labels of alerts with a scope: one for each operator, if alerts are about an operator.
func buildExamples(scope string, base map[string]string, operators []Operator) []map[string]string {
	example := Subject{SLI: "available", Version: "1.0.0", Cluster: "example"}
	if !isAboutOperator(scope) {
		return []map[string]string{example.addLabels(base, scope)}
	}
	var out []map[string]string
	for _, op := range operators {
		example.Operator = op
		out = append(out, example.addLabels(base, scope))
	}
	return out
}

// Unrouted returns the alerts that reach no user. Heartbeats are not included, because they may be unrouted.
func (r *Router) Unrouted(alerts []Alert) []Alert {
	return slices.DeleteFunc(slices.Clone(alerts), func(a Alert) bool {
		return a.Severity == series.Heartbeat || slices.ContainsFunc(r.Incidents(a.Labels), func(in Incident) bool {
			return len(in.Notifies) > 0
		})
	})
}
