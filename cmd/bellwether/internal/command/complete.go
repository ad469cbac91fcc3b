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

// CompleteFile completes the first argument with file names.
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

// Completion is the argument that the shell completes: Text is its beginning, Args are the arguments before it.
type Completion struct {
	Args []string
	Text string
}

// nameLister returns the possible values of an argument, each with a tab and a description. It returns no error,
// because a completion cannot show errors.
type nameLister func(ctx context.Context, h *hub.Client, completion Completion) []string

// CompletionTimeout limits how long the shell waits for a hub that cannot be reached.
const CompletionTimeout = 3 * time.Second

// CompleteFirst completes the first argument, and no other arguments.
func (a *Env) CompleteFirst(n nameLister) cobra.CompletionFunc { return a.Complete(n) }

// Complete completes each argument with the nameLister at its position. It completes nothing if the hub cannot be
// reached.
func (a *Env) Complete(byPosition ...nameLister) cobra.CompletionFunc {
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
		return byPosition[len(args)](ctx, h, Completion{args, text}), cobra.ShellCompDirectiveNoFileComp
	}
}

// ListClusterNames returns the names of all FleetClusters, for completion.
func ListClusterNames(ctx context.Context, h *hub.Client, _ Completion) []string {
	list := &v1alpha1.FleetClusterList{}
	_ = h.List(ctx, list)
	var out []string
	for _, c := range list.Items {
		out = append(out, c.Name+"\t"+c.Labels["region"])
	}
	return out
}

// NamedObject is a namespaced object that an argument can name, with its description.
type NamedObject struct {
	Key  client.ObjectKey
	Text string
}

// ListNamed lists the objects of all namespaces, and converts them. If the user is not permitted to list all
// namespaces, it lists the objects of the user's namespace.
func ListNamed[L client.ObjectList](ctx context.Context, h *hub.Client, list L,
	convert func(L) []NamedObject) []NamedObject {
	if h.List(ctx, list) != nil {
		_ = h.List(ctx, list, client.InNamespace(h.Namespace))
	}
	return convert(list)
}

// QualifyNames returns the argument for each object: NAME in the user's namespace, and NAMESPACE/NAME in other
// namespaces. If allowUnqualified is set, objects of other namespaces whose name is unique also have the form NAME. If
// the text to complete has a slash, all objects have the form NAMESPACE/NAME.
func QualifyNames(h *hub.Client, completion Completion, allowUnqualified bool, all []NamedObject) []string {
	count := map[string]int{}
	for _, n := range all {
		count[n.Key.Name]++
	}
	var out []string
	for _, n := range all {
		name := n.Key.Name
		isUnique := allowUnqualified && count[name] == 1
		isShort := n.Key.Namespace == h.Namespace || isUnique
		if !isShort || strings.Contains(completion.Text, "/") {
			name = n.Key.String()
		}
		out = append(out, name+"\t"+n.Text)
	}
	return out
}

// toNamedOperators converts ManagedOperators to named objects.
func toNamedOperators(list *v1alpha1.ManagedOperatorList) []NamedObject {
	var out []NamedObject
	for _, o := range list.Items {
		out = append(out, NamedObject{client.ObjectKeyFromObject(&o), o.Spec.Package})
	}
	return out
}

// ListOperatorNames returns the names of ManagedOperators, for completion.
func ListOperatorNames(ctx context.Context, h *hub.Client, completion Completion) []string {
	return QualifyNames(h, completion, true, ListNamed(ctx, h, &v1alpha1.ManagedOperatorList{}, toNamedOperators))
}

// ListRolloutNames returns the names of operators and rollouts, for completion. The name of an
// operator selects its newest rollout.
func ListRolloutNames(ctx context.Context, h *hub.Client, completion Completion) []string {
	toNamedRollouts := func(list *v1alpha1.OperatorRolloutList) []NamedObject {
		var out []NamedObject
		for _, r := range list.Items {
			text := r.Spec.Release.VersionText() + " " + string(r.Status.Phase)
			out = append(out, NamedObject{client.ObjectKeyFromObject(&r), text})
		}
		return out
	}
	return append(ListOperatorNames(ctx, h, completion),
		QualifyNames(h, completion, false, ListNamed(ctx, h, &v1alpha1.OperatorRolloutList{}, toNamedRollouts))...)
}

// ListBackupNames returns the names of the backups of a cluster, for completion. The first argument names the cluster.
func ListBackupNames(ctx context.Context, h *hub.Client, completion Completion) []string {
	list := &v1alpha1.OperatorBackupList{}
	_ = h.List(ctx, list, client.InNamespace(v1alpha1.ClusterNamespace(completion.Args[0])))
	var out []string
	for _, b := range list.Items {
		out = append(out, b.Name+"\t"+b.Spec.Operator.Namespace+"/"+b.Spec.Operator.Name)
	}
	return out
}

// listNamespaceNames returns the names of the namespaces on the hub, for completion.
func listNamespaceNames(ctx context.Context, h *hub.Client, _ Completion) []string {
	list := &corev1.NamespaceList{}
	_ = h.List(ctx, list)
	var out []string
	for _, n := range list.Items {
		out = append(out, n.Name)
	}
	return out
}

// registerCompletions adds completions to the flags --namespace and --context.
func (a *Env) registerCompletions(c *cobra.Command) {
	_ = c.RegisterFlagCompletionFunc("namespace", a.completeFlag(listNamespaceNames))
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

// completeFlag completes the value of a flag.
func (a *Env) completeFlag(n nameLister) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return a.Complete(n)(c, nil, toComplete)
	}
}
