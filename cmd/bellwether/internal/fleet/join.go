// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/helm"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/controllers/agent/credentials"
	"github.com/bellwether-dev/bellwether/fleet"
)

const (
	agentRelease = "bellwether-agent"
	// hubKubeconfigSecret is the chart's default for agent.hub.kubeconfigSecret.
	hubKubeconfigSecret = "bellwether-hub-kubeconfig" //nolint:gosec // a name, no credential
	kubeconfigKey       = "kubeconfig"
)

// agentCRD is the CRD that an agent reads on its own cluster; all other CRDs are read on the hub.
var agentCRD = "endpointprobes." + v1alpha1.SchemeGroupVersion.Group

// joinOptions are the flags of fleet join.
type joinOptions struct {
	name           string
	labels         map[string]string
	target         hub.ClusterFlags
	hosted         hostedOptions
	values         helm.ValueFlags
	hubServer      string
	tokenLifetime  time.Duration
	kubeconfigFile string
	manifestFile   string
	namespace      string
	timeout        time.Duration
	// readOnly is nil if the flag is not set: the agent then keeps its current setting.
	readOnly *bool
}

const fleetJoinLong = `Add a cluster to the fleet, or upgrade its agent.

The command creates the FleetCluster on the hub, requests a token for the agent
with your credentials, installs the agent and its CRD on the cluster with the
built-in Helm chart, and waits until the agent has connected to the hub. You can
run it again at any time. Existing labels and chart values are kept.

The token is valid for an hour. The agent exchanges it for one of its own when it
starts, and renews that from then on. If an agent was away for longer than its
token is valid, or its access was revoked, run this command again.

The agent connects to the hub; the hub never connects to the cluster. Set
--hub-server if the cluster reaches the hub at another address than your kubeconfig.

To install the agent with another tool, use --write-manifest or --write-kubeconfig
instead of --cluster-kubeconfig. The command then installs nothing. It writes a
manifest with the namespace and the Secret that the agent starts from, or only the
kubeconfig in that Secret.

With --read-only, the agent reports which operators run on the cluster, for
` + "`bellwether fleet scan`" + `, and can change nothing there. To let it manage operators, run
the command again with --read-only=false.

If the cluster cannot reach the hub, use --hosted: agents beside the hub then serve
it by its kubeconfig, which must hold a token or certificates itself.`

func (a *app) newJoinCommand() *cobra.Command {
	var o joinOptions
	var readOnly bool
	c := &cobra.Command{
		Use: "join NAME", Short: "Add a cluster to the fleet", Long: fleetJoinLong,
		Args: command.OneArg("the cluster's name"),
		Example: "  bellwether fleet join prod-1 --labels stage=prod,region=eu --cluster-kubeconfig " +
			"prod-1.kubeconfig",
		ValidArgsFunction: a.CompleteFirst(command.ListClusterNames),
		RunE: func(c *cobra.Command, args []string) error {
			o.name = args[0]
			if !o.target.IsSet() && o.kubeconfigFile == "" && o.manifestFile == "" {
				return exit.Hintf("or set --write-manifest or --write-kubeconfig to install the agent with "+
					"another tool",
					"no kubeconfig for the cluster: set --cluster-kubeconfig")
			}
			if c.Flags().Changed("read-only") {
				o.readOnly = &readOnly
			}
			if err := o.checkReadOnly(); err != nil {
				return err
			}
			if o.tokenLifetime < minLifetime {
				return exit.Hintf("use 10m or more: Kubernetes issues no shorter ones",
					"invalid value %q of --token-lifetime", o.tokenLifetime)
			}
			return a.join(c.Context(), &o)
		},
	}
	c.Flags().StringToStringVar(&o.labels, "labels", nil,
		"The labels of the cluster as `KEY=VALUE`, for example stage=prod,region=eu. Selectors and waves use them.")
	c.Flags().StringVar(&o.hubServer, "hub-server", "",
		"The URL at which the cluster reaches the hub's API server. Default: the URL in your kubeconfig.")
	c.Flags().StringVar(&o.kubeconfigFile, "write-kubeconfig", "",
		"Write the agent's kubeconfig for the hub to this file.")
	c.Flags().StringVar(&o.manifestFile, "write-manifest", "",
		"Write a manifest with the agent's namespace and the Secret with its kubeconfig to this file.")
	c.Flags().DurationVar(&o.tokenLifetime, "token-lifetime", time.Hour,
		"How long the agent may take to connect to the hub for the first time, at least 10m.")
	c.Flags().BoolVar(&readOnly, "read-only", false,
		"Install an agent that reports which operators run on the cluster, and that can change nothing there.")
	command.AddTimeout(c, &o.timeout, 5*time.Minute, "The timeout of each step.")
	helm.AddSystemNamespace(c, &o.namespace)
	o.target.Add(c)
	o.hosted.addFlags(c)
	o.values.Add(c)
	return c
}

// checkReadOnly returns an error if --read-only is set to any value together with --hosted or without
// --cluster-kubeconfig.
func (o *joinOptions) checkReadOnly() error {
	switch {
	case o.readOnly == nil:
		return nil
	case o.hosted.enabled:
		return exit.Hintf("give the agent a kubeconfig that may only read, if that is what you want",
			"--read-only and --hosted exclude each other")
	case !o.target.IsSet(): // this command then installs no agent
		return exit.Hintf("set agent.readOnly in the values of the chart, if another tool installs the agent",
			"--read-only needs --cluster-kubeconfig")
	}
	return nil
}

// checkNotManaged refuses --read-only for a cluster with operators that Bellwether manages, because the agent would
// lose the rights to maintain them.
func (o *joinOptions) checkNotManaged(ctx context.Context, h *hub.Client) error {
	if o.readOnly == nil || !*o.readOnly {
		return nil
	}
	installs := &v1alpha1.OperatorInstallList{}
	err := h.List(ctx, installs, client.InNamespace(v1alpha1.ClusterNamespace(o.name)), client.Limit(1))
	if err != nil {
		return fmt.Errorf("list operators of cluster %s: %w", o.name, err)
	}
	if len(installs.Items) > 0 {
		return exit.Hintf("let no ManagedOperator select the cluster, and wait until `"+h.Self+" fleet get "+o.name+
			"` shows no operators", "cluster %s has operators that Bellwether manages: an agent that may only read "+
			"could not maintain them", o.name)
	}
	return nil
}

// join adds the cluster to the fleet, and writes the files for other tools. With --hosted it stores the Secret for
// the hosted agents. With a kubeconfig for the cluster it installs the agent. In both cases it then waits until the
// cluster is online.
func (a *app) join(ctx context.Context, o *joinOptions) error {
	userValues, err := o.values.Merge()
	if err != nil {
		return err
	}
	h, err := a.Hub()
	if err != nil {
		return err
	}
	if err := o.checkNotManaged(ctx, h); err != nil {
		return err
	}
	var hosted hostedCluster
	if o.hosted.enabled {
		if hosted, err = planHosted(ctx, h, o); err != nil {
			return err
		}
	}
	if err := a.ensureFleetCluster(ctx, h, o); err != nil {
		return err
	}
	kubeconfig, err := a.requestKubeconfig(ctx, h, o)
	if err != nil {
		return err
	}
	if err := a.writeFiles(o, kubeconfig); err != nil {
		return err
	}
	if o.hosted.enabled {
		if err := a.storeHostedSecret(ctx, h, o, hosted, kubeconfig); err != nil {
			return err
		}
		return a.waitOnline(ctx, h, o)
	}
	if !o.target.IsSet() {
		return nil
	}
	if err := a.installAgent(ctx, o, kubeconfig, userValues); err != nil {
		return err
	}
	if err := a.waitOnline(ctx, h, o); err != nil {
		return err
	}
	return removeOldToken(ctx, h, o.name)
}

// requestKubeconfig returns a kubeconfig with which the agent connects to the hub for the
// first time. It requests a token for the agent.
func (a *app) requestKubeconfig(ctx context.Context, h *hub.Client, o *joinOptions) ([]byte, error) {
	config, err := a.Flags.ToRESTConfig()
	if err != nil {
		return nil, command.AddKubeconfigHint(err)
	}
	if err := checkServer(o.hubServer); err != nil {
		return nil, err
	}
	token, err := a.requestToken(ctx, h, o)
	if err != nil {
		return nil, err
	}
	if err := a.checkRenewal(ctx, config, o.name, token); err != nil {
		return nil, err
	}
	tls, err := buildTLSConfig(ctx, h, config, v1alpha1.ClusterNamespace(o.name))
	if err != nil {
		return nil, err
	}
	return buildAgentKubeconfig(cmp.Or(o.hubServer, config.Host), tls, v1alpha1.ClusterNamespace(o.name), token)
}

// ensureFleetCluster creates the FleetCluster, or adds the labels to the existing FleetCluster.
func (a *app) ensureFleetCluster(ctx context.Context, h *hub.Client, o *joinOptions) error {
	existing := &v1alpha1.FleetCluster{}
	switch err := h.Get(ctx, client.ObjectKey{Name: o.name}, existing); {
	case apierrors.IsNotFound(err):
		existing = nil
	case err != nil:
		return fmt.Errorf("get FleetCluster %s: %w", o.name, err)
	}
	cluster, change := fleet.PlanJoin(existing, o.name, o.labels)
	switch change {
	case fleet.JoinCreates:
		if err := h.Create(ctx, cluster, hub.FieldOwner); err != nil {
			return fmt.Errorf("create FleetCluster %s: %w", o.name, err)
		}
		a.Step("created FleetCluster %s", o.name)
	case fleet.JoinLabels:
		if err := h.Patch(ctx, cluster, client.MergeFrom(existing), hub.FieldOwner); err != nil {
			return fmt.Errorf("label FleetCluster %s: %w", o.name, err)
		}
		a.Step("set the labels of FleetCluster %s", o.name)
	case fleet.JoinKeeps:
		a.Step("FleetCluster %s exists", o.name)
	case fleet.JoinRefused:
		return exit.Hintf("run this again when `"+h.Self+" fleet list` no longer shows the cluster",
			"cluster %s is being removed from the fleet", o.name)
	}
	return nil
}

// minLifetime is the shortest lifetime of a token that an API server accepts.
const minLifetime = 10 * time.Minute

// requestToken waits until the hub has created the agent's ServiceAccount, and returns a new token for it. The API
// server can shorten the requested lifetime.
func (a *app) requestToken(ctx context.Context, h *hub.Client, o *joinOptions) (string, error) {
	cluster := &v1alpha1.FleetCluster{}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(o.tokenLifetime / time.Second))}}
	err := hub.Poll(ctx, o.timeout, func() (bool, error) {
		if err := h.Get(ctx, client.ObjectKey{Name: o.name}, cluster); err != nil {
			return false, fmt.Errorf("get FleetCluster %s: %w", o.name, err)
		}
		if cluster.Status.Namespace == "" {
			return false, nil
		}
		err := h.SubResource("token").Create(ctx, fleet.NewAgentAccount(o.name), request)
		if err != nil {
			err = fmt.Errorf("request a token for the agent: %w", err)
		}
		// If the ServiceAccount is not found, the hub has not created it yet.
		return err == nil, client.IgnoreNotFound(err)
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		if reason := fleet.ExplainMissingNamespace(cluster); reason != "" {
			return "", fmt.Errorf("the hub has not created a namespace for cluster %s: %s", o.name, reason)
		}
		return "", exit.Hintf("check that the hub is running: kubectl -n "+helm.SystemNamespace+" get pods",
			"the hub has not created a ServiceAccount for cluster %s within %s", o.name, o.timeout)
	case apierrors.IsForbidden(err):
		return "", exit.Hint(err, "you need the permission to create serviceaccounts/token in namespace "+
			v1alpha1.ClusterNamespace(o.name)+": the ClusterRole bellwether-join of the hub's chart has it")
	case err != nil:
		return "", err
	}
	lifetime := time.Duration(ptr.Deref(request.Spec.ExpirationSeconds, 0)) * time.Second
	a.Step("got a token for the agent, which must connect to the hub within %s", duration.HumanDuration(lifetime))
	return request.Status.Token, nil
}

// renewalTimeout is how long the hub may take to grant a new ServiceAccount its Role.
const renewalTimeout = 15 * time.Second

// checkRenewal returns an error if the agent is not permitted to renew its token. A hub of an earlier version does
// not grant this permission, and the agent would lose its access when the first token expires.
func (a *app) checkRenewal(ctx context.Context, config *rest.Config, cluster, token string) error {
	agent := rest.AnonymousClientConfig(config)
	agent.BearerToken = token
	c, err := client.New(agent, client.Options{Scheme: hub.Scheme})
	if err != nil {
		return fmt.Errorf("connect to the hub as the agent: %w", err)
	}
	err = hub.Poll(ctx, renewalTimeout, func() (bool, error) {
		review := fleet.NewRenewalReview(cluster)
		if err := c.Create(ctx, review); err != nil {
			return false, fmt.Errorf("ask the hub what the agent may do: %w", err)
		}
		return review.Status.Allowed, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return exit.Hintf("upgrade the hub with `"+a.Self+" install hub`, and run this again",
			"the hub does not let the agent of cluster %s renew its token", cluster)
	}
	return err
}

// checkServer returns an error unless the value of --hub-server is empty or a URL with a host.
func checkServer(server string) error {
	if server == "" {
		return nil
	}
	if parsed, err := url.Parse(server); err != nil || parsed.Host == "" {
		return exit.Hintf("use the form https://hub.example.com:6443", "invalid value %q of --hub-server", server)
	}
	return nil
}

// buildTLSConfig returns how the agent verifies the hub's certificate: as the user's kubeconfig does. If the
// kubeconfig relies on the certificates of the user's machine, which the cluster might lack, the result has the CA
// certificates that the hub publishes, provided that they verify the hub.
func buildTLSConfig(ctx context.Context, h client.Reader, config *rest.Config,
	namespace string) (rest.TLSClientConfig, error) {
	loaded := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(loaded); err != nil {
		return rest.TLSClientConfig{}, fmt.Errorf("read the hub's certificate authority: %w", err)
	}
	tls := rest.TLSClientConfig{Insecure: loaded.Insecure, ServerName: loaded.ServerName, CAData: loaded.CAData}
	if tls.Insecure || len(tls.CAData) > 0 {
		return tls, nil
	}
	published := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: namespace, Name: "kube-root-ca.crt"}
	if err := h.Get(ctx, key, published); err != nil {
		return tls, client.IgnoreNotFound(fmt.Errorf("get the hub's certificate authority: %w", err))
	}
	if bundle := []byte(published.Data["ca.crt"]); credentials.Verify(ctx, loaded, bundle) == nil {
		tls.CAData = bundle
	}
	return tls, nil
}

// buildAgentKubeconfig returns a kubeconfig with which the agent connects to the hub by a token.
func buildAgentKubeconfig(server string, tls rest.TLSClientConfig, namespace, token string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: tls.CAData,
		InsecureSkipTLSVerify: tls.Insecure, TLSServerName: tls.ServerName}
	config.AuthInfos["agent"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "agent", Namespace: namespace}
	config.CurrentContext = "hub"
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write the agent's kubeconfig: %w", err)
	}
	return text, nil
}

// writeFiles writes the files of --write-kubeconfig and --write-manifest, for another tool to install the agent.
func (a *app) writeFiles(o *joinOptions, kubeconfig []byte) error {
	if o.kubeconfigFile != "" {
		if err := os.WriteFile(o.kubeconfigFile, kubeconfig, 0o600); err != nil {
			return fmt.Errorf("write the agent's kubeconfig: %w", err)
		}
		a.Step("wrote the agent's kubeconfig for the hub to %s", o.kubeconfigFile)
	}
	if o.manifestFile == "" {
		return nil
	}
	manifest, err := buildManifest(o.namespace, kubeconfig)
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.manifestFile, manifest, 0o600); err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	a.Step("wrote namespace %s and Secret %s with the agent's kubeconfig to %s", o.namespace, hubKubeconfigSecret,
		o.manifestFile)
	return nil
}

// buildManifest returns the namespace and the Secret that the agent
// needs on its cluster before the chart is installed.
func buildManifest(namespace string, kubeconfig []byte) ([]byte, error) {
	var out bytes.Buffer
	for _, object := range []any{corev1ac.Namespace(namespace), corev1ac.Secret(hubKubeconfigSecret, namespace).
		WithType(corev1.SecretTypeOpaque).WithStringData(map[string]string{kubeconfigKey: string(kubeconfig)})} {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encode the manifest: %w", err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes(), nil
}

// oldTokenSecret is the Secret in which earlier versions of the hub kept a token that never expires. The hub has no
// rights on this Secret, so join deletes it with the user's rights.
const oldTokenSecret = "bellwether-agent-token"

// removeOldToken deletes oldTokenSecret of a cluster, if it exists and the user has the right.
func removeOldToken(ctx context.Context, h *hub.Client, cluster string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(cluster),
		Name: oldTokenSecret}}
	if err := h.Delete(ctx, secret); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("delete the token of an earlier version: %w", err)
	}
	return nil
}

// installAgent stores the kubeconfig for the hub on the cluster and installs the agent there.
func (a *app) installAgent(ctx context.Context, o *joinOptions, kubeconfig []byte, userValues map[string]any) error {
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
	r := helm.Release{Name: agentRelease, Namespace: o.namespace, Cluster: o.target.Flags(o.namespace)}
	agent := map[string]any{
		"enabled": true, "cluster": o.name, "hub": map[string]any{"kubeconfigSecret": hubKubeconfigSecret},
	}
	if o.readOnly != nil {
		agent["readOnly"] = *o.readOnly
	}
	values := chartutil.MergeTables(userValues, map[string]any{"agent": agent})
	if err := a.applyAgent(ctx, o, c, r, ch, values); err != nil {
		return err
	}
	if err := helm.WaitForCRDs(ctx, c, o.timeout, agentCRD); err != nil {
		return exit.Hint(err, "the agent needs it: apply bellwether-crds.yaml of the release, or set crds.enabled=true")
	}
	a.Step("installed agent %s with its CRD", ch.AppVersion())
	return nil
}

// applyAgent installs the agent's part of the chart with its CRD. It retries because OLM, if it also installs the
// agent, may write the CRD at the same time and remove the ownership metadata of the Helm release. It returns the
// error of the last attempt, not the timeout.
func (a *app) applyAgent(ctx context.Context, o *joinOptions, c client.Client, r helm.Release, ch *chart.Chart,
	values map[string]any) error {
	var applyErr error
	err := hub.Poll(ctx, o.timeout, func() (bool, error) {
		if applyErr = a.takeCRDOwnership(ctx, c, r, values); applyErr == nil {
			applyErr = r.Apply(ctx, ch, values, 0)
		}
		isFinal := applyErr == nil || !isOwnershipLost(applyErr)
		return isFinal, applyErr
	})
	return cmp.Or(applyErr, err)
}

// isOwnershipLost reports whether Helm failed because the CRD exists without the ownership metadata of the release.
// The first of the two errors has no type in Helm.
func isOwnershipLost(err error) bool {
	return strings.Contains(err.Error(), agentCRD) &&
		(strings.Contains(err.Error(), "invalid ownership metadata") || apierrors.IsAlreadyExists(err))
}

// takeCRDOwnership makes the existing CRD of the agent part of the release r. If the CRD belongs to another release,
// for example of the hub on the same cluster, it sets crds.enabled=false in values instead.
func (a *app) takeCRDOwnership(ctx context.Context, c client.Client, r helm.Release, values map[string]any) error {
	included, err := r.InstallsCRDs(values)
	if err != nil || !included {
		return err
	}
	owner, err := helm.FindCRDOwner(ctx, c, agentCRD)
	if err != nil {
		return err
	}
	if owner.Name != "" && owner != (types.NamespacedName{Namespace: r.Namespace, Name: r.Name}) {
		a.Step("CRD %s is left to release %s, which it belongs to", agentCRD, owner)
		chartutil.MergeTables(values, map[string]any{"crds": map[string]any{"enabled": false}})
		return nil
	}
	return r.TakeCRDs(ctx, c, agentCRD)
}

// storeKubeconfig writes the kubeconfig for the hub to a Secret on the cluster, and creates the namespace for it.
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

// suggestCheck returns the hint for an agent that has not connected: where the user can find the cause.
func (o *joinOptions) suggestCheck() string {
	if o.hosted.enabled {
		return "an Event on the Secret says why the hosted agents cannot serve the cluster: kubectl -n " +
			o.hosted.namespace + " describe secret hosted-" + o.name
	}
	return "on the cluster, look at the agent's logs: kubectl -n " + o.namespace + " logs " +
		"deployment/bellwether-agent; it must reach the hub (see --hub-server)"
}

// olmTimeout is how long a new agent may take to detect OLM.
const olmTimeout = 15 * time.Second

// waitOnline waits until the cluster is online, and then at most olmTimeout until the agent has detected OLM. It
// prints both results. A cluster without OLM is a warning and no error.
func (a *app) waitOnline(ctx context.Context, h *hub.Client, o *joinOptions) error {
	cluster := &v1alpha1.FleetCluster{}
	newConditionCheck := func(condition string) func() (bool, error) {
		return func() (bool, error) {
			if err := h.Get(ctx, client.ObjectKey{Name: o.name}, cluster); err != nil {
				return false, fmt.Errorf("get FleetCluster %s: %w", o.name, err)
			}
			return meta.IsStatusConditionTrue(cluster.Status.Conditions, condition), nil
		}
	}
	err := hub.Poll(ctx, o.timeout, newConditionCheck(v1alpha1.ConditionOnline))
	if errors.Is(err, context.DeadlineExceeded) {
		return exit.Hintf(o.suggestCheck(),
			"the agent of cluster %s has not connected to the hub within %s", o.name, o.timeout)
	}
	if err != nil {
		return err
	}
	versions := cluster.Status.Versions
	a.Step("cluster %s is online: Kubernetes %s, agent %s", o.name, cmp.Or(versions.Kubernetes, "unknown"),
		cmp.Or(versions.Agent, "unknown"))
	err = hub.Poll(ctx, olmTimeout, newConditionCheck(v1alpha1.ConditionOLMAvailable))
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
