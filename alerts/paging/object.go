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

// ErrTimeZone says that an AlertmanagerConfig has no time zones.
var ErrTimeZone = errors.New(
	"an AlertmanagerConfig has no time zones: set tickets.hours.timeZone to UTC, and start and " +
		"end in UTC",
)

// Object makes the AlertmanagerConfig of prometheus-operator (v1alpha1, which every
// release serves) of one policy. It refers to Secrets in its own namespace. The
// Alertmanager that selects it needs the alertmanagerConfigMatcherStrategy None:
// alerts have no label namespace.
//
// The object of the policy with the scope Fleet has all alerts that no other policy of
// all has, also those about operators that are not known any more, or not yet.
//
// It returns ErrTimeZone for ticket hours in another time zone than UTC.
func Object(p Policy, all []Policy) (*monitoring.AlertmanagerConfigSpec, error) {
	out := &monitoring.AlertmanagerConfigSpec{}
	// Whatever is not in the routes below is for another AlertmanagerConfig.
	top := route{matchers: []matcher{equals(series.OperatorNamespace, p.Namespace)}, receiver: nobody,
		routes: append([]route{foreign(nobody), p.testRoute()}, p.operatorRoutes()...)}
	if p.IsFleet() {
		top.matchers, top.routes = []matcher{bellwether}, top.routes[1:]
		// Tests of other policies are for their AlertmanagerConfigs.
		top.routes = slices.Insert(top.routes, 1, route{matchers: []matcher{equals("alertname", AlertTest)},
			receiver: nobody})
		for _, other := range sorted(all) {
			if len(other.Operators) > 0 && other.id() != p.id() {
				top.routes = append(top.routes, other.elsewhere())
			}
		}
		top.routes = append(top.routes, p.fleetRoutes(bellwether)...)
	}
	var err error
	if out.Route, err = top.object(); err != nil {
		return nil, err
	}
	out.Route.GroupBy = GroupBy
	out.Route.GroupWait = durationOf(incidentTimes.wait)
	out.Route.GroupInterval = durationOf(incidentTimes.interval)
	out.Route.RepeatInterval = durationOf(incidentTimes.repeat)
	out.Receivers = []monitoring.Receiver{{Name: nobody}}
	for _, t := range p.targets() {
		out.Receivers = append(out.Receivers, p.objectReceiver(t))
	}
	if h := p.Spec.Heartbeat; h != nil {
		out.Receivers = append(out.Receivers, monitoring.Receiver{Name: p.heartbeat(),
			WebhookConfigs: []monitoring.WebhookConfig{{URLSecret: selector(h.URL), MaxAlerts: 1,
				SendResolved: ptr.To(false)}}})
	}
	if p.hasTickets() && p.Spec.Tickets.Hours != nil {
		hours, err := p.objectHours()
		if err != nil {
			return nil, err
		}
		out.MuteTimeIntervals = []monitoring.MuteTimeInterval{hours}
	}
	return out, nil
}

// elsewhere takes the alerts that another AlertmanagerConfig routes. No incident is made
// of them here, so that its matchers may change.
func (p Policy) elsewhere() route {
	var names []string
	for _, op := range p.Operators {
		names = append(names, regexp.QuoteMeta(op.Name))
	}
	return route{receiver: nobody, matchers: []matcher{equals(series.OperatorNamespace, p.Namespace),
		{series.Operator, "=~", strings.Join(names, "|")}}}
}

func durationOf(d string) *monitoringv1.NonEmptyDuration {
	return ptr.To(monitoringv1.NonEmptyDuration(d))
}

func (r route) object() (*monitoring.Route, error) {
	out := &monitoring.Route{Receiver: r.receiver}
	for _, m := range r.matchers {
		out.Matchers = append(out.Matchers, monitoring.Matcher{Name: m.label, Value: m.value,
			MatchType: monitoring.MatchType(m.operator)})
	}
	if t := r.times; t != (times{}) {
		out.GroupWait, out.GroupInterval, out.RepeatInterval = durationOf(t.wait), durationOf(t.interval),
			durationOf(t.repeat)
	}
	if r.hours != "" {
		out.ActiveTimeIntervals = []string{r.hours}
	}
	for _, child := range r.routes {
		spec, err := child.object()
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

func (p Policy) objectReceiver(t target) monitoring.Receiver {
	out := monitoring.Receiver{Name: t.name}
	for _, r := range t.receivers {
		switch {
		case r.PagerDuty != nil:
			out.PagerDutyConfigs = append(out.PagerDutyConfigs, objectPagerDuty(r.PagerDuty, t))
		case r.Slack != nil:
			slack := monitoring.SlackConfig{APIURL: selector(r.Slack.APIURL), Title: ptr.To(t.title()),
				TitleLink: ofWorst("runbook_url"), Text: ptr.To(text), SendResolved: ptr.To(true)}
			if r.Slack.Channel != "" {
				slack.Channel = ptr.To(r.Slack.Channel)
			}
			out.SlackConfigs = append(out.SlackConfigs, slack)
		case r.Webhook != nil:
			out.WebhookConfigs = append(out.WebhookConfigs, monitoring.WebhookConfig{
				URLSecret: selector(r.Webhook.URL), SendResolved: ptr.To(true)})
		case r.Email != nil:
			out.EmailConfigs = append(out.EmailConfigs, objectEmail(r.Email, t))
		}
	}
	return out
}

func objectPagerDuty(r *v1alpha1.PagerDutyReceiver, t target) monitoring.PagerDutyConfig {
	out := monitoring.PagerDutyConfig{RoutingKey: selector(r.RoutingKey), SendResolved: ptr.To(true),
		Description: ptr.To(t.incidentTitle()), Severity: ptr.To(t.severity), Class: ptr.To(class),
		Component: ptr.To(component), Group: ptr.To(groupName), Source: ptr.To(source), Client: ptr.To(client),
		ClientURL: ptr.To(ofWorst("dashboard_url"))}
	if r.URL != "" {
		out.URL = ptr.To(monitoring.URL(r.URL))
	}
	for _, d := range details() {
		out.Details = append(out.Details, monitoring.KeyValue{Key: d.name, Value: d.text})
	}
	for _, l := range links {
		out.PagerDutyLinkConfigs = append(out.PagerDutyLinkConfigs, monitoring.PagerDutyLinkConfig{
			Href: ptr.To(l.text), Text: ptr.To(l.name)})
	}
	return out
}

func objectEmail(r *v1alpha1.EmailReceiver, t target) monitoring.EmailConfig {
	out := monitoring.EmailConfig{To: ptr.To(r.To), From: ptr.To(r.From), Smarthost: ptr.To(r.Smarthost),
		Text: ptr.To(text), HTML: ptr.To(""), SendResolved: ptr.To(true),
		Headers: []monitoring.KeyValue{{Key: "Subject", Value: t.title()}}}
	if r.Password != nil {
		out.AuthUsername, out.AuthPassword = ptr.To(r.Username), selector(*r.Password)
	}
	return out
}

func selector(k v1alpha1.SecretKey) *corev1.SecretKeySelector {
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: k.Name}, Key: k.Key}
}

func (p Policy) objectHours() (monitoring.MuteTimeInterval, error) {
	h := p.Spec.Tickets.Hours
	if h.TimeZone != "" && h.TimeZone != "UTC" {
		return monitoring.MuteTimeInterval{}, ErrTimeZone
	}
	out := monitoring.MuteTimeInterval{Name: p.hours()}
	for _, r := range hoursOf(h) {
		of := monitoring.TimeInterval{Times: []monitoring.TimeRange{{StartTime: monitoring.Time(r.start),
			EndTime: monitoring.Time(r.end)}}}
		for _, day := range r.days {
			of.Weekdays = append(of.Weekdays, monitoring.WeekdayRange(day))
		}
		out.TimeIntervals = append(out.TimeIntervals, of)
	}
	return out, nil
}
