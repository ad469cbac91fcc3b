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
	"github.com/bellwether-dev/bellwether/rollouts/target"
)

const approveLong = `Approve a version of an operator that waits for an approval.

Where spec.updates of the ManagedOperator says Approval, a newer version of the channel waits
until a person approves it: operator list marks the operator with "update", and operator get
shows the version. To see what its rollout would do, run rollout plan OPERATOR --version VERSION.

The approval is stored in spec.updates.approved with your user name and the reason, instead of
the one before. It is for this version only. You need permission for the verb approve on
managedoperators (role bellwether-approve), and to change the ManagedOperator (role
bellwether-operate).`

func (a *app) approveCommand() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "approve OPERATOR VERSION", Short: "Approve a version that waits for an approval", Long: approveLong,
		Example: "  bellwether operator approve echo 1.3.0 --reason \"tested in staging\"",
		Args:    command.ExactArgs("the operator's name", "the version"),

		ValidArgsFunction: a.CompleteFirst(command.OperatorNames),
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

func (a *app) approve(ctx context.Context, name string, given v1alpha1.VersionApproval) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	o, err := h.Operator(ctx, name)
	if err != nil {
		return err
	}
	if err := checkApproval(o, given.Version); err != nil {
		return err
	}
	if err := a.Require(ctx, h, "approve versions of operator "+o.Name,
		command.ApproveRight(o.Namespace, o.Name)); err != nil {
		return err
	}
	if given.By, err = h.UserName(ctx); err != nil {
		return err
	}
	given.At = metav1.NewTime(a.Now())
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return fmt.Errorf("get operator: %w", err)
		}
		if err := checkApproval(o, given.Version); err != nil {
			return err
		}
		before := o.DeepCopy()
		if o.Spec.Updates == nil {
			o.Spec.Updates = &v1alpha1.VersionUpdates{}
		}
		o.Spec.Updates.Approved = &given
		return h.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
			hub.FieldOwner)
	})
	if err != nil {
		return fmt.Errorf("approve version %s of operator %s: %w", given.Version, o.Name, err)
	}
	a.Say("Operator %s: version %s is approved by %s.\n", o.Name, given.Version, given.By)
	if waits := o.Status.Available; waits != nil && waits.Version != given.Version {
		a.Say("Version %s still waits for an approval.\n", waits.Version)
	}
	return nil
}

// checkApproval refuses an approval that would have no effect.
func checkApproval(o *v1alpha1.ManagedOperator, version string) error {
	look := "see `bellwether operator get " + o.Name + "`"
	v, err := semver.Parse(version)
	waits := o.Status.Available
	switch {
	case err != nil:
		return exit.Hintf("give one version, such as 1.3.0", "%q is not a version", version)
	case waits == nil:
		return exit.Hintf(look, "no version of operator %s waits for an approval", o.Name)
	case catalogs.CompareVersions(version, waits.Version) > 0:
		return exit.Hintf(look, "version %s is higher than %s, the highest that waits for an approval", version,
			waits.Version)
	case o.Status.Target != nil && catalogs.CompareVersions(version, o.Status.Target.Version) <= 0:
		return exit.Hintf(look, "version %s is not higher than %s, which is the target", version,
			o.Status.Target.Version)
	case o.Spec.Version == "":
		return nil
	}
	r, err := catalogs.ParseRange(o.Spec.Version)
	if err == nil && !r.Contains(v) {
		err = exit.Hintf("change spec.version, or approve another version", "version %s is not in the range %s",
			version, o.Spec.Version)
	}
	return err
}

// availableText is the version that waits for an approval; empty where none does.
func availableText(o *v1alpha1.ManagedOperator, now time.Time) string {
	a := o.Status.Available
	if a == nil {
		return ""
	}
	return fmt.Sprintf("%s waits for an approval since %s: %s; approve it with `%s`", a.Version,
		term.Clock(now, &a.Since), a.Reason, target.ApproveCommand(o.Name, a.Version))
}
