// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// GroupBy are the labels of which the alerts with the same values are one incident.
// PagerDuty's key of an incident is made of them and of the matchers of the route:
// whoever edits either leaves open incidents open.
var GroupBy = []string{"alertname", series.Scope, series.OperatorNamespace, series.Operator, series.Cluster,
	series.Version, series.RecoveredClusters}

// times say when Alertmanager notifies of a group: how long it waits for the alerts that
// begin together, how often it looks for changes, and after how long it repeats itself.
type times struct{ wait, interval, repeat string }

var (
	incidentTimes = times{"30s", "5m", "12h"}
	// heartbeatTimes are once a minute, as the repeat interval is less than that of groups.
	heartbeatTimes = times{"0s", "1m", "45s"}
	testTimes      = times{"0s", "30s", "12h"}
)

// matcher is a condition on a label of an alert.
type matcher struct {
	label, operator, value string
}

func equals(label, value string) matcher { return matcher{label, "=", value} }

// route is a route of either kind of configuration.
type route struct {
	matchers []matcher
	receiver string
	// hours is the name of the interval in which it is active.
	hours  string
	routes []route
	// times of its groups; the zero value: those of the route above.
	times times
}

// target is a receiver of either kind of configuration: some receivers of a policy,
// with what tells pages from tickets.
type target struct {
	name      string
	receivers []v1alpha1.PagingReceiver
	severity  string
}

// Severities of PagerDuty. What goes to the same receivers as page and as ticket is
// one incident, whose severity grows.
const (
	severityPage   = "critical"
	severityTicket = "warning"
	severityGrows  = `{{ $page := false }}{{ range .Alerts.Firing }}{{ if eq .Labels.severity "page" }}` +
		`{{ $page = true }}{{ end }}{{ end }}{{ if $page }}critical{{ else }}warning{{ end }}`
	severityAlone = `{{ $page := false }}{{ range .Alerts.Firing }}{{ if and (eq .Labels.severity "page") ` +
		`(ne .Labels.scope "operator") }}{{ $page = true }}{{ end }}{{ end }}` +
		`{{ if $page }}critical{{ else }}warning{{ end }}`
)

// id names what is made of a policy.
func (p Policy) id() string { return p.Namespace + "/" + p.Name }

func (p Policy) pages() string   { return p.id() + "/pages" }
func (p Policy) tickets() string { return p.id() + "/tickets" }

// standard takes pages and tickets of operators that do not page for one cluster.
func (p Policy) standard() string { return p.id() + "/standard" }

func (p Policy) selfTest() string  { return p.id() + "/self-test" }
func (p Policy) heartbeat() string { return p.id() + "/heartbeat" }
func (p Policy) hours() string     { return p.id() + "/hours" }

// hasTickets tells whether tickets go elsewhere than pages.
func (p Policy) hasTickets() bool { return p.Spec.Tickets != nil }

// named are the policy's receivers with these names.
func (p Policy) named(names []string) []v1alpha1.PagingReceiver {
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

// targets are the receivers that the policy's routes name.
func (p Policy) targets() []target {
	pages := p.named(p.Spec.Pages.Receivers)
	out := []target{{p.pages(), pages, severityGrows}, {p.standard(), pages, severityAlone}}
	if p.hasTickets() {
		out = []target{{p.pages(), pages, severityPage},
			{p.tickets(), p.named(p.Spec.Tickets.Receivers), severityTicket}}
	}
	if p.Spec.SelfTest != nil {
		out = append(out, target{p.selfTest(), pages, severityInfo})
	}
	return out
}

// operatorRoutes are those of the operators that the policy selects. Each operator
// has a route of its own: an operator that comes or goes changes no key of the
// incidents of others.
func (p Policy) operatorRoutes() []route {
	var out []route
	for _, op := range p.Operators {
		of := []matcher{equals(series.Operator, op.Name), equals(series.OperatorNamespace, op.Namespace)}
		if !p.hasTickets() {
			receiver := p.standard()
			if p.pagesAlone(op) {
				receiver = p.pages()
			}
			out = append(out, route{matchers: of, receiver: receiver})
			continue
		}
		r := p.ticketRoute(of)
		r.routes = []route{p.pageRoute(series.ScopeRelease)}
		if p.pagesAlone(op) {
			r.routes = append(r.routes, p.pageRoute(series.ScopeOperator))
		}
		out = append(out, r)
	}
	return out
}

func (p Policy) ticketRoute(matchers []matcher) route {
	r := route{matchers: matchers, receiver: p.tickets()}
	if p.Spec.Tickets.Hours != nil {
		r.hours = p.hours()
	}
	return r
}

// pageRoute takes the pages of a scope.
func (p Policy) pageRoute(scope string) route {
	return route{matchers: []matcher{equals(series.Scope, scope), equals(series.Severity, series.Page)},
		receiver: p.pages()}
}

// testRoute takes the test alerts that TestLabels make, to the receivers that alerts
// which fail in the same way would reach.
func (p Policy) testRoute() route {
	r := route{matchers: []matcher{equals("alertname", AlertTest), equals(LabelPolicy, p.id())},
		receiver: p.standard(), times: testTimes}
	if p.hasTickets() {
		r.receiver = p.tickets()
		r.routes = []route{{matchers: []matcher{equals(series.Severity, series.Page)}, receiver: p.pages()}}
	}
	if p.Spec.SelfTest != nil {
		r.routes = append(r.routes, route{matchers: []matcher{equals(series.Severity, SeveritySelfTest)},
			receiver: p.selfTest()})
	}
	return r
}

// fleetRoutes are the heartbeat, and the rest of the alerts: what these matchers say.
func (p Policy) fleetRoutes(matchers ...matcher) []route {
	receiver := p.heartbeat()
	if p.Spec.Heartbeat == nil {
		receiver = nobody
	}
	beats := route{matchers: []matcher{equals("alertname", slo.AlertHeartbeat)}, receiver: receiver,
		times: heartbeatTimes}
	if !p.hasTickets() {
		return []route{beats, {matchers: matchers, receiver: p.pages()}}
	}
	rest := p.ticketRoute(matchers)
	rest.routes = []route{{matchers: []matcher{equals(series.Severity, series.Page)}, receiver: p.pages()}}
	return []route{beats, rest}
}

// bellwether are the alerts of Bellwether's rules.
var bellwether = matcher{"alertname", "=~", "Bellwether.+"}

// foreign takes all other alerts, before any route of an operator does: what an operator brings itself may have its
// labels. The matchers of those routes stay as they are, since they are part of the keys of open incidents.
func foreign(receiver string) route {
	return route{matchers: []matcher{{bellwether.label, "!~", bellwether.value}}, receiver: receiver}
}

// nobody is the receiver of what is for somebody else, and of heartbeats that
// nobody listens for.
const nobody = "nobody"
