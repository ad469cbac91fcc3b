// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/telemetry"
	"github.com/bellwether-dev/bellwether/cmd/internal/startup"
	"github.com/bellwether-dev/bellwether/internal/outbound"
	"github.com/bellwether-dev/bellwether/internal/version"
)

// gateFlags are the values of the flags of the remote-write gate.
type gateFlags struct {
	kubeconfig                       string
	address, metricsAddr, healthAddr string
	tlsFolder                        string
	storeURL, tokenFile, caFile      string
	header                           map[string]string
	limits                           telemetry.Limits
	logs                             startup.LogFlags
	pprofAddr                        string
}

const gateLong = `Take the series that the Prometheus of each cluster sends by remote write, and pass
them on to a store: a Prometheus, Thanos, Mimir or VictoriaMetrics.

A cluster proves who it is by a token of its agent's ServiceAccount on the hub, for the
audience ` + telemetry.Audience + `. It may write series with its own label cluster only,
and only those that the rules read of clusters.`

// newGateCommand returns the command that runs the remote-write gate.
func newGateCommand() *cobra.Command {
	var f gateFlags
	c := &cobra.Command{
		Use:   "remote-write-gate --store-url URL",
		Short: "Let each cluster write its own series to a store of metrics", Long: gateLong,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runGate(c.Context(), f) },
	}
	fs := c.Flags()
	fs.StringVar(&f.kubeconfig, "kubeconfig", "",
		"kubeconfig file of the hub's cluster (default: $KUBECONFIG, or the pod's service account)")
	fs.StringVar(&f.address, "bind-address", ":8090", "address that clusters write to, with any path")
	fs.StringVar(&f.metricsAddr, "metrics-bind-address", ":8080", "address of the metrics endpoint; 0 switches it off")
	fs.StringVar(&f.healthAddr, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	fs.StringVar(&f.tlsFolder, "tls-folder", "",
		"folder with tls.crt and tls.key, which are read again when they change; empty: HTTP, for a proxy that "+
			"terminates TLS")
	fs.StringVar(&f.storeURL, "store-url", "",
		"URL of the store with its path, as in http://prometheus.monitoring:9090/api/v1/write (required)")
	fs.StringVar(&f.tokenFile, "store-token-file", "", "file with the bearer token for the store")
	fs.StringVar(&f.caFile, "store-ca-file", "",
		"file with the certificates of the authorities that sign the store's certificate")
	fs.StringToStringVar(&f.header, "store-header", nil,
		"headers of requests to the store, as in X-Scope-OrgID=bellwether")
	fs.IntVar(&f.limits.Series, "max-series", 0,
		"how many different series a cluster may send within an hour (default 20000)")
	fs.IntVar(&f.limits.Body, "max-body", 0, "maximum number of bytes of a request (default 1 MiB)")
	fs.IntVar(&f.limits.Requests, "max-requests", 0,
		"maximum number of requests that are handled at a time (default 64)")
	f.logs.Add(fs)
	startup.AddProfileFlag(fs, &f.pprofAddr)
	_ = c.MarkFlagRequired("store-url")
	return c
}

// runGate serves the gate, its metrics and its health endpoints until the context ends.
func runGate(ctx context.Context, f gateFlags) error {
	startup.ConfigureLogs(ctx, f.logs)
	if err := startup.ServeProfiles(ctx, f.pprofAddr); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := startup.AddBuildInfo(registry, "remote-write-gate"); err != nil {
		return err
	}
	gate, err := newGate(f, registry)
	if err != nil {
		return err
	}
	metrics, health := http.NewServeMux(), http.NewServeMux()
	metrics.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	ok := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }
	health.HandleFunc("/healthz", ok)
	health.HandleFunc("/readyz", ok) // the gate has no state, and reports an unavailable store to senders
	group, ctx := errgroup.WithContext(ctx)
	config, err := watchCertificate(ctx, group, f.tlsFolder)
	if err != nil {
		return err
	}
	for _, s := range []struct {
		address string
		handler http.Handler
		tls     *tls.Config
	}{
		{address: f.address, handler: gate, tls: config}, {address: f.metricsAddr, handler: metrics},
		{address: f.healthAddr, handler: health},
	} {
		if s.address == "0" { // the flag disables the endpoint
			continue
		}
		if err := startServer(ctx, group, s.address, s.handler, s.tls); err != nil {
			return err
		}
	}
	ctrl.Log.Info("Gate started", "address", f.address)
	return group.Wait()
}

// newGate returns the gate for the flags.
func newGate(f gateFlags, registry prometheus.Registerer) (*telemetry.Gate, error) {
	store, err := url.Parse(f.storeURL)
	isHTTP := err == nil && (store.Scheme == "http" || store.Scheme == "https")
	if !isHTTP || store.Host == "" {
		return nil, fmt.Errorf("invalid value %q of --store-url: use a URL such as "+
			"http://prometheus.monitoring:9090/api/v1/write", f.storeURL)
	}
	transport, err := outbound.Credentials{TokenFile: f.tokenFile, CAFile: f.caFile}.Transport()
	if err != nil {
		return nil, fmt.Errorf("write to the store: %w", err)
	}
	config, err := startup.LoadConfig(f.kubeconfig, version.UserAgent("bellwether-remote-write-gate"))
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1 // the gate limits the number of its requests
	scheme, err := startup.NewScheme()
	if err != nil {
		return nil, err
	}
	hub, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make client of the hub: %w", err)
	}
	header := http.Header{}
	for name, value := range f.header {
		header.Set(name, value)
	}
	tokens := &telemetry.Tokens{Hub: hub, Now: time.Now}
	return telemetry.NewGate(telemetry.GateOptions{
		Authenticate: tokens.Cluster, Limits: f.limits, Metrics: registry, Now: time.Now,
		Store: telemetry.Store{URL: store, Client: outbound.NewClient(transport, maxAnswer), Header: header},
	})
}

// maxAnswer limits the response of a store. Real responses are smaller.
const maxAnswer = 1 << 20

// Slow senders must not hold connections forever.
const (
	readTimeout  = 30 * time.Second
	writeTimeout = time.Minute
	idleTimeout  = 5 * time.Minute
	stopTimeout  = 10 * time.Second
)

// watchCertificate returns the configuration of TLS with the certificate in a folder, which is read again when it
// changes; nil if the folder is empty.
func watchCertificate(ctx context.Context, group *errgroup.Group, folder string) (*tls.Config, error) {
	if folder == "" {
		return nil, nil
	}
	watcher, err := certwatcher.New(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("read the certificate in %s: %w", folder, err)
	}
	group.Go(func() error { return watcher.Start(ctx) })
	return &tls.Config{GetCertificate: watcher.GetCertificate, MinVersion: tls.VersionTLS12}, nil
}

// startServer listens immediately, and serves in the group until the context ends.
func startServer(ctx context.Context, group *errgroup.Group, address string, handler http.Handler,
	config *tls.Config) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	server := &http.Server{Handler: handler, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: 64 << 10}
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve %s: %w", address, err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		return server.Shutdown(stopCtx)
	})
	return nil
}
