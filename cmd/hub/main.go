// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hub runs all controllers of the hub: clusters, catalogs, operators, rollouts and
// objectives. It never connects to a fleet cluster. One of its replicas is the leader.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // ChangeWindows name time zones

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/bellwether-dev/bellwether/alerts/silences"
	rules "github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/cmd/internal/startup"
	"github.com/bellwether-dev/bellwether/controllers/hub"
	"github.com/bellwether-dev/bellwether/controllers/hub/discovery"
	"github.com/bellwether-dev/bellwether/controllers/hub/paging"
	"github.com/bellwether-dev/bellwether/controllers/hub/silence"
	"github.com/bellwether-dev/bellwether/controllers/hub/slo"
	"github.com/bellwether-dev/bellwether/internal/version"
)

// flags are the values of the command's flags.
type flags struct {
	kubeconfig              string
	metricsAddr, healthAddr string
	leaderElect             bool
	electionNamespace       string
	electionKubeconfig      string
	electionLease           time.Duration
	leaseGrace              time.Duration
	cacheDir                string
	concurrency             int
	maxChanges              int
	qps                     float32
	burst                   int
	logs                    startup.LogFlags
	pprofAddr               string
	rulesPart               string
	slo                     slo.Options
	paging                  paging.Options
	silence                 silence.Options
	discovery               discovery.Options
	probes                  probeFlags
	inventory               inventoryFlags
}

func main() {
	signals := startup.WatchSignals()
	if err := newCommand().ExecuteContext(signals.Context()); err != nil && !signals.Interrupted() {
		fmt.Fprintln(os.Stderr, "hub:", err)
		os.Exit(1)
	}
	startup.ExitIfInterrupted(signals)
}

// newCommand returns the command with all flags and subcommands.
func newCommand() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:           "hub",
		Short:         "Decide what runs where in the fleet, and roll it out",
		Version:       version.Get().String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, _ []string) error { return run(c.Context(), f) },
	}
	fs := c.Flags()
	fs.StringVar(&f.kubeconfig, "kubeconfig", "",
		"kubeconfig file of the hub's cluster (default: $KUBECONFIG, or the pod's service account)")
	fs.StringVar(&f.metricsAddr, "metrics-bind-address", ":8080", "address of the metrics endpoint; 0 switches it off")
	fs.StringVar(&f.healthAddr, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	fs.BoolVar(&f.leaderElect, "leader-elect", true, "let one of several replicas lead")
	fs.StringVar(&f.electionNamespace, "leader-election-namespace", "",
		"namespace of the Lease of the leader election (default: the namespace of the pod)")
	fs.StringVar(&f.electionKubeconfig, "leader-election-kubeconfig", "",
		"kubeconfig file of a lock cluster: hubs on several clusters agree through a Lease there, in the namespace of "+
			"the current context (default: replicas on one cluster agree through a Lease on it)")
	fs.DurationVar(&f.electionLease, "leader-election-lease-duration", 15*time.Second,
		"how long replicas wait for a leader that does not renew its Lease; at least 5s. A leader that cannot renew "+
			"its Lease ends after 70 % of that time")
	fs.DurationVar(&f.leaseGrace, "lease-grace", 0,
		"how long an agent may be silent beyond the duration that its Lease names")
	fs.StringVar(&f.cacheDir, "cache-dir", "", "folder that keeps catalogs that were pulled")
	fs.IntVar(&f.concurrency, "max-concurrent-reconciles", 8, "objects of one kind that are reconciled at a time")
	fs.IntVar(&f.maxChanges, "max-changes-per-cluster", 1,
		"operators of one cluster that are changed at a time; -1: any number")
	fs.Float32Var(&f.qps, "kube-api-qps", 200, "requests a second to the API server")
	fs.IntVar(&f.burst, "kube-api-burst", 400, "requests to the API server in a burst")
	f.addRulesFlags(fs)
	addPagingFlags(fs, &f.paging)
	addSilenceFlags(fs, &f.silence)
	addDiscoveryFlags(fs, &f.discovery)
	f.probes.addFlags(fs)
	f.inventory.addFlags(fs)
	f.logs.Add(fs)
	startup.AddProfileFlag(fs, &f.pprofAddr)
	c.AddCommand(newGateCommand(), newCheckCommand(), startup.VersionCommand())
	return c
}

// addPagingFlags adds the flags of PagingPolicies.
func addPagingFlags(fs *pflag.FlagSet, o *paging.Options) {
	fs.StringVar(&o.Folder, "alertmanager-folder", paging.DefaultFolder,
		"folder where Alertmanager has the Secret bellwether-alertmanager mounted, which PagingPolicies make")
	fs.StringToStringVar(&o.Labels, "alertmanager-config-labels", nil,
		"labels of AlertmanagerConfig objects, by which Alertmanager selects them")
	fs.StringSliceVar((*[]string)(&o.PagerDuty), "pagerduty-hosts", nil,
		"hosts that PagingPolicies may name for the Events API in addition to PagerDuty's hosts, such as a proxy, "+
			"with the port if the URL has a port")
	fs.StringVar(&o.ServiceAccount, "service-account", paging.DefaultServiceAccount,
		"the hub's service account, as NAMESPACE:NAME, for messages about missing permissions")
}

// addDiscoveryFlags adds the flags of the discovery of clusters.
func addDiscoveryFlags(fs *pflag.FlagSet, o *discovery.Options) {
	fs.StringSliceVar(&o.Sources, "discovery-sources", nil, "what FleetClusters are made of: "+
		strings.Join(discovery.SourceNames(), ", ")+"; empty: clusters are added by people only")
	fs.StringToStringVar(&o.Labels, "discovery-labels", nil,
		"labels of FleetClusters and the fields of sources that they come from, as in stage=labels/stage; fields are "+
			"namespace, name, platform, region, version, manager, labels/KEY and properties/NAME "+
			"(default: platform, region and version)")
	fs.StringVar(&o.Selector, "discovery-selector", "",
		"label selector of the sources that become FleetClusters (default: all)")
}

// addSilenceFlags adds the flags of Alertmanager and of AlertSilences.
func addSilenceFlags(fs *pflag.FlagSet, o *silence.Options) {
	fs.StringVar(&o.Alertmanager.URL, "alertmanager-url", "",
		"Alertmanager that notifies of the alerts, as in http://alertmanager.monitoring:9093, where AlertSilences are "+
			"made and self-tests of PagingPolicies are sent; empty: neither is done")
	fs.StringVar(&o.Alertmanager.TokenFile, "alertmanager-token-file", "",
		"file with the bearer token for Alertmanager")
	fs.StringVar(&o.Alertmanager.CAFile, "alertmanager-ca-file", "",
		"file with the certificates of the authorities that sign Alertmanager's certificate")
	fs.DurationVar(&o.Max, "max-silence", silences.DefaultMax, "how long an AlertSilence may last")
	fs.BoolVar(&o.WithoutAutomatic, "without-automatic-silences", false,
		"make no silences for upgrades, vetoes of a cluster's owner, and clusters that are being removed")
}

// addRulesFlags adds the flags of the rules for Prometheus, and of the Prometheus
// that evaluates the rules.
func (f *flags) addRulesFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.slo.Namespace, "rules-namespace", "",
		"namespace that rules for Prometheus are written to (default: the namespace of the leader election, or "+
			slo.DefaultNamespace+")")
	fs.StringToStringVar(&f.slo.Labels, "rules-labels", nil,
		"labels of PrometheusRule objects, as in release=prometheus, by which Prometheus selects them")
	fs.StringVar(&f.rulesPart, "rules-part", "",
		"hub to write only the hub part of the rules, where each cluster has a Prometheus with the edge part "+
			"(default: all rules)")
	fs.StringVar(&f.slo.RunbookURL, "runbook-url", rules.DefaultRunbooks,
		"URL of the folder with the runbooks that alerts link to; /ALERT.md is added, and #SLI for an alert about "+
			"one; empty: no links")
	fs.StringVar(&f.slo.DashboardURL, "dashboard-url", "",
		"URL of a dashboard that alerts link to; its variables are added")
	fs.StringSliceVar(&f.slo.WithoutAlerts, "without-alerts", nil,
		"names of alerts that the rules leave out, as in BellwetherHeartbeat,BellwetherSLIAbsent")
	fs.StringVar(&f.slo.Prometheus.URL, "prometheus-url", "",
		"Prometheus that evaluates the rules and that gates of rollouts query, as in "+
			"http://prometheus.monitoring:9090; "+
			"empty: nothing is queried, and gates that measure have no verdict")
	fs.StringVar(&f.slo.Prometheus.TokenFile, "prometheus-token-file", "", "file with the bearer token for Prometheus")
	fs.StringVar(&f.slo.Prometheus.CAFile, "prometheus-ca-file", "",
		"file with the certificates of the authorities that sign Prometheus's certificate")
}

// run checks the flags and runs the hub until the context ends.
func run(ctx context.Context, f flags) error {
	startup.ConfigureLogs(ctx, f.logs)
	startup.LimitMemory()
	err := startup.ServeProfiles(ctx, f.pprofAddr)
	if err != nil {
		return err
	}
	if f.slo.Part, err = rules.ParsePart(f.rulesPart); err != nil || f.slo.Part == rules.Edge {
		return fmt.Errorf("invalid value %q of --rules-part: use hub, or leave it out", f.rulesPart)
	}
	addresses, err := f.probes.parseAddresses()
	if err != nil {
		return err
	}
	recorded, err := f.inventory.parse()
	if err != nil {
		return err
	}
	mgr, err := newManager(f)
	if err != nil {
		return err
	}
	f.slo.Namespace = cmp.Or(f.slo.Namespace, f.electionNamespace)
	f.paging.Namespace, f.silence.Namespace = f.slo.Namespace, f.slo.Namespace
	f.paging.Alertmanager = f.silence.Alertmanager
	catalogs := hub.NewCatalogs(f.cacheDir)
	defer catalogs.Close()
	if err := hub.Add(mgr, hub.Options{
		LeaseGrace: f.leaseGrace, Concurrency: f.concurrency, MaxChanges: f.maxChanges,
		Catalogs: catalogs, SLO: f.slo, Paging: f.paging,
		Silence: f.silence, Discovery: f.discovery, Probes: addresses, Inventory: recorded,
		Version: version.Get().Version,
	}); err != nil {
		return err
	}
	if err := startup.AddBuildInfo(metrics.Registry, "hub"); err != nil {
		return err
	}
	if err := startup.AddPing(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns the manager with the leader election and its health check.
func newManager(f flags) (ctrl.Manager, error) {
	config, err := startup.LoadConfig(f.kubeconfig, version.UserAgent("bellwether-hub"))
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = f.qps, f.burst
	scheme, err := startup.NewScheme()
	if err != nil {
		return nil, err
	}
	lock, err := readLock(f)
	if err != nil {
		return nil, err
	}
	renew, retry, err := computeElectionTimes(f.electionLease)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         hub.Cache(),
		Metrics:                       metricsserver.Options{BindAddress: f.metricsAddr},
		HealthProbeBindAddress:        f.healthAddr,
		LeaderElection:                f.leaderElect,
		LeaderElectionID:              electionLease,
		LeaderElectionNamespace:       lock.namespace,
		LeaderElectionConfig:          lock.config,
		LeaderElectionReleaseOnCancel: true, // nothing runs after Start returns
		LeaseDuration:                 &f.electionLease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
	})
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	if lock.config != nil {
		err = mgr.AddReadyzCheck("active", newActiveCheck(mgr))
	} else if f.leaderElect && lock.namespace != "" {
		err = mgr.AddReadyzCheck("leader", newLeaderCheck(mgr, lock.namespace).Check)
	}
	if err != nil {
		return nil, fmt.Errorf("add health check: %w", err)
	}
	return mgr, nil
}
