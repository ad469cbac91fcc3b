// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

const fleetFreezeLong = `Stop everything that Bellwether does on the fleet, or on some of its clusters.

No cluster is admitted to a release, also not to go back to one, and agents approve no
InstallPlan: an upgrade that has begun stops where it is. Nothing is uninstalled, put back,
migrated or adopted. What is installed runs on, and is observed, probed and alerted about.

Without names and --selector the whole fleet is frozen. Names may be patterns, such as
'prod-*'. --selector freezes the clusters that have the labels now.

A freeze is an object, a FleetFreeze, which agents read by themselves: it also holds while
the hub's controllers do not run, and it can be applied with kubectl. It lasts until a person
ends it with fleet unfreeze.`

// freezeOptions are the flags of fleet freeze.
type freezeOptions struct {
	clusters               []string
	selector, name, reason string
}

func (a *app) newFreezeCommand() *cobra.Command {
	var o freezeOptions
	c := &cobra.Command{
		Use: "freeze [CLUSTER...]", Short: "Stop all changes on the fleet or on some clusters", Long: fleetFreezeLong,
		Example: "  bellwether fleet freeze --reason \"the registry serves foreign images\"\n" +
			"  bellwether fleet freeze 'prod-*' edge-7 --reason \"incident 4711\"\n" +
			"  bellwether fleet freeze -l region=eu --reason \"network maintenance\" --name maintenance",
		RunE: func(c *cobra.Command, args []string) error {
			o.clusters = args
			return a.freeze(c.Context(), o)
		},
	}
	c.Flags().StringVar(&o.reason, "reason", "", "Why; shown wherever something waits for the end of the freeze.")
	c.Flags().StringVarP(&o.selector, "selector", "l", "", "Freeze the clusters that have these labels now.")
	c.Flags().StringVar(&o.name, "name", "", "Name of the FleetFreeze. Default: freeze- and the time.")
	_ = c.MarkFlagRequired("reason") // the flag exists
	return c
}

// freeze creates a FleetFreeze for the selected clusters. If the user has set no name, the name has the current time.
func (a *app) freeze(ctx context.Context, o freezeOptions) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	clusters, count, err := o.chooseClusters(ctx, h)
	if err != nil {
		return err
	}
	f := &v1alpha1.FleetFreeze{ObjectMeta: metav1.ObjectMeta{Name: o.name},
		Spec: v1alpha1.FleetFreezeSpec{Clusters: clusters, Reason: o.reason}}
	if f.Name == "" {
		f.Name = "freeze-" + a.Now().UTC().Format("20060102-150405")
	}
	switch err := h.Create(ctx, f); {
	case apierrors.IsForbidden(err):
		return exit.Hint(fmt.Errorf("freeze %s: %w", command.DescribeFrozenClusters(f), err),
			"the ClusterRole bellwether-freeze of the hub's chart has the permission")
	case meta.IsNoMatchError(err):
		return exit.Hint(fmt.Errorf("freeze %s: %w", command.DescribeFrozenClusters(f), err),
			"upgrade the hub's chart: this hub knows no FleetFreeze")
	case err != nil:
		return fmt.Errorf("freeze %s: %w", command.DescribeFrozenClusters(f), err)
	}
	a.Step("froze %s, which is %s now", command.DescribeFrozenClusters(f), phrase.Count(count, "cluster"))
	a.Say("Agents that reach the hub's API server follow at once, others when they reach it again. To end the freeze, "+
		"run `%s fleet unfreeze %s`.\n", a.Self, f.Name)
	return nil
}

// chooseClusters returns the names or patterns to freeze, and how many clusters of the fleet they match. With
// --selector these are the names of the selected clusters. Without a selector and names it is the pattern *, which
// matches all clusters. A name, pattern or selector that matches no cluster is an error, because its freeze would
// have no effect.
func (o freezeOptions) chooseClusters(ctx context.Context, h *hub.Client) ([]string, int, error) {
	selector, err := command.ParseSelector(o.selector)
	if err != nil {
		return nil, 0, err
	}
	list := &v1alpha1.FleetClusterList{}
	if err := h.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, 0, fmt.Errorf("list clusters: %w", err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	switch {
	case o.selector != "" && len(o.clusters) > 0:
		return nil, 0, exit.Hintf("use one of them", "name clusters or use --selector, not both")
	case o.selector != "" && len(names) == 0:
		return nil, 0, exit.Hintf("see the labels with `fleet list -o wide`", "no cluster has the labels %s",
			o.selector)
	case o.selector != "":
		return names, len(names), nil
	case len(o.clusters) == 0:
		return []string{"*"}, len(names), nil
	}
	matched := map[string]bool{}
	for _, pattern := range o.clusters {
		if !holds.IsClusterPattern(pattern) {
			return nil, 0, exit.Hintf("* stands for any text and ? for one character, as in 'prod-*'",
				"%q is neither the name of a cluster nor a pattern of names", pattern)
		}
		matching := holds.MatchClusters(pattern, names)
		if len(matching) == 0 {
			return nil, 0, exit.Hintf("see the names with `fleet list`", "there is no cluster %s", pattern)
		}
		for _, name := range matching {
			matched[name] = true
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(o.clusters))), len(matched), nil
}

const fleetUnfreezeLong = `End a freeze: Bellwether goes on where it stopped.

Deadlines of waves and offboarding timeouts have what was left of them: they count no time in which
a cluster was frozen, by what the hub has recorded. If the hub did not run since the freeze began,
start it first.

Only a person can end a freeze: the hub refuses ServiceAccounts, such as those of pipelines.`

func (a *app) newUnfreezeCommand() *cobra.Command {
	var unrecorded bool
	c := &cobra.Command{
		Use: "unfreeze NAME", Short: "End a freeze", Long: fleetUnfreezeLong,
		Args: command.OneArg("the name of the FleetFreeze"), ValidArgsFunction: a.CompleteFirst(completeFreezeNames),
		Example: "  bellwether fleet unfreeze freeze-20260301-120000",
		RunE:    func(c *cobra.Command, args []string) error { return a.unfreeze(c.Context(), args[0], unrecorded) },
	}
	c.Flags().BoolVar(&unrecorded, "unrecorded", false,
		"End it although the hub has not recorded it for all clusters: deadlines count the time.")
	return c
}

// unfreeze deletes a FleetFreeze. It refuses if the hub has not recorded the
// freeze for some clusters, unless unrecorded is true.
func (a *app) unfreeze(ctx context.Context, name string, unrecorded bool) error {
	h, err := a.Hub()
	if err != nil {
		return err
	}
	f := &v1alpha1.FleetFreeze{}
	f.Name = name
	switch err := h.Get(ctx, client.ObjectKeyFromObject(f), f); {
	case apierrors.IsNotFound(err):
		return exit.Hintf("see them with `kubectl get fleetfreezes`", "there is no FleetFreeze %s", name)
	case err != nil:
		return fmt.Errorf("get FleetFreeze %s: %w", name, err)
	}
	missing, err := listUnrecordedClusters(ctx, h, f)
	if err != nil {
		return err
	}
	if len(missing) > 0 && !unrecorded {
		return exit.Hintf("start the hub and wait until `fleet list` says frozen, or use --unrecorded",
			"the hub has not recorded that it froze %s (%s): rollouts and removals there would be overdue at once",
			phrase.Count(len(missing), "cluster"), phrase.First(missing, 5))
	}
	switch err := h.Delete(ctx, f); {
	case apierrors.IsForbidden(err):
		return exit.Hint(fmt.Errorf("end FleetFreeze %s: %w", name, err),
			"a person with the ClusterRole bellwether-freeze of the hub's chart can")
	case err != nil:
		return fmt.Errorf("end FleetFreeze %s: %w", name, err)
	}
	a.Step("ended FleetFreeze %s", name)
	remaining, err := h.ListFreezes(ctx)
	if err != nil {
		return err
	}
	for _, f := range remaining {
		a.Warn("FleetFreeze %s still stops changes on %s: %s\n", f.Name, command.DescribeFrozenClusters(&f),
			f.Spec.Reason)
	}
	return nil
}

// listUnrecordedClusters returns the clusters that a freeze covers and whose status does not show a freeze.
func listUnrecordedClusters(ctx context.Context, h *hub.Client, f *v1alpha1.FleetFreeze) ([]string, error) {
	list := &v1alpha1.FleetClusterList{}
	if err := h.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	return holds.ListUnrecorded(f, list.Items), nil
}

// completeFreezeNames returns the names of all FleetFreezes with their reasons, for completion.
func completeFreezeNames(ctx context.Context, h *hub.Client, _ command.Completion) []string {
	list, _ := h.ListFreezes(ctx)
	var out []string
	for _, f := range list {
		out = append(out, f.Name+"\t"+f.Spec.Reason)
	}
	return out
}
