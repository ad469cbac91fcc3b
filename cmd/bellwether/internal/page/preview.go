// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
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

// previewOptions are the flags that describe the alert to preview.
type previewOptions struct {
	out                                       command.Output
	prometheus                                command.PrometheusFlags
	operator, cluster, version, severity, sli string
	value                                     float64
	files                                     []string
}

func (o *previewOptions) addFlags(c *cobra.Command) {
	o.out.Add(c, command.OutputJSON, command.OutputYAML)
	o.prometheus.Add(c)
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

func (a *app) newPreviewCommand() *cobra.Command {
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
			return a.previewAlert(c.Context(), &o, args[0])
		},
	}
	o.addFlags(c)
	return c
}

// previewAlert prints the incident that an alert would open with the policies of the hub and the files.
func (a *app) previewAlert(ctx context.Context, o *previewOptions, alert string) error {
	hub, err := a.readHub(ctx)
	if err != nil {
		return err
	}
	if len(o.files) > 0 {
		changed, err := a.readFiles(o.files)
		if err != nil {
			return err
		}
		hub = hub.WithPolicies(changed)
	}
	rule, err := findRule(alert, o.severity)
	if err != nil {
		return err
	}
	alertLabels, err := o.buildLabels(rule, hub)
	if err != nil {
		return err
	}
	query, err := a.newQueryFunc(ctx, &o.prometheus)
	if err != nil {
		return err
	}
	value := o.value
	if value == 0 {
		value = paging.ChooseExampleValue(rule)
	}
	firing, err := expandAnnotations(ctx, rule, alertLabels, value, query, a.Now())
	if err != nil {
		return err
	}
	for _, problem := range hub.ListProblems() {
		a.Warn("Warning: PagingPolicy %s is wrong and left out: %s\n", problem.Policy, problem.Message)
	}
	text, err := hub.BuildConfig()
	if errors.Is(err, paging.ErrNoFleetPolicy) {
		return exit.Hint(err, "create a PagingPolicy with spec.scope Fleet; docs/guides/paging.md has an example")
	}
	if err != nil {
		return err
	}
	router, err := paging.NewRouter(text)
	if err != nil {
		return err
	}
	return a.printIncidents(&o.out, router, []paging.Firing{firing})
}

// findRule returns the rule of an alert with a severity. If severity is empty, it returns the
// rule that pages, if there is one.
func findRule(alert, severity string) (*monitoringv1.Rule, error) {
	rules, err := buildAllRules()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(runbooks.Alerts(), alert) {
		return nil, newUnknownAlertError(alert)
	}
	found := paging.FindRule(rules.All(), alert, severity)
	if found == nil {
		return nil, exit.Hintf("leave out --severity", "there is no alert %s with the severity %q", alert, severity)
	}
	return found, nil
}

// buildLabels returns the labels of the alert of a rule about the operator, the release and the cluster of the flags.
// It returns an error if the hub does not have the operator or a required cluster is not set.
func (o *previewOptions) buildLabels(rule *monitoringv1.Rule, hub paging.PolicySet) (map[string]string, error) {
	subject := paging.Subject{SLI: o.sli, Version: o.version, Cluster: o.cluster}
	if i := slices.IndexFunc(hub.Operators, func(op paging.Operator) bool {
		return op.Namespace+"/"+op.Name == o.operator
	}); i >= 0 {
		subject.Operator = hub.Operators[i]
	}
	out, err := paging.BuildLabels(rule, subject)
	switch {
	case errors.Is(err, paging.ErrNoOperator):
		return nil, exit.Hintf(
			"set --operator to one of the hub's, as NAMESPACE/NAME; see `bellwether operator list -A`",
			"alert %s is about an operator, and the hub has no operator %q", rule.Alert, o.operator)
	case errors.Is(err, paging.ErrNoCluster):
		return nil, exit.Hintf("set --cluster", "alert %s is about a cluster", rule.Alert)
	}
	return out, err
}

// newQueryFunc returns a function that queries Prometheus for templates. Without the URL of
// Prometheus, its results are empty.
func (a *app) newQueryFunc(ctx context.Context, flags *command.PrometheusFlags) (template.QueryFunc, error) {
	if !a.HasPrometheus(flags) {
		return func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }, nil
	}
	server, err := a.Prometheus(flags)
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, query string, at time.Time) (promql.Vector, error) {
		return queryVector(ctx, server, query, at)
	}, nil
}

// queryVector returns the result of a query in the types of Prometheus's templates.
func queryVector(ctx context.Context, server *prometheus.Client, query string, at time.Time) (promql.Vector, error) {
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

// expandAnnotations expands the annotations of a rule for an alert with the code of Prometheus.
func expandAnnotations(ctx context.Context, rule *monitoringv1.Rule, alertLabels map[string]string, value float64,
	query template.QueryFunc, now time.Time) (paging.Firing, error) {
	out := paging.Firing{Labels: alertLabels, Annotations: map[string]string{}, Since: now}
	data := template.AlertTemplateData(alertLabels, nil, "", promql.Sample{F: value})
	const definitions = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}" +
		"{{$value := .Value}}"
	for name, text := range rule.Annotations {
		expander := template.NewTemplateExpander(
			ctx,
			definitions+text,
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

// printIncidents prints the incidents that the alerts of one group open: one for each receiver, with the events that
// PagerDuty would receive.
func (a *app) printIncidents(out *command.Output, router *paging.Router, alerts []paging.Firing) error {
	all, err := router.PreviewIncidents(alerts)
	if err != nil {
		return err
	}
	if !out.Table() {
		return out.Value(a.Streams.Out, all)
	}
	for _, incident := range paging.SelectNotifying(all) {
		a.printIncident(incident, alerts)
	}
	return nil
}

// firstDetails are the details that a person needs first. The other details follow, ordered by name.
var firstDetails = []string{"firing_since", "operator", "version", "cluster", "clusters", "change", "look", "rollback"}

// printIncident prints the receiver of an incident and the events that PagerDuty would receive.
func (a *app) printIncident(incident paging.IncidentPreview, alerts []paging.Firing) {
	s := a.Style()
	a.Say("%s  %s\n", s.Paint(term.Strong, "receiver"), incident.Receiver)
	if len(incident.Notifies) == 0 {
		a.Say("Nobody is notified.\n")
		return
	}
	a.Say("%s  %s\n", s.Paint(term.Strong, "notifies"), strings.Join(incident.Notifies, ", "))
	if len(incident.Hours) > 0 {
		a.Say("%s     %s\n", s.Paint(term.Strong, "hours"), strings.Join(incident.Hours, ", "))
	}
	if len(incident.Events) == 0 {
		a.Say("%s   %s\n", s.Paint(term.Strong, "summary"), alerts[0].Annotations["summary"])
	}
	for _, e := range incident.Events {
		a.Say("%s %s\n", s.Paint(term.Strong, "dedup_key"), e.DedupKey)
		a.Say("%s  %s\n", s.Paint(term.Strong, "severity"), e.Severity)
		a.Say("%s   %s\n\n", s.Paint(term.Strong, "summary"), e.Summary)
		t := &term.Table{Header: []string{"DETAIL", "TEXT"}, Wrap: true}
		for _, name := range slices.Concat(firstDetails, slices.DeleteFunc(slices.Sorted(maps.Keys(e.Details)),
			func(name string) bool { return slices.Contains(firstDetails, name) })) {
			if text := e.Details[name]; text != "" && text != "none" { // the templates write none for an empty value
				t.Add(term.Cell{Text: name}, term.Cell{Text: strings.ReplaceAll(text, "\n", "; ")})
			}
		}
		a.Say("%s", t.Render(s))
	}
}
