// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/alerts/prometheus"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
)

// EnvPrometheus is where Prometheus is, unless a flag says so.
const EnvPrometheus = "BELLWETHER_PROMETHEUS"

// prometheusOptions say which Prometheus to query, and for what time.
type prometheusOptions struct {
	address, tokenFile, caFile string
	since                      time.Duration
}

func (o *prometheusOptions) add(c *cobra.Command) {
	c.Flags().StringVar(&o.address, "prometheus", "",
		"The `URL` of Prometheus or of a service with the same API. Default: $"+EnvPrometheus+".")
	c.Flags().StringVar(&o.tokenFile, "prometheus-token-file", "", "The `FILE` with the bearer token for Prometheus.")
	c.Flags().StringVar(&o.caFile, "prometheus-ca-file", "",
		"The `FILE` with the CA certificates for Prometheus.")
	c.Flags().DurationVar(&o.since, "since", 24*time.Hour, "The time range of the graphs.")
	_ = c.MarkFlagFilename("prometheus-token-file")
	_ = c.MarkFlagFilename("prometheus-ca-file")
}

// queryTimeout bounds all queries of one command.
const queryTimeout = 30 * time.Second

const howToName = "use a URL such as http://localhost:9090"

func (a *app) client(o *prometheusOptions) (*prometheus.Client, error) {
	address := cmp.Or(o.address, a.Getenv(EnvPrometheus))
	if address == "" {
		return nil, exit.Hintf(howToName, "no Prometheus address: set --prometheus or %s", EnvPrometheus)
	}
	if o.since < time.Minute || o.since > 92*24*time.Hour {
		return nil, exit.Hintf("use at least 1m and at most 2208h (92 days), for example 24h",
			"invalid value %s of --since", o.since)
	}
	client, err := prometheus.Endpoint{URL: address, TokenFile: o.tokenFile, CAFile: o.caFile}.Client()
	if errors.Is(err, prometheus.ErrAddress) {
		return nil, exit.Hint(err, howToName)
	}
	return client, err
}

// readBudgets queries Prometheus and says what to do if that fails. The operator
// is NAME or NAMESPACE/NAME; empty: all.
func (a *app) readBudgets(ctx context.Context, o *prometheusOptions, operator string) (*budgets.Report, error) {
	client, err := a.client(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, queryTimeout, fmt.Errorf("no answer within %s", queryTimeout))
	defer cancel()
	q := budgets.Query{Now: a.Now(), Since: o.since, Clusters: operator != ""}
	if operator != "" {
		if q.Operator, err = budgets.Find(ctx, client, q.Now, operator); err != nil {
			return nil, operatorError(ctx, client, q.Now, operator, err)
		}
	}
	report, err := budgets.Read(ctx, client, q)
	return report, budgetError(ctx, err, client.Address)
}

// operatorError says which operators there are instead.
func operatorError(ctx context.Context, client *prometheus.Client, now time.Time, name string, err error) error {
	unknown, ambiguous := errors.Is(err, budgets.ErrUnknownOperator), errors.Is(err, budgets.ErrAmbiguous)
	if !unknown && !ambiguous {
		return budgetError(ctx, err, client.Address)
	}
	all, _ := budgets.Operators(ctx, client, now) // only for the hint
	var names []string
	for _, o := range all {
		if unknown || o.Name == name {
			names = append(names, o.String())
		}
	}
	if ambiguous {
		return exit.Hintf("use one of "+strings.Join(names, ", "), "operators of %d namespaces have the name %q",
			len(names), name)
	}
	return exit.Hintf(hub.Offer(names, "no operator has objectives"),
		"Prometheus at %s has no objectives for operator %q",
		client.Address, name)
}

func budgetError(ctx context.Context, err error, address string) error {
	if err == nil {
		return nil
	}
	var unreachable *url.Error
	var refused *promv1.Error
	switch {
	case errors.Is(err, budgets.ErrNoRules):
		return exit.Hintf("check that the rules are loaded with kubectl get operatorslos -A (column LOADED), and "+
			"that Prometheus scrapes the hub and the agents",
			"Prometheus at %s has no objectives", address)
	case context.Cause(ctx) != nil && !errors.Is(err, context.Canceled):
		return exit.Hint(fmt.Errorf("query Prometheus at %s: %w", address, context.Cause(ctx)), howToName)
	case errors.As(err, &unreachable):
		return exit.Hint(fmt.Errorf("cannot reach Prometheus at %s: %w", address, unreachable.Err),
			howToName)
	case errors.As(err, &refused) && refused.Type == promv1.ErrClient:
		return exit.Hint(fmt.Errorf("the Prometheus at %s rejected the request: %w", address, err),
			"if it requires a login, set --prometheus-token-file; the address must not include /api/v1")
	case errors.As(err, &refused):
		return exit.Hint(fmt.Errorf("the Prometheus at %s cannot answer: %w", address, err),
			"try again, or check the logs of Prometheus")
	default:
		return err
	}
}

const sloListLong = `Show the error budgets of operators: the remaining budget, the burn rate and the
firing alerts. Each operator has one line, with its worst objective. With --all,
each objective has one line. The remaining budget is that of the worst cluster, and
the burn rate is the highest of all clusters. At a burn rate of 1 the budget lasts
exactly for its period. The graph shows the remaining budget over time.

The data comes from Prometheus, from the series that the rules of the OperatorSLOs
record.`

func (a *app) sloListCommand() *cobra.Command {
	var out command.Output
	var from prometheusOptions
	var all bool
	c := &cobra.Command{
		Use: "list", Short: "Show the error budgets of operators, the worst first", Long: sloListLong,
		Args:    cobra.NoArgs,
		Example: "  bellwether slo list --prometheus http://localhost:9090\n  bellwether slo list --all --since 168h",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			answer, err := a.readBudgets(c.Context(), &from, "")
			if err != nil {
				return err
			}
			shown := answer.Objectives
			if !all {
				shown = budgets.ByOperator(shown)
			}
			if !out.Table() {
				return out.Value(a.Streams.Out, shown)
			}
			a.Table(&out, Budgets(shown, from.since))
			return nil
		},
	}
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML)
	from.add(c)
	c.Flags().BoolVar(&all, "all", false, "Show all objectives instead of the worst one of each operator.")
	return c
}

// objectivesInput adds to the budgets what the hub says of the objectives. A hub
// that cannot be read is part of the answer: the budgets are Prometheus's.
func (a *app) objectivesInput(ctx context.Context, answer *budgets.Report) explain.ObjectivesInput {
	first := answer.Objectives[0]
	in := explain.ObjectivesInput{Now: a.Now(), Program: a.Self, Budgets: explained(answer),
		Operator: v1alpha1.OperatorReference{Namespace: first.Namespace, Name: first.Operator}}
	h, err := a.Hub()
	if err != nil {
		in.SLOErr = err
		return in
	}
	list := &v1alpha1.OperatorSLOList{}
	if in.SLOErr = h.List(ctx, list, client.InNamespace(in.Operator.Namespace)); in.SLOErr != nil {
		return in
	}
	for i := range list.Items {
		if list.Items[i].Spec.Operator == in.Operator.Name {
			in.SLO = &list.Items[i]
		}
	}
	return in
}

// explained are the budgets in the terms of package explain: each cluster's, or
// the objectives' where no cluster reports.
func explained(answer *budgets.Report) []explain.Budget {
	list := answer.Clusters
	if len(list) == 0 {
		list = answer.Objectives
	}
	out := make([]explain.Budget, 0, len(list))
	for _, b := range list {
		e := explain.Budget{SLI: b.SLI, Cluster: b.Cluster, Target: b.Target, Period: b.Period, Left: b.Left,
			Burn: b.Burn}
		for _, alert := range b.Firing {
			e.Firing = append(e.Firing, alert.Name)
		}
		out = append(out, e)
	}
	return out
}

const sloGetLong = `Show the error budgets of an operator: its objectives, and the clusters that have
used a part of their budget, the worst first. The graph shows the remaining budget
over time. The operator is named as NAME, or as NAMESPACE/NAME if operators of
several namespaces have that name.`

// fewClusters is how many are shown without --all.
const fewClusters = 15

func (a *app) sloGetCommand() *cobra.Command {
	var out command.Output
	var from prometheusOptions
	var all bool
	c := &cobra.Command{
		Use: "get OPERATOR", Short: "Show the error budgets of an operator, by objective and by cluster",
		Long:    sloGetLong,
		Example: "  bellwether slo get echo --prometheus http://localhost:9090\n  bellwether slo get echo -o json",
		Args:    command.OneArg("the operator's name"), ValidArgsFunction: a.CompleteFirst(command.OperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			answer, err := a.readBudgets(c.Context(), &from, args[0])
			if err != nil {
				return err
			}
			most := fewClusters
			if all {
				most = 0
			}
			e := explain.Objectives(a.objectivesInput(c.Context(), answer))
			return a.Explained(&out, nil, e, func(s term.Style) string {
				return OperatorBudgets(answer, from.since, most, s)
			})
		},
	}
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML)
	from.add(c)
	c.Flags().BoolVar(&all, "all", false, "Show all clusters that have used a part of their budget.")
	return c
}
