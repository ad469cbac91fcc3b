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

	"github.com/bellwether-dev/bellwether/alerts/remotewrite"
	"github.com/bellwether-dev/bellwether/cmd/internal/startup"
	"github.com/bellwether-dev/bellwether/outbound"
	"github.com/bellwether-dev/bellwether/version"
)

type gateFlags struct {
	kubeconfig                       string
	address, metricsAddr, healthAddr string
	tlsFolder                        string
	storeURL, tokenFile, caFile      string
	header                           map[string]string
	limits                           remotewrite.Limits
	logs                             startup.LogFlags
	pprofAddr                        string
}

const gateLong = `Take the series that the Prometheus of each cluster sends by remote write, and pass
them on to a store: a Prometheus, Thanos, Mimir or VictoriaMetrics.

A cluster proves who it is by a token of its agent's ServiceAccount on the hub, for the
audience ` + remotewrite.Audience + `. It may write series with its own label cluster only,
and only those that the rules read of clusters.`

func gateCommand() *cobra.Command {
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
	fs.StringVar(&f.caFile, "store-ca-file", "", "file with the certificates that the store's is signed by")
	fs.StringToStringVar(&f.header, "store-header", nil,
		"headers of requests to the store, as in X-Scope-OrgID=bellwether")
	fs.IntVar(&f.limits.Series, "max-series", 0,
		"how many different series a cluster may send within an hour (default 20000)")
	fs.IntVar(&f.limits.Body, "max-body", 0, "how many bytes a request may have (default 1 MiB)")
	fs.IntVar(&f.limits.Requests, "max-requests", 0, "how many requests are taken at a time (default 64)")
	f.logs.Add(fs)
	startup.AddProfileFlag(fs, &f.pprofAddr)
	_ = c.MarkFlagRequired("store-url")
	return c
}

func runGate(ctx context.Context, f gateFlags) error {
	startup.Log(ctx, f.logs)
	if err := startup.Profile(ctx, f.pprofAddr); err != nil {
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
	health.HandleFunc("/readyz", ok) // it has no state, and a store that is away is told to senders
	group, ctx := errgroup.WithContext(ctx)
	var config *tls.Config
	if f.tlsFolder != "" {
		watcher, err := certwatcher.New(filepath.Join(f.tlsFolder, "tls.crt"), filepath.Join(f.tlsFolder, "tls.key"))
		if err != nil {
			return fmt.Errorf("read the certificate of --tls-folder: %w", err)
		}
		config = &tls.Config{GetCertificate: watcher.GetCertificate, MinVersion: tls.VersionTLS12}
		group.Go(func() error { return watcher.Start(ctx) })
	}
	for _, s := range []struct {
		address string
		handler http.Handler
		tls     *tls.Config
	}{{f.address, gate, config}, {f.metricsAddr, metrics, nil}, {f.healthAddr, health, nil}} {
		if s.address == "0" {
			continue
		}
		if err := serve(ctx, group, s.address, s.handler, s.tls); err != nil {
			return err
		}
	}
	ctrl.Log.Info("Gate started", "address", f.address)
	return group.Wait()
}

func newGate(f gateFlags, registry prometheus.Registerer) (*remotewrite.Gate, error) {
	store, err := url.Parse(f.storeURL)
	if err != nil || store.Host == "" || store.Scheme != "http" && store.Scheme != "https" {
		return nil, fmt.Errorf("invalid value %q of --store-url: use a URL such as "+
			"http://prometheus.monitoring:9090/api/v1/write", f.storeURL)
	}
	transport, err := outbound.Credentials{TokenFile: f.tokenFile, CAFile: f.caFile}.Transport()
	if err != nil {
		return nil, fmt.Errorf("write to the store: %w", err)
	}
	config, err := startup.Config(f.kubeconfig, version.UserAgent("bellwether-remote-write-gate"))
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1 // the gate bounds how many requests it has
	scheme, err := startup.Scheme()
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
	tokens := &remotewrite.Tokens{Hub: hub, Now: time.Now}
	return remotewrite.New(remotewrite.Options{
		Authenticate: tokens.Cluster, Limits: f.limits, Metrics: registry, Now: time.Now,
		Store: remotewrite.Store{URL: store, Client: outbound.Client(transport, maxAnswer), Header: header},
	})
}

// maxAnswer is more than stores say of a request.
const maxAnswer = 1 << 20

// Senders that are slow must not hold connections for ever.
const (
	readTimeout  = 30 * time.Second
	writeTimeout = time.Minute
	idleTimeout  = 5 * time.Minute
	stopTimeout  = 10 * time.Second
)

// serve listens at once, and serves until the context ends.
func serve(ctx context.Context, group *errgroup.Group, address string, handler http.Handler,
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
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		return server.Shutdown(stopping)
	})
	return nil
}
