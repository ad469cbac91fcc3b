// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
)

// graphFlags are the flags for the graphs of a table.
type graphFlags struct{ since time.Duration }

func (o *graphFlags) addFlags(c *cobra.Command) {
	c.Flags().DurationVar(&o.since, "since", 24*time.Hour, "The time range of the graphs.")
}

func (o *graphFlags) check() error {
	if o.since < time.Minute || o.since > 92*24*time.Hour {
		return exit.Hintf("use at least 1m and at most 2208h (92 days), for example 24h",
			"invalid value %s of --since", o.since)
	}
	return nil
}

const sloListLong = `Show the error budgets of operators: the remaining budget, the burn rate and the
firing alerts. Each operator has one line, with its worst objective. With --all,
each objective has one line. The remaining budget is that of the worst cluster, and
the burn rate is the highest of all clusters. At a burn rate of 1 the budget lasts
exactly for its period. The graph shows the remaining budget over time. Where an
AlertSilence excludes time from the budget, what would be left without that time
follows in parentheses.

All namespaces are shown. With -n, only the operators of that namespace are.

The data comes from Prometheus, from the series that the rules of the OperatorSLOs
record.`

func (a *app) newListCommand() *cobra.Command {
	var out command.Output
	var server command.PrometheusFlags
	var graph graphFlags
	var scope command.Scope
	var all bool
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "Show the error budgets of operators, the worst first",
		Long: sloListLong, Args: command.NoArgs,
		Example: "  bellwether slo list --prometheus http://localhost:9090\n  bellwether slo list --all --since 168h",
		RunE: func(c *cobra.Command, _ []string) error {
			namespace, err := scope.ReadNamespace(a.Env)
			if err := cmp.Or(err, out.Check(), graph.check()); err != nil {
				return err
			}
			report, err := a.ReadBudgets(c.Context(), &server, "", graph.since)
			if err != nil {
				return err
			}
			a.warnRetention(a.ReadRetention(c.Context(), &server), report.Objectives)
			shown := slices.DeleteFunc(report.Objectives, func(b budgets.Budget) bool {
				return namespace != "" && b.Namespace != namespace
			})
			if !all {
				shown = budgets.WorstByOperator(shown)
			}
			if !out.Table() {
				return out.Value(a.Streams.Out, shown)
			}
			a.Table(&out, BuildBudgetTable(shown, graph.since, out.Wide()))
			a.Say("%s", formatExcludedNote(shown))
			return nil
		},
	}
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML)
	server.Add(c)
	graph.addFlags(c)
	scope.Add(c)
	c.Flags().BoolVar(&all, "all", false, "Show all objectives instead of the worst one of each operator.")
	return c
}

// warnRetention prints a warning if Prometheus deletes samples that the budgets need.
func (a *app) warnRetention(retention time.Duration, objectives []budgets.Budget) {
	longest := time.Duration(0)
	for _, b := range objectives {
		if period, err := slo.ParsePeriod(b.Period); err == nil {
			longest = max(longest, period)
		}
	}
	if finding := slo.RetentionFinding(retention, longest); finding != "" {
		a.Warn("%s.\n", finding)
	}
}

// readObjectivesInput returns the budgets with the OperatorSLO from the hub. An error of the hub is not fatal,
// because the budgets come from Prometheus; it is in SLOErr.
func (a *app) readObjectivesInput(ctx context.Context, report *budgets.Report) explain.ObjectivesInput {
	objective := report.Objectives[0]
	in := explain.ObjectivesInput{Now: a.Now(), Program: a.Self, Budgets: command.ToExplainBudgets(report),
		Operator: v1alpha1.OperatorReference{Namespace: objective.Namespace, Name: objective.Operator}}
	h, err := a.Hub()
	if err != nil {
		in.SLOErr = err
		return in
	}
	in.SLO, in.SLOErr = findOperatorSLO(ctx, h, in.Operator)
	return in
}

// findOperatorSLO returns the OperatorSLO of an operator; nil if there is none.
func findOperatorSLO(ctx context.Context, h *hub.Client, operator v1alpha1.OperatorReference) (*v1alpha1.OperatorSLO,
	error) {
	list := &v1alpha1.OperatorSLOList{}
	if err := h.List(ctx, list, client.InNamespace(operator.Namespace)); err != nil {
		return nil, fmt.Errorf("list OperatorSLOs: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.Operator == operator.Name {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// printObjectivesWithoutBudgets prints the objectives that the hub has for an operator, after Prometheus could not be
// read, and returns failure. If the hub does not respond either or has no OperatorSLO, it prints nothing.
func (a *app) printObjectivesWithoutBudgets(ctx context.Context, out *command.Output, operator string,
	failure error) error {
	h, err := a.Hub()
	if err != nil {
		return failure
	}
	ctx, cancel := context.WithTimeout(ctx, command.Patience)
	defer cancel()
	o, err := h.Operator(ctx, operator)
	if err != nil {
		return failure
	}
	reference := v1alpha1.OperatorReference(client.ObjectKeyFromObject(o))
	in := explain.ObjectivesInput{Now: a.Now(), Program: a.Self, Operator: reference, BudgetsErr: failure}
	if in.SLO, in.SLOErr = findOperatorSLO(ctx, h, reference); in.SLO == nil && in.SLOErr == nil {
		return failure
	}
	err = a.PrintExplained(out, nil, explain.Objectives(in),
		func(s term.Style) string { return RenderKnownObjectives(in.SLO, s) })
	return errors.Join(err, failure)
}

const sloGetLong = `Show the error budgets of an operator: its objectives, and the clusters that have
used a part of their budget, the worst first. The graph shows the remaining budget
over time. AlertSilences that exclude time from the budgets are listed with their owner
and reason. The operator is named as NAME, or as NAMESPACE/NAME if operators of
several namespaces have that name.`

// defaultMaxClusters is the number of clusters that are shown without --all.
const defaultMaxClusters = 15

func (a *app) newGetCommand() *cobra.Command {
	var out command.Output
	var server command.PrometheusFlags
	var graph graphFlags
	var all bool
	c := &cobra.Command{
		Use: "get OPERATOR", Short: "Show the error budgets of an operator, by objective and by cluster",
		Long:    sloGetLong,
		Example: "  bellwether slo get echo --prometheus http://localhost:9090\n  bellwether slo get echo -o json",
		Args:    command.OneArg("the operator's name"), ValidArgsFunction: a.CompleteFirst(command.ListOperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := cmp.Or(out.Check(), graph.check()); err != nil {
				return err
			}
			report, err := a.ReadBudgets(c.Context(), &server, args[0], graph.since)
			if err != nil {
				return a.printObjectivesWithoutBudgets(c.Context(), &out, args[0], err)
			}
			a.warnRetention(a.ReadRetention(c.Context(), &server), report.Objectives)
			maxClusters := defaultMaxClusters
			if all {
				maxClusters = 0
			}
			e := explain.Objectives(a.readObjectivesInput(c.Context(), report))
			return a.PrintExplained(&out, nil, e, func(s term.Style) string {
				return RenderOperatorBudgets(report, graph.since, maxClusters, s)
			})
		},
	}
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML)
	server.Add(c)
	graph.addFlags(c)
	c.Flags().BoolVar(&all, "all", false, "Show all clusters that have used a part of their budget.")
	return c
}
