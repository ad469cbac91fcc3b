// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/silences"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
)

const createLong = `Create an AlertSilence, and wait until Alertmanager has it. Nobody is notified of alerts
about the operators and clusters that it names, until it ends. Open incidents in PagerDuty
are resolved when it begins, and opened again if their alerts still fire when it ends.

If the silence does not come into force, the AlertSilence is deleted again, and the command
fails. The operators and clusters must exist. How long a silence may last is set on the
hub; 24 hours is the default. Times go by the clock of the hub's API server.

With --fleet the silence is about clusters with everything on them. It must be in the
hub's namespace.

With --exclude-from-budgets, what is left of error budgets is also shown without the time
in which the operators are bad during the silence. Such a silence can be ended, but not be
changed otherwise. Alerts and rollouts go by all of the time.`

type createOptions struct {
	owner, reason, selector, until string
	operators, clusters            []string
	duration, timeout              time.Duration
	fleet, tickets, exclude        bool
}

func (a *app) newCreateCommand() *cobra.Command {
	var o createOptions
	c := &cobra.Command{
		Use: "create NAME", Short: "Suppress notifications of alerts about operators or clusters", Long: createLong,
		Example: "  bellwether silence create storage --operator ledger --cluster prod-eu --for 4h " +
			"--owner anna@example.com --reason \"the storage is moved\"",
		Args: command.OneArg("the silence's name"),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.Hub()
			if err != nil {
				return err
			}
			return a.createSilence(c.Context(), h, &o, h.Key(args[0]))
		},
	}
	fs := c.Flags()
	fs.StringVar(&o.owner, "owner", "", "The person or team to ask about the silence.")
	fs.StringVar(&o.reason, "reason", "", "Why no notification is needed.")
	fs.StringSliceVar(&o.operators, "operator", nil, "The operators, of the namespace of the silence. Default: all.")
	fs.StringSliceVar(&o.clusters, "cluster", nil, "The clusters. Default: all, and releases.")
	fs.StringVar(&o.selector, "cluster-selector", "", "Labels of clusters, as in site=eu.")
	fs.DurationVar(&o.duration, "for", time.Hour, "How long the silence lasts.")
	fs.StringVar(&o.until, "until", "", "When the silence ends (RFC 3339), in place of --for.")
	fs.BoolVar(&o.fleet, "fleet", false, "Silence everything about the clusters, in the hub's namespace.")
	fs.BoolVar(&o.tickets, "tickets", false, "Silence tickets only.")
	fs.BoolVar(&o.exclude, "exclude-from-budgets", false,
		"Exclude the time from the error budgets, from now on; they are then shown with it and without it.")
	command.ExcludeFlags(c, "fleet", "operator")
	command.ExcludeFlags(c, "for", "until")
	command.AddTimeout(c, &o.timeout, 30*time.Second, "How long to wait until Alertmanager has the silence.")
	return c
}

// createSilence creates the silence and waits until the silence is in force. If the silence does not come into
// force, it deletes the silence.
func (a *app) createSilence(ctx context.Context, h *hub.Client, o *createOptions, key client.ObjectKey) error {
	s, err := o.newSilence(key)
	if err != nil {
		return err
	}
	if err := checkSubjects(ctx, h, s); err != nil {
		return err
	}
	now, err := readServerTime(ctx, h, s)
	if err != nil {
		return fmt.Errorf("create silence %s: %w", s.Name, err)
	}
	if s.Spec.End, err = o.computeEnd(now); err != nil {
		return err
	}
	a.CleansUp.Store(true)
	if err := h.Create(ctx, s, hub.FieldOwner); err != nil {
		return fmt.Errorf("create silence %s: %w", s.Name, err)
	}
	if err := waitUntilActive(ctx, h, s, o.timeout); err != nil {
		return deleteInactive(ctx, h, s, err)
	}
	end := s.Spec.End.UTC().Format(time.RFC3339)
	if !silences.IsActive(s) { // without an Alertmanager, the silence only excludes time from budgets
		a.Say("Silence %s excludes time from error budgets until %s. Alerts are not silenced: %s.\n", s.Name, end,
			trimPeriod(conditions.Get(s.Status.Conditions, v1alpha1.ConditionReady).Message))
		return nil
	}
	a.Say("Silence %s is in force until %s.\n", s.Name, end)
	return nil
}

// checkSubjects returns an error if an operator or a cluster of the silence does not exist. It does not check
// clusters that the user is not permitted to read.
func checkSubjects(ctx context.Context, h *hub.Client, s *v1alpha1.AlertSilence) error {
	for _, name := range s.Spec.Operators {
		if _, err := h.OperatorIn(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}); err != nil {
			return err
		}
	}
	if s.Spec.Clusters == nil {
		return nil
	}
	for _, name := range s.Spec.Clusters.Names {
		if _, err := h.Cluster(ctx, name); err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	if s.Spec.Clusters.Selector == nil {
		return nil
	}
	all, err := hub.ListClusters(ctx, h)
	if err != nil {
		if apierrors.IsForbidden(err) {
			return nil
		}
		return err
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Clusters.Selector)
	if err != nil {
		return fmt.Errorf("read --cluster-selector: %w", err)
	}
	matches := func(c v1alpha1.FleetCluster) bool { return selector.Matches(labels.Set(c.Labels)) }
	// With named clusters, a selector that matches no cluster is no error.
	if len(s.Spec.Clusters.Names) == 0 && !slices.ContainsFunc(all, matches) {
		return exit.Hintf("to see the labels of clusters, run `"+h.Self+" fleet list -o wide`",
			"no cluster has the labels %s of --cluster-selector", selector)
	}
	return nil
}

// readServerTime returns the current time of the API server, from a dry run that creates the silence. The dry run
// ends the silence in the past, so that no limit for its length applies.
func readServerTime(ctx context.Context, h *hub.Client, s *v1alpha1.AlertSilence) (time.Time, error) {
	dryRun := s.DeepCopy()
	dryRun.Spec.End = metav1.NewTime(time.Unix(0, 0).UTC())
	if err := h.Create(ctx, dryRun, client.DryRunAll, hub.FieldOwner); err != nil {
		return time.Time{}, err
	}
	return dryRun.CreationTimestamp.Time, nil
}

// waitUntilActive waits until the silence is in force. The error has the reason why it is not.
func waitUntilActive(ctx context.Context, h *hub.Client, s *v1alpha1.AlertSilence, timeout time.Duration) error {
	err := hub.Poll(ctx, timeout, func() (bool, error) {
		if err := h.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return false, err
		}
		done, problem := checkOutcome(s)
		isFinal := done || problem != nil
		return isFinal, nil
	})
	done, problem := checkOutcome(s)
	switch {
	case done:
		return nil
	case problem != nil:
		return problem
	case errors.Is(err, context.DeadlineExceeded):
		ready := conditions.Get(s.Status.Conditions, v1alpha1.ConditionReady)
		if ready.Message == "" {
			return exit.Hintf("check that the hub runs, with `"+h.Self+" doctor`",
				"the hub has not acted on it within %s", timeout)
		}
		return fmt.Errorf("it was not in force within %s: %s", timeout, trimPeriod(ready.Message))
	}
	return err
}

// checkOutcome reports whether a silence has come into force. It returns an error if the silence will not come
// into force unless a person acts.
func checkOutcome(s *v1alpha1.AlertSilence) (done bool, problem error) {
	done, problem = silences.CheckOutcome(s)
	if errors.Is(problem, silences.ErrNoAlertmanager) {
		problem = exit.Hint(problem,
			"set hub.paging.alertmanagerURL of the hub's chart, or --alertmanager-url of the hub")
	}
	return done, problem
}

// withdrawTimeout limits how long the deletion of a silence that is not in force may take.
const withdrawTimeout = 10 * time.Second

// deleteInactive deletes a silence that did not come into force, also after the user has interrupted the command. It
// returns an error with the reason.
func deleteInactive(ctx context.Context, h *hub.Client, s *v1alpha1.AlertSilence, reason error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	err := h.Delete(ctx, s, client.Preconditions{UID: &s.UID})
	if client.IgnoreNotFound(err) != nil {
		return exit.Hint(fmt.Errorf("silence %s is not in force: %w; it could not be deleted: %w", s.Name, reason, err),
			fmt.Sprintf("delete it: kubectl -n %s delete alertsilence %s", s.Namespace, s.Name))
	}
	return fmt.Errorf("silence %s was not made: %w", s.Name, reason)
}

// trimPeriod removes the period at the end of a sentence.
func trimPeriod(text string) string { return strings.TrimSuffix(text, ".") }

// computeEnd returns the end of the silence. now is the time of the API server.
func (o *createOptions) computeEnd(now time.Time) (metav1.Time, error) {
	end := now.Add(o.duration)
	if o.until != "" {
		var err error
		if end, err = time.Parse(time.RFC3339, o.until); err != nil {
			return metav1.Time{}, exit.Hintf("use a time such as 2026-12-01T18:00:00Z", "invalid value %q of --until",
				o.until)
		}
	}
	if !end.After(now) {
		return metav1.Time{}, exit.Hintf("use a later time", "the silence would end at %s, which is over",
			end.UTC().Format(time.RFC3339))
	}
	return metav1.NewTime(end.UTC().Truncate(time.Second)), nil
}

// newSilence returns the silence of the flags, without its end. It returns an error if the owner, the reason or the
// subject is missing, or if the selector is not valid. Without clusters, the silence applies to all clusters.
func (o *createOptions) newSilence(key client.ObjectKey) (*v1alpha1.AlertSilence, error) {
	if strings.TrimSpace(o.owner) == "" || strings.TrimSpace(o.reason) == "" {
		return nil, exit.Hintf("add --owner and --reason", "a silence needs an owner and a reason")
	}
	if len(o.operators)+len(o.clusters) == 0 && o.selector == "" {
		return nil, exit.Hintf("add --operator, --cluster or --cluster-selector",
			"the flags do not say what is silenced")
	}
	s := &v1alpha1.AlertSilence{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: v1alpha1.AlertSilenceSpec{Owner: o.owner, Reason: o.reason, Operators: o.operators,
			ExcludeFromBudgets: o.exclude},
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
			return nil, exit.Hintf("use labels such as site=eu", "invalid value %q of --cluster-selector: %v",
				o.selector, err)
		}
		s.Spec.Clusters.Selector = selector
	}
	return s, nil
}
