// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command agent runs in each fleet cluster. It serves the catalog views that
// steer the cluster's OLM, brings operators to the releases that the hub
// admitted, and reports to its namespace on the hub. The hub never connects to
// it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/cmd/internal/startup"
	"github.com/bellwether-dev/bellwether/controllers"
	"github.com/bellwether-dev/bellwether/controllers/heartbeat"
	"github.com/bellwether-dev/bellwether/engines/olmv0"
	"github.com/bellwether-dev/bellwether/engines/olmv0/templates"
	"github.com/bellwether-dev/bellwether/rollouts/veto"
)

// version is set at build time.
var version = "dev"

type flags struct {
	cluster, namespace           string
	ownNamespace                 string
	hubKubeconfig, kubeconfig    string
	viewHost, viewBind, viewPort string
	templates, cacheDir          string
	metricsAddr, healthAddr      string
	leaseEvery, leaseFor         time.Duration
	countEvery                   time.Duration
	monitorLabels                map[string]string
	backupStores                 []string
	backupSecrets                string
	verbose                      bool
}

func main() {
	saveMemory()
	err := command().ExecuteContext(ctrl.SetupSignalHandler())
	if errors.Is(err, errChanged) {
		err = restart()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

// saveMemory trades processor time, of which an agent needs next to none, for
// memory, which it takes from every cluster. GOGC overrules it.
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}

func command() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:           "agent --cluster NAME --hub-kubeconfig FILE",
		Short:         "Bring this cluster's operators to what the hub admitted, by way of OLM",
		Version:       version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, _ []string) error { return run(c.Context(), f) },
	}
	fs := c.Flags()
	fs.StringVar(&f.cluster, "cluster", "", "name of this cluster's FleetCluster on the hub (required)")
	fs.StringVar(&f.namespace, "namespace", "", "this cluster's namespace on the hub (default: bellwether-<cluster>)")
	fs.StringVar(&f.ownNamespace, "own-namespace", "bellwether-system",
		"namespace of this cluster in which its owner may refuse changes by the ConfigMap "+veto.ConfigMap)
	fs.StringVar(&f.hubKubeconfig, "hub-kubeconfig", "",
		"kubeconfig file that reaches the hub as this cluster's agent (required)")
	fs.StringVar(&f.kubeconfig, "kubeconfig", "",
		"kubeconfig file of the fleet cluster (default: $KUBECONFIG, or the pod's service account)")
	fs.StringVar(&f.viewHost, "view-host", "",
		"host under which OLM reaches the catalog views (default: the address they listen on)")
	fs.StringVar(&f.viewBind, "view-bind-address", "",
		"address that the catalog views listen on, without a port (default: all)")
	fs.StringVar(&f.viewPort, "view-ports", "50100-50999", "ports for the catalog views, one for each operator")
	fs.StringVar(&f.templates, "templates", "",
		"folder of templates that replace the built-in ones of the objects made on the cluster")
	fs.StringVar(&f.cacheDir, "cache-dir", "",
		"folder that keeps catalogs that were pulled, so that a restart needs no registry")
	fs.StringVar(&f.metricsAddr, "metrics-bind-address", ":8080", "address of the metrics endpoint; 0 switches it off")
	fs.StringVar(&f.healthAddr, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	fs.DurationVar(&f.leaseEvery, "lease-renew-interval", 10*time.Second, "how often the Lease on the hub is renewed")
	fs.DurationVar(&f.leaseFor, "lease-duration", 40*time.Second,
		"how long the hub may wait for a renewal before the cluster counts as offline")
	fs.DurationVar(&f.countEvery, "count-operands-every", time.Minute,
		"how often the operators' custom resources are counted, for their metrics")
	fs.StringToStringVar(&f.monitorLabels, "monitor-labels", nil,
		"labels, as key=value, of the PodMonitors that OperatorSLOs ask for, by which a Prometheus selects them")
	fs.StringSliceVar(&f.backupStores, "backup-store", nil,
		"URL of a store that backups may be written to, such as file:///var/lib/bellwether/backups or "+
			"s3://bucket/prefix?region=eu-central-1; can be repeated, and the first one is the default")
	fs.StringVar(&f.backupSecrets, "backup-secrets-namespace", "bellwether-system",
		"namespace on this cluster of the Secrets with the credentials of backup stores")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "log every action")
	_ = c.MarkFlagRequired("cluster")
	_ = c.MarkFlagRequired("hub-kubeconfig")
	return c
}

func run(ctx context.Context, f flags) error {
	startup.Log(f.verbose)
	if f.namespace == "" {
		f.namespace = v1alpha1.ClusterNamespace(f.cluster)
	}
	scheme, err := startup.Scheme(operatorsv1.AddToScheme, operatorsv1alpha1.AddToScheme, operatorsv2.AddToScheme)
	if err != nil {
		return err
	}
	hub, err := newHub(f, scheme)
	if err != nil {
		return err
	}
	clock := &startup.Clock{}
	local, err := newLocal(f, scheme, clock)
	if err != nil {
		return err
	}
	set, err := templates.Load(f.templates)
	if err != nil {
		return fmt.Errorf("load templates: %w", err)
	}
	ports, err := parsePorts(f.viewPort)
	if err != nil {
		return err
	}
	views := serve.New(serve.Options{Listen: orAll(f.viewBind), Advertise: f.viewHost, Ports: ports})
	defer views.Close()
	holder, _ := os.Hostname()
	lease, err := controllers.AddAgent(hub, local, controllers.AgentOptions{
		Cluster: f.cluster, Namespace: f.namespace, Holder: holder, Version: version, LeaseEvery: f.leaseEvery,
		OwnNamespace: f.ownNamespace, LeaseFor: f.leaseFor, CountEvery: f.countEvery, MonitorLabels: f.monitorLabels,
		BackupStores: f.backupStores, BackupSecrets: f.backupSecrets,
		Catalogs: load.New(oci.NewClient(oci.Options{CacheDir: f.cacheDir}), load.Options{MaxBytes: 4 << 20}),
		Views:    views, Templates: set, Now: clock.Now,
	})
	if err != nil {
		return err
	}
	return start(ctx, f, hub, lease)
}

// start runs the agent until its context ends or a kubeconfig changes, which is
// errChanged.
func start(ctx context.Context, f flags, hub ctrl.Manager, lease *heartbeat.Lease) error {
	watcher, err := newFileWatcher(f.hubKubeconfig, f.kubeconfig)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return watcher.wait(ctx) })
	group.Go(func() error { return lease.Start(ctx) })
	group.Go(func() error {
		if err := hub.Start(ctx); err != nil && context.Cause(ctx) == nil {
			return err
		}
		return nil // it was told to stop
	})
	return group.Wait()
}

// newHub is the manager: all that is reconciled lives on the hub. A hub that
// cannot be reached is waited for, since the views must be served meanwhile.
func newHub(f flags, scheme *runtime.Scheme) (ctrl.Manager, error) {
	hubConfig, err := startup.Config(f.hubKubeconfig, userAgent())
	if err != nil {
		return nil, fmt.Errorf("read hub kubeconfig: %w", err)
	}
	hub, err := ctrl.NewManager(hubConfig, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: f.metricsAddr},
		HealthProbeBindAddress: f.healthAddr,
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{f.namespace: {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
			// The heartbeat logs once that the hub refuses the credentials.
			DefaultWatchErrorHandler: logWatchError,
		},
		Controller: config.Controller{CacheSyncTimeout: 365 * 24 * time.Hour},
	})
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	return hub, startup.AddPing(hub)
}

// logWatchError logs what ended a watch, unless the hub refuses the credentials:
// each watch would log that at each attempt.
func logWatchError(ctx context.Context, r *toolscache.Reflector, err error) {
	if !apierrors.IsUnauthorized(err) {
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
	}
}

// newLocal is the fleet cluster, whose API server sets the clock.
func newLocal(f flags, scheme *runtime.Scheme, clock *startup.Clock) (cluster.Cluster, error) {
	localConfig, err := startup.Config(f.kubeconfig, userAgent())
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig of the fleet cluster: %w", err)
	}
	clock.Follow(localConfig)
	local, err := cluster.New(localConfig, func(o *cluster.Options) {
		o.Scheme = scheme
		o.MapperProvider = olmv0.Mapper
		o.Cache = controllers.AgentCache()
		o.Client.Cache = &client.CacheOptions{Unstructured: true}
	})
	if err != nil {
		return nil, fmt.Errorf("reach the fleet cluster: %w", err)
	}
	return local, nil
}

func userAgent() string { return "bellwether-agent/" + version }

func orAll(address string) string {
	if address == "" {
		return "0.0.0.0"
	}
	return address
}

func parsePorts(text string) (serve.Ports, error) {
	from, to, ok := strings.Cut(text, "-")
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if !ok || err1 != nil || err2 != nil || first < 1 || last < first || last > 65535 {
		return serve.Ports{}, fmt.Errorf("--view-ports must be a range such as 50100-50999, not %q", text)
	}
	return serve.Ports{First: first, Last: last}, nil
}
