// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"strings"
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

// Completing is what the shell completes: the text of an argument, and the arguments before it.
type Completing struct {
	Args []string
	Text string
}

// names lists what an argument may be, each with a tab and a description: what the command finds.
// Completion has no way to show an error, so there is none to return.
type names func(ctx context.Context, h *hub.Client, at Completing) []string

// CompletionTimeout bounds how long a shell hangs on an unreachable hub.
const CompletionTimeout = 3 * time.Second

// CompleteFirst completes the first argument.
func (a *Env) CompleteFirst(n names) cobra.CompletionFunc { return a.Complete(n) }

// Complete completes arguments by position.
func (a *Env) Complete(byPosition ...names) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(byPosition) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		h, err := a.Hub()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), CompletionTimeout)
		defer cancel()
		return byPosition[len(args)](ctx, h, Completing{args, text}), cobra.ShellCompDirectiveNoFileComp
	}
}

// ClusterNames returns the names of all FleetClusters, for completion.
func ClusterNames(ctx context.Context, h *hub.Client, _ Completing) []string {
	list := &v1alpha1.FleetClusterList{}
	_ = h.List(ctx, list)
	var out []string
	for _, c := range list.Items {
		out = append(out, c.Name+"\t"+c.Labels["region"])
	}
	return out
}

// Named is an object of a namespace that an argument may name, with its description.
type Named struct {
	Key  client.ObjectKey
	Text string
}

// ListNamed lists the objects of all namespaces, or those of the user's namespace where that is not permitted.
func ListNamed[L client.ObjectList](ctx context.Context, h *hub.Client, list L, named func(L) []Named) []Named {
	if h.List(ctx, list) != nil {
		_ = h.List(ctx, list, client.InNamespace(h.Namespace))
	}
	return named(list)
}

// Qualified returns what names each of the objects: NAME in the user's namespace, and NAMESPACE/NAME elsewhere. Where
// anywhere is set, the command finds an object elsewhere by its NAME too, if that is unique. A text with a slash names
// the objects of all namespaces by NAMESPACE/NAME.
func Qualified(h *hub.Client, at Completing, anywhere bool, all []Named) []string {
	count := map[string]int{}
	for _, n := range all {
		count[n.Key.Name]++
	}
	var out []string
	for _, n := range all {
		name := n.Key.Name
		isShort := n.Key.Namespace == h.Namespace || anywhere && count[name] == 1
		if !isShort || strings.Contains(at.Text, "/") {
			name = n.Key.String()
		}
		out = append(out, name+"\t"+n.Text)
	}
	return out
}

func operators(list *v1alpha1.ManagedOperatorList) []Named {
	var out []Named
	for _, o := range list.Items {
		out = append(out, Named{client.ObjectKeyFromObject(&o), o.Spec.Package})
	}
	return out
}

// OperatorNames returns what names ManagedOperators, for completion.
func OperatorNames(ctx context.Context, h *hub.Client, at Completing) []string {
	return Qualified(h, at, true, ListNamed(ctx, h, &v1alpha1.ManagedOperatorList{}, operators))
}

// RolloutNames completes to operators too, which stand for their newest
// rollout.
func RolloutNames(ctx context.Context, h *hub.Client, at Completing) []string {
	rollouts := func(list *v1alpha1.OperatorRolloutList) []Named {
		var out []Named
		for _, r := range list.Items {
			text := r.Spec.Release.VersionText() + " " + string(r.Status.Phase)
			out = append(out, Named{client.ObjectKeyFromObject(&r), text})
		}
		return out
	}
	return append(OperatorNames(ctx, h, at),
		Qualified(h, at, false, ListNamed(ctx, h, &v1alpha1.OperatorRolloutList{}, rollouts))...)
}

// BackupNames returns the names of the backups of the cluster that the first argument names, for completion.
func BackupNames(ctx context.Context, h *hub.Client, at Completing) []string {
	list := &v1alpha1.OperatorBackupList{}
	_ = h.List(ctx, list, client.InNamespace(v1alpha1.ClusterNamespace(at.Args[0])))
	var out []string
	for _, b := range list.Items {
		out = append(out, b.Name+"\t"+b.Spec.Operator.Namespace+"/"+b.Spec.Operator.Name)
	}
	return out
}

func namespaceNames(ctx context.Context, h *hub.Client, _ Completing) []string {
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
