// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
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
	"github.com/bellwether-dev/bellwether/controllers/credentials"
)

const (
	agentRelease = "bellwether-agent"
	// hubKubeconfigSecret is the chart's default for agent.hub.kubeconfigSecret.
	hubKubeconfigSecret = "bellwether-hub-kubeconfig" //nolint:gosec // a name, no credential
	kubeconfigKey       = "kubeconfig"
)

// agentCRD is the CRD that an agent reads on its own cluster; the others belong to the hub.
var agentCRD = "endpointprobes." + v1alpha1.SchemeGroupVersion.Group

// joinOptions are the flags of fleet join.
type joinOptions struct {
	name      string
	labels    map[string]string
	target    hub.ClusterFlags
	hosted    hostedOptions
	values    helm.ValueFlags
	hubServer string
	lifetime  time.Duration
	write     string
	manifest  string
	namespace string
	timeout   time.Duration
	// readOnly is nil where the cluster keeps what it has.
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

func (a *app) fleetJoinCommand() *cobra.Command {
	var o joinOptions
	var readOnly bool
	c := &cobra.Command{
		Use: "join NAME", Short: "Add a cluster to the fleet", Long: fleetJoinLong,
		Args: command.OneArg("the cluster's name"),
		Example: "  bellwether fleet join prod-1 --labels stage=prod,region=eu --cluster-kubeconfig " +
			"prod-1.kubeconfig",
		ValidArgsFunction: a.CompleteFirst(command.ClusterNames),
		RunE: func(c *cobra.Command, args []string) error {
			o.name = args[0]
			if !o.target.Given() && o.write == "" && o.manifest == "" {
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
			if o.lifetime < minLifetime {
				return exit.Hintf("use 10m or more: Kubernetes issues no shorter ones",
					"invalid value %q of --token-lifetime", o.lifetime)
			}
			return a.join(c.Context(), &o)
		},
	}
	c.Flags().StringToStringVar(&o.labels, "labels", nil,
		"The labels of the cluster as `KEY=VALUE`, for example stage=prod,region=eu. Selectors and waves use them.")
	c.Flags().StringVar(&o.hubServer, "hub-server", "",
		"The URL at which the cluster reaches the hub's API server. Default: the URL in your kubeconfig.")
	c.Flags().StringVar(&o.write, "write-kubeconfig", "", "Write the agent's kubeconfig for the hub to this file.")
	c.Flags().StringVar(&o.manifest, "write-manifest", "",
		"Write a manifest with the agent's namespace and the Secret with its kubeconfig to this file.")
	c.Flags().DurationVar(&o.lifetime, "token-lifetime", time.Hour,
		"How long the agent may take to connect to the hub for the first time, at least 10m.")
	c.Flags().BoolVar(&readOnly, "read-only", false,
		"Install an agent that reports which operators run on the cluster, and that can change nothing there.")
	command.Timeout(c, &o.timeout, 5*time.Minute, "The timeout of each step.")
	helm.AddSystemNamespace(c, &o.namespace)
	o.target.Add(c)
	o.hosted.add(c)
	o.values.Add(c)
	return c
}

// checkReadOnly refuses what an agent that may only read cannot be.
func (o *joinOptions) checkReadOnly() error {
	switch {
	case o.readOnly == nil:
		return nil
	case o.hosted.enabled:
		return exit.Hintf("give the agent a kubeconfig that may only read, if that is what you want",
			"--read-only and --hosted exclude each other")
	case !o.target.Given():
		return exit.Hintf("set agent.readOnly in the values of the chart, if another tool installs the agent",
			"--read-only needs --cluster-kubeconfig")
	}
	return nil
}

// checkManaged refuses to take the rights away from an agent that manages operators.
func (o *joinOptions) checkManaged(ctx context.Context, h *hub.Client) error {
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

func (a *app) join(ctx context.Context, o *joinOptions) error {
	given, err := o.values.Merge()
	if err != nil {
		return err
	}
	h, err := a.Hub()
	if err != nil {
		return err
	}
	if err := o.checkManaged(ctx, h); err != nil {
		return err
	}
	var hosted hostedCluster
	if o.hosted.enabled {
		if hosted, err = planHosted(ctx, h, o); err != nil {
			return err
		}
	}
	if err := a.enrol(ctx, h, o); err != nil {
		return err
	}
	kubeconfig, err := a.kubeconfig(ctx, h, o)
	if err != nil {
		return err
	}
	if err := a.writeFiles(o, kubeconfig); err != nil {
		return err
	}
	if o.hosted.enabled {
		if err := a.storeHosted(ctx, h, o, hosted, kubeconfig); err != nil {
			return err
		}
		return a.waitOnline(ctx, h, o)
	}
	if !o.target.Given() {
		return nil
	}
	if err := a.installAgent(ctx, o, kubeconfig, given); err != nil {
		return err
	}
	if err := a.waitOnline(ctx, h, o); err != nil {
		return err
	}
	return removeOldToken(ctx, h, o.name)
}

// kubeconfig returns what the agent begins with.
func (a *app) kubeconfig(ctx context.Context, h *hub.Client, o *joinOptions) ([]byte, error) {
	config, err := a.Flags.ToRESTConfig()
	if err != nil {
		return nil, command.BadKubeconfig(err)
	}
	if err := checkServer(o.hubServer); err != nil {
		return nil, err
	}
	token, err := a.token(ctx, h, o)
	if err != nil {
		return nil, err
	}
	if err := a.checkRenewal(ctx, config, o.name, token); err != nil {
		return nil, err
	}
	tls, err := trust(ctx, h, config, v1alpha1.ClusterNamespace(o.name))
	if err != nil {
		return nil, err
	}
	return agentKubeconfig(cmp.Or(o.hubServer, config.Host), tls, v1alpha1.ClusterNamespace(o.name), token)
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

// minLifetime is what an API server accepts.
const minLifetime = 10 * time.Minute

// token requests a token of the agent's ServiceAccount, which the hub makes.
func (a *app) token(ctx context.Context, h *hub.Client, o *joinOptions) (string, error) {
	cluster := &v1alpha1.FleetCluster{}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(o.lifetime / time.Second))}}
	err := hub.Poll(ctx, o.timeout, func() (bool, error) {
		if err := h.Get(ctx, client.ObjectKey{Name: o.name}, cluster); err != nil {
			return false, fmt.Errorf("get FleetCluster %s: %w", o.name, err)
		}
		if cluster.Status.Namespace == "" {
			return false, nil
		}
		account := agentAccount(o.name)
		err := h.SubResource("token").Create(ctx, account, request)
		if err != nil {
			err = fmt.Errorf("request a token for the agent: %w", err)
		}
		return err == nil, client.IgnoreNotFound(err)
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
		if ready != nil && ready.Status == metav1.ConditionFalse && cluster.Status.Namespace == "" {
			return "", fmt.Errorf("the hub has not created a namespace for cluster %s: %s", o.name, ready.Message)
		}
		return "", exit.Hintf("check that the hub is running: kubectl -n "+helm.SystemNamespace+" get pods",
			"the hub has not created a ServiceAccount for cluster %s within %s", o.name, o.timeout)
	case apierrors.IsForbidden(err):
		return "", exit.Hint(err, "you need the permission to create serviceaccounts/token in namespace "+
			v1alpha1.ClusterNamespace(o.name)+": the ClusterRole bellwether-join of the hub's chart has it")
	case err != nil:
		return "", err
	}
	life := time.Duration(ptr.Deref(request.Spec.ExpirationSeconds, 0)) * time.Second
	a.Step("got a token for the agent, which has to connect to the hub within %s", duration.HumanDuration(life))
	return request.Status.Token, nil
}

// renewalGrace is how long the hub may take to grant a new ServiceAccount its Role.
const renewalGrace = 15 * time.Second

// checkRenewal asks the API server, as the agent, whether the agent may renew its token. A hub of an earlier version
// does not grant that, and the agent would be locked out as soon as its first token ends.
func (a *app) checkRenewal(ctx context.Context, config *rest.Config, cluster, token string) error {
	agent := rest.AnonymousClientConfig(config)
	agent.BearerToken = token
	c, err := client.New(agent, client.Options{Scheme: hub.Scheme})
	if err != nil {
		return fmt.Errorf("connect to the hub as the agent: %w", err)
	}
	err = hub.Poll(ctx, renewalGrace, func() (bool, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: v1alpha1.ClusterNamespace(cluster),
				Verb: "create", Resource: "serviceaccounts", Subresource: "token", Name: v1alpha1.AgentServiceAccount}}}
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

func agentAccount(cluster string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(cluster),
		Name: v1alpha1.AgentServiceAccount}}
}

func checkServer(server string) error {
	if server == "" {
		return nil
	}
	if parsed, err := url.Parse(server); err != nil || parsed.Host == "" {
		return exit.Hintf("use the form https://hub.example.com:6443", "invalid value %q of --hub-server", server)
	}
	return nil
}

// trust is how the agent verifies the hub: as the user's kubeconfig says. If that relies on the certificates of the
// user's machine, which the cluster need not have, the hub's own ones are used where they verify it.
func trust(ctx context.Context, h client.Reader, config *rest.Config, namespace string) (rest.TLSClientConfig, error) {
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

// agentKubeconfig is how the agent reaches the hub.
func agentKubeconfig(server string, tls rest.TLSClientConfig, namespace, token string) ([]byte, error) {
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

// writeFiles writes what another tool installs the agent with.
func (a *app) writeFiles(o *joinOptions, kubeconfig []byte) error {
	if o.write != "" {
		if err := os.WriteFile(o.write, kubeconfig, 0o600); err != nil {
			return fmt.Errorf("write the agent's kubeconfig: %w", err)
		}
		a.Step("wrote the agent's kubeconfig for the hub to %s", o.write)
	}
	if o.manifest == "" {
		return nil
	}
	manifest, err := joinManifest(o.namespace, kubeconfig)
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.manifest, manifest, 0o600); err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	a.Step("wrote namespace %s and Secret %s with the agent's kubeconfig to %s", o.namespace, hubKubeconfigSecret,
		o.manifest)
	return nil
}

// joinManifest is what the agent needs on its cluster before the chart is installed.
func joinManifest(namespace string, kubeconfig []byte) ([]byte, error) {
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

// oldToken is the Secret in which earlier versions of the hub kept a token that never expires. The hub has no rights on
// it any more, so the user's are used, if there are any.
const oldToken = "bellwether-agent-token"

func removeOldToken(ctx context.Context, h *hub.Client, cluster string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(cluster),
		Name: oldToken}}
	if err := h.Delete(ctx, secret); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("delete the token of an earlier version: %w", err)
	}
	return nil
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
	r := helm.Release{Name: agentRelease, Namespace: o.namespace, Cluster: o.target.Flags(o.namespace)}
	agent := map[string]any{
		"enabled": true, "cluster": o.name, "hub": map[string]any{"kubeconfigSecret": hubKubeconfigSecret},
	}
	if o.readOnly != nil {
		agent["readOnly"] = *o.readOnly
	}
	values := chartutil.MergeTables(given, map[string]any{"agent": agent})
	if err := a.applyAgent(ctx, o, c, r, ch, values); err != nil {
		return err
	}
	if err := helm.WaitForCRDs(ctx, c, o.timeout, agentCRD); err != nil {
		return exit.Hint(err, "the agent needs it: apply bellwether-crds.yaml of the release, or set crds.enabled=true")
	}
	a.Step("installed agent %s with its CRD", ch.AppVersion())
	return nil
}

// applyAgent installs the agent's part of the chart with its CRD. Where OLM installs the agent, it may write that CRD
// in the same moment, and takes away the marks of Helm's release.
func (a *app) applyAgent(ctx context.Context, o *joinOptions, c client.Client, r helm.Release, ch *chart.Chart,
	values map[string]any) error {
	var failed error
	err := hub.Poll(ctx, o.timeout, func() (bool, error) {
		if failed = a.takeCRD(ctx, c, r, values); failed == nil {
			failed = r.Apply(ctx, ch, values, 0)
		}
		return failed == nil || !isTakenAway(failed), failed
	})
	return cmp.Or(failed, err)
}

// isTakenAway tells whether Helm found the CRD without the marks of its release, before it began or when it came to
// make it. Helm has no type for the first error.
func isTakenAway(err error) bool {
	return strings.Contains(err.Error(), agentCRD) &&
		(strings.Contains(err.Error(), "invalid ownership metadata") || apierrors.IsAlreadyExists(err))
}

// takeCRD makes the agent's CRD part of its release. One that belongs to another release is left to that, which is the
// hub's where the cluster is the hub as well: the values then say so.
func (a *app) takeCRD(ctx context.Context, c client.Client, r helm.Release, values map[string]any) error {
	included, err := r.InstallsCRDs(values)
	if err != nil || !included {
		return err
	}
	owner, err := helm.OwnerOfCRD(ctx, c, agentCRD)
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

// whereToLook says where to find out why an agent has not connected.
func (o *joinOptions) whereToLook() string {
	if o.hosted.enabled {
		return "an Event on the Secret says why the hosted agents cannot serve the cluster: kubectl -n " +
			o.hosted.namespace + " describe secret hosted-" + o.name
	}
	return "on the cluster, look at the agent's logs: kubectl -n " + o.namespace + " logs " +
		"deployment/bellwether-agent; it must reach the hub (see --hub-server)"
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
		return exit.Hintf(o.whereToLook(),
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
