// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/internal/kubeconfig"
)

// hostedOptions are the flags of fleet join for a cluster whose agent runs on the hub's cluster.
type hostedOptions struct {
	enabled   bool
	namespace string
	ports     string
}

func (o *hostedOptions) addFlags(c *cobra.Command) {
	c.Flags().BoolVar(&o.enabled, "hosted", false, "Have the cluster served by the hosted agents on the hub's "+
		"cluster, instead of an agent on it: the two kubeconfigs are stored there, and nothing is installed.")
	c.Flags().StringVar(&o.namespace, "hosted-namespace", "bellwether-hosted",
		"The namespace of the hosted agents on the hub's cluster.")
	c.Flags().StringVar(&o.ports, "view-ports", "", "The ports of the catalog views of a hosted cluster, one for each "+
		"operator. Default: the next 30 of the hosted agents' ports that no hosted cluster has.")
}

// hostedCluster is the content of the Secret from which hosted agents
// serve a cluster, except the kubeconfig for the hub.
type hostedCluster struct {
	secret            client.ObjectKey
	clusterKubeconfig []byte
	ports             string
}

// planHosted checks the flags for a hosted cluster, and chooses its ports. It changes nothing, so that a cluster that
// the hosted agents cannot serve does not join the fleet.
func planHosted(ctx context.Context, h client.Reader, o *joinOptions) (hostedCluster, error) {
	if !o.target.IsSet() {
		return hostedCluster{}, exit.Hintf(
			"set --cluster-kubeconfig to a kubeconfig with the token of a ServiceAccount of the cluster",
			"--hosted needs a kubeconfig for the cluster")
	}
	c := hostedCluster{secret: client.ObjectKey{Namespace: o.hosted.namespace, Name: "hosted-" + o.name}}
	var err error
	if c.clusterKubeconfig, err = readEmbeddedKubeconfig(o); err != nil {
		return hostedCluster{}, err
	}
	c.ports, err = chooseHostedPorts(ctx, h, &o.hosted, c.secret.Name)
	return c, err
}

// storeHostedSecret writes the Secret from which hosted agents serve a cluster.
func (a *app) storeHostedSecret(ctx context.Context, h *hub.Client, o *joinOptions, c hostedCluster,
	hubKubeconfig []byte) error {
	secret := corev1ac.Secret(c.secret.Name, c.secret.Namespace).
		WithLabels(map[string]string{v1alpha1.LabelHostedCluster: o.name}).
		WithData(map[string][]byte{v1alpha1.HostedHubKey: hubKubeconfig, v1alpha1.HostedClusterKey: c.clusterKubeconfig,
			v1alpha1.HostedPortsKey: []byte(c.ports)})
	if err := h.Apply(ctx, secret, hub.FieldOwner, client.ForceOwnership); err != nil {
		return exit.Hint(fmt.Errorf("store the kubeconfigs for the hosted agents: %w", err),
			formatInstallHint(c.secret.Namespace))
	}
	a.Step("stored the kubeconfigs for the hosted agents (Secret %s, ports %s)", c.secret, c.ports)
	return nil
}

// formatInstallHint returns the hint for an error because no hosted agents run in a namespace.
func formatInstallHint(namespace string) string {
	return "install the chart with agent.hosted.enabled=true into namespace " + namespace +
		", or name the right one by --hosted-namespace"
}

// readEmbeddedKubeconfig returns the user's kubeconfig for the cluster with the content of all files that it refers
// to. It returns an error if the kubeconfig cannot be used on another machine.
func readEmbeddedKubeconfig(o *joinOptions) ([]byte, error) {
	flags := o.target.Flags("")
	config, err := flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, exit.Hintf("check --cluster-kubeconfig", "read the cluster's kubeconfig: %w", err)
	}
	config.CurrentContext = cmp.Or(*flags.Context, config.CurrentContext)
	if err := errors.Join(clientcmdapi.MinifyConfig(&config), clientcmdapi.FlattenConfig(&config)); err != nil {
		return nil, exit.Hintf("check --cluster-kubeconfig and --cluster-context", "use the cluster's kubeconfig: %w",
			err)
	}
	content, err := clientcmd.Write(config)
	if err != nil {
		return nil, fmt.Errorf("write the cluster's kubeconfig: %w", err)
	}
	checked, err := kubeconfig.Check(content)
	if err != nil {
		return nil, exit.Hintf("use a kubeconfig with the token of a ServiceAccount of the cluster",
			"the cluster's kubeconfig cannot be used by a hosted agent: %w", err)
	}
	return checked, nil
}
