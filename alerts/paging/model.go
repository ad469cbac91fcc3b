// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// GroupBy are the labels that identify an incident: alerts with the same values are
// one incident. PagerDuty's key of an incident is computed from these labels and from
// the matchers of the route, so a change of either one leaves open incidents open.
var GroupBy = []string{"alertname", series.Scope, series.OperatorNamespace, series.Operator, series.Cluster,
	series.Version, series.RecoveredClusters}

// times are the times of Alertmanager's notifications about a group: the wait for alerts that begin
// together, the interval in which it sends changes, and the time after which it repeats a notification.
type times struct{ wait, interval, repeat string }

var (
	incidentTimes = times{wait: "30s", interval: "5m", repeat: "12h"}
	// heartbeatTimes send once a minute, because the repeat interval is shorter than the group interval.
	heartbeatTimes = times{wait: "0s", interval: "1m", repeat: "45s"}
	testTimes      = times{wait: "0s", interval: "30s", repeat: "12h"}
)

// matcher is a condition on a label of an alert.
type matcher struct {
	label, operator, value string
}

func matchEqual(label, value string) matcher { return matcher{label, "=", value} }

// route is a route of either kind of configuration.
type route struct {
	matchers []matcher
	receiver string
	// hours is the name of the interval in which the route is active.
	hours  string
	routes []route
	// times are the times of its groups. Zero value: the times of the parent route.
	times times
}

// target is a receiver of either kind of configuration: some receivers
// of a policy, and the severity that distinguishes pages from tickets.
type target struct {
	name      string
	receivers []v1alpha1.PagingReceiver
	severity  string
}

// Severities of PagerDuty. If pages and tickets have the same receivers, they are one incident, whose severity
// can increase: severityByAlerts is the severity of its worst firing alert. severityByFleetAlerts is the same,
// except that a page about an operator on one cluster is a ticket.
const (
	severityPage     = "critical"
	severityTicket   = "warning"
	severityByAlerts = `{{ $page := false }}{{ range .Alerts.Firing }}{{ if eq .Labels.severity "page" }}` +
		`{{ $page = true }}{{ end }}{{ end }}{{ if $page }}critical{{ else }}warning{{ end }}`
	severityByFleetAlerts = `{{ $page := false }}{{ range .Alerts.Firing }}{{ if and (eq .Labels.severity "page") ` +
		`(ne .Labels.scope "operator") }}{{ $page = true }}{{ end }}{{ end }}` +
		`{{ if $page }}critical{{ else }}warning{{ end }}`
)

// id returns the prefix of all names that belong to a policy.
func (p Policy) id() string { return p.Namespace + "/" + p.Name }

func (p Policy) pagesName() string   { return p.id() + "/pages" }
func (p Policy) ticketsName() string { return p.id() + "/tickets" }

// fleetOnlyName returns the name of the receiver for pages and tickets of
// operators that do not page for a failure on a single cluster.
func (p Policy) fleetOnlyName() string { return p.id() + "/standard" }

func (p Policy) selfTestName() string  { return p.id() + "/self-test" }
func (p Policy) heartbeatName() string { return p.id() + "/heartbeat" }
func (p Policy) hoursName() string     { return p.id() + "/hours" }

// hasTickets reports whether tickets have other receivers than pages.
func (p Policy) hasTickets() bool { return p.Spec.Tickets != nil }

// findReceivers returns the policy's receivers with these names.
func (p Policy) findReceivers(names []string) []v1alpha1.PagingReceiver {
	var out []v1alpha1.PagingReceiver
	for _, r := range p.Spec.Receivers {
		for _, name := range names {
			if r.Name == name {
				out = append(out, r)
			}
		}
	}
	return out
}

// listTargets returns the receivers that the policy's routes name. The first receives pages, the second tickets.
// If tickets have no receivers of their own, both receive pages and tickets: the second is for operators that do
// not page for a failure on a single cluster. The third receives self-tests, if the policy has them.
func (p Policy) listTargets() []target {
	pages := p.findReceivers(p.Spec.Pages.Receivers)
	out := []target{
		{name: p.pagesName(), receivers: pages, severity: severityByAlerts},
		{name: p.fleetOnlyName(), receivers: pages, severity: severityByFleetAlerts},
	}
	if p.hasTickets() {
		tickets := p.findReceivers(p.Spec.Tickets.Receivers)
		out = []target{
			{name: p.pagesName(), receivers: pages, severity: severityPage},
			{name: p.ticketsName(), receivers: tickets, severity: severityTicket},
		}
	}
	if p.Spec.SelfTest != nil {
		out = append(out, target{name: p.selfTestName(), receivers: pages, severity: severityInfo})
	}
	return out
}

// buildOperatorRoutes returns the routes of the operators that the policy selects. Each operator has its
// own route, so that adding or removing an operator does not change the keys of other operators' incidents. If
// tickets have other receivers than pages, the route leads to the tickets, and its child routes to the pages.
func (p Policy) buildOperatorRoutes() []route {
	var out []route
	for _, op := range p.Operators {
		matchers := []matcher{matchEqual(series.Operator, op.Name), matchEqual(series.OperatorNamespace, op.Namespace)}
		if !p.hasTickets() {
			receiver := p.fleetOnlyName()
			if p.hasSingleClusterPages(op) {
				receiver = p.pagesName()
			}
			out = append(out, route{matchers: matchers, receiver: receiver})
			continue
		}
		r := p.buildTicketRoute(matchers)
		r.routes = []route{p.buildPageRoute(series.ScopeRelease)}
		if p.hasSingleClusterPages(op) {
			r.routes = append(r.routes, p.buildPageRoute(series.ScopeOperator))
		}
		out = append(out, r)
	}
	return out
}

// buildTicketRoute returns a route to the receiver of tickets, limited to the hours of tickets.
func (p Policy) buildTicketRoute(matchers []matcher) route {
	r := route{matchers: matchers, receiver: p.ticketsName()}
	if p.Spec.Tickets.Hours != nil {
		r.hours = p.hoursName()
	}
	return r
}

// buildPageRoute returns the route of the pages with a scope.
func (p Policy) buildPageRoute(scope string) route {
	return route{matchers: []matcher{matchEqual(series.Scope, scope), matchEqual(series.Severity, series.Page)},
		receiver: p.pagesName()}
}

// buildTestRoute returns the route of the test alerts with TestLabels. It
// leads to the receivers that real alerts with the same severity would reach.
func (p Policy) buildTestRoute() route {
	r := route{matchers: []matcher{matchEqual("alertname", AlertTest), matchEqual(LabelPolicy, p.id())},
		receiver: p.fleetOnlyName(), times: testTimes}
	if p.hasTickets() {
		r.receiver = p.ticketsName()
		r.routes = []route{{matchers: []matcher{matchEqual(series.Severity, series.Page)}, receiver: p.pagesName()}}
	}
	if p.Spec.SelfTest != nil {
		r.routes = append(r.routes, route{matchers: []matcher{matchEqual(series.Severity, SeveritySelfTest)},
			receiver: p.selfTestName()})
	}
	return r
}

// buildFleetRoutes returns the routes of the heartbeat and of all remaining alerts that match.
func (p Policy) buildFleetRoutes(matchers ...matcher) []route {
	receiver := p.heartbeatName()
	if p.Spec.Heartbeat == nil {
		receiver = nullReceiver
	}
	heartbeats := route{matchers: []matcher{matchEqual("alertname", slo.AlertHeartbeat)}, receiver: receiver,
		times: heartbeatTimes}
	if !p.hasTickets() {
		return []route{heartbeats, {matchers: matchers, receiver: p.pagesName()}}
	}
	remaining := p.buildTicketRoute(matchers)
	remaining.routes = []route{{matchers: []matcher{matchEqual(series.Severity, series.Page)}, receiver: p.pagesName()}}
	return []route{heartbeats, remaining}
}

// bellwetherAlerts matches the alerts of Bellwether's rules.
var bellwetherAlerts = matcher{"alertname", "=~", "Bellwether.+"}

// buildForeignRoute returns the route of all other alerts. It must precede the routes of
// operators, because alerts of an operator's own rules may have the same labels. The matchers
// of those routes must not change, because they are part of the keys of open incidents.
func buildForeignRoute(receiver string) route {
	return route{matchers: []matcher{{bellwetherAlerts.label, "!~", bellwetherAlerts.value}}, receiver: receiver}
}

// nullReceiver is the receiver that notifies no user. It is for alerts that
// another configuration handles, and for heartbeats without a listener.
const nullReceiver = "nobody"
