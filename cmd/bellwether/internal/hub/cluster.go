// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

// ClusterFlags are the flags that select a cluster of the fleet.
type ClusterFlags struct {
	kubeconfig string
	context    string
}

// Add adds the flags to a command.
func (f *ClusterFlags) Add(c *cobra.Command) {
	c.Flags().StringVar(&f.kubeconfig, "cluster-kubeconfig", "", "The kubeconfig `FILE` for the fleet cluster.")
	c.Flags().StringVar(&f.context, "cluster-context", "",
		"The context in that kubeconfig. Default: the current context.")
	_ = c.MarkFlagFilename("cluster-kubeconfig")
}

// NewClusterFlags returns the flags for a cluster whose kubeconfig is in a file.
func NewClusterFlags(kubeconfig string) ClusterFlags { return ClusterFlags{kubeconfig: kubeconfig} }

// IsSet reports whether the user selected a cluster.
func (f *ClusterFlags) IsSet() bool { return f.kubeconfig != "" || f.context != "" }

// Flags returns the flags in the type that Helm and cli-runtime need. If only the context is set, it is a
// context of the user's kubeconfig.
func (f *ClusterFlags) Flags(namespace string) *genericclioptions.ConfigFlags {
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

// Connect returns a client for the cluster.
func (f *ClusterFlags) Connect() (client.Client, error) {
	config, err := f.Flags("").ToRESTConfig()
	if err != nil {
		return nil, exit.Hintf("check --cluster-kubeconfig and --cluster-context", "read the cluster's kubeconfig: %w",
			err)
	}
	c, err := client.New(config, client.Options{Scheme: Scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return c, nil
}

// Kubectl returns the flags with which kubectl connects to the same cluster.
func (f *ClusterFlags) Kubectl() string {
	var flags []string
	if f.kubeconfig != "" {
		flags = append(flags, "--kubeconfig "+f.kubeconfig)
	}
	if f.context != "" {
		flags = append(flags, "--context "+f.context)
	}
	return strings.Join(flags, " ")
}
