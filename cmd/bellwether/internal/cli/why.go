// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/view"
)

const whyLong = `Explain the state of an operator on a cluster: the causal chain from the
intention over gate, admission and install down to the pod, with a mark on each
link, and what to do about the first one that does not hold.

The hub alone knows the chain up to what the agent reported. With
--cluster-kubeconfig it goes on into the cluster: Subscription, InstallPlan,
CSV, Deployment, pod.`

func (a *app) whyCommand() *cobra.Command {
	var target clusterFlags
	c := &cobra.Command{
		Use: "why CLUSTER OPERATOR", Short: "Explain the state of an operator on a cluster, and what to do",
		Long: whyLong,
		Example: "  bellwether why prod-2 echo\n  bellwether why prod-2 echo --cluster-kubeconfig " +
			"prod-2.kubeconfig",
		Args:              exactArgs("the cluster's name", "the operator's name"),
		ValidArgsFunction: a.complete(clusterNames, operatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.hub()
			if err != nil {
				return err
			}
			in, err := a.whyInput(c.Context(), h, args[0], args[1])
			if err != nil {
				return err
			}
			if target.given() && in.Install != nil {
				in.Downstream = lookDownstream(c.Context(), &target, in.Install)
			}
			a.say("%s", view.Why(in, a.style()))
			return nil
		},
	}
	target.add(c)
	return c
}

// whyInput reads the chain on the hub.
func (a *app) whyInput(ctx context.Context, h *hub, cluster, operator string) (view.WhyInput, error) {
	in := view.WhyInput{Now: a.now()}
	var err error
	if in.Cluster, err = h.cluster(ctx, cluster); err != nil {
		return in, err
	}
	if in.Operator, err = h.operator(ctx, operator); err != nil {
		return in, err
	}
	install := &v1alpha1.OperatorInstall{}
	name := v1alpha1.OperatorReference{Namespace: h.namespace, Name: operator}.InstallName()
	err = h.Get(ctx, client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(cluster), Name: name}, install)
	switch {
	case err == nil:
		in.Install = install
	case !apierrors.IsNotFound(err):
		return in, fmt.Errorf("get install: %w", err)
	}
	list, err := h.rolloutsOf(ctx, operator)
	if err != nil {
		return in, err
	}
	in.Rollout = rolloutOf(in.Install, list)
	return in, nil
}

// rolloutOf returns the rollout that an install belongs to, or else the newest.
func rolloutOf(in *v1alpha1.OperatorInstall, newestFirst []v1alpha1.OperatorRollout) *v1alpha1.OperatorRollout {
	if in != nil {
		for i := range newestFirst {
			if newestFirst[i].Name == in.Labels[v1alpha1.LabelRollout] {
				return &newestFirst[i]
			}
		}
	}
	if len(newestFirst) == 0 {
		return nil
	}
	return &newestFirst[0]
}

// clusterFlags say how to reach a cluster of the fleet.
type clusterFlags struct {
	kubeconfig string
	context    string
}

func (f *clusterFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.kubeconfig, "cluster-kubeconfig", "", "The kubeconfig of the fleet cluster.")
	c.Flags().StringVar(&f.context, "cluster-context", "", "The context in that kubeconfig. Default: its current one.")
	_ = c.MarkFlagFilename("cluster-kubeconfig")
}

func (f *clusterFlags) given() bool { return f.kubeconfig != "" || f.context != "" }

// flags make a getter as Helm and cli-runtime want it. Only a context given
// means: in the user's kubeconfig.
func (f *clusterFlags) flags(namespace string) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true)
	flags.CacheDir = nil
	flags.Namespace = &namespace
	if f.kubeconfig != "" {
		flags.KubeConfig = &f.kubeconfig
	}
	if f.context != "" {
		flags.Context = &f.context
	}
	return flags
}

func (f *clusterFlags) connect() (client.Client, error) {
	config, err := f.flags("").ToRESTConfig()
	if err != nil {
		return nil, hintf("check --cluster-kubeconfig and --cluster-context", "read the cluster's kubeconfig: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return c, nil
}
