// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prometheus/alertmanager/config"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// plainConfig and the types below replace Alertmanager's own types, which do not omit empty fields: an older
// Alertmanager refuses fields that it does not support. Alertmanager 0.26 and later support these fields.
type plainConfig struct {
	Route     plainRoute      `json:"route"`
	Receivers []plainReceiver `json:"receivers"`
	Intervals []plainInterval `json:"time_intervals,omitempty"`
}

type plainRoute struct {
	Matchers       []string     `json:"matchers,omitempty"`
	Receiver       string       `json:"receiver"`
	GroupBy        []string     `json:"group_by,omitempty"`
	GroupWait      string       `json:"group_wait,omitempty"`
	GroupInterval  string       `json:"group_interval,omitempty"`
	RepeatInterval string       `json:"repeat_interval,omitempty"`
	Active         []string     `json:"active_time_intervals,omitempty"`
	Routes         []plainRoute `json:"routes,omitempty"`
}

type plainReceiver struct {
	Name      string           `json:"name"`
	PagerDuty []plainPagerDuty `json:"pagerduty_configs,omitempty"`
	Slack     []plainSlack     `json:"slack_configs,omitempty"`
	Webhook   []plainWebhook   `json:"webhook_configs,omitempty"`
	Email     []plainEmail     `json:"email_configs,omitempty"`
}

type plainPagerDuty struct {
	RoutingKeyFile string            `json:"routing_key_file"`
	URL            string            `json:"url,omitempty"`
	Description    string            `json:"description"`
	Severity       string            `json:"severity"`
	Class          string            `json:"class"`
	Component      string            `json:"component"`
	Group          string            `json:"group"`
	Source         string            `json:"source"`
	Client         string            `json:"client"`
	ClientURL      string            `json:"client_url"`
	Details        map[string]string `json:"details"`
	Links          []plainLink       `json:"links"`
}

type plainLink struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

type plainSlack struct {
	APIURLFile   string `json:"api_url_file"`
	Channel      string `json:"channel,omitempty"`
	Title        string `json:"title"`
	TitleLink    string `json:"title_link"`
	Text         string `json:"text"`
	SendResolved bool   `json:"send_resolved"`
}

type plainWebhook struct {
	URLFile      string `json:"url_file"`
	MaxAlerts    int    `json:"max_alerts,omitempty"`
	SendResolved bool   `json:"send_resolved"`
}

type plainEmail struct {
	To               string            `json:"to"`
	From             string            `json:"from"`
	Smarthost        string            `json:"smarthost"`
	AuthUsername     string            `json:"auth_username,omitempty"`
	AuthPasswordFile string            `json:"auth_password_file,omitempty"`
	Headers          map[string]string `json:"headers"`
	Text             string            `json:"text"`
	HTML             string            `json:"html"`
	SendResolved     bool              `json:"send_resolved"`
}

type plainInterval struct {
	Name      string      `json:"name"`
	Intervals []plainTime `json:"time_intervals"`
}

type plainTime struct {
	Times    []plainTimes `json:"times"`
	Weekdays []string     `json:"weekdays,omitempty"`
	Location string       `json:"location"`
}

type plainTimes struct {
	Start string `json:"start_time"`
	End   string `json:"end_time"`
}

// ErrNoFleetPolicy is returned if no user would be notified of alerts about clusters.
var ErrNoFleetPolicy = errors.New("no PagingPolicy with the scope Fleet: nobody would be notified of alerts about " +
	"clusters, and of operators that no other policy selects")

// BuildConfig returns a complete configuration of Alertmanager 0.26 or later. Secrets are in files
// below folder, with the names of SecretUse. The result is checked with Alertmanager's own
// loader. Alerts of other rules than Bellwether's go to the receivers of the fleet's tickets.
//
// It returns ErrNoFleetPolicy if no policy has the scope Fleet.
func BuildConfig(policies []Policy, folder string) ([]byte, error) {
	fleetIndex := slices.IndexFunc(policies, Policy.IsFleet)
	if fleetIndex < 0 {
		return nil, ErrNoFleetPolicy
	}
	fleet := policies[fleetIndex]
	out := plainConfig{Receivers: []plainReceiver{{Name: nullReceiver}}, Route: plainRoute{
		GroupBy: GroupBy, GroupWait: incidentTimes.wait, GroupInterval: incidentTimes.interval,
		RepeatInterval: incidentTimes.repeat}}
	out.Route.Receiver = fleet.listTargets()[1].name // the receiver of tickets
	out.Route.Routes = []plainRoute{buildForeignRoute(out.Route.Receiver).toPlain()}
	for _, p := range sortPolicies(policies) {
		for _, t := range p.listTargets() {
			out.Receivers = append(out.Receivers, p.buildPlainReceiver(t, folder))
		}
		for _, r := range append([]route{p.buildTestRoute()}, p.buildOperatorRoutes()...) {
			out.Route.Routes = append(out.Route.Routes, r.toPlain())
		}
		if p.hasTickets() && p.Spec.Tickets.Hours != nil {
			out.Intervals = append(out.Intervals, p.buildPlainHours())
		}
	}
	// These routes also cover operators that were added or removed since the policies were assigned.
	for _, r := range fleet.buildFleetRoutes(bellwetherAlerts) {
		out.Route.Routes = append(out.Route.Routes, r.toPlain())
	}
	if fleet.Spec.Heartbeat != nil {
		out.Receivers = append(out.Receivers, plainReceiver{Name: fleet.heartbeatName(), Webhook: []plainWebhook{
			{URLFile: path.Join(folder, fleet.nameSecretFile("")), MaxAlerts: 1}}})
	}
	used := map[string]bool{}
	out.Route.collectReceivers(used)
	out.Receivers = slices.DeleteFunc(out.Receivers, func(r plainReceiver) bool { return !used[r.Name] })
	text, err := yaml.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	if text, err = shareTexts(text); err != nil {
		return nil, fmt.Errorf("share texts: %w", err)
	}
	if _, err := config.Load(string(text)); err != nil {
		return nil, fmt.Errorf("check configuration: %w", err)
	}
	return text, nil
}

// collectReceivers adds the receiver names of a route and its children to used. Unused receivers
// are removed, because their texts are most of a configuration, and a Secret holds 1 MiB.
func (r plainRoute) collectReceivers(used map[string]bool) {
	used[r.Receiver] = true
	for _, child := range r.Routes {
		child.collectReceivers(used)
	}
}

// sortPolicies returns the policies sorted by namespace and name.
func sortPolicies(policies []Policy) []Policy {
	out := slices.Clone(policies)
	slices.SortFunc(out, func(a, b Policy) int { return strings.Compare(a.id(), b.id()) })
	return out
}

// toPlain converts the route and its children to the type of a plain configuration.
func (r route) toPlain() plainRoute {
	out := plainRoute{Receiver: r.receiver, GroupWait: r.times.wait, GroupInterval: r.times.interval,
		RepeatInterval: r.times.repeat}
	for _, m := range r.matchers {
		out.Matchers = append(out.Matchers, fmt.Sprintf("%s%s%q", m.label, m.operator, m.value))
	}
	if r.hours != "" {
		out.Active = []string{r.hours}
	}
	for _, child := range r.routes {
		out.Routes = append(out.Routes, child.toPlain())
	}
	return out
}

// buildPlainReceiver returns the receiver of a plain configuration for a target. Secrets are in files below folder.
func (p Policy) buildPlainReceiver(t target, folder string) plainReceiver {
	out := plainReceiver{Name: t.name}
	for _, r := range t.receivers {
		file := path.Join(folder, p.nameSecretFile(r.Name))
		switch {
		case r.PagerDuty != nil:
			out.PagerDuty = append(out.PagerDuty, buildPlainPagerDuty(r.PagerDuty, file, t))
		case r.Slack != nil:
			out.Slack = append(out.Slack, plainSlack{APIURLFile: file, Channel: r.Slack.Channel, SendResolved: true,
				Title: t.formatTitle(), TitleLink: formatWorst("runbook_url"), Text: text})
		case r.Webhook != nil:
			out.Webhook = append(out.Webhook, plainWebhook{URLFile: file, SendResolved: true})
		case r.Email != nil:
			mail := plainEmail{To: r.Email.To, From: r.Email.From, Smarthost: r.Email.Smarthost, Text: text,
				AuthUsername: r.Email.Username, Headers: map[string]string{"Subject": t.formatTitle()},
				SendResolved: true}
			if r.Email.Password != nil {
				mail.AuthPasswordFile = file
			}
			out.Email = append(out.Email, mail)
		}
	}
	return out
}

func buildPlainPagerDuty(r *v1alpha1.PagerDutyReceiver, file string, t target) plainPagerDuty {
	out := plainPagerDuty{RoutingKeyFile: file, URL: r.URL, Description: t.formatIncidentTitle(), Severity: t.severity,
		Class: class, Component: component, Group: groupName, Source: source, Client: client,
		ClientURL: formatWorst("dashboard_url"), Details: map[string]string{}}
	for _, d := range listDetails() {
		out.Details[d.name] = d.text
	}
	for _, l := range links {
		out.Links = append(out.Links, plainLink{Href: l.text, Text: l.name})
	}
	return out
}

// links are the links of an incident.
var links = []detail{{"Runbook", formatWorst("runbook_url")}, {"Dashboard", formatWorst("dashboard_url")}}

// buildPlainHours returns the interval of the hours of tickets.
func (p Policy) buildPlainHours() plainInterval {
	out := plainInterval{Name: p.hoursName()}
	for _, r := range splitHours(p.Spec.Tickets.Hours) {
		out.Intervals = append(out.Intervals, plainTime{Times: []plainTimes{{r.start, r.end}}, Weekdays: r.days,
			Location: p.Spec.Tickets.Hours.TimeZone})
	}
	return out
}
