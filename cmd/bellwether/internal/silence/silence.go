// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package silence has the commands about AlertSilences, which suppress notifications of alerts for a time.
package silence

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/silences"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command silence with its subcommands.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.NewParent("silence", "Suppress notifications of alerts for a time", []string{"silences"},
		a.newListCommand(), a.newCreateCommand(), a.newEndCommand())
}

func (a *app) newListCommand() *cobra.Command {
	return command.ListCommand(a.Env, command.Listing[*v1alpha1.AlertSilenceList]{
		Nouns: "silences", Short: "List silences, with who answers for them and until when",
		Example: "  bellwether silence list -A",
		Empty:   func() *v1alpha1.AlertSilenceList { return &v1alpha1.AlertSilenceList{} },
		Table: func(_ context.Context, _ *hub.Client, list *v1alpha1.AlertSilenceList, l term.Listing) (*term.Table,
			error) {
			return BuildSilenceTable(list.Items, l), nil
		},
	})
}

// BuildSilenceTable returns the table of AlertSilences: the silences in force first, ordered by their end.
func BuildSilenceTable(all []v1alpha1.AlertSilence, l term.Listing) *term.Table {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b v1alpha1.AlertSilence) int {
		switch aActive, bActive := silences.IsActive(&a), silences.IsActive(&b); {
		case aActive && !bActive:
			return -1
		case bActive && !aActive:
			return 1
		}
		return a.Spec.End.Compare(b.Spec.End.Time)
	})
	t := &term.Table{Header: []string{"NAME", "OWNER", "STATE", "END"}, Wrap: true}
	if l.Wide {
		t.Header = append(t.Header, "BUDGETS", "HIDDEN PAGES")
	}
	t.Header = append(t.Header, "REASON")
	t = l.Table(t)
	for i := range sorted {
		s := &sorted[i]
		ready := conditions.Get(s.Status.Conditions, v1alpha1.ConditionReady)
		state := ready.Reason
		if state == "" {
			state = v1alpha1.ReasonPending
		}
		row := term.PlainCells(s.Name, s.Spec.Owner, state, s.Spec.End.UTC().Format(time.RFC3339))
		if l.Wide {
			row = append(row, term.PlainCells(readBudgetState(s), term.Count(s.Status.HiddenPages))...)
		}
		t.Add(l.Row(s.Namespace, append(row, term.Cell{Text: s.Spec.Reason}))...)
	}
	return t
}

// readBudgetState returns whether a silence excludes time from error budgets, or the reason why it does not;
// "-" if it does not request this.
func readBudgetState(s *v1alpha1.AlertSilence) string {
	if !s.Spec.ExcludeFromBudgets {
		return "-"
	}
	state := conditions.Get(s.Status.Conditions, v1alpha1.ConditionBudgetsExcluded)
	return cmp.Or(state.Reason, v1alpha1.ReasonPending)
}

const endLong = `End a silence now, and wait until Alertmanager has ended it. Incidents that were resolved
when it began are opened again if their alerts still fire. The object stays, so that others
see that it was there.`

func (a *app) newEndCommand() *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use: "end NAME", Short: "End a silence", Long: endLong, Example: "  bellwether silence end storage",
		Args:              command.OneArg("the silence's name"),
		ValidArgsFunction: a.CompleteFirst(listSilenceNames),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.Hub()
			if err != nil {
				return err
			}
			return a.endSilence(c.Context(), h, h.Key(args[0]), timeout)
		},
	}
	command.AddTimeout(c, &timeout, 30*time.Second, "How long to wait until Alertmanager has ended the silence.")
	return c
}

// endSilence ends a silence and waits until the silence is no longer in force. A silence
// that has not started is deleted.
func (a *app) endSilence(ctx context.Context, h *hub.Client, key client.ObjectKey, timeout time.Duration) error {
	var s v1alpha1.AlertSilence
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := h.Get(ctx, key, &s); err != nil {
			return err
		}
		switch {
		case s.Labels[v1alpha1.LabelAutomaticSilence] != "":
			return exit.Hintf("the hub's flag --without-automatic-silences switches all of them off",
				"the hub created it automatically, and would create it again")
		case s.Spec.Start != nil && s.Spec.Start.After(a.Now()):
			// A silence that has not started is deleted, because its end must not be before its start.
			return h.Delete(ctx, &s)
		case !s.Spec.End.After(a.Now()): // it already has an end in the past
			return nil
		}
		before := s.DeepCopy()
		s.Spec.End = metav1.NewTime(a.Now().UTC().Truncate(time.Second))
		if s.Spec.Start != nil && !s.Spec.End.After(s.Spec.Start.Time) { // the end must be after the start
			s.Spec.End = metav1.NewTime(s.Spec.Start.Add(time.Second))
		}
		return h.Patch(ctx, &s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("end silence %s: %w", key.Name, err)
	}
	err = hub.Poll(ctx, timeout, func() (bool, error) {
		err := h.Get(ctx, key, &s)
		hasEnded := err == nil && s.Status.ObservedGeneration >= s.Generation && !silences.IsActive(&s)
		return hasEnded || apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return exit.Hint(fmt.Errorf("silence %s is to end, and was still in force after %s: %s: %w", key.Name, timeout,
			trimPeriod(conditions.Get(s.Status.Conditions, v1alpha1.ConditionReady).Message), err),
			"the hub ends it as soon as it can; to see its state, run `"+a.Self+" silence list`")
	}
	a.Say("Silence %s has ended.\n", key.Name)
	return nil
}

// listSilenceNames returns the names of silences that are in force, for completion.
func listSilenceNames(ctx context.Context, h *hub.Client, completion command.Completion) []string {
	listActive := func(list *v1alpha1.AlertSilenceList) []command.NamedObject {
		var out []command.NamedObject
		for i := range list.Items {
			if s := &list.Items[i]; s.Labels[v1alpha1.LabelAutomaticSilence] == "" && silences.IsActive(s) {
				out = append(out, command.NamedObject{Key: client.ObjectKeyFromObject(s), Text: s.Spec.Reason})
			}
		}
		return out
	}
	return command.QualifyNames(h, completion, false,
		command.ListNamed(ctx, h, &v1alpha1.AlertSilenceList{}, listActive))
}
