// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
)

// CompleteFile completes the first argument with the names of files.
func CompleteFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// CompleteDir completes the first argument with the names of folders.
func CompleteDir(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// names lists what an argument may be, each with a tab and a description.
// Completion has no way to show an error, so there is none to return.
type names func(ctx context.Context, h *hub.Client) []string

// CompletionTimeout bounds how long a shell hangs on an unreachable hub.
const CompletionTimeout = 3 * time.Second

// CompleteFirst completes the first argument.
func (a *Env) CompleteFirst(n names) cobra.CompletionFunc { return a.Complete(n) }

// Complete completes arguments by position.
func (a *Env) Complete(byPosition ...names) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(byPosition) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		h, err := a.Hub()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), CompletionTimeout)
		defer cancel()
		return byPosition[len(args)](ctx, h), cobra.ShellCompDirectiveNoFileComp
	}
}

// ClusterNames returns the names of all FleetClusters, for completion.
func ClusterNames(ctx context.Context, h *hub.Client) []string {
	list := &v1alpha1.FleetClusterList{}
	_ = h.List(ctx, list)
	var out []string
	for _, c := range list.Items {
		out = append(out, c.Name+"\t"+c.Labels["region"])
	}
	return out
}

// OperatorNames returns the names of the ManagedOperators in the namespace, for
// completion.
func OperatorNames(ctx context.Context, h *hub.Client) []string {
	list := &v1alpha1.ManagedOperatorList{}
	_ = h.List(ctx, list, client.InNamespace(h.Namespace))
	var out []string
	for _, o := range list.Items {
		out = append(out, o.Name+"\t"+o.Spec.Package)
	}
	return out
}

// RolloutNames completes to operators too, which stand for their newest
// rollout.
func RolloutNames(ctx context.Context, h *hub.Client) []string {
	list := &v1alpha1.OperatorRolloutList{}
	_ = h.List(ctx, list, client.InNamespace(h.Namespace))
	out := OperatorNames(ctx, h)
	for _, r := range list.Items {
		out = append(out, r.Name+"\t"+r.Spec.Release.Version+" "+string(r.Status.Phase))
	}
	return out
}

func namespaceNames(ctx context.Context, h *hub.Client) []string {
	list := &corev1.NamespaceList{}
	_ = h.List(ctx, list)
	var out []string
	for _, n := range list.Items {
		out = append(out, n.Name)
	}
	return out
}

// registerCompletions completes the flags that select the hub.
func (a *Env) registerCompletions(c *cobra.Command) {
	_ = c.RegisterFlagCompletionFunc("namespace", a.completeFlag(namespaceNames))
	_ = c.RegisterFlagCompletionFunc("context",
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			raw, err := a.Flags.ToRawKubeConfigLoader().RawConfig()
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

func (a *Env) completeFlag(n names) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return a.Complete(n)(c, nil, toComplete)
	}
}
