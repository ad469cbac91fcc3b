// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/cmd/internal/kubeconfig"
	"github.com/bellwether-dev/bellwether/cmd/internal/startup"
	"github.com/bellwether-dev/bellwether/controllers/agent/credentials"
)

// serveHosted serves the clusters that Secrets name, until the context ends. A cluster is added
// and removed with its Secret.
func (p *process) serveHosted(ctx context.Context) error {
	hosting, err := startup.LoadConfig(p.flags.kubeconfig, buildUserAgent())
	if err != nil {
		return fmt.Errorf("read kubeconfig of the cluster with the Secrets: %w", err)
	}
	hasClusterLabel, err := labels.NewRequirement(v1alpha1.LabelHostedCluster, selection.Exists, nil)
	if err != nil {
		return err
	}
	clusterRegistries := combineRegistries()
	mgr, err := ctrl.NewManager(hosting, ctrl.Options{
		Scheme:                 p.scheme,
		Metrics:                metricsserver.Options{BindAddress: p.flags.metricsAddr},
		HealthProbeBindAddress: p.flags.healthAddr,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
				Namespaces: map[string]cache.Config{p.flags.hostedNamespace: {}},
				Label:      labels.NewSelector().Add(*hasClusterLabel),
			}},
		},
	})
	if err != nil {
		return fmt.Errorf("make manager: %w", err)
	}
	if err := startup.AddPing(mgr); err != nil {
		return err
	}
	s := newSupervisor(func(ctx context.Context, t target, started func()) error {
		registry := prometheus.NewRegistry()
		clusterRegistries.set(t.cluster, registry)
		defer clusterRegistries.set(t.cluster, nil)
		t.metrics = registry
		return p.serve(ctx, t, started)
	})
	if err := addConnections(mgr, &s.connections); err != nil {
		return err
	}
	// Events on the Secrets report which Secrets cannot be used.
	r := &hostedReconciler{client: mgr.GetClient(), events: mgr.GetEventRecorder("bellwether-agent"), clusters: s,
		ports: p.ports, ownNamespace: p.flags.ownNamespace}
	err = ctrl.NewControllerManagedBy(mgr).Named("hosted").For(&corev1.Secret{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).Complete(r)
	if err != nil {
		return fmt.Errorf("build controller: %w", err)
	}
	defer s.stopAll()
	return mgr.Start(ctx)
}

// addConnections adds a health check and metrics about clusters whose agents are
// not connected to the hub.
func addConnections(mgr ctrl.Manager, c *connections) error {
	if err := mgr.AddReadyzCheck("hosted-clusters", c.Check); err != nil {
		return fmt.Errorf("add health check: %w", err)
	}
	if err := metrics.Registry.Register(c); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// hostedReconciler starts and stops the service of clusters.
type hostedReconciler struct {
	client   client.Client
	events   events.EventRecorder
	clusters *supervisor
	// ports are the ports of all clusters together.
	ports serve.Ports
	// ownNamespace is the agent's namespace on clusters where it does not
	// authenticate as a ServiceAccount.
	ownNamespace string
}

// takenRetryDelay is the delay before a Secret is tried again whose cluster or
// ports another Secret uses.
const takenRetryDelay = 15 * time.Second

// Reconcile starts, restarts or stops the service of one Secret's cluster. If a changed Secret
// cannot be used, the cluster is still served with the previous content.
func (r *hostedReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	err := r.client.Get(ctx, request.NamespacedName, secret)
	isBeingDeleted := err == nil && !secret.DeletionTimestamp.IsZero()
	switch {
	case apierrors.IsNotFound(err), isBeingDeleted:
		r.clusters.stop(request.Name)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("read Secret: %w", err)
	}
	t, err := readTarget(secret, r.ports, r.ownNamespace)
	// The Event below needs the warnings even if the Secret cannot be used.
	t.warnings = warnings{events: r.events, secret: secret}
	t.store = func(cluster.Cluster) (credentials.Store, error) {
		return hostedStore{credentials.Secret{Client: r.client, Name: request.NamespacedName,
			Key: v1alpha1.HostedHubKey}}, nil
	}
	if err == nil {
		err = r.clusters.start(secret.Name, computeFingerprint(secret), t)
	}
	if err == nil {
		return ctrl.Result{}, nil
	}
	log.FromContext(ctx).Error(err, "The Secret cannot be used")
	t.emit("HostedClusterRefused", "Serve", err.Error())
	if errors.Is(err, errTaken) {
		return ctrl.Result{RequeueAfter: takenRetryDelay}, nil
	}
	return ctrl.Result{}, nil // until the Secret changes
}

// computeFingerprint returns a hash of the parts of a Secret that determine
// how its cluster is served.
func computeFingerprint(secret *corev1.Secret) [sha256.Size]byte {
	hash := sha256.New()
	for _, part := range [][]byte{[]byte(secret.Labels[v1alpha1.LabelHostedCluster]),
		secret.Data[v1alpha1.HostedHubKey], secret.Data[v1alpha1.HostedClusterKey],
		secret.Data[v1alpha1.HostedPortsKey]} {
		_, _ = fmt.Fprintf(hash, "%d:", len(part)) // so that moved bytes change the hash
		hash.Write(part)
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// readTarget reads a Secret and checks it. Its ports must be among the ports of this process.
// defaultNamespace is the agent's namespace if the agent does not authenticate as a ServiceAccount.
func readTarget(secret *corev1.Secret, allPorts serve.Ports, defaultNamespace string) (target, error) {
	t := target{cluster: secret.Labels[v1alpha1.LabelHostedCluster], metricsAddr: "0", healthAddr: "0"}
	if t.cluster == "" {
		return target{}, fmt.Errorf("the label %s must name the FleetCluster", v1alpha1.LabelHostedCluster)
	}
	t.namespace = v1alpha1.ClusterNamespace(t.cluster)
	var err error
	if t.ports, err = serve.ParsePorts(string(secret.Data[v1alpha1.HostedPortsKey])); err != nil {
		return target{}, fmt.Errorf("key %s: %w", v1alpha1.HostedPortsKey, err)
	}
	if !allPorts.Includes(t.ports) {
		return target{}, fmt.Errorf("key %s: ports %s are not within --view-ports %s", v1alpha1.HostedPortsKey, t.ports,
			allPorts)
	}
	if _, err := kubeconfig.Check(secret.Data[v1alpha1.HostedHubKey]); err != nil {
		return target{}, fmt.Errorf("key %s: %w", v1alpha1.HostedHubKey, err)
	}
	checked, err := kubeconfig.Check(secret.Data[v1alpha1.HostedClusterKey])
	if err != nil {
		return target{}, fmt.Errorf("key %s: %w", v1alpha1.HostedClusterKey, err)
	}
	local, err := clientcmd.RESTConfigFromKubeConfig(checked)
	if err != nil {
		return target{}, fmt.Errorf("key %s: %w", v1alpha1.HostedClusterKey, err)
	}
	t.local = rest.AddUserAgent(local, buildUserAgent())
	if t.ownNamespace, err = readOwnNamespace(local, defaultNamespace); err != nil {
		return target{}, fmt.Errorf("key %s: %w", v1alpha1.HostedClusterKey, err)
	}
	return t, nil
}

// hostedStore refuses a kubeconfig that does more than connect to an API server.
type hostedStore struct{ credentials.Secret }

// Load implements credentials.Store. It returns an error if the kubeconfig is refused.
func (s hostedStore) Load(ctx context.Context) (config, renewed []byte, err error) {
	config, renewed, err = s.Secret.Load(ctx)
	if err != nil {
		return nil, nil, err
	}
	config, err = kubeconfig.Check(config)
	return config, renewed, err
}

// combinedRegistry adds the metrics of hosted clusters to the metrics of the process. All series
// of a cluster have the label cluster.
type combinedRegistry struct {
	metrics.RegistererGatherer
	clusters *registries
}

// combineRegistries replaces the global metrics registry, so that its endpoint also serves the
// metrics of clusters. It returns the registries of clusters, which are empty.
func combineRegistries() *registries {
	r := &registries{byCluster: map[string]prometheus.Gatherer{}}
	metrics.Registry = combinedRegistry{RegistererGatherer: metrics.Registry, clusters: r}
	return r
}

// Gather implements prometheus.Gatherer.
func (g combinedRegistry) Gather() ([]*dto.MetricFamily, error) {
	return append(prometheus.Gatherers{g.RegistererGatherer}, g.clusters.list()...).Gather()
}
