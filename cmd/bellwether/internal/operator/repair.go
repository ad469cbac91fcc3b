// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/freeze"
)

const repairLong = `Have OLM install an operator on a cluster again, where it has lost what came with it.

OLM makes the accounts, permissions and CustomResourceDefinitions of an operator when it
installs it, and not again when somebody deletes one. This command says what is lost, asks,
deletes the operator's ClusterServiceVersion on the cluster, and waits until the agent reports
that the operator runs again. Its pods start anew. Custom resources that still exist are kept;
those of a deleted definition are gone.

The agent has to report, and nothing may be frozen: it is the agent that has OLM install the
release again. You need the cluster's kubeconfig, of a user who may delete
ClusterServiceVersions in the operator's namespace.`

// repair is one run of the command.
type repair struct {
	target       hub.ClusterFlags
	confirmation command.Confirmation
	timeout      time.Duration
}

func (a *app) repairCommand() *cobra.Command {
	var r repair
	c := &cobra.Command{
		Use: "repair CLUSTER NAME", Short: "Have OLM install an operator again that has lost what came with it",
		Long:              repairLong,
		Example:           "  bellwether operator repair prod-2 echo --cluster-kubeconfig prod-2.kubeconfig",
		Args:              command.ExactArgs("the cluster's name", "the operator's name"),
		ValidArgsFunction: a.Complete(command.ClusterNames, command.OperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			return a.repair(c.Context(), &r, args[0], args[1])
		},
	}
	r.target.Add(c)
	r.confirmation.Add(c)
	command.Timeout(c, &r.timeout, 10*time.Minute, "How long to wait until the operator runs again.")
	command.Required(c, "cluster-kubeconfig")
	return c
}

func (a *app) repair(ctx context.Context, r *repair, cluster, operator string) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	install, err := a.lostInstall(ctx, h, cluster, operator)
	if err != nil {
		return err
	}
	on, err := r.target.Connect()
	if err != nil {
		return err
	}
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	csv.Namespace = install.Spec.Admission.Release.TargetNamespace()
	csv.Name = install.Spec.Admission.Release.Bundle
	if err := on.Get(ctx, client.ObjectKeyFromObject(csv), csv); err != nil {
		return fmt.Errorf("read ClusterServiceVersion %s on cluster %s: %w", csv.Name, cluster, err)
	}
	what, _ := explain.Lost(install)
	if err := a.Confirm(r.confirmation, fmt.Sprintf("%s.\nThis deletes it on cluster %s, and waits until the operator "+
		"runs again. Its pods start anew.\n", what, cluster)); err != nil {
		return err
	}
	if err := on.Delete(ctx, csv, client.Preconditions{UID: &csv.UID}); err != nil {
		return fmt.Errorf("delete ClusterServiceVersion %s on cluster %s: %w", csv.Name, cluster, err)
	}
	a.Step("ClusterServiceVersion %s is deleted; OLM installs it again", csv.Name)
	return a.awaitRepair(ctx, h, r, on, csv, install)
}

// lostInstall returns the install of an operator on a cluster, if it has lost something and can be repaired now.
func (a *app) lostInstall(ctx context.Context, h *hub.Client, cluster, operator string) (*v1alpha1.OperatorInstall,
	error) {
	c, err := h.Cluster(ctx, cluster)
	if err != nil {
		return nil, err
	}
	o, err := h.Operator(ctx, operator)
	if err != nil {
		return nil, err
	}
	install := &v1alpha1.OperatorInstall{}
	install.Namespace = v1alpha1.ClusterNamespace(cluster)
	install.Name = v1alpha1.OperatorReference(client.ObjectKeyFromObject(o)).InstallName()
	if err := h.Get(ctx, client.ObjectKeyFromObject(install), install); err != nil {
		return nil, fmt.Errorf("read operator %s on cluster %s: %w", o.Name, cluster, err)
	}
	if _, lost := explain.Lost(install); !lost {
		return nil, exit.Hintf(fmt.Sprintf("find out what is wrong with: %s why %s %s", a.Self, cluster, o.Name),
			"operator %s on cluster %s has lost nothing that it came with, as its agent reports it", o.Name, cluster)
	}
	if !conditions.IsTrue(c.Status.Conditions, v1alpha1.ConditionOnline) {
		return nil, exit.Hintf("bring the agent of the cluster back first", "cluster %s does not report, and its agent is "+
			"what has OLM install the operator again", cluster)
	}
	freezes, err := h.Freezes(ctx)
	if err != nil {
		return nil, fmt.Errorf("read FleetFreezes: %w", err)
	}
	if f := freeze.Of(freezes, cluster); f != nil {
		return nil, fmt.Errorf("cluster %s is frozen, so its agent would not have OLM install the operator again: %s",
			cluster, freeze.Message(f))
	}
	return install, nil
}

// awaitRepair waits until OLM has installed another ClusterServiceVersion than the deleted one, and the agent reports
// that the operator is Ready.
func (a *app) awaitRepair(ctx context.Context, h *hub.Client, r *repair, on client.Reader,
	deleted *operatorsv1alpha1.ClusterServiceVersion, install *v1alpha1.OperatorInstall) error {
	progress := a.Progress("waiting until operator " + install.Spec.Operator.Name + " runs again")
	err := hub.Poll(ctx, r.timeout, func() (bool, error) {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := on.Get(ctx, client.ObjectKeyFromObject(deleted), csv); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if err := h.Get(ctx, client.ObjectKeyFromObject(install), install); err != nil {
			return false, err
		}
		return csv.UID != deleted.UID && csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded &&
			conditions.IsTrue(install.Status.Conditions, v1alpha1.ConditionReady), nil
	})
	progress.Stop()
	if errors.Is(err, context.DeadlineExceeded) {
		ready := conditions.Get(install.Status.Conditions, v1alpha1.ConditionReady)
		return exit.Hintf(fmt.Sprintf("find out why with: %s why %s %s --cluster-kubeconfig FILE", a.Self,
			install.Spec.Cluster, install.Spec.Operator.Name),
			"the operator does not run again after %s: %s", r.timeout, phrase.OneLine(ready.Message))
	}
	if err != nil {
		return fmt.Errorf("wait until operator %s runs again: %w", install.Spec.Operator.Name, err)
	}
	a.Step("operator %s runs again on cluster %s", install.Spec.Operator.Name, install.Spec.Cluster)
	return nil
}
