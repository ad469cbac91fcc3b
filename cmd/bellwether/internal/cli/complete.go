// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// names lists what an argument may be, each with a tab and a description.
// Completion has no way to show an error, so there is none to return.
type names func(ctx context.Context, h *hub) []string

// completionTimeout bounds how long a shell hangs on an unreachable hub.
const completionTimeout = 3 * time.Second

// completeFirst completes the first argument.
func (a *app) completeFirst(n names) cobra.CompletionFunc { return a.complete(n) }

// complete completes arguments by position.
func (a *app) complete(byPosition ...names) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(byPosition) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		h, err := a.hub()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
		defer cancel()
		return byPosition[len(args)](ctx, h), cobra.ShellCompDirectiveNoFileComp
	}
}

func clusterNames(ctx context.Context, h *hub) []string {
	list := &v1alpha1.FleetClusterList{}
	_ = h.List(ctx, list)
	var out []string
	for _, c := range list.Items {
		out = append(out, c.Name+"\t"+c.Labels["region"])
	}
	return out
}

func operatorNames(ctx context.Context, h *hub) []string {
	list := &v1alpha1.ManagedOperatorList{}
	_ = h.List(ctx, list, client.InNamespace(h.namespace))
	var out []string
	for _, o := range list.Items {
		out = append(out, o.Name+"\t"+o.Spec.Package)
	}
	return out
}

// rolloutNames completes to operators too, which stand for their newest
// rollout.
func rolloutNames(ctx context.Context, h *hub) []string {
	list := &v1alpha1.OperatorRolloutList{}
	_ = h.List(ctx, list, client.InNamespace(h.namespace))
	out := operatorNames(ctx, h)
	for _, r := range list.Items {
		out = append(out, r.Name+"\t"+r.Spec.Release.Version+" "+string(r.Status.Phase))
	}
	return out
}

func namespaceNames(ctx context.Context, h *hub) []string {
	list := &corev1.NamespaceList{}
	_ = h.List(ctx, list)
	var out []string
	for _, n := range list.Items {
		out = append(out, n.Name)
	}
	return out
}

// registerCompletions completes the flags that every command has.
func (a *app) registerCompletions(root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("namespace", a.completeFlag(namespaceNames))
	_ = root.RegisterFlagCompletionFunc("context",
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			raw, err := a.flags.ToRawKubeConfigLoader().RawConfig()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var out []string
			for name := range raw.Contexts {
				out = append(out, name)
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		})
}

func (a *app) completeFlag(n names) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return a.complete(n)(c, nil, toComplete)
	}
}
