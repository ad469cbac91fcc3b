// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
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
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// change changes a rollout's spec in memory and says what it did; it refuses
// what makes no sense.
type change func(r *v1alpha1.OperatorRollout) (done string, err error)

// findSteerable reads a rollout. It refuses one that has succeeded and admits nothing any more, since a newer one has
// begun.
func findSteerable(ctx context.Context, h *hub.Client, name string) (*v1alpha1.OperatorRollout, error) {
	r, err := h.Rollout(ctx, name)
	if err == nil && r.Status.Phase == v1alpha1.RolloutSucceeded {
		err = isNewest(ctx, h, r)
	}
	return r, err
}

// steer changes a rollout, again if someone else changed it in between. The verb is what the user has to be permitted
// on it beside that; empty for nothing. Confirm asks the user before a change that was found possible; nil for none. A
// change that would be none is said, and not asked about.
func (a *app) steer(ctx context.Context, h *hub.Client, name, verb string, do change,
	confirm func(*v1alpha1.OperatorRollout) error) error {
	r, err := findSteerable(ctx, h, name)
	if err != nil {
		return err
	}
	if confirm != nil {
		tried := r.DeepCopy()
		done, err := do(tried)
		if err != nil {
			return steerError(r, verb, err)
		}
		if equality.Semantic.DeepEqual(tried, r) {
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
		if done, err = do(r); err != nil {
			return err
		}
		return h.Patch(ctx, r, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return steerError(r, verb, err)
	}
	a.Say("%s\n", done)
	return nil
}

func steerError(r *v1alpha1.OperatorRollout, verb string, err error) error {
	if verb != "" {
		err = hub.Denied(err, verb, r.Namespace)
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return fmt.Errorf("change rollout %s: %w", r.Name, err)
	}
	return err
}

// steerCommand is a command that changes a rollout for a reason.
type steerCommand struct {
	use, short, long, example string
	// mustSay asks for a reason.
	mustSay bool
	// verb is what the user has to be permitted on the rollout beside changing it; empty for nothing.
	verb string
	// confirm asks the user before the change; nil for a change that can be taken back.
	confirm func(*v1alpha1.OperatorRollout) error
	do      func(ctx context.Context, h *hub.Client, reason string) (change, error)
}

func (a *app) steering(s steerCommand) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: s.use + " NAME", Short: s.short, Long: s.long, Example: s.example,
		Args:              command.OneArg("the name of a rollout or an operator"),
		ValidArgsFunction: a.CompleteFirst(command.RolloutNames),
		RunE: func(c *cobra.Command, args []string) error {
			if s.mustSay && reason == "" {
				return exit.Hintf("set --reason, which is stored in the rollout", "no reason given")
			}
			h, err := a.Hub()
			if err != nil {
				return err
			}
			do, err := s.do(c.Context(), h, reason)
			if err != nil {
				return err
			}
			return a.steer(c.Context(), h, args[0], s.verb, do, s.confirm)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "The reason, which is stored in the rollout.")
	return c
}

func (a *app) rolloutPauseCommand() *cobra.Command {
	return a.steering(steerCommand{
		use: "pause", short: "Stop admitting clusters to a rollout",
		example: "  bellwether rollout pause echo --reason \"incident 4711\"",
		do: func(_ context.Context, _ *hub.Client, reason string) (change, error) {
			return func(r *v1alpha1.OperatorRollout) (string, error) {
				if !r.MayAdmit() {
					return "", alreadyEnded(r)
				}
				r.Spec.Paused, r.Spec.PausedReason = true, reason
				return fmt.Sprintf("Rollout %s is paused. %s", r.Name, whatStops(r)), nil
			}, nil
		},
	})
}

func (a *app) rolloutResumeCommand() *cobra.Command {
	return a.steering(steerCommand{
		use: "resume", short: "Resume a paused rollout",
		example: "  bellwether rollout resume echo",
		do: func(context.Context, *hub.Client, string) (change, error) {
			return func(r *v1alpha1.OperatorRollout) (string, error) {
				if !r.MayAdmit() {
					return "", alreadyEnded(r)
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

func (a *app) rolloutAbortCommand() *cobra.Command {
	return a.steering(steerCommand{
		use: "abort", short: "End a rollout permanently", mustSay: true,
		example: "  bellwether rollout abort echo --reason \"1.1.0 loses data\"",
		long: "End a rollout permanently. No more clusters are admitted. Clusters that were\nadmitted finish the " +
			"upgrade. All other clusters keep their version.",
		do: func(_ context.Context, _ *hub.Client, reason string) (change, error) {
			return func(r *v1alpha1.OperatorRollout) (string, error) {
				if !r.MayAdmit() {
					return "", alreadyEnded(r)
				}
				r.Spec.Abort = &v1alpha1.RolloutAbort{Reason: reason}
				return fmt.Sprintf("Rollout %s is aborted. %s", r.Name, whatStops(r)), nil
			}, nil
		},
	})
}

// whatStops says what a rollout that is paused or aborted does not do any more. One that has succeeded has updated all
// of its clusters, and would only admit those that join later.
func whatStops(r *v1alpha1.OperatorRollout) string {
	if r.Status.Phase == v1alpha1.RolloutSucceeded {
		return "It has succeeded; clusters that join later, or were deferred, are not admitted."
	}
	return "Clusters that were admitted finish the upgrade."
}

// alreadyEnded says how a rollout ended. One that was just aborted may not say so
// in its status yet.
func alreadyEnded(r *v1alpha1.OperatorRollout) error {
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

func (a *app) rolloutRetryCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "retry NAME", Short: "Admit the failed clusters of a rollout again", Long: retryLong,
		Example:           "  bellwether rollout retry echo",
		Args:              command.OneArg("the name of a rollout or an operator"),
		ValidArgsFunction: a.CompleteFirst(command.RolloutNames),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.Hub()
			if err != nil {
				return err
			}
			return a.steer(c.Context(), h, args[0], "", retryFailed, nil)
		},
	}
	return c
}

func retryFailed(r *v1alpha1.OperatorRollout) (string, error) {
	switch {
	case !r.MayAdmit():
		return "", alreadyEnded(r)
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

func (a *app) rolloutRestartCommand() *cobra.Command {
	return &cobra.Command{
		Use: "restart OPERATOR", Short: "Start another rollout of the same release", Long: restartLong,
		Example:           "  bellwether rollout restart echo",
		Args:              command.OneArg("the operator's name"),
		ValidArgsFunction: a.CompleteFirst(command.OperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.Hub()
			if err != nil {
				return err
			}
			return a.restart(c.Context(), h, args[0])
		},
	}
}

func (a *app) restart(ctx context.Context, h *hub.Client, name string) error {
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

func (a *app) rolloutApproveCommand() *cobra.Command {
	var wanted rollouts.GateRef
	c := a.steering(steerCommand{
		use: "approve", short: "Approve a wave that waits for an approval", long: approveLong, mustSay: true,
		verb:    "approve",
		example: "  bellwether rollout approve echo --reason \"canary looks good\"",
		do: func(ctx context.Context, h *hub.Client, reason string) (change, error) {
			who, err := h.UserName(ctx)
			if err != nil {
				return nil, err
			}
			return func(r *v1alpha1.OperatorRollout) (string, error) {
				g, err := chooseGate(r, wanted)
				if err != nil {
					return "", err
				}
				if !approved(r, g) {
					r.Spec.Approvals = append(r.Spec.Approvals, v1alpha1.Approval{
						Wave: g.Wave, Gate: g.Gate, By: who, Reason: reason, At: metav1.NewTime(a.Now()),
					})
				}
				return fmt.Sprintf("Rollout %s: gate %s of wave %s is approved by %s.", r.Name, g.Gate, g.Wave, who),
					nil
			}, nil
		},
	})
	c.Flags().StringVar(&wanted.Wave, "wave", "", "The wave to approve.")
	c.Flags().StringVar(&wanted.Gate, "gate", "", "The gate to approve.")
	_ = c.RegisterFlagCompletionFunc("wave", a.completeWave)
	return c
}

func approved(r *v1alpha1.OperatorRollout, g rollouts.GateRef) bool {
	return slices.ContainsFunc(r.Spec.Approvals,
		func(p v1alpha1.Approval) bool { return p.Wave == g.Wave && p.Gate == g.Gate })
}

// approvalGates lists the approval gates of a rollout.
func approvalGates(r *v1alpha1.OperatorRollout) []rollouts.GateRef { return rollouts.GatesOf(r, true) }

// chooseGate returns the gate that the user means: one that is waited for now,
// or, if it was named, any that is still to come.
func chooseGate(r *v1alpha1.OperatorRollout, wanted rollouts.GateRef) (rollouts.GateRef, error) {
	awaited := rollouts.AwaitingApproval(r)
	if !r.IsRunning() && len(awaited) == 0 {
		return rollouts.GateRef{}, alreadyEnded(r)
	}
	candidates := openGates(r)
	if len(candidates) == 0 {
		candidates = awaited // of clusters that joined later, for which the rollout does not wait
	}
	if wanted != (rollouts.GateRef{}) {
		candidates = slices.DeleteFunc(approvalGates(r), func(g rollouts.GateRef) bool {
			return wanted.Wave != "" && g.Wave != wanted.Wave || wanted.Gate != "" && g.Gate != wanted.Gate
		})
	}
	switch {
	case len(candidates) == 1:
		return candidates[0], nil
	case len(candidates) > 1:
		return rollouts.GateRef{}, exit.Hintf(hub.Offer(flagsOf(candidates), ""), "several gates wait for an approval")
	case wanted != (rollouts.GateRef{}):
		return rollouts.GateRef{}, exit.Hintf(hub.Offer(flagsOf(approvalGates(r)), "the rollout has no approval gate"),
			"rollout %s has no approval gate with this name", r.Name)
	default:
		return rollouts.GateRef{}, exit.Hintf("to approve a later gate now, set --wave and --gate",
			"rollout %s does not wait for an approval", r.Name)
	}
}

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
	for _, g := range approvalGates(r) {
		out = append(out, g.Wave)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
