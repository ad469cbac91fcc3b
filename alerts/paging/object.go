// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// ErrTimeZone is returned because an AlertmanagerConfig has no time zones.
var ErrTimeZone = errors.New(
	"an AlertmanagerConfig has no time zones: set tickets.hours.timeZone to UTC, and start and " +
		"end in UTC",
)

// BuildObject returns the AlertmanagerConfig of prometheus-operator (v1alpha1, which every release
// serves) of one policy. It refers to Secrets in its own namespace. The Alertmanager that selects
// it needs the alertmanagerConfigMatcherStrategy None, because alerts have no label namespace.
//
// The object of the policy with the scope Fleet routes all alerts that no other of the
// policies routes, including alerts about operators that are unknown.
//
// It returns ErrTimeZone for ticket hours in another time zone than UTC.
func BuildObject(p Policy, policies []Policy) (*monitoring.AlertmanagerConfigSpec, error) {
	out := &monitoring.AlertmanagerConfigSpec{}
	// All alerts without a route below are handled by another AlertmanagerConfig.
	top := route{matchers: []matcher{matchEqual(series.OperatorNamespace, p.Namespace)}, receiver: nullReceiver,
		routes: append([]route{buildForeignRoute(nullReceiver), p.buildTestRoute()}, p.buildOperatorRoutes()...)}
	if p.IsFleet() {
		// The first route, for alerts of other rules, is removed, because the new matcher excludes these alerts.
		top.matchers, top.routes = []matcher{bellwetherAlerts}, top.routes[1:]
		// Test alerts of other policies are handled by their AlertmanagerConfigs.
		top.routes = slices.Insert(top.routes, 1, route{matchers: []matcher{matchEqual("alertname", AlertTest)},
			receiver: nullReceiver})
		for _, other := range sortPolicies(policies) {
			if len(other.Operators) > 0 && other.id() != p.id() {
				top.routes = append(top.routes, other.buildExclusionRoute())
			}
		}
		top.routes = append(top.routes, p.buildFleetRoutes(bellwetherAlerts)...)
	}
	var err error
	if out.Route, err = top.toObject(); err != nil {
		return nil, err
	}
	out.Route.GroupBy = GroupBy
	out.Route.GroupWait = toDuration(incidentTimes.wait)
	out.Route.GroupInterval = toDuration(incidentTimes.interval)
	out.Route.RepeatInterval = toDuration(incidentTimes.repeat)
	out.Receivers = []monitoring.Receiver{{Name: nullReceiver}}
	for _, t := range p.listTargets() {
		out.Receivers = append(out.Receivers, p.buildObjectReceiver(t))
	}
	if h := p.Spec.Heartbeat; h != nil {
		out.Receivers = append(out.Receivers, monitoring.Receiver{Name: p.heartbeatName(),
			WebhookConfigs: []monitoring.WebhookConfig{{URLSecret: toSelector(h.URL), MaxAlerts: 1,
				SendResolved: ptr.To(false)}}})
	}
	if p.hasTickets() && p.Spec.Tickets.Hours != nil {
		hours, err := p.buildObjectHours()
		if err != nil {
			return nil, err
		}
		out.MuteTimeIntervals = []monitoring.MuteTimeInterval{hours}
	}
	return out, nil
}

// buildExclusionRoute returns the route of alerts that another AlertmanagerConfig
// handles. It notifies no user and opens no incident, so its matchers may change.
func (p Policy) buildExclusionRoute() route {
	var names []string
	for _, op := range p.Operators {
		names = append(names, regexp.QuoteMeta(op.Name))
	}
	return route{receiver: nullReceiver, matchers: []matcher{matchEqual(series.OperatorNamespace, p.Namespace),
		{series.Operator, "=~", strings.Join(names, "|")}}}
}

func toDuration(d string) *monitoringv1.NonEmptyDuration {
	return ptr.To(monitoringv1.NonEmptyDuration(d))
}

// toObject converts the route and its children to the type of an AlertmanagerConfig.
func (r route) toObject() (*monitoring.Route, error) {
	out := &monitoring.Route{Receiver: r.receiver}
	for _, m := range r.matchers {
		out.Matchers = append(out.Matchers, monitoring.Matcher{Name: m.label, Value: m.value,
			MatchType: monitoring.MatchType(m.operator)})
	}
	if t := r.times; t != (times{}) {
		out.GroupWait, out.GroupInterval, out.RepeatInterval = toDuration(t.wait), toDuration(t.interval),
			toDuration(t.repeat)
	}
	if r.hours != "" {
		out.ActiveTimeIntervals = []string{r.hours}
	}
	for _, child := range r.routes {
		spec, err := child.toObject()
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(spec)
		if err != nil {
			return nil, fmt.Errorf("encode route: %w", err)
		}
		out.Routes = append(out.Routes, apiextensionsv1.JSON{Raw: raw})
	}
	return out, nil
}

// buildObjectReceiver returns the receiver of an AlertmanagerConfig for a target.
func (p Policy) buildObjectReceiver(t target) monitoring.Receiver {
	out := monitoring.Receiver{Name: t.name}
	for _, r := range t.receivers {
		switch {
		case r.PagerDuty != nil:
			out.PagerDutyConfigs = append(out.PagerDutyConfigs, buildObjectPagerDuty(r.PagerDuty, t))
		case r.Slack != nil:
			slack := monitoring.SlackConfig{APIURL: toSelector(r.Slack.APIURL), Title: ptr.To(t.formatTitle()),
				TitleLink: formatWorst("runbook_url"), Text: ptr.To(text), SendResolved: ptr.To(true)}
			if r.Slack.Channel != "" {
				slack.Channel = ptr.To(r.Slack.Channel)
			}
			out.SlackConfigs = append(out.SlackConfigs, slack)
		case r.Webhook != nil:
			out.WebhookConfigs = append(out.WebhookConfigs, monitoring.WebhookConfig{
				URLSecret: toSelector(r.Webhook.URL), SendResolved: ptr.To(true)})
		case r.Email != nil:
			out.EmailConfigs = append(out.EmailConfigs, buildObjectEmail(r.Email, t))
		}
	}
	return out
}

func buildObjectPagerDuty(r *v1alpha1.PagerDutyReceiver, t target) monitoring.PagerDutyConfig {
	out := monitoring.PagerDutyConfig{RoutingKey: toSelector(r.RoutingKey), SendResolved: ptr.To(true),
		Description: ptr.To(t.formatIncidentTitle()), Severity: ptr.To(t.severity), Class: ptr.To(class),
		Component: ptr.To(component), Group: ptr.To(groupName), Source: ptr.To(source), Client: ptr.To(client),
		ClientURL: ptr.To(formatWorst("dashboard_url"))}
	if r.URL != "" {
		out.URL = ptr.To(monitoring.URL(r.URL))
	}
	for _, d := range listDetails() {
		out.Details = append(out.Details, monitoring.KeyValue{Key: d.name, Value: d.text})
	}
	for _, l := range links {
		out.PagerDutyLinkConfigs = append(out.PagerDutyLinkConfigs, monitoring.PagerDutyLinkConfig{
			Href: ptr.To(l.text), Text: ptr.To(l.name)})
	}
	return out
}

func buildObjectEmail(r *v1alpha1.EmailReceiver, t target) monitoring.EmailConfig {
	out := monitoring.EmailConfig{To: ptr.To(r.To), From: ptr.To(r.From), Smarthost: ptr.To(r.Smarthost),
		Text: ptr.To(text), HTML: ptr.To(""), SendResolved: ptr.To(true),
		Headers: []monitoring.KeyValue{{Key: "Subject", Value: t.formatTitle()}}}
	if r.Password != nil {
		out.AuthUsername, out.AuthPassword = ptr.To(r.Username), toSelector(*r.Password)
	}
	return out
}

func toSelector(k v1alpha1.SecretKey) *corev1.SecretKeySelector {
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: k.Name}, Key: k.Key}
}

// buildObjectHours returns the hours of tickets, or ErrTimeZone if their time zone is not UTC.
func (p Policy) buildObjectHours() (monitoring.MuteTimeInterval, error) {
	h := p.Spec.Tickets.Hours
	if h.TimeZone != "" && h.TimeZone != "UTC" {
		return monitoring.MuteTimeInterval{}, ErrTimeZone
	}
	out := monitoring.MuteTimeInterval{Name: p.hoursName()}
	for _, r := range splitHours(h) {
		interval := monitoring.TimeInterval{Times: []monitoring.TimeRange{{StartTime: monitoring.Time(r.start),
			EndTime: monitoring.Time(r.end)}}}
		for _, day := range r.days {
			interval.Weekdays = append(interval.Weekdays, monitoring.WeekdayRange(day))
		}
		out.TimeIntervals = append(out.TimeIntervals, interval)
	}
	return out, nil
}
