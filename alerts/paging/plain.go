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

// What is below is written in place of Alertmanager's own types, whose fields are not
// left out when they are empty: an older Alertmanager refuses fields that it does not
// know. These are known to 0.26 and later.
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

// ErrNoFleetPolicy says that nobody is notified of alerts about clusters.
var ErrNoFleetPolicy = errors.New("no PagingPolicy with the scope Fleet: nobody would be notified of alerts about " +
	"clusters, and of operators that no other policy selects")

// Config makes a complete configuration of Alertmanager 0.26 or later. Secrets are in
// files below folder, with the names of SecretUse. What is made passes Alertmanager's
// own loader. Alerts that are not Bellwether's go where the fleet's tickets go.
//
// It returns ErrNoFleetPolicy if no policy has the scope Fleet.
func Config(policies []Policy, folder string) ([]byte, error) {
	last := slices.IndexFunc(policies, Policy.IsFleet)
	if last < 0 {
		return nil, ErrNoFleetPolicy
	}
	fleet := policies[last]
	out := plainConfig{Receivers: []plainReceiver{{Name: nobody}}, Route: plainRoute{
		GroupBy: GroupBy, GroupWait: incidentTimes.wait, GroupInterval: incidentTimes.interval,
		RepeatInterval: incidentTimes.repeat}}
	out.Route.Receiver = fleet.targets()[1].name
	out.Route.Routes = []plainRoute{foreign(out.Route.Receiver).plain()}
	for _, p := range sorted(policies) {
		for _, t := range p.targets() {
			out.Receivers = append(out.Receivers, p.plainReceiver(t, folder))
		}
		for _, r := range append([]route{p.testRoute()}, p.operatorRoutes()...) {
			out.Route.Routes = append(out.Route.Routes, r.plain())
		}
		if p.hasTickets() && p.Spec.Tickets.Hours != nil {
			out.Intervals = append(out.Intervals, p.plainHours())
		}
	}
	// An operator may have come, or gone, since.
	for _, r := range fleet.fleetRoutes(bellwether) {
		out.Route.Routes = append(out.Route.Routes, r.plain())
	}
	if fleet.Spec.Heartbeat != nil {
		out.Receivers = append(out.Receivers, plainReceiver{Name: fleet.heartbeat(), Webhook: []plainWebhook{
			{URLFile: path.Join(folder, fleet.secretFile("")), MaxAlerts: 1}}})
	}
	used := map[string]bool{}
	out.Route.receivers(used)
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

// receivers adds the names of those that a route and its children have. The texts of
// receivers make most of a configuration, and a Secret holds 1 MiB.
func (r plainRoute) receivers(used map[string]bool) {
	used[r.Receiver] = true
	for _, child := range r.Routes {
		child.receivers(used)
	}
}

// sorted are policies by namespace and name.
func sorted(policies []Policy) []Policy {
	out := slices.Clone(policies)
	slices.SortFunc(out, func(a, b Policy) int { return strings.Compare(a.id(), b.id()) })
	return out
}

func (r route) plain() plainRoute {
	out := plainRoute{Receiver: r.receiver, GroupWait: r.times.wait, GroupInterval: r.times.interval,
		RepeatInterval: r.times.repeat}
	for _, m := range r.matchers {
		out.Matchers = append(out.Matchers, fmt.Sprintf("%s%s%q", m.label, m.operator, m.value))
	}
	if r.hours != "" {
		out.Active = []string{r.hours}
	}
	for _, child := range r.routes {
		out.Routes = append(out.Routes, child.plain())
	}
	return out
}

func (p Policy) plainReceiver(t target, folder string) plainReceiver {
	out := plainReceiver{Name: t.name}
	for _, r := range t.receivers {
		file := path.Join(folder, p.secretFile(r.Name))
		switch {
		case r.PagerDuty != nil:
			out.PagerDuty = append(out.PagerDuty, plainPagerDutyOf(r.PagerDuty, file, t))
		case r.Slack != nil:
			out.Slack = append(out.Slack, plainSlack{APIURLFile: file, Channel: r.Slack.Channel, SendResolved: true,
				Title: t.title(), TitleLink: ofWorst("runbook_url"), Text: text})
		case r.Webhook != nil:
			out.Webhook = append(out.Webhook, plainWebhook{URLFile: file, SendResolved: true})
		case r.Email != nil:
			mail := plainEmail{To: r.Email.To, From: r.Email.From, Smarthost: r.Email.Smarthost, Text: text,
				AuthUsername: r.Email.Username, Headers: map[string]string{"Subject": t.title()},
				SendResolved: true}
			if r.Email.Password != nil {
				mail.AuthPasswordFile = file
			}
			out.Email = append(out.Email, mail)
		}
	}
	return out
}

func plainPagerDutyOf(r *v1alpha1.PagerDutyReceiver, file string, t target) plainPagerDuty {
	out := plainPagerDuty{RoutingKeyFile: file, URL: r.URL, Description: t.incidentTitle(), Severity: t.severity,
		Class: class, Component: component, Group: groupName, Source: source, Client: client,
		ClientURL: ofWorst("dashboard_url"), Details: map[string]string{}}
	for _, d := range details() {
		out.Details[d.name] = d.text
	}
	for _, l := range links {
		out.Links = append(out.Links, plainLink{Href: l.text, Text: l.name})
	}
	return out
}

// links are those of an incident.
var links = []detail{{"Runbook", ofWorst("runbook_url")}, {"Dashboard", ofWorst("dashboard_url")}}

func (p Policy) plainHours() plainInterval {
	out := plainInterval{Name: p.hours()}
	for _, r := range hoursOf(p.Spec.Tickets.Hours) {
		out.Intervals = append(out.Intervals, plainTime{Times: []plainTimes{{r.start, r.end}}, Weekdays: r.days,
			Location: p.Spec.Tickets.Hours.TimeZone})
	}
	return out
}
