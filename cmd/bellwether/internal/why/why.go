// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why has the command that explains the state of an operator on a cluster.
package why

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
)

const whyLong = `Explain the state of an operator on a cluster. The output shows each step from the
ManagedOperator over rollout, gate and admission to the installation, which step
failed or is waiting, the cause, what to do, what happens next, and which data is
not current. -o json and -o yaml print the same as data (docs/reference/explain.md).

By default only the objects on the hub are read. With --cluster-kubeconfig the
command also reads the cluster: Subscription, InstallPlan, CSV, Deployment and pods.
With --prometheus, or $BELLWETHER_PROMETHEUS, it also reads the error budgets of the
operator on the cluster.`

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command why.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	var target hub.ClusterFlags
	var server command.PrometheusFlags
	var out command.Output
	c := &cobra.Command{
		Use: "why CLUSTER OPERATOR", Short: "Explain the state of an operator on a cluster and what to do",
		Long: whyLong,
		Example: "  bellwether why prod-2 echo\n  bellwether why prod-2 echo --cluster-kubeconfig " +
			"prod-2.kubeconfig",
		Args:              command.ExactArgs("the cluster's name", "the operator's name"),
		ValidArgsFunction: a.Complete(command.ListClusterNames, command.ListOperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			h, err := a.Hub()
			if err != nil {
				return err
			}
			a.WarnOfFreezes(c.Context(), h)
			in, err := a.readInput(c.Context(), h, args[0], args[1])
			if err != nil {
				return err
			}
			if target.IsSet() && in.Install != nil {
				in.Downstream = tryReadDownstream(c.Context(), &target, in.Install)
			}
			if a.HasPrometheus(&server) && in.Install != nil {
				in.Budgets, in.BudgetsErr = a.readBudgets(c.Context(), &server, &in)
			}
			return a.printExplanation(&out, in)
		},
	}
	target.Add(c)
	server.Add(c)
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML)
	return c
}

// printExplanation prints the explanation as text, with the marks of the cluster and the operator, or as data.
func (a *app) printExplanation(out *command.Output, in explain.InstallInput) error {
	e := explain.Install(in)
	if !out.Table() {
		return out.Value(a.Streams.Out, e)
	}
	style := a.StyleOf(out)
	if text := explain.MarkInstall(in.Cluster, in.Install).Details(); text != "" {
		a.Say("%s", style.Lines(term.Warn, "Marks: "+text))
	}
	a.Say("%s", term.RenderExplanation(in.Operator.Name+" on "+in.Cluster.Name, e, in.Now, style))
	return nil
}

// readInput reads the objects on the hub that affect the operator on the cluster. An install or a
// catalog that does not exist is nil.
func (a *app) readInput(ctx context.Context, h *hub.Client, cluster, operator string) (explain.InstallInput, error) {
	in := explain.InstallInput{Now: a.Now(), Program: a.Self}
	var err error
	if in.Cluster, err = h.Cluster(ctx, cluster); err != nil {
		return in, err
	}
	if in.Operator, err = h.Operator(ctx, operator); err != nil {
		return in, err
	}
	install := &v1alpha1.OperatorInstall{}
	name := v1alpha1.OperatorReference(client.ObjectKeyFromObject(in.Operator)).InstallName()
	err = h.Get(ctx, client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(cluster), Name: name}, install)
	switch {
	case err == nil:
		in.Install = install
	case !apierrors.IsNotFound(err):
		return in, fmt.Errorf("get install: %w", err)
	}
	catalog := &v1alpha1.OperatorCatalog{}
	err = h.Get(ctx, client.ObjectKey{Namespace: in.Operator.Namespace, Name: in.Operator.Spec.Catalog.Name}, catalog)
	switch {
	case err == nil:
		in.Catalog = catalog
	case !apierrors.IsNotFound(err):
		return in, fmt.Errorf("get catalog: %w", err)
	}
	list, err := h.ListRollouts(ctx, client.ObjectKeyFromObject(in.Operator))
	if err != nil {
		return in, err
	}
	in.Rollout = findRollout(in.Install, list)
	return in, nil
}

// readBudgets reads the error budgets of the operator on the cluster.
func (a *app) readBudgets(ctx context.Context, server *command.PrometheusFlags,
	in *explain.InstallInput) ([]explain.Budget, error) {
	report, err := a.ReadBudgets(ctx, server, client.ObjectKeyFromObject(in.Operator).String(), 0)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(command.ToExplainBudgets(report),
		func(b explain.Budget) bool { return b.Cluster != in.Cluster.Name }), nil
}

// findRollout returns the rollout of an install, or else the newest rollout; nil if there are none.
func findRollout(in *v1alpha1.OperatorInstall, newestFirst []v1alpha1.OperatorRollout) *v1alpha1.OperatorRollout {
	if in != nil {
		for i := range newestFirst {
			if newestFirst[i].Name == in.Labels[v1alpha1.LabelRollout] {
				return &newestFirst[i]
			}
		}
	}
	if len(newestFirst) == 0 {
		return nil
	}
	return &newestFirst[0]
}
