// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

const repairLong = `Have OLM install an operator on a cluster again, where it has lost what came with it.

OLM makes the accounts, permissions and CustomResourceDefinitions of an operator when it
installs it, and not again when somebody deletes one. This command says what is lost, asks,
deletes the operator's ClusterServiceVersion on the cluster, and waits until the agent reports
that the operator is Ready. Its pods start anew. Custom resources that still exist are kept;
those of a deleted definition are gone.

The agent must report, and the cluster must not be frozen: the agent approves what OLM
installs. You need the cluster's kubeconfig, of a user who may delete
ClusterServiceVersions in the operator's namespace.`

// repairOptions are the flags of operator repair.
type repairOptions struct {
	target       hub.ClusterFlags
	confirmation command.Confirmation
	timeout      time.Duration
}

func (a *app) newRepairCommand() *cobra.Command {
	var o repairOptions
	c := &cobra.Command{
		Use: "repair CLUSTER NAME", Short: "Have OLM install an operator again that has lost what came with it",
		Long:              repairLong,
		Example:           "  bellwether operator repair prod-2 echo --cluster-kubeconfig prod-2.kubeconfig",
		Args:              command.ExactArgs("the cluster's name", "the operator's name"),
		ValidArgsFunction: a.Complete(command.ListClusterNames, command.ListOperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			return a.repair(c.Context(), &o, args[0], args[1])
		},
	}
	o.target.Add(c)
	o.confirmation.Add(c)
	command.AddTimeout(c, &o.timeout, 10*time.Minute, "How long to wait until the operator is Ready.")
	command.RequireFlags(c, "cluster-kubeconfig")
	return c
}

// repair deletes the ClusterServiceVersion of an operator that has lost objects on a cluster, and waits until OLM has
// installed the operator again.
func (a *app) repair(ctx context.Context, o *repairOptions, cluster, operator string) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	install, err := a.readRepairableInstall(ctx, h, cluster, operator)
	if err != nil {
		return err
	}
	downstream, err := a.ConnectCluster(&o.target)
	if err != nil {
		return err
	}
	csv, err := readIncompleteCSV(ctx, downstream, install)
	if err != nil {
		return err
	}
	lost, _ := explain.DescribeLostObjects(install)
	if err := a.Confirm(o.confirmation, fmt.Sprintf("%s.\nThis deletes ClusterServiceVersion %s in namespace %s of "+
		"cluster %s, and OLM installs the operator again.\nIts pods start anew, and custom resources that still exist "+
		"are kept.\n", lost, csv.Name, csv.Namespace, cluster)); err != nil {
		return err
	}
	if err := downstream.Delete(ctx, csv, client.Preconditions{UID: &csv.UID}); err != nil {
		return fmt.Errorf("delete ClusterServiceVersion %s/%s on cluster %s: %w", csv.Namespace, csv.Name, cluster, err)
	}
	a.Step("deleted ClusterServiceVersion %s/%s; OLM installs the operator again", csv.Namespace, csv.Name)
	return a.waitForRepair(ctx, h, o, downstream, csv, install)
}

// readCSV reads a ClusterServiceVersion on its cluster.
func readCSV(ctx context.Context, downstream client.Reader, key client.ObjectKey,
	cluster string) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := downstream.Get(ctx, key, csv); err != nil {
		return nil, fmt.Errorf("read ClusterServiceVersion %s on cluster %s: %w", key, cluster, err)
	}
	return csv, nil
}

// readIncompleteCSV reads the ClusterServiceVersion of an install on its cluster. It returns an error unless its
// phase is Pending or one of its CustomResourceDefinitions is missing: otherwise the kubeconfig is of another
// cluster, or the operator is already repaired.
func readIncompleteCSV(ctx context.Context, downstream client.Reader,
	install *v1alpha1.OperatorInstall) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	cluster, release := install.Spec.Cluster, install.Spec.Admission.Release
	key := client.ObjectKey{Namespace: release.TargetNamespace(), Name: release.Bundle}
	hint := fmt.Sprintf("check that --cluster-kubeconfig is the one of cluster %s; if it is, the operator was "+
		"installed again already, or OLM is about to do so", cluster)
	csv, err := readCSV(ctx, downstream, key, cluster)
	if apierrors.IsNotFound(err) {
		return nil, exit.Hintf(hint, "there is no ClusterServiceVersion %s on that cluster; nothing was deleted", key)
	} else if err != nil {
		return nil, err
	}
	if csv.Status.Phase == operatorsv1alpha1.CSVPhasePending {
		return csv, nil
	}
	for _, definition := range csv.Spec.CustomResourceDefinitions.Owned {
		crd := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1",
			Kind: "CustomResourceDefinition"}}
		err := downstream.Get(ctx, client.ObjectKey{Name: definition.Name}, crd)
		switch {
		case apierrors.IsNotFound(err):
			return csv, nil
		case err != nil:
			return nil, fmt.Errorf("read CustomResourceDefinition %s on cluster %s: %w", definition.Name, cluster, err)
		}
	}
	phase := "has the phase " + string(csv.Status.Phase)
	if csv.Status.Phase == "" {
		phase = "has no phase yet"
	}
	return nil, exit.Hintf(hint, "nothing was deleted, because nothing is lost on that cluster: "+
		"ClusterServiceVersion %s %s, and its CustomResourceDefinitions exist", key, phase)
}

// readRepairableInstall returns the install of an operator on a cluster. It returns an error if the agent reports no
// loss, or if the cluster is offline or frozen, because the agent must approve the InstallPlan.
func (a *app) readRepairableInstall(ctx context.Context, h *hub.Client,
	cluster, operator string) (*v1alpha1.OperatorInstall, error) {
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
	if _, lost := explain.DescribeLostObjects(install); !lost {
		return nil, exit.Hintf(fmt.Sprintf("find out what is wrong with: %s why %s %s", a.Self, cluster, o.Name),
			"nothing that came with operator %s is reported as lost on cluster %s", o.Name, cluster)
	}
	if !conditions.IsTrue(c.Status.Conditions, v1alpha1.ConditionOnline) {
		return nil, exit.Hintf(fmt.Sprintf("find out why with: %s why %s", a.Self, cluster), "the agent of cluster %s "+
			"does not report, and it must approve what OLM installs", cluster)
	}
	freezes, err := h.ListFreezes(ctx)
	if err != nil {
		return nil, fmt.Errorf("read FleetFreezes: %w", err)
	}
	if f := holds.FreezeOf(freezes, cluster); f != nil {
		return nil, fmt.Errorf("cluster %s is frozen, so its agent does not approve what OLM installs: %s", cluster,
			holds.FreezeMessage(f))
	}
	return install, nil
}

// waitForRepair waits until OLM has created a new ClusterServiceVersion, and the agent reports that the operator is
// Ready. It retries failed reads until the timeout.
func (a *app) waitForRepair(ctx context.Context, h *hub.Client, o *repairOptions, downstream client.Reader,
	deleted *operatorsv1alpha1.ClusterServiceVersion, install *v1alpha1.OperatorInstall) error {
	progress := a.Progress("waiting until operator " + install.Spec.Operator.Name + " is Ready")
	var readErr error
	err := hub.Poll(ctx, o.timeout, func() (bool, error) {
		repaired, err := isRepaired(ctx, h, downstream, deleted, install)
		readErr = err
		return repaired, nil
	})
	progress.Stop()
	if errors.Is(err, context.DeadlineExceeded) {
		reason := cmp.Or(phrase.OneLine(conditions.Get(install.Status.Conditions, v1alpha1.ConditionReady).Message),
			"the agent has reported nothing")
		if readErr != nil {
			reason = phrase.OneLine(readErr.Error())
		}
		return exit.Hintf(fmt.Sprintf("find out why with: %s why %s %s --cluster-kubeconfig FILE", a.Self,
			install.Spec.Cluster, install.Spec.Operator.Name), "operator %s on cluster %s is not Ready %s after "+
			"ClusterServiceVersion %s was deleted: %s", install.Spec.Operator.Name, install.Spec.Cluster,
			term.Span(o.timeout), deleted.Name, reason)
	}
	if err != nil {
		return fmt.Errorf("wait until operator %s on cluster %s is Ready: %w", install.Spec.Operator.Name,
			install.Spec.Cluster, err)
	}
	a.Step("operator %s is Ready on cluster %s", install.Spec.Operator.Name, install.Spec.Cluster)
	return nil
}

// isRepaired reports whether a ClusterServiceVersion other than the deleted one has succeeded and the operator is
// Ready. It reads the current state into install.
func isRepaired(ctx context.Context, h *hub.Client, downstream client.Reader,
	deleted *operatorsv1alpha1.ClusterServiceVersion, install *v1alpha1.OperatorInstall) (bool, error) {
	csv, err := readCSV(ctx, downstream, client.ObjectKeyFromObject(deleted), install.Spec.Cluster)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if err := h.Get(ctx, client.ObjectKeyFromObject(install), install); err != nil {
		return false, fmt.Errorf("read OperatorInstall %s/%s: %w", install.Namespace, install.Name, err)
	}
	return csv.UID != deleted.UID && csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded &&
		conditions.IsTrue(install.Status.Conditions, v1alpha1.ConditionReady), nil
}
