// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/rollouts"
)

const rollbackLong = `End the newest rollout of an operator, and take every cluster that it admitted back to
the release that the cluster ran before. Clusters that were not admitted keep their
version. The version is held: no cluster is brought to it again until you release it
with operator release-hold, or until a newer version was rolled out. If the rollout
changed settings and not the version, these settings are held at that version.

OLM installs the older version in the place of the newer one. The Deployments of the
operator and its custom resources stay. A cluster where data of custom resources would
be lost is not taken back, unless you set --force. For a rollback that was refused for
that reason, run the command again with --force. As lost data does not come back, the
command then asks for a confirmation; without a terminal it needs --yes.`

func (a *app) newRollbackCommand() *cobra.Command {
	var force bool
	var confirmation command.Confirmation
	c := a.newChangeCommand(changeCommand{
		use: "rollback", short: "Take the clusters of a rollout back to what they ran before", long: rollbackLong,
		needsReason: true,
		confirm: func(r *v1alpha1.OperatorRollout) error {
			if !force {
				return nil
			}
			return a.Confirm(confirmation, describeForceLoss(r))
		},
		example: "  bellwether rollout rollback echo --reason \"1.2.0 answers with errors\"",
		newChange: func(ctx context.Context, h *hub.Client, reason string) (change, error) {
			return func(r *v1alpha1.OperatorRollout) (string, error) {
				if err := checkNewest(ctx, h, r); err != nil {
					return "", err
				}
				if r.Spec.Rollback != nil {
					return forceRollback(r, force)
				}
				installs, err := hub.ListInstalls(ctx, h, client.ObjectKey{Namespace: r.Namespace,
					Name: r.Spec.Operator.Name})
				if err != nil {
					return "", err
				}
				return requestRollback(r, installs, v1alpha1.RolloutAbort{Reason: reason,
					Rollback: &v1alpha1.RollbackRequest{Force: force}})
			}, nil
		},
	})
	confirmation.Add(c)
	c.Flags().BoolVar(&force, "force", false,
		"Go back also where data of custom resources may be lost, for which there is no backup.")
	return c
}

// describeForceLoss returns the warning about the data that a rollback with --force may lose.
func describeForceLoss(r *v1alpha1.OperatorRollout) string {
	return fmt.Sprintf("Clusters of rollout %s are taken back from %s although data of custom resources may be lost "+
		"there, for which there is no backup. This cannot be taken back.\n", r.Name, readReleaseVersion(r))
}

// readReleaseVersion returns the version of a rollout. For a rollback, it returns the version that is rolled back.
func readReleaseVersion(r *v1alpha1.OperatorRollout) string {
	if r.Spec.Rollback != nil {
		return r.Spec.Rollback.Version
	}
	return r.Spec.Release.VersionText()
}

// checkNewest returns an error if the operator has a newer rollout than r.
func checkNewest(ctx context.Context, h *hub.Client, r *v1alpha1.OperatorRollout) error {
	scoped := *h
	scoped.Namespace = r.Namespace
	list, err := scoped.ListRollouts(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Spec.Operator.Name})
	if err != nil {
		return err
	}
	if len(list) > 0 && list[0].Name != r.Name {
		return exit.Hintf("the newest one is "+list[0].Name,
			"rollout %s is not the newest one of %s", r.Name, r.Spec.Operator.Name)
	}
	return nil
}

// requestRollback sets the abort with the rollback in the spec of r, and returns the message for the user. It returns
// an error if no cluster has an earlier release to which it can return.
func requestRollback(r *v1alpha1.OperatorRollout, installs []v1alpha1.OperatorInstall,
	abort v1alpha1.RolloutAbort) (string, error) {
	if r.Status.Phase == v1alpha1.RolloutRolledBack {
		return fmt.Sprintf("Rollout %s is rolled back already.", r.Name), nil
	}
	if r.Spec.Release.AsInstalled {
		return "", exit.Hintf("to put back what was there before, run `operator adopt --undo "+r.Spec.Operator.Name+
			"`; to stop, run `rollout abort "+r.Name+"`",
			"rollout %s takes over what is installed, and has changed no version", r.Name)
	}
	if !slices.ContainsFunc(installs, func(i v1alpha1.OperatorInstall) bool {
		admission := i.Spec.Admission
		return admission != nil && admission.RolloutUID == string(r.UID) && admission.Previous != nil
	}) {
		return "", exit.Hintf("to end it, run `rollout abort "+r.Name+"`",
			"rollout %s has changed no cluster that ran another release before", r.Name)
	}
	r.Spec.Abort = &abort
	return fmt.Sprintf("Rollout %s is rolled back, and %s. To watch it, run `bellwether rollout get %s -w`.",
		r.Name, predictHold(r, installs), r.Spec.Operator.Name), nil
}

// predictHold returns the hold that the hub will create when the rollout is rolled back.
func predictHold(r *v1alpha1.OperatorRollout, installs []v1alpha1.OperatorInstall) v1alpha1.VersionHold {
	var observed []rollouts.Install
	for i := range installs {
		observed = append(observed, rollouts.ObserveInstall(&installs[i]))
	}
	back, _ := rollouts.NewRollback(r, observed)
	return rollouts.NewHold(r, back.Release)
}

// forceRollback changes the spec of a rollback so that its failed clusters are tried again, and data may be lost
// there. It returns an error if force is not set or no cluster has failed.
func forceRollback(r *v1alpha1.OperatorRollout, force bool) (string, error) {
	switch {
	case !force:
		return "", exit.Hintf("set another version in the ManagedOperator; or add --force, to go back although data "+
			"may be lost", "rollout %s is a rollback itself, of %s", r.Name, r.Spec.Rollback.Of)
	case r.Status.Clusters.Failed == 0:
		return "", exit.Hintf("to see its clusters, run `rollout get "+r.Name+"`",
			"no cluster of rollback %s has failed", r.Name)
	}
	r.Spec.Rollback.Force = true
	r.Spec.Retries++
	return fmt.Sprintf("Rollback %s: clusters that failed are taken back although data may be lost.", r.Name), nil
}
