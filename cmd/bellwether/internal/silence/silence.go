// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package silence has the commands about AlertSilences: times in which nobody is notified
// of alerts.
package silence

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command with everything below it.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.Parent("silence", "Let nobody be notified of alerts for a time", []string{"silences"},
		a.listCommand(), a.createCommand(), a.endCommand())
}

func (a *app) listCommand() *cobra.Command {
	return command.ListCommand(a.Env, command.Listing[*v1alpha1.AlertSilenceList]{
		What: "silences", Short: "List silences, with who answers for them and until when",
		Example: "  bellwether silence list -A",
		Empty:   func() *v1alpha1.AlertSilenceList { return &v1alpha1.AlertSilenceList{} },
		Table: func(_ context.Context, _ *hub.Client, list *v1alpha1.AlertSilenceList, l term.Listing) (*term.Table,
			error) {
			return Silences(list.Items, l), nil
		},
	})
}

// Silences lists AlertSilences: those in force first, by their end.
func Silences(all []v1alpha1.AlertSilence, l term.Listing) *term.Table {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b v1alpha1.AlertSilence) int {
		switch first, second := isActive(&a), isActive(&b); {
		case first && !second:
			return -1
		case second && !first:
			return 1
		}
		return a.Spec.End.Compare(b.Spec.End.Time)
	})
	t := &term.Table{Header: []string{"NAME", "OWNER", "STATE", "END", "BUDGETS", "HIDDEN PAGES", "REASON"}, Wrap: true}
	t = l.Table(t)
	for i := range sorted {
		s := &sorted[i]
		ready := conditions.Get(s.Status.Conditions, v1alpha1.ConditionReady)
		state := ready.Reason
		if state == "" {
			state = v1alpha1.ReasonPending
		}
		t.Add(l.Row(s.Namespace, []term.Cell{{Text: s.Name}, {Text: s.Spec.Owner}, {Text: state},
			{Text: s.Spec.End.UTC().Format(time.RFC3339)}, {Text: budgetsOf(s)},
			{Text: term.Count(s.Status.HiddenPages)}, {Text: s.Spec.Reason}})...)
	}
	return t
}

// budgetsOf says whether a silence excludes time from error budgets, or why it does not
// although it is made for that.
func budgetsOf(s *v1alpha1.AlertSilence) string {
	if !s.Spec.ExcludeFromBudgets {
		return "-"
	}
	state := conditions.Get(s.Status.Conditions, v1alpha1.ConditionBudgetsExcluded)
	return cmp.Or(state.Reason, v1alpha1.ReasonPending)
}

func isActive(s *v1alpha1.AlertSilence) bool {
	return conditions.IsTrue(s.Status.Conditions, v1alpha1.ConditionActive)
}

const createLong = `Create an AlertSilence. Nobody is notified of alerts about the operators and clusters
that it names, until it ends. Open incidents in PagerDuty are resolved when it begins,
and opened again if their alerts still fire when it ends.

With --fleet the silence is about clusters with everything on them. It has to be in the
hub's namespace.

With --exclude-from-budgets, what is left of error budgets is also shown without the time
in which the operators are bad during the silence. Such a silence can be ended, but not be
changed otherwise. Alerts and rollouts go by all of the time.`

type createOptions struct {
	owner, reason, selector, until string
	operators, clusters            []string
	last                           time.Duration
	fleet, tickets, exclude        bool
}

func (a *app) createCommand() *cobra.Command {
	var o createOptions
	c := &cobra.Command{
		Use: "create NAME", Short: "Let nobody be notified of alerts about operators or clusters", Long: createLong,
		Example: "  bellwether silence create storage --operator ledger --cluster prod-eu --for 4h " +
			"--owner anna@example.com --reason \"the storage is moved\"",
		Args: command.OneArg("the silence's name"),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.Hub()
			if err != nil {
				return err
			}
			s, err := o.silence(h.Key(args[0]), a.Now())
			if err != nil {
				return err
			}
			if err := h.Create(c.Context(), s); err != nil {
				return fmt.Errorf("create silence %s: %w", s.Name, err)
			}
			a.Say("Silence %s is created, until %s. `bellwether silence list` says when it is in force.\n", s.Name,
				s.Spec.End.UTC().Format(time.RFC3339))
			return nil
		},
	}
	fs := c.Flags()
	fs.StringVar(&o.owner, "owner", "", "The person or team to ask about the silence.")
	fs.StringVar(&o.reason, "reason", "", "Why nobody needs to be notified.")
	fs.StringSliceVar(&o.operators, "operator", nil, "The operators, of the namespace of the silence. Default: all.")
	fs.StringSliceVar(&o.clusters, "cluster", nil, "The clusters. Default: all, and releases.")
	fs.StringVar(&o.selector, "cluster-selector", "", "Labels of clusters, as in site=eu.")
	fs.DurationVar(&o.last, "for", time.Hour, "How long the silence lasts.")
	fs.StringVar(&o.until, "until", "", "When the silence ends (RFC 3339), in place of --for.")
	fs.BoolVar(&o.fleet, "fleet", false, "Silence everything about the clusters, in the hub's namespace.")
	fs.BoolVar(&o.tickets, "tickets", false, "Silence tickets only.")
	fs.BoolVar(&o.exclude, "exclude-from-budgets", false,
		"Exclude the time from the error budgets, from now on; they are then shown with it and without it.")
	command.Exclusive(c, "fleet", "operator")
	command.Exclusive(c, "for", "until")
	return c
}

// silence makes the object that the flags describe.
func (o *createOptions) silence(key client.ObjectKey, now time.Time) (*v1alpha1.AlertSilence, error) {
	if strings.TrimSpace(o.owner) == "" || strings.TrimSpace(o.reason) == "" {
		return nil, exit.Hintf("add --owner and --reason", "a silence needs an owner and a reason")
	}
	if len(o.operators)+len(o.clusters) == 0 && o.selector == "" {
		return nil, exit.Hintf("add --operator, --cluster or --cluster-selector",
			"the flags do not say what is silenced")
	}
	end := now.Add(o.last)
	if o.until != "" {
		var err error
		if end, err = time.Parse(time.RFC3339, o.until); err != nil {
			return nil, exit.Hintf("use a time such as 2026-12-01T18:00:00Z", "invalid value %q of --until", o.until)
		}
	}
	if !end.After(now) {
		return nil, exit.Hintf("use a later time", "the silence would end at %s, which is over",
			end.UTC().Format(time.RFC3339))
	}
	s := &v1alpha1.AlertSilence{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: v1alpha1.AlertSilenceSpec{
			Owner:     o.owner,
			Reason:    o.reason,
			End:       metav1.NewTime(end.UTC().Truncate(time.Second)),
			Operators: o.operators,

			ExcludeFromBudgets: o.exclude,
		},
	}
	if o.fleet {
		s.Spec.Scope = v1alpha1.SilenceFleet
	}
	if o.tickets {
		s.Spec.Alerts = v1alpha1.SilenceTickets
	}
	if len(o.clusters) > 0 || o.selector != "" {
		s.Spec.Clusters = &v1alpha1.SilencedClusters{Names: o.clusters}
	}
	if o.selector != "" {
		selector, err := metav1.ParseToLabelSelector(o.selector)
		if err != nil {
			return nil, exit.Hintf(
				"use labels such as site=eu",
				"invalid value %q of --cluster-selector: %v",
				o.selector,
				err,
			)
		}
		s.Spec.Clusters.Selector = selector
	}
	return s, nil
}

const endLong = `End a silence now. Incidents that were resolved when it began are opened again if their
alerts still fire. The object stays, so that others see that it was there.`

func (a *app) endCommand() *cobra.Command {
	return &cobra.Command{
		Use: "end NAME", Short: "End a silence", Long: endLong, Example: "  bellwether silence end storage",
		Args:              command.OneArg("the silence's name"),
		ValidArgsFunction: a.CompleteFirst(names),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.Hub()
			if err != nil {
				return err
			}
			return a.end(c.Context(), h, h.Key(args[0]))
		},
	}
}

func (a *app) end(ctx context.Context, h *hub.Client, key client.ObjectKey) error {
	var s v1alpha1.AlertSilence
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := h.Get(ctx, key, &s); err != nil {
			return err
		}
		switch {
		case s.Labels[v1alpha1.LabelAutomaticSilence] != "":
			return exit.Hintf("the hub's flag --without-automatic-silences switches all of them off",
				"the hub made it by itself, and would make it again")
		case s.Spec.Start != nil && s.Spec.Start.After(a.Now()): // its end cannot be before its start
			return h.Delete(ctx, &s)
		case !s.Spec.End.After(a.Now()):
			return nil
		}
		before := s.DeepCopy()
		s.Spec.End = metav1.NewTime(a.Now().UTC().Truncate(time.Second))
		if s.Spec.Start != nil && !s.Spec.End.After(s.Spec.Start.Time) {
			s.Spec.End = metav1.NewTime(s.Spec.Start.Add(time.Second))
		}
		return h.Patch(ctx, &s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("end silence %s: %w", key.Name, err)
	}
	a.Say("Silence %s has ended.\n", key.Name)
	return nil
}

// names completes to silences that have not ended.
func names(ctx context.Context, h *hub.Client) []string {
	var list v1alpha1.AlertSilenceList
	_ = h.List(ctx, &list, client.InNamespace(h.Namespace))
	var out []string
	for i := range list.Items {
		if s := &list.Items[i]; s.Labels[v1alpha1.LabelAutomaticSilence] == "" && isActive(s) {
			out = append(out, s.Name+"\t"+s.Spec.Reason)
		}
	}
	return out
}
