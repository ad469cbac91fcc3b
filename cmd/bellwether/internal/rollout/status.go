// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/rollouts"
)

const rolloutStatusLong = `Print the status of a rollout. With --wait, wait until the rollout has ended or
needs an approval or a decision.

If NAME is an operator, the rollout of its current spec is meant. With --wait the
command waits until this rollout exists.

Exit codes:
  0  the rollout has succeeded
  1  an error, for example an unknown rollout or no connection to the hub
  2  the rollout has failed or is halted, or the operator cannot be rolled out
  3  the rollout was aborted or superseded
  4  the rollout is not finished, or --timeout has passed
  5  the rollout needs an approval, or an override because no cluster was observed`

// statusOptions are the flags of rollout status.
type statusOptions struct {
	wait    bool
	timeout time.Duration
	version string
}

func (a *app) rolloutStatusCommand() *cobra.Command {
	var o statusOptions
	c := &cobra.Command{
		Use: "status NAME", Short: "Print the status of a rollout, for scripts", Long: rolloutStatusLong,
		Example: "  bellwether rollout status echo --wait --timeout 30m\n  bellwether rollout status echo --version " +
			"1.1.0 --wait",
		Args:              command.OneArg("the name of a rollout or an operator"),
		ValidArgsFunction: a.CompleteFirst(command.RolloutNames),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.Hub()
			if err != nil {
				return err
			}
			return a.rolloutStatus(c.Context(), h, args[0], o)
		},
	}
	c.Flags().BoolVar(&o.wait, "wait", false, "Wait until the rollout has ended or needs an approval or a decision.")
	command.Timeout(c, &o.timeout, 0, "The timeout of the wait, for example 30m. 0 means no timeout.")
	c.Flags().StringVar(&o.version, "version", "", "If NAME is an operator: the version of the rollout to wait for.")
	return c
}

const statusPoll = time.Second

func (a *app) rolloutStatus(ctx context.Context, h *hub.Client, name string, o statusOptions) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	tick := time.NewTicker(statusPoll)
	defer tick.Stop()
	var before RolloutInput
	for first := true; ; first = false {
		s, err := lookAtRollout(ctx, h, name, o.version)
		switch {
		case err != nil && first:
			return err
		case err == nil && s.rollout != nil:
			before = a.printChanges(before, s.rollout)
		}
		if err == nil && (s.done || !o.wait) {
			return s.exit()
		}
		select {
		case <-ctx.Done():
			return timedOut(ctx, name, err)
		case <-tick.C:
		}
	}
}

// timedOut says how a wait ended early. lastErr is what the last look at the
// hub came to; while waiting, the hub may be away for a moment.
func timedOut(ctx context.Context, name string, lastErr error) error {
	if context.Cause(ctx) == context.Canceled { //nolint:errorlint // Cause returns the sentinel itself
		return context.Canceled
	}
	text := fmt.Sprintf("rollout %s has not ended within the timeout", name)
	if lastErr != nil {
		text += fmt.Sprintf("; last error of the hub: %v", lastErr)
	}
	return &exit.CodeError{Code: exit.Timeout, Text: text}
}

func (a *app) printChanges(before RolloutInput, r *v1alpha1.OperatorRollout) RolloutInput {
	after := RolloutInput{Now: a.Now(), Rollout: r}
	for _, line := range RolloutChanges(before, after) {
		a.Say("%s  %s\n", term.TimeOfDay(after.Now), line)
	}
	return after
}

// standing is where a rollout stands.
type standing struct {
	rollout *v1alpha1.OperatorRollout
	// done says that waiting longer is no use.
	done bool
	code int
	text string
}

func (s standing) exit() error {
	if s.code == exit.OK {
		return nil
	}
	return &exit.CodeError{Code: s.code, Text: s.text}
}

// lookAtRollout judges the rollout of that name, or the rollout of what the
// operator of that name asks for now.
func lookAtRollout(ctx context.Context, h *hub.Client, name, version string) (standing, error) {
	r := &v1alpha1.OperatorRollout{}
	err := h.Get(ctx, h.Key(name), r)
	switch {
	case err == nil:
		return judge(r), nil
	case !apierrors.IsNotFound(err):
		return standing{}, fmt.Errorf("get rollout: %w", err)
	}
	o, err := h.Operator(ctx, name)
	if err != nil {
		return standing{}, err
	}
	waiting := standing{code: exit.Timeout, text: fmt.Sprintf("the rollout of operator %s has not started", name)}
	if o.Status.ObservedGeneration < o.Generation {
		return waiting, nil
	}
	newest, err := h.RolloutsOf(ctx, client.ObjectKeyFromObject(o))
	if err != nil {
		return standing{}, err
	}
	behind := len(newest) == 0 || o.Status.Target == nil || newest[0].Spec.Release.Version != o.Status.Target.Version ||
		version != "" && newest[0].Spec.Release.Version != version
	stalled := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionStalled)
	switch {
	case !behind:
		return judge(&newest[0]), nil
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		return standing{done: true, code: exit.Failed,
			text: fmt.Sprintf("operator %s cannot be rolled out (%s): %s", name, stalled.Reason, stalled.Message)}, nil
	default:
		return waiting, nil
	}
}

// judge turns a rollout's status into an exit code.
func judge(r *v1alpha1.OperatorRollout) standing {
	s := standing{rollout: r, done: true} // its message is printed with every change
	switch {
	case r.Status.ObservedGeneration < r.Generation:
		s.done, s.code = false, exit.Timeout
	case r.Status.Phase == v1alpha1.RolloutSucceeded && r.Spec.Rollback != nil && r.Spec.Rollback.Automatic:
		s.code = exit.Failed // what was rolled out failed
	case r.Status.Phase == v1alpha1.RolloutSucceeded:
		s.code = exit.OK
	case r.Status.Phase == v1alpha1.RolloutHalted,
		r.Status.Phase == v1alpha1.RolloutRolledBack,
		r.Status.Phase == v1alpha1.RolloutAborted && r.Spec.Abort == nil: // its own failure policy did it
		s.code = exit.Failed
	case r.Status.Phase.Ended():
		s.code = exit.Aborted
	case (len(openGates(r)) > 0 || isUnobserved(r)) && r.Status.Phase == v1alpha1.RolloutProgressing:
		s.code = exit.NeedsApproval
	default:
		s.done, s.code = false, exit.Timeout
	}
	return s
}

// isUnobserved tells whether a wave waits for a person because none of its clusters was observed.
func isUnobserved(r *v1alpha1.OperatorRollout) bool {
	return slices.ContainsFunc(rollouts.StoppedBy(r),
		func(g rollouts.GateRef) bool { return g.Gate == v1alpha1.GateObservation })
}

// openGates lists the approvals that the current wave waits for.
func openGates(r *v1alpha1.OperatorRollout) []rollouts.GateRef {
	return slices.DeleteFunc(rollouts.AwaitingApproval(r), func(g rollouts.GateRef) bool {
		return !slices.ContainsFunc(r.Status.Waves, func(w v1alpha1.WaveStatus) bool {
			return w.Name == g.Wave && w.Phase == v1alpha1.WaveGated
		})
	})
}
