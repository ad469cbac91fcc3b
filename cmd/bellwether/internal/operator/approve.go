// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/blang/semver/v4"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

const approveLong = `Approve a version of an operator that waits for an approval.

Where spec.updates of the ManagedOperator says Approval, a newer version of the channel waits
until a person approves it: operator list marks the operator with "update", and operator get
shows the version. To see what its rollout would do, run rollout plan OPERATOR --version VERSION.

The approval is stored in spec.updates.approved with your user name and the reason, instead of
the one before. It is for this version only. You need permission for the verb approve on
managedoperators (role bellwether-approve), and to change the ManagedOperator (role
bellwether-operate).`

func (a *app) newApproveCommand() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "approve OPERATOR VERSION", Short: "Approve a version that waits for an approval", Long: approveLong,
		Example: "  bellwether operator approve echo 1.3.0 --reason \"tested in staging\"",
		Args:    command.ExactArgs("the operator's name", "the version"),

		ValidArgsFunction: a.CompleteFirst(command.ListOperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			if reason == "" {
				return exit.Hintf("set --reason, which is stored in the ManagedOperator", "no reason given")
			}
			return a.approve(c.Context(), args[0], v1alpha1.VersionApproval{Version: args[1], Reason: reason})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "The reason, which is stored in the ManagedOperator. Required.")
	return c
}

// approve stores an approval in spec.updates.approved of the operator, with the user's name and the time.
func (a *app) approve(ctx context.Context, name string, approval v1alpha1.VersionApproval) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	o, err := h.Operator(ctx, name)
	if err != nil {
		return err
	}
	if err := checkApproval(o, approval.Version); err != nil {
		return err
	}
	if err := a.Require(ctx, h, "approve versions of operator "+o.Name,
		command.NewApprovePermission(o.Namespace, o.Name)); err != nil {
		return err
	}
	if approval.By, err = h.UserName(ctx); err != nil {
		return err
	}
	approval.At = metav1.NewTime(a.Now())
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return fmt.Errorf("get operator: %w", err)
		}
		// The operator might have changed since the first check.
		if err := checkApproval(o, approval.Version); err != nil {
			return err
		}
		before := o.DeepCopy()
		if o.Spec.Updates == nil {
			o.Spec.Updates = &v1alpha1.VersionUpdates{}
		}
		o.Spec.Updates.Approved = &approval
		return h.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
			hub.FieldOwner)
	})
	if err != nil {
		return fmt.Errorf("approve version %s of operator %s: %w", approval.Version, o.Name, err)
	}
	a.Say("Operator %s: version %s is approved by %s.\n", o.Name, approval.Version, approval.By)
	if available := o.Status.Available; available != nil && available.Version != approval.Version {
		a.Say("Version %s still waits for an approval.\n", available.Version)
	}
	return nil
}

// checkApproval returns an error if the approval of a version would have no effect: the version must be higher than
// the target, at most the highest version that waits, and in the range of spec.version.
func checkApproval(o *v1alpha1.ManagedOperator, version string) error {
	hint := "see `bellwether operator get " + o.Name + "`"
	parsed, err := semver.Parse(version)
	available := o.Status.Available
	switch {
	case err != nil:
		return exit.Hintf("give one version, such as 1.3.0", "%q is not a version", version)
	case available == nil:
		return exit.Hintf(hint, "no version of operator %s waits for an approval", o.Name)
	case catalogs.CompareVersions(version, available.Version) > 0:
		return exit.Hintf(hint, "version %s is higher than %s, the highest that waits for an approval", version,
			available.Version)
	case o.Status.Target != nil && catalogs.CompareVersions(version, o.Status.Target.Version) <= 0:
		return exit.Hintf(hint, "version %s is not higher than %s, which is the target", version,
			o.Status.Target.Version)
	case o.Spec.Version == "": // the operator follows the channel, so there is no range
		return nil
	}
	versions, err := catalogs.ParseRange(o.Spec.Version)
	if err == nil && !versions.Contains(parsed) {
		err = exit.Hintf("change spec.version, or approve another version", "version %s is not in the range %s",
			version, o.Spec.Version)
	}
	return err
}

// describeAvailable returns the version that waits for an approval, and the
// command that approves it; empty if no version waits.
func describeAvailable(o *v1alpha1.ManagedOperator, now time.Time) string {
	a := o.Status.Available
	if a == nil {
		return ""
	}
	return fmt.Sprintf("%s waits for an approval since %s: %s; approve it with `%s`", a.Version,
		term.Clock(now, &a.Since), a.Reason, operators.ApproveCommand(o.Name, a.Version))
}
