// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
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

func (a *app) newStatusCommand() *cobra.Command {
	var o statusOptions
	c := &cobra.Command{
		Use: "status NAME", Short: "Print the status of a rollout, for scripts", Long: rolloutStatusLong,
		Example: "  bellwether rollout status echo --wait --timeout 30m\n  bellwether rollout status echo --version " +
			"1.1.0 --wait",
		Args:              command.OneArg("the name of a rollout or an operator"),
		ValidArgsFunction: a.CompleteFirst(command.ListRolloutNames),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.Hub()
			if err != nil {
				return err
			}
			return a.reportStatus(c.Context(), h, args[0], o)
		},
	}
	c.Flags().BoolVar(&o.wait, "wait", false, "Wait until the rollout has ended or needs an approval or a decision.")
	command.AddTimeout(c, &o.timeout, 0, "The timeout of the wait, for example 30m. 0 means no timeout.")
	c.Flags().StringVar(&o.version, "version", "", "If NAME is an operator: the version of the rollout to wait for.")
	return c
}

const statusInterval = time.Second

// reportStatus prints the changes of a rollout. With o.wait it continues until the rollout has ended or needs a
// person. An error of the first request is returned; later errors are retried until the timeout. The error has the
// exit code of the result.
func (a *app) reportStatus(ctx context.Context, h *hub.Client, name string, o statusOptions) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	tick := time.NewTicker(statusInterval)
	defer tick.Stop()
	var previous RolloutInput
	for isFirst := true; ; isFirst = false {
		result, err := readResult(ctx, h, name, o.version)
		switch {
		case err != nil && isFirst:
			return err
		case err == nil && result.rollout != nil:
			previous = a.printChanges(previous, result.rollout)
		}
		if err == nil && (result.done || !o.wait) {
			return result.toExitError()
		}
		select {
		case <-ctx.Done():
			return newTimeoutError(ctx, name, err)
		case <-tick.C:
		}
	}
}

// newTimeoutError returns the error for a wait that ended early. lastErr is the result of the last request to the
// hub; the hub may be unavailable for a moment during the wait.
func newTimeoutError(ctx context.Context, name string, lastErr error) error {
	if context.Cause(ctx) == context.Canceled { //nolint:errorlint // Cause returns the sentinel itself
		return context.Canceled
	}
	text := fmt.Sprintf("rollout %s has not ended within the timeout", name)
	if lastErr != nil {
		text += fmt.Sprintf("; last error of the hub: %v", lastErr)
	}
	return &exit.CodeError{Code: exit.Timeout, Text: text}
}

// printChanges prints the changes between before and the current rollout, and returns the current state.
func (a *app) printChanges(before RolloutInput, r *v1alpha1.OperatorRollout) RolloutInput {
	after := RolloutInput{Now: a.Now(), Rollout: r}
	for _, line := range ListRolloutChanges(before, after) {
		a.Say("%s  %s\n", term.TimeOfDay(after.Now), line)
	}
	return after
}

// rolloutResult is the state of a rollout as the command reports it.
type rolloutResult struct {
	rollout *v1alpha1.OperatorRollout
	// done is set if the result does not change when the command waits longer.
	done bool
	code int
	text string
}

// toExitError returns the error with the exit code of the result; nil for a success.
func (s rolloutResult) toExitError() error {
	if s.code == exit.OK {
		return nil
	}
	return &exit.CodeError{Code: s.code, Text: s.text}
}

// readResult reads the result of the rollout with this name. If name is an operator, it reads the operator's newest
// rollout, which must have the current target of the operator and, if version is not empty, this version. Until such
// a rollout exists, the result is pending.
func readResult(ctx context.Context, h *hub.Client, name, version string) (rolloutResult, error) {
	r := &v1alpha1.OperatorRollout{}
	err := h.Get(ctx, h.Key(name), r)
	switch {
	case err == nil:
		return toRolloutResult(r), nil
	case !apierrors.IsNotFound(err):
		return rolloutResult{}, fmt.Errorf("get rollout: %w", err)
	}
	o, err := h.Operator(ctx, name)
	if err != nil {
		return rolloutResult{}, err
	}
	notStarted := rolloutResult{code: exit.Timeout,
		text: fmt.Sprintf("the rollout of operator %s has not started", name)}
	if o.Status.ObservedGeneration < o.Generation {
		return notStarted, nil
	}
	newest, err := h.ListRollouts(ctx, client.ObjectKeyFromObject(o))
	if err != nil {
		return rolloutResult{}, err
	}
	isOutdated := len(newest) == 0 || o.Status.Target == nil ||
		newest[0].Spec.Release.Version != o.Status.Target.Version
	if version != "" && !isOutdated {
		isOutdated = newest[0].Spec.Release.Version != version
	}
	stalled := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionStalled)
	switch {
	case !isOutdated:
		return toRolloutResult(&newest[0]), nil
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		return rolloutResult{done: true, code: exit.Failed,
			text: fmt.Sprintf("operator %s cannot be rolled out (%s): %s", name, stalled.Reason, stalled.Message)}, nil
	default:
		return notStarted, nil
	}
}

// exitCodes has the exit code of each outcome of a rollout. A pending rollout has not ended within the timeout.
var exitCodes = map[rollouts.Outcome]int{rollouts.OutcomeSucceeded: exit.OK, rollouts.OutcomeFailed: exit.Failed,
	rollouts.OutcomeAborted: exit.Aborted, rollouts.OutcomeNeedsPerson: exit.NeedsApproval,
	rollouts.OutcomePending: exit.Timeout}

// toRolloutResult converts the outcome of a rollout to an exit code. It sets no text, because the changes that
// are printed contain the message.
func toRolloutResult(r *v1alpha1.OperatorRollout) rolloutResult {
	outcome := rollouts.OutcomeOf(r)
	return rolloutResult{rollout: r, done: outcome != rollouts.OutcomePending, code: exitCodes[outcome]}
}
