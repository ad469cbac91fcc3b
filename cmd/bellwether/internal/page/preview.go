// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/prometheus"
	"github.com/bellwether-dev/bellwether/alerts/runbooks"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

const previewLong = `Show the incident that an alert would make: who is notified, PagerDuty's key of the
incident, and every text in it, made by Alertmanager's own templates from the
PagingPolicies of the hub, or from those of -f as if they were applied.

What the alert says is made by Prometheus's templates. With --prometheus, they query
that server, so that clusters, budgets and rollouts are those of now; without it,
what is looked up is missing.`

// previewOptions say which alert.
type previewOptions struct {
	out                                       command.Output
	from                                      command.PrometheusFlags
	operator, cluster, version, severity, sli string
	value                                     float64
	files                                     []string
}

func (o *previewOptions) add(c *cobra.Command) {
	o.out.Add(c, command.OutputJSON, command.OutputYAML)
	o.from.Add(c)
	c.Flags().StringVar(&o.operator, "operator", "", "The operator that the alert is about, as `NAMESPACE/NAME`.")
	c.Flags().StringVar(&o.cluster, "cluster", "", "The cluster that the alert is about.")
	c.Flags().StringVar(&o.version, "release", "", "The `VERSION` that the alert is about.")
	c.Flags().StringVar(
		&o.severity,
		"severity",
		"",
		"The severity: page or ticket. Default: page, if the alert can be one.",
	)
	c.Flags().StringVar(&o.sli, "sli", "available", "The SLI that the alert is about.")
	c.Flags().Float64Var(&o.value, "value", 0,
		"The value of the alert. Default: a burn rate of 14.4, or 3 operators or "+
			"clusters.")
	c.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "Use the PagingPolicies in this `FILE`.")
}

func (a *app) previewCommand() *cobra.Command {
	var o previewOptions
	c := &cobra.Command{
		Use: "preview ALERT", Short: "Show the incident that an alert would make", Long: previewLong,
		Example: "  bellwether page preview BellwetherReleaseSLOBurn --operator fleet/echo --release 1.1.0\n" +
			"  bellwether page preview BellwetherClusterFailing --cluster prod-eu -f policy.yaml",
		Args: command.OneArg("the alert's name"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.out.Check(); err != nil {
				return err
			}
			return a.preview(c.Context(), &o, args[0])
		},
	}
	o.add(c)
	return c
}

func (a *app) preview(ctx context.Context, o *previewOptions, alert string) error {
	hub, err := a.read(ctx)
	if err != nil {
		return err
	}
	if len(o.files) > 0 {
		changed, err := a.readFiles(o.files)
		if err != nil {
			return err
		}
		hub = hub.with(changed)
	}
	rule, err := ruleOf(alert, o.severity)
	if err != nil {
		return err
	}
	of, err := o.labels(rule, hub)
	if err != nil {
		return err
	}
	query, err := a.queries(ctx, &o.from)
	if err != nil {
		return err
	}
	firing, err := expand(ctx, rule, of, o.example(rule), query, a.Now())
	if err != nil {
		return err
	}
	problems, names := hub.problems()
	for _, name := range names {
		a.Warn("Warning: PagingPolicy %s is wrong and left out: %s\n", name, problems[name])
	}
	text, err := hub.config()
	if err != nil {
		return err
	}
	router, err := paging.NewRouter(text)
	if err != nil {
		return err
	}
	return a.showIncidents(&o.out, router, []paging.Firing{firing})
}

// ruleOf is the rule of an alert: the one with a severity, or the most urgent one.
func ruleOf(alert, severity string) (*monitoringv1.Rule, error) {
	rules, err := allRules()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(runbooks.Alerts(), alert) {
		return nil, noAlert(alert)
	}
	isPage := func(r *monitoringv1.Rule) bool { return r.Labels[series.Severity] == series.Page }
	var found *monitoringv1.Rule
	for _, g := range rules.All() {
		for i := range g.Rules {
			r := &g.Rules[i]
			matches := r.Alert == alert && (severity == "" || r.Labels[series.Severity] == severity)
			if matches && (found == nil || isPage(r) && !isPage(found)) {
				found = r
			}
		}
	}
	if found == nil {
		return nil, exit.Hintf("leave out --severity", "there is no alert %s with the severity %q", alert, severity)
	}
	return found, nil
}

// labels are those of an alert that a rule makes about what the flags name.
func (o *previewOptions) labels(rule *monitoringv1.Rule, hub hubPaging) (map[string]string, error) {
	out := maps.Clone(rule.Labels)
	out["alertname"] = rule.Alert
	scope := rule.Labels[series.Scope]
	if scope == series.ScopeOperator || scope == series.ScopeRelease {
		i := slices.IndexFunc(
			hub.operators,
			func(op paging.Operator) bool { return op.Namespace+"/"+op.Name == o.operator },
		)
		if i < 0 {
			return nil, exit.Hintf(
				"set --operator to one of the hub's, as NAMESPACE/NAME; see `bellwether operator list -A`",
				"alert %s is about an operator, and the hub has no operator %q",
				rule.Alert,
				o.operator,
			)
		}
		op := hub.operators[i]
		out[series.OperatorNamespace], out[series.Operator], out[series.SLI] = op.Namespace, op.Name, o.sli
		if op.Team != "" {
			out[series.Team] = op.Team
		}
	}
	if scope == series.ScopeRelease && o.version != "" {
		out[series.Version] = o.version
	}
	if scope == series.ScopeOperator || scope == series.ScopeCluster {
		if o.cluster == "" {
			return nil, exit.Hintf("set --cluster", "alert %s is about a cluster", rule.Alert)
		}
		out[series.Cluster] = o.cluster
	}
	return out, nil
}

// example is the value of the alert: what the flag says, or one that fits its text.
func (o *previewOptions) example(rule *monitoringv1.Rule) float64 {
	if o.value != 0 {
		return o.value
	}
	if scope := rule.Labels[series.Scope]; scope == series.ScopeCluster || scope == series.ScopeFleet {
		return 3
	}
	return 14.4
}

// queries are Prometheus's; without an address they have no results.
func (a *app) queries(ctx context.Context, from *command.PrometheusFlags) (template.QueryFunc, error) {
	if !a.HasPrometheus(from) {
		return func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }, nil
	}
	server, err := a.Prometheus(from)
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, query string, at time.Time) (promql.Vector, error) {
		return ask(ctx, server, query, at)
	}, nil
}

// ask returns the result of a query in the types of Prometheus's templates.
func ask(ctx context.Context, server *prometheus.Client, query string, at time.Time) (promql.Vector, error) {
	samples, err := server.Query(ctx, query, at)
	if err != nil {
		return nil, err
	}
	var out promql.Vector
	for _, s := range samples {
		set := map[string]string{}
		for name, value := range s.Metric {
			set[string(name)] = string(value)
		}
		out = append(out, promql.Sample{T: int64(s.Timestamp), F: float64(s.Value), Metric: labels.FromMap(set)})
	}
	return out, nil
}

// expand makes the annotations of an alert as Prometheus does.
func expand(ctx context.Context, rule *monitoringv1.Rule, of map[string]string, value float64, query template.QueryFunc,
	now time.Time) (paging.Firing, error) {
	out := paging.Firing{Labels: of, Annotations: map[string]string{}, Since: now}
	data := template.AlertTemplateData(of, nil, "", promql.Sample{F: value})
	const names = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}" +
		"{{$value := .Value}}"
	for name, text := range rule.Annotations {
		expander := template.NewTemplateExpander(
			ctx,
			names+text,
			"preview",
			data,
			model.TimeFromUnixNano(now.UnixNano()),
			query,
			nil,
			nil,
		)
		expanded, err := expander.Expand()
		if err != nil {
			return out, fmt.Errorf("annotation %s: %w", name, err)
		}
		out.Annotations[name] = expanded
	}
	return out, nil
}

// preview of an incident that no PagerDuty gets.
type shownIncident struct {
	paging.Incident
	// Events are what PagerDuty is sent.
	Events []paging.Event `json:"events,omitempty"`
}

// showIncidents shows what is made of alerts of one group.
func (a *app) showIncidents(out *command.Output, router *paging.Router, alerts []paging.Firing) error {
	events, err := router.Preview(alerts)
	if err != nil {
		return err
	}
	var all []shownIncident
	for _, in := range router.Incidents(alerts[0].Labels) {
		one := shownIncident{Incident: in}
		for _, e := range events {
			if e.Receiver == in.Receiver {
				one.Events = append(one.Events, e)
			}
		}
		all = append(all, one)
	}
	if !out.Table() {
		return out.Value(a.Streams.Out, all)
	}
	// With prometheus-operator an alert goes through the routes of each policy, and
	// those that are not about it have a receiver that notifies nobody.
	heard := slices.ContainsFunc(all, func(one shownIncident) bool { return len(one.Notifies) > 0 })
	for _, one := range all {
		if !heard || len(one.Notifies) > 0 {
			a.showIncident(one, alerts)
		}
	}
	return nil
}

// shownFirst are the details that a person needs first; the others follow by name.
var shownFirst = []string{"firing_since", "operator", "version", "cluster", "clusters", "change", "look", "rollback"}

func (a *app) showIncident(one shownIncident, alerts []paging.Firing) {
	s := a.Style()
	a.Say("%s  %s\n", s.Paint(term.Strong, "receiver"), one.Receiver)
	if len(one.Notifies) == 0 {
		a.Say("Nobody is notified.\n")
		return
	}
	a.Say("%s  %s\n", s.Paint(term.Strong, "notifies"), strings.Join(one.Notifies, ", "))
	if len(one.Hours) > 0 {
		a.Say("%s     %s\n", s.Paint(term.Strong, "hours"), strings.Join(one.Hours, ", "))
	}
	if len(one.Events) == 0 {
		a.Say("%s   %s\n", s.Paint(term.Strong, "summary"), alerts[0].Annotations["summary"])
	}
	for _, e := range one.Events {
		a.Say("%s %s\n", s.Paint(term.Strong, "dedup_key"), e.DedupKey)
		a.Say("%s  %s\n", s.Paint(term.Strong, "severity"), e.Severity)
		a.Say("%s   %s\n\n", s.Paint(term.Strong, "summary"), e.Summary)
		t := &term.Table{Header: []string{"DETAIL", "TEXT"}, Wrap: true}
		for _, name := range slices.Concat(shownFirst, slices.DeleteFunc(slices.Sorted(maps.Keys(e.Details)),
			func(name string) bool { return slices.Contains(shownFirst, name) })) {
			if text := e.Details[name]; text != "" && text != "none" {
				t.Add(term.Cell{Text: name}, term.Cell{Text: strings.ReplaceAll(text, "\n", "; ")})
			}
		}
		a.Say("%s", t.Render(s))
	}
}
