// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// change changes the spec of a rollout in memory and returns what it did. It returns an error
// if the change is not possible.
type change func(r *v1alpha1.OperatorRollout) (done string, err error)

// readChangeableRollout reads a rollout. It returns an error if the rollout has succeeded and a newer rollout exists,
// because such a rollout does not admit clusters.
func readChangeableRollout(ctx context.Context, h *hub.Client, name string) (*v1alpha1.OperatorRollout, error) {
	r, err := h.Rollout(ctx, name)
	if err == nil && r.Status.Phase == v1alpha1.RolloutSucceeded {
		err = checkNewest(ctx, h, r)
	}
	return r, err
}

// changeRollout applies a change to a rollout, and repeats it after a conflict with another change. verb is the
// additional permission that the user needs on the rollout; empty for none. confirm asks the user before a possible
// change; nil for no question. If the change has no effect, its message is printed without a question.
func (a *app) changeRollout(ctx context.Context, h *hub.Client, name, verb string, apply change,
	confirm func(*v1alpha1.OperatorRollout) error) error {
	r, err := readChangeableRollout(ctx, h, name)
	if err != nil {
		return err
	}
	if confirm != nil {
		preview := r.DeepCopy()
		done, err := apply(preview)
		if err != nil {
			return wrapChangeError(r, verb, err)
		}
		if equality.Semantic.DeepEqual(preview, r) {
			a.Say("%s\n", done)
			return nil
		}
		if err := confirm(r); err != nil {
			return err
		}
	}
	var done string
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil {
			return fmt.Errorf("get rollout: %w", err)
		}
		before := r.DeepCopy()
		if done, err = apply(r); err != nil {
			return err
		}
		return h.Patch(ctx, r, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return wrapChangeError(r, verb, err)
	}
	a.Say("%s\n", done)
	return nil
}

// wrapChangeError adds to a denied request what the user can do about the missing permission verb, if verb is not
// empty. It adds the name of the rollout to an error that the change is forbidden or invalid.
func wrapChangeError(r *v1alpha1.OperatorRollout, verb string, err error) error {
	if verb != "" {
		err = hub.WrapDenied(err, verb, r.Namespace)
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return fmt.Errorf("change rollout %s: %w", r.Name, err)
	}
	return err
}

// changeCommand describes a command that changes a rollout and stores a reason.
type changeCommand struct {
	use, short, long, example string
	// needsReason makes the flag --reason required.
	needsReason bool
	// verb is the permission that the user needs in addition to the update of the rollout; empty for none.
	verb string
	// confirm asks the user before the change; nil for a change that can be undone.
	confirm func(*v1alpha1.OperatorRollout) error
	// newChange returns the change with the reason of the user.
	newChange func(ctx context.Context, h *hub.Client, reason string) (change, error)
}

// newChangeCommand returns the command that s describes. It applies the change to the rollout in the argument.
func (a *app) newChangeCommand(s changeCommand) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: s.use + " NAME", Short: s.short, Long: s.long, Example: s.example,
		Args:              command.OneArg("the name of a rollout or an operator"),
		ValidArgsFunction: a.CompleteFirst(command.ListRolloutNames),
		RunE: func(c *cobra.Command, args []string) error {
			if s.needsReason && reason == "" {
				return exit.Hintf("set --reason, which is stored in the rollout", "no reason given")
			}
			h, err := a.Hub()
			if err != nil {
				return err
			}
			apply, err := s.newChange(c.Context(), h, reason)
			if err != nil {
				return err
			}
			return a.changeRollout(c.Context(), h, args[0], s.verb, apply, s.confirm)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "The reason, which is stored in the rollout.")
	return c
}

func (a *app) newPauseCommand() *cobra.Command {
	return a.newChangeCommand(changeCommand{
		use: "pause", short: "Stop admitting clusters to a rollout",
		example: "  bellwether rollout pause echo --reason \"incident 4711\"",
		newChange: func(_ context.Context, _ *hub.Client, reason string) (change, error) {
			return func(r *v1alpha1.OperatorRollout) (string, error) {
				if !r.MayAdmit() {
					return "", newEndedError(r)
				}
				r.Spec.Paused, r.Spec.PausedReason = true, reason
				return fmt.Sprintf("Rollout %s is paused. %s", r.Name, describeStop(r)), nil
			}, nil
		},
	})
}

func (a *app) newResumeCommand() *cobra.Command {
	return a.newChangeCommand(changeCommand{
		use: "resume", short: "Resume a paused rollout",
		example: "  bellwether rollout resume echo",
		newChange: func(context.Context, *hub.Client, string) (change, error) {
			return func(r *v1alpha1.OperatorRollout) (string, error) {
				if !r.MayAdmit() {
					return "", newEndedError(r)
				}
				if !r.Spec.Paused {
					return fmt.Sprintf("Rollout %s is not paused.", r.Name), nil
				}
				r.Spec.Paused, r.Spec.PausedReason = false, ""
				return fmt.Sprintf("Rollout %s is resumed.", r.Name), nil
			}, nil
		},
	})
}

func (a *app) newAbortCommand() *cobra.Command {
	return a.newChangeCommand(changeCommand{
		use: "abort", short: "End a rollout permanently", needsReason: true,
		example: "  bellwether rollout abort echo --reason \"1.1.0 loses data\"",
		long: "End a rollout permanently. No more clusters are admitted. Clusters that were\nadmitted finish the " +
			"upgrade. All other clusters keep their version.",
		newChange: func(_ context.Context, _ *hub.Client, reason string) (change, error) {
			return func(r *v1alpha1.OperatorRollout) (string, error) {
				if !r.MayAdmit() {
					return "", newEndedError(r)
				}
				r.Spec.Abort = &v1alpha1.RolloutAbort{Reason: reason}
				return fmt.Sprintf("Rollout %s is aborted. %s", r.Name, describeStop(r)), nil
			}, nil
		},
	})
}

// describeStop returns the effect of a pause or an abort. A rollout that has succeeded has updated all of its
// clusters, and would only admit clusters that join later.
func describeStop(r *v1alpha1.OperatorRollout) string {
	if r.Status.Phase == v1alpha1.RolloutSucceeded {
		return "It has succeeded; clusters that join later, or were deferred, are not admitted."
	}
	return "Clusters that were admitted finish the upgrade."
}

// newEndedError returns the error for a rollout that has already ended. The status of a rollout that was just aborted
// might not have its last phase yet.
func newEndedError(r *v1alpha1.OperatorRollout) error {
	phase := r.Status.Phase
	if !phase.Ended() {
		phase = v1alpha1.RolloutAborted
	}
	return exit.Hintf("start another one with `rollout restart "+r.Spec.Operator.Name+
		"`, or change the ManagedOperator", "rollout %s has already ended (%s)", r.Name, phase)
}

const retryLong = `Admit the failed clusters of a rollout again, each with a new deadline. They are
admitted before the clusters that were not admitted yet. The command increases
spec.retries of the OperatorRollout. A wave whose gate failed soaks and is judged
again.

A rollout that was aborted or superseded cannot be retried. Use rollout restart to
start another one.`

func (a *app) newRetryCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "retry NAME", Short: "Admit the failed clusters of a rollout again", Long: retryLong,
		Example:           "  bellwether rollout retry echo",
		Args:              command.OneArg("the name of a rollout or an operator"),
		ValidArgsFunction: a.CompleteFirst(command.ListRolloutNames),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.Hub()
			if err != nil {
				return err
			}
			return a.changeRollout(c.Context(), h, args[0], "", retryFailedClusters, nil)
		},
	}
	return c
}

// retryFailedClusters increases the retries in the spec of r, and returns the message for the user. It returns
// an error if no cluster and no gate has failed, or if the rollout does not admit clusters.
func retryFailedClusters(r *v1alpha1.OperatorRollout) (string, error) {
	switch {
	case !r.MayAdmit():
		return "", newEndedError(r)
	case len(rollouts.FailedGates(r)) > 0 && r.Status.Clusters.Failed == 0:
		r.Spec.Retries++
		return fmt.Sprintf("Rollout %s: the wave whose gate failed soaks and is judged again.", r.Name), nil
	case r.Status.Clusters.Failed == 0:
		return "", exit.Hintf("to see its clusters, run `bellwether rollout get "+r.Name+"`",
			"no cluster of rollout %s has failed", r.Name)
	}
	r.Spec.Retries++
	return fmt.Sprintf("Rollout %s: %s that failed will be admitted again.", r.Name,
		phrase.Count(r.Status.Clusters.Failed, "cluster")), nil
}

const restartLong = `Start another rollout of the release of the operator, with its current strategy. A
rollout that is in progress is superseded. Clusters that already run the release
count as updated. The command sets spec.restart of the ManagedOperator.`

func (a *app) newRestartCommand() *cobra.Command {
	return &cobra.Command{
		Use: "restart OPERATOR", Short: "Start another rollout of the same release", Long: restartLong,
		Example:           "  bellwether rollout restart echo",
		Args:              command.OneArg("the operator's name"),
		ValidArgsFunction: a.CompleteFirst(command.ListOperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.Hub()
			if err != nil {
				return err
			}
			return a.restartRollout(c.Context(), h, args[0])
		},
	}
}

// restartRollout starts another rollout of the current release of an operator.
func (a *app) restartRollout(ctx context.Context, h *hub.Client, name string) error {
	o, err := h.Operator(ctx, name)
	if err != nil {
		return err
	}
	if o.Spec.Paused {
		return exit.Hintf("set spec.paused of the ManagedOperator to false first",
			"operator %s is paused, so no rollout can start", o.Name)
	}
	before := o.DeepCopy()
	o.Spec.Restart = a.Now().UTC().Format(time.RFC3339)
	if err := h.Patch(ctx, o, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("change operator %s: %w", o.Name, err)
	}
	a.Say("Operator %s: another rollout starts. To watch it, run `bellwether rollout get %s -w`.\n", o.Name, o.Name)
	return nil
}

const approveLong = `Approve a wave that waits for an approval. The approval is stored in the rollout
with your user name and the reason. You need permission for the verb approve on
operatorrollouts (role bellwether-approve).

If only one gate waits for an approval, --wave and --gate are not needed.`

func (a *app) newApproveCommand() *cobra.Command {
	var wanted rollouts.GateRef
	c := a.newChangeCommand(changeCommand{
		use: "approve", short: "Approve a wave that waits for an approval", long: approveLong, needsReason: true,
		verb:    "approve",
		example: "  bellwether rollout approve echo --reason \"canary looks good\"",
		newChange: func(ctx context.Context, h *hub.Client, reason string) (change, error) {
			user, err := h.UserName(ctx)
			if err != nil {
				return nil, err
			}
			return func(r *v1alpha1.OperatorRollout) (string, error) {
				g, err := chooseApprovalGate(r, wanted)
				if err != nil {
					return "", err
				}
				rollouts.Approve(r, v1alpha1.Approval{Wave: g.Wave, Gate: g.Gate, By: user, Reason: reason,
					At: metav1.NewTime(a.Now())})
				return fmt.Sprintf("Rollout %s: gate %s of wave %s is approved by %s.", r.Name, g.Gate, g.Wave, user),
					nil
			}, nil
		},
	})
	c.Flags().StringVar(&wanted.Wave, "wave", "", "The wave to approve.")
	c.Flags().StringVar(&wanted.Gate, "gate", "", "The gate to approve.")
	_ = c.RegisterFlagCompletionFunc("wave", a.completeWave)
	return c
}

// listApprovalGates returns the approval gates of a rollout.
func listApprovalGates(r *v1alpha1.OperatorRollout) []rollouts.GateRef {
	return rollouts.GatesOf(r, true)
}

// chooseApprovalGate returns the gate to approve. It returns an error unless rollouts.ListApprovable has exactly one.
func chooseApprovalGate(r *v1alpha1.OperatorRollout, wanted rollouts.GateRef) (rollouts.GateRef, error) {
	candidates, hasEnded := rollouts.ListApprovable(r, wanted)
	switch {
	case hasEnded:
		return rollouts.GateRef{}, newEndedError(r)
	case len(candidates) == 1:
		return candidates[0], nil
	case len(candidates) > 1:
		return rollouts.GateRef{}, exit.Hintf(hub.FormatAvailable(formatGateFlags(candidates), ""),
			"several gates wait for an approval")
	case wanted != (rollouts.GateRef{}):
		return rollouts.GateRef{}, exit.Hintf(
			hub.FormatAvailable(formatGateFlags(listApprovalGates(r)), "the rollout has no approval gate"),
			"rollout %s has no approval gate with this name", r.Name)
	default:
		return rollouts.GateRef{}, exit.Hintf("to approve a later gate now, set --wave and --gate",
			"rollout %s does not wait for an approval", r.Name)
	}
}

// completeWave completes the names of the waves that have an approval gate.
func (a *app) completeWave(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	h, err := a.Hub()
	if err != nil || len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), command.CompletionTimeout)
	defer cancel()
	r, err := h.Rollout(ctx, args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, g := range listApprovalGates(r) {
		out = append(out, g.Wave)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
