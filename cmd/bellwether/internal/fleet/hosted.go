// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/internal/kubeconfig"
)

// hostedOptions are the flags of fleet join for a cluster whose agent runs beside the
// hub.
type hostedOptions struct {
	enabled   bool
	namespace string
	ports     string
}

func (o *hostedOptions) add(c *cobra.Command) {
	c.Flags().BoolVar(&o.enabled, "hosted", false, "Have the cluster served by the hosted agents on the hub's "+
		"cluster, instead of an agent on it: the two kubeconfigs are stored there, and nothing is installed.")
	c.Flags().StringVar(&o.namespace, "hosted-namespace", "bellwether-hosted",
		"The namespace of the hosted agents on the hub's cluster.")
	c.Flags().StringVar(&o.ports, "view-ports", "", "The ports of the catalog views of a hosted cluster, one for each "+
		"operator. Default: the next 30 that no hosted cluster has, from 50100.")
}

// storeHosted gives hosted agents what they need to serve a cluster.
func (a *app) storeHosted(ctx context.Context, h *hub.Client, o *joinOptions, hubKubeconfig []byte) error {
	if !o.target.Given() {
		return exit.Hintf("set --cluster-kubeconfig to a kubeconfig with the token of a ServiceAccount of the cluster",
			"--hosted needs a kubeconfig for the cluster")
	}
	local, err := embeddedKubeconfig(o)
	if err != nil {
		return err
	}
	name := "hosted-" + o.name
	ports, err := hostedPorts(ctx, h, &o.hosted, name)
	if err != nil {
		return err
	}
	secret := corev1ac.Secret(name, o.hosted.namespace).
		WithLabels(map[string]string{v1alpha1.LabelHostedCluster: o.name}).
		WithData(map[string][]byte{v1alpha1.HostedHubKey: hubKubeconfig, v1alpha1.HostedClusterKey: local,
			v1alpha1.HostedPortsKey: []byte(ports)})
	if err := h.Apply(ctx, secret, hub.FieldOwner, client.ForceOwnership); err != nil {
		return exit.Hint(fmt.Errorf("store the kubeconfigs for the hosted agents: %w", err),
			"install the chart with agent.hosted.enabled=true into namespace "+o.hosted.namespace+
				", or name the right one by --hosted-namespace")
	}
	a.Step("stored the kubeconfigs for the hosted agents (Secret %s/%s, ports %s)", o.hosted.namespace, name, ports)
	return nil
}

// embeddedKubeconfig is the user's kubeconfig for the cluster with what it reads from
// files, if it can be used somewhere else.
func embeddedKubeconfig(o *joinOptions) ([]byte, error) {
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

// hostedPorts returns the ports that the user names, those that the cluster has, or
// free ones.
func hostedPorts(ctx context.Context, h *hub.Client, o *hostedOptions, name string) (string, error) {
	if o.ports != "" {
		return o.ports, nil
	}
	var secrets corev1.SecretList
	if err := h.List(ctx, &secrets, client.InNamespace(o.namespace),
		client.HasLabels{v1alpha1.LabelHostedCluster}); err != nil {
		return "", fmt.Errorf("list the hosted clusters: %w", err)
	}
	var taken []portRange
	for i := range secrets.Items {
		text := string(secrets.Items[i].Data[v1alpha1.HostedPortsKey])
		if secrets.Items[i].Name == name && text != "" {
			return text, nil
		}
		var r portRange
		if _, err := fmt.Sscanf(text, "%d-%d", &r.first, &r.last); err == nil {
			taken = append(taken, r)
		}
	}
	free, ok := freePorts(taken)
	if !ok {
		return "", exit.Hintf("set --view-ports", "no %d ports in a row are free for another hosted cluster",
			portsEach)
	}
	return fmt.Sprintf("%d-%d", free.first, free.last), nil
}

type portRange struct{ first, last int }

const (
	firstPort = 50100
	lastPort  = 65535
	// portsEach is how many operators a hosted cluster may have by default.
	portsEach = 30
)

// freePorts returns the lowest range that overlaps with none.
func freePorts(taken []portRange) (portRange, bool) {
	slices.SortFunc(taken, func(a, b portRange) int { return cmp.Compare(a.first, b.first) })
	free := portRange{firstPort, firstPort + portsEach - 1}
	for _, t := range taken {
		if free.last < t.first {
			break
		}
		if t.last >= free.first {
			free = portRange{t.last + 1, t.last + portsEach}
		}
	}
	return free, free.last <= lastPort
}
