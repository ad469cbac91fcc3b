// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command agent runs in each fleet cluster. It serves the catalog views that control the
// cluster's OLM, installs the releases that the hub admitted, and reports to its namespace on
// the hub. The hub never connects to the agent.
//
// For clusters that cannot reach the hub, one process outside these clusters does
// the same for each of them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/cmd/internal/startup"
	"github.com/bellwether-dev/bellwether/controllers/agent/credentials"
	"github.com/bellwether-dev/bellwether/internal/version"
)

// flags are the values of the command's flags.
type flags struct {
	cluster, namespace           string
	hostedNamespace              string
	ownNamespace                 string
	hubKubeconfig, kubeconfig    string
	hubSecret                    string
	hubTokenLifetime             time.Duration
	viewHost, viewBind, viewPort string
	templates, cacheDir          string
	metricsAddr, healthAddr      string
	leaseEvery, leaseFor         time.Duration
	countEvery                   time.Duration
	monitorLabels                map[string]string
	backupStores                 []string
	probeDenied                  []string
	readOnly                     bool
	sender                       senderFlags
	logs                         startup.LogFlags
	pprofAddr                    string
}

func main() {
	saveMemory()
	signals := startup.WatchSignals()
	err := newCommand().ExecuteContext(signals.Context())
	if errors.Is(err, errChanged) && !signals.Interrupted() {
		err = restart()
	}
	if err != nil && !signals.Interrupted() {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
	startup.ExitIfInterrupted(signals)
}

// saveMemory makes the garbage collector run more often, because an agent needs little processor
// time but uses memory on every cluster. The variable GOGC overrides it.
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}

// newCommand returns the command with all flags.
func newCommand() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:           "agent --hub-kubeconfig FILE [--cluster NAME] | agent --hosted-namespace NAME",
		Short:         "Bring this cluster's operators to what the hub admitted, by way of OLM",
		Version:       version.Get().String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		PreRunE:       func(c *cobra.Command, _ []string) error { return setFromEnvironment(c.Flags(), os.LookupEnv) },
		RunE:          func(c *cobra.Command, _ []string) error { return run(c.Context(), f) },
	}
	fs := c.Flags()
	fs.StringVar(&f.cluster, "cluster", "", "name of this cluster's FleetCluster on the hub (default: "+
		"as the namespace of the context in --hub-kubeconfig says)")
	fs.StringVar(&f.hostedNamespace, "hosted-namespace", "",
		"serve many clusters from another cluster, instead of --cluster: the clusters that the Secrets with the label "+
			v1alpha1.LabelHostedCluster+" in this namespace name")
	fs.StringVar(&f.namespace, "namespace", "", "this cluster's namespace on the hub (default: bellwether-<cluster>)")
	fs.StringVar(&f.ownNamespace, "own-namespace", defaultNamespace,
		"namespace in which the cluster's owner configures what the agent may do, and in which the Secrets of backup "+
			"stores are. If the agent acts as a ServiceAccount of the cluster, the namespace of the ServiceAccount is "+
			"used instead")
	fs.StringVar(&f.hubKubeconfig, "hub-kubeconfig", "",
		"kubeconfig file that reaches the hub as this cluster's agent")
	fs.StringVar(&f.hubSecret, "hub-kubeconfig-secret", "",
		"Secret in the own namespace whose mount --hub-kubeconfig is in, to store renewed credentials in "+
			"(default: they are stored in a file next to it)")
	fs.DurationVar(&f.hubTokenLifetime, "hub-token-lifetime", 7*24*time.Hour,
		"how long the tokens for the hub are valid; each is renewed after a quarter of that")
	fs.StringVar(&f.kubeconfig, "kubeconfig", "",
		"kubeconfig file of the fleet cluster, or of the cluster with the Secrets of hosted clusters (default: "+
			"$KUBECONFIG, or the pod's service account)")
	f.addViews(fs)
	fs.StringVar(&f.templates, "templates", "",
		"folder of templates that replace the built-in ones of the objects made on the cluster")
	fs.StringVar(&f.cacheDir, "cache-dir", "",
		"folder that keeps catalogs that were pulled, so that a restart needs no registry")
	fs.StringVar(&f.metricsAddr, "metrics-bind-address", ":8080", "address of the metrics endpoint; 0 switches it off")
	fs.StringVar(&f.healthAddr, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	f.addLease(fs)
	fs.DurationVar(&f.countEvery, "count-operands-every", time.Minute,
		"how often the operators' custom resources are counted, for their metrics")
	fs.StringToStringVar(&f.monitorLabels, "monitor-labels", nil,
		"labels, as key=value, of the PodMonitors that OperatorSLOs ask for, by which a Prometheus selects them")
	fs.StringSliceVar(&f.backupStores, "backup-store", nil,
		"URL of a store that backups may be written to, such as file:///var/lib/bellwether/backups or "+
			"s3://bucket/prefix?region=eu-central-1; can be repeated, and the first one is the default")
	fs.StringSliceVar(&f.probeDenied, "probe-denied-cidrs", nil,
		"ranges of addresses that no EndpointProbe connects to, whatever its spec says, as in 192.0.2.0/24")
	fs.BoolVar(&f.readOnly, "read-only", false,
		"only report which operators run on the cluster; nothing is managed there, and rights to read are enough")
	f.sender.addFlags(fs)
	f.logs.Add(fs)
	startup.AddProfileFlag(fs, &f.pprofAddr)
	c.MarkFlagsOneRequired("hub-kubeconfig", "hosted-namespace")
	c.MarkFlagsMutuallyExclusive("hub-kubeconfig", "hosted-namespace")
	c.MarkFlagsMutuallyExclusive("cluster", "hosted-namespace")
	c.MarkFlagsMutuallyExclusive("read-only", "hosted-namespace")
	c.AddCommand(startup.VersionCommand())
	return c
}

// addViews adds the flags of the catalog views.
func (f *flags) addViews(fs *pflag.FlagSet) {
	fs.StringVar(&f.viewHost, "view-host", "",
		"host under which OLM reaches the catalog views (default: the address they listen on)")
	fs.StringVar(&f.viewBind, "view-bind-address", "",
		"address that the catalog views listen on, without a port (default: all)")
	fs.StringVar(&f.viewPort, "view-ports", serve.DefaultPorts.String(),
		"ports for the catalog views, one for each operator")
}

// addLease adds the flags of the Lease.
func (f *flags) addLease(fs *pflag.FlagSet) {
	fs.DurationVar(&f.leaseEvery, "lease-renew-interval", 30*time.Second,
		"how often the Lease on the hub is renewed while nothing changes")
	fs.DurationVar(&f.leaseFor, "lease-duration", 90*time.Second,
		"how long the hub may wait for a renewal before the cluster counts as offline; at least twice the interval")
}

// run checks the flags and runs the agent until the context ends: for the clusters that Secrets
// name if --hosted-namespace is set, otherwise for one cluster. It returns errChanged if a
// kubeconfig of that one cluster has changed.
func run(ctx context.Context, f flags) error {
	startup.ConfigureLogs(ctx, f.logs)
	startup.LimitMemory()
	if err := startup.ServeProfiles(ctx, f.pprofAddr); err != nil {
		return err
	}
	if f.leaseEvery <= 0 || f.leaseFor < 2*f.leaseEvery || f.leaseFor < time.Second {
		return fmt.Errorf("--lease-duration is %s: it must be at least 1s, and at least twice --lease-renew-interval, "+
			"which is %s and must be more than 0", f.leaseFor, f.leaseEvery)
	}
	if err := f.completeCluster(); err != nil {
		return err
	}
	if err := startup.AddBuildInfo(metrics.Registry, "agent"); err != nil {
		return err
	}
	p, err := newProcess(f)
	if err != nil {
		return err
	}
	defer p.images.Close()
	if f.hostedNamespace != "" {
		return p.serveHosted(ctx)
	}
	t, err := p.newTarget()
	if err != nil {
		return err
	}
	watcher, err := newFileWatcher(f.hubKubeconfig, f.kubeconfig)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return watcher.waitForChange(ctx) })
	group.Go(func() error { return p.serve(ctx, t, func() {}) })
	return group.Wait()
}

// newTarget returns the cluster that the agent runs on and serves.
func (p *process) newTarget() (target, error) {
	t := target{cluster: p.flags.cluster, namespace: p.flags.namespace, ports: p.ports,
		metricsAddr: p.flags.metricsAddr, healthAddr: p.flags.healthAddr, metrics: metrics.Registry}
	if t.namespace == "" {
		t.namespace = v1alpha1.ClusterNamespace(t.cluster)
	}
	var err error
	if t.local, err = startup.LoadConfig(p.flags.kubeconfig, buildUserAgent()); err != nil {
		return target{}, fmt.Errorf("read kubeconfig of the fleet cluster: %w", err)
	}
	if t.ownNamespace, err = readOwnNamespace(t.local, p.flags.ownNamespace); err != nil {
		return target{}, err
	}
	if p.flags.hubSecret != "" {
		t.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.ownNamespace, Name: p.flags.hubSecret}}
	}
	t.store = func(local cluster.Cluster) (credentials.Store, error) { return p.newStore(local, t.ownNamespace) }
	return t, nil
}

// newStore returns the store of renewed credentials: a Secret if a flag
// names one, otherwise a file.
func (p *process) newStore(local cluster.Cluster, ownNamespace string) (credentials.Store, error) {
	files := credentials.Files{Kubeconfig: p.flags.hubKubeconfig}
	if p.flags.hubSecret == "" {
		return files, nil
	}
	direct, err := client.New(local.GetConfig(), client.Options{HTTPClient: local.GetHTTPClient(),
		Scheme: local.GetScheme(), Mapper: local.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make client for the Secret: %w", err)
	}
	return credentials.Mounted{Files: files, Client: direct,
		Name: client.ObjectKey{Namespace: ownNamespace, Name: p.flags.hubSecret}}, nil
}

// buildUserAgent returns the user agent of requests.
func buildUserAgent() string { return version.UserAgent("bellwether-agent") }

// toListenAddress returns the address to listen on; an empty address means all addresses.
func toListenAddress(address string) string {
	if address == "" {
		return "0.0.0.0"
	}
	return address
}
