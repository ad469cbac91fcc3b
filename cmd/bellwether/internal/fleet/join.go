// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/helm"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
)

const (
	agentRelease = "bellwether-agent"
	// hubKubeconfigSecret is the chart's default for agent.hub.kubeconfigSecret.
	hubKubeconfigSecret = "bellwether-hub-kubeconfig" //nolint:gosec // a name, no credential
	kubeconfigKey       = "kubeconfig"
)

// agentCRDs are the chart's CRDs that an agent reads on its own cluster; the others belong to the hub.
var agentCRDs = []string{"endpointprobes." + v1alpha1.SchemeGroupVersion.Group}

// joinOptions are the flags of fleet join.
type joinOptions struct {
	name      string
	labels    map[string]string
	target    hub.ClusterFlags
	values    helm.ValueFlags
	hubServer string
	write     string
	namespace string
	timeout   time.Duration
}

const fleetJoinLong = `Add a cluster to the fleet, or upgrade its agent.

The command creates the FleetCluster on the hub, waits for the credentials of the
agent, installs the agent and its CRD on the cluster with the built-in Helm chart,
and waits until the agent has connected to the hub. You can run it again at any
time. Existing labels and chart values are kept.

The agent connects to the hub; the hub never connects to the cluster. Set
--hub-server if the cluster reaches the hub at another address than your kubeconfig.

To install the agent with another tool, use --write-kubeconfig instead of
--cluster-kubeconfig. The command then writes the agent's kubeconfig to a file and
installs nothing.`

func (a *app) fleetJoinCommand() *cobra.Command {
	var o joinOptions
	c := &cobra.Command{
		Use: "join NAME", Short: "Add a cluster to the fleet", Long: fleetJoinLong,
		Args: command.OneArg("the cluster's name"),
		Example: "  bellwether fleet join prod-1 --labels stage=prod,region=eu --cluster-kubeconfig " +
			"prod-1.kubeconfig",
		ValidArgsFunction: a.CompleteFirst(command.ClusterNames),
		RunE: func(c *cobra.Command, args []string) error {
			o.name = args[0]
			if !o.target.Given() && o.write == "" {
				return exit.Hintf("or set --write-kubeconfig to install the agent with another tool",
					"no kubeconfig for the cluster: set --cluster-kubeconfig")
			}
			return a.join(c.Context(), &o)
		},
	}
	c.Flags().StringToStringVar(&o.labels, "labels", nil,
		"The labels of the cluster, for example stage=prod,region=eu. Selectors and waves use them.")
	c.Flags().StringVar(&o.hubServer, "hub-server", "",
		"The URL at which the cluster reaches the hub's API server. Default: the URL in your kubeconfig.")
	c.Flags().StringVar(&o.write, "write-kubeconfig", "", "Write the agent's kubeconfig for the hub to this file.")
	c.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "The timeout of each step.")
	helm.AddSystemNamespace(c, &o.namespace)
	o.target.Add(c)
	o.values.Add(c)
	return c
}

func (a *app) join(ctx context.Context, o *joinOptions) error {
	given, err := o.values.Merge()
	if err != nil {
		return err
	}
	h, err := a.Hub()
	if err != nil {
		return err
	}
	if err := a.enrol(ctx, h, o); err != nil {
		return err
	}
	secret, err := a.credentials(ctx, h, o)
	if err != nil {
		return err
	}
	config, err := a.Flags.ToRESTConfig()
	if err != nil {
		return command.BadKubeconfig(err)
	}
	kubeconfig, err := agentKubeconfig(config, o.hubServer, secret)
	if err != nil {
		return err
	}
	if o.write != "" {
		if err := os.WriteFile(o.write, kubeconfig, 0o600); err != nil {
			return fmt.Errorf("write the agent's kubeconfig: %w", err)
		}
		a.Step("wrote the agent's kubeconfig for the hub to %s", o.write)
	}
	if !o.target.Given() {
		return nil
	}
	if err := a.installAgent(ctx, o, kubeconfig, given); err != nil {
		return err
	}
	return a.waitOnline(ctx, h, o)
}

// enrol makes the FleetCluster, or adds the labels to the one that is there.
func (a *app) enrol(ctx context.Context, h *hub.Client, o *joinOptions) error {
	cluster := &v1alpha1.FleetCluster{}
	err := h.Get(ctx, client.ObjectKey{Name: o.name}, cluster)
	switch {
	case apierrors.IsNotFound(err):
		cluster = &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: o.name, Labels: o.labels}}
		if err := h.Create(ctx, cluster, hub.FieldOwner); err != nil {
			return fmt.Errorf("create FleetCluster %s: %w", o.name, err)
		}
		a.Step("created FleetCluster %s", o.name)
		return nil
	case err != nil:
		return fmt.Errorf("get FleetCluster %s: %w", o.name, err)
	case cluster.DeletionTimestamp != nil:
		return exit.Hintf("run this again when `"+h.Self+" fleet list` no longer shows the cluster",
			"cluster %s is being removed from the fleet", o.name)
	}
	before := cluster.DeepCopy()
	if cluster.Labels == nil {
		cluster.Labels = map[string]string{}
	}
	maps.Copy(cluster.Labels, o.labels)
	if maps.Equal(before.Labels, cluster.Labels) {
		a.Step("FleetCluster %s exists", o.name)
		return nil
	}
	if err := h.Patch(ctx, cluster, client.MergeFrom(before), hub.FieldOwner); err != nil {
		return fmt.Errorf("label FleetCluster %s: %w", o.name, err)
	}
	a.Step("set the labels of FleetCluster %s", o.name)
	return nil
}

// credentials waits for the token that the hub makes for the agent.
func (a *app) credentials(ctx context.Context, h *hub.Client, o *joinOptions) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	cluster := &v1alpha1.FleetCluster{}
	err := hub.Poll(ctx, o.timeout, func() (bool, error) {
		if err := h.Get(ctx, client.ObjectKey{Name: o.name}, cluster); err != nil {
			return false, fmt.Errorf("get FleetCluster %s: %w", o.name, err)
		}
		if cluster.Status.Namespace == "" || cluster.Status.CredentialsSecret == nil {
			return false, nil
		}
		key := client.ObjectKey{Namespace: cluster.Status.Namespace, Name: cluster.Status.CredentialsSecret.Name}
		if err := h.Get(ctx, key, secret); err != nil {
			return false, client.IgnoreNotFound(fmt.Errorf("get the agent's credentials: %w", err))
		}
		return len(secret.Data[corev1.ServiceAccountTokenKey]) > 0, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
		if ready != nil && ready.Status == metav1.ConditionFalse && cluster.Status.CredentialsSecret == nil {
			return nil, fmt.Errorf("the hub has not created credentials for cluster %s: %s", o.name, ready.Message)
		}
		return nil, exit.Hintf("check that the hub is running: kubectl -n "+helm.SystemNamespace+" get pods",
			"the hub has not created credentials for cluster %s within %s", o.name, o.timeout)
	}
	if err != nil {
		return nil, err
	}
	a.Step("the hub has created namespace %s and the agent's credentials", cluster.Status.Namespace)
	return secret, nil
}

// agentKubeconfig is how the agent reaches the hub: with its own token, at the
// address of the user's kubeconfig or another one.
func agentKubeconfig(hubConfig *rest.Config, server string, secret *corev1.Secret) ([]byte, error) {
	if server != "" {
		if parsed, err := url.Parse(server); err != nil || parsed.Host == "" {
			return nil,
				exit.Hintf("use the form https://hub.example.com:6443", "invalid value %q of --hub-server", server)
		}
	}
	tls := rest.CopyConfig(hubConfig)
	if err := rest.LoadTLSFiles(tls); err != nil {
		return nil, fmt.Errorf("read the hub's certificate authority: %w", err)
	}
	authority := tls.CAData
	if len(authority) == 0 && !tls.Insecure {
		authority = secret.Data[corev1.ServiceAccountRootCAKey]
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{
		Server: cmp.Or(server, hubConfig.Host), CertificateAuthorityData: authority,
		InsecureSkipTLSVerify: tls.Insecure, TLSServerName: tls.ServerName,
	}
	config.AuthInfos["agent"] = &clientcmdapi.AuthInfo{Token: string(secret.Data[corev1.ServiceAccountTokenKey])}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "agent", Namespace: secret.Namespace}
	config.CurrentContext = "hub"
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write the agent's kubeconfig: %w", err)
	}
	return text, nil
}

// installAgent puts the credentials and the agent on the cluster.
func (a *app) installAgent(ctx context.Context, o *joinOptions, kubeconfig []byte, given map[string]any) error {
	c, err := o.target.Connect()
	if err != nil {
		return err
	}
	if err := storeKubeconfig(ctx, c, o.namespace, kubeconfig); err != nil {
		return exit.Hint(err, "check --cluster-kubeconfig, and that it has administrator permissions on the cluster")
	}
	a.Step("stored the agent's credentials on the cluster (Secret %s/%s)", o.namespace, hubKubeconfigSecret)
	ch, err := charts.Load()
	if err != nil {
		return err
	}
	if err := helm.ApplyCRDs(ctx, c, ch, o.timeout, agentCRDs...); err != nil {
		return err
	}
	a.Step("installed CRDs %s on the cluster", ch.AppVersion())
	values := chartutil.MergeTables(given, map[string]any{"agent": map[string]any{
		"enabled": true, "cluster": o.name, "hub": map[string]any{"kubeconfigSecret": hubKubeconfigSecret},
	}})
	r := helm.Release{Name: agentRelease, Namespace: o.namespace, Cluster: o.target.Flags(o.namespace)}
	if err := r.Apply(ctx, ch, values, 0); err != nil {
		return err
	}
	a.Step("installed agent %s", ch.AppVersion())
	return nil
}

func storeKubeconfig(ctx context.Context, c client.Client, namespace string, kubeconfig []byte) error {
	if err := c.Apply(ctx, corev1ac.Namespace(namespace), hub.FieldOwner); err != nil {
		return fmt.Errorf("create namespace %s on the cluster: %w", namespace, err)
	}
	secret := corev1ac.Secret(hubKubeconfigSecret, namespace).WithData(map[string][]byte{kubeconfigKey: kubeconfig})
	if err := c.Apply(ctx, secret, hub.FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("store the agent's credentials on the cluster: %w", err)
	}
	return nil
}

// olmGrace is how long a new agent may take to find OLM.
const olmGrace = 15 * time.Second

func (a *app) waitOnline(ctx context.Context, h *hub.Client, o *joinOptions) error {
	cluster := &v1alpha1.FleetCluster{}
	is := func(condition string) func() (bool, error) {
		return func() (bool, error) {
			if err := h.Get(ctx, client.ObjectKey{Name: o.name}, cluster); err != nil {
				return false, fmt.Errorf("get FleetCluster %s: %w", o.name, err)
			}
			return meta.IsStatusConditionTrue(cluster.Status.Conditions, condition), nil
		}
	}
	err := hub.Poll(ctx, o.timeout, is(v1alpha1.ConditionOnline))
	if errors.Is(err, context.DeadlineExceeded) {
		return exit.Hintf("on the cluster, look at the agent's logs: kubectl -n "+o.namespace+" logs "+
			"deployment/bellwether-agent; it must reach the hub (see --hub-server)",
			"the agent of cluster %s has not connected to the hub within %s", o.name, o.timeout)
	}
	if err != nil {
		return err
	}
	versions := cluster.Status.Versions
	a.Step("cluster %s is online: Kubernetes %s, agent %s", o.name, cmp.Or(versions.Kubernetes, "unknown"),
		cmp.Or(versions.Agent, "unknown"))
	err = hub.Poll(ctx, olmGrace, is(v1alpha1.ConditionOLMAvailable))
	if errors.Is(err, context.DeadlineExceeded) {
		a.Warn("The cluster has no OLM. Install the Operator Lifecycle Manager (v0); the agent detects it " +
			"itself.\n")
		return nil
	}
	if err != nil {
		return err
	}
	a.Step("OLM is installed on the cluster")
	return nil
}
