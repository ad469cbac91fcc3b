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

// Router says where a configuration of Alertmanager sends alerts.
type Router struct {
	root      *dispatch.Route
	receivers map[string]config.Receiver
}

// NewRouter reads a configuration, Bellwether's or anybody's.
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
	// Notifies are the kinds of notification, such as pagerduty, sorted. Empty: nobody
	// is notified.
	Notifies []string `json:"notifies"`
	// Labels are those that the alerts of the group have in common.
	Labels map[string]string `json:"labels"`
	// DedupKey is PagerDuty's key of the incident.
	DedupKey string `json:"dedupKey"`
	// Hours are the names of the intervals in which notifications are sent.
	Hours []string `json:"hours,omitempty"`
	// Repeat is how long after a notification Alertmanager sends it again if nothing has
	// changed.
	Repeat time.Duration `json:"-"`
}

// Incidents are the groups that an alert with these labels belongs to: one for each
// route that it takes.
func (r *Router) Incidents(labels map[string]string) []Incident {
	set := model.LabelSet{}
	for name, value := range labels {
		if value != "" {
			set[model.LabelName(name)] = model.LabelValue(value)
		}
	}
	var out []Incident
	for _, route := range r.root.Match(set) {
		group := groupOf(route, set)
		key := notify.Key(route.Key() + ":" + group.String())
		in := Incident{Receiver: route.RouteOpts.Receiver, Notifies: r.notifies(route.RouteOpts.Receiver),
			Labels: map[string]string{}, DedupKey: key.Hash(), Hours: route.RouteOpts.ActiveTimeIntervals,
			Repeat: route.RouteOpts.RepeatInterval}
		for name, value := range group {
			in.Labels[string(name)] = string(value)
		}
		out = append(out, in)
	}
	return out
}

// groupOf are the labels that a route groups by, as Alertmanager's dispatcher has them.
func groupOf(route *dispatch.Route, labels model.LabelSet) model.LabelSet {
	group := model.LabelSet{}
	for name, value := range labels {
		if _, grouped := route.RouteOpts.GroupBy[name]; grouped || route.RouteOpts.GroupByAll {
			group[name] = value
		}
	}
	return group
}

// notifies are the kinds of notification of a receiver.
func (r *Router) notifies(name string) []string {
	return slices.Sorted(maps.Keys(r.Integrations(name)))
}

// Integrations counts the notifications of a receiver, by their kind, such as pagerduty.
func (r *Router) Integrations(receiver string) map[string]int {
	of := r.receivers[receiver]
	counts := map[string]int{
		"pagerduty": len(of.PagerdutyConfigs), "slack": len(of.SlackConfigs), "webhook": len(of.WebhookConfigs),
		"email": len(of.EmailConfigs), "opsgenie": len(of.OpsGenieConfigs), "discord": len(of.DiscordConfigs),
		"victorops": len(of.VictorOpsConfigs), "msteams": len(of.MSTeamsConfigs) + len(of.MSTeamsV2Configs),
		"telegram": len(of.TelegramConfigs), "pushover": len(of.PushoverConfigs), "sns": len(of.SNSConfigs),
		"webex": len(of.WebexConfigs), "jira": len(of.JiraConfigs), "rocketchat": len(of.RocketchatConfigs),
		"wechat": len(of.WechatConfigs), "incidentio": len(of.IncidentioConfigs),
		"mattermost": len(of.MattermostConfigs),
	}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	return counts
}

// Alert is an alert that rules can make.
type Alert struct {
	Name, Severity, Scope string
	// Labels of an example.
	Labels map[string]string
}

// Alerts are those that rules make, once for each name, severity and operator. Alerts
// about an operator are taken for each of these.
func Alerts(groups []monitoringv1.RuleGroup, operators []Operator) []Alert {
	var out []Alert
	seen := map[string]bool{}
	add := func(a Alert) {
		id := strings.Join(
			[]string{a.Name, a.Severity, a.Labels[series.OperatorNamespace], a.Labels[series.Operator]},
			"/",
		)
		if !seen[id] {
			seen[id] = true
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
			for _, labels := range examples(a.Scope, base, operators) {
				add(Alert{Name: a.Name, Severity: a.Severity, Scope: a.Scope, Labels: labels})
			}
		}
	}
	return out
}

// examples are the labels of alerts with a scope.
func examples(scope string, base map[string]string, operators []Operator) []map[string]string {
	with := func(further map[string]string) map[string]string {
		out := maps.Clone(base)
		maps.Copy(out, further)
		return out
	}
	switch scope {
	case series.ScopeFleet:
		return []map[string]string{base}
	case series.ScopeCluster:
		return []map[string]string{with(map[string]string{series.Cluster: "example"})}
	}
	var out []map[string]string
	for _, op := range operators {
		of := map[string]string{
			series.OperatorNamespace: op.Namespace,
			series.Operator:          op.Name,
			series.SLI:               "available",
		}
		if op.Team != "" {
			of[series.Team] = op.Team
		}
		if scope == series.ScopeOperator {
			of[series.Cluster] = "example"
		} else {
			of[series.Version] = "1.0.0"
		}
		out = append(out, with(of))
	}
	return out
}

// Unrouted are the alerts that reach nobody. A heartbeat may.
func (r *Router) Unrouted(alerts []Alert) []Alert {
	return slices.DeleteFunc(slices.Clone(alerts), func(a Alert) bool {
		return a.Severity == series.Heartbeat || slices.ContainsFunc(r.Incidents(a.Labels), func(in Incident) bool {
			return len(in.Notifies) > 0
		})
	})
}
