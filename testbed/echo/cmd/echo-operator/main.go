// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command echo-operator is the sample operator.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/echo/operator"
	"github.com/bellwether-dev/bellwether/testbed/echo/operator/plan"
)

type options struct {
	metricsAddress, probeAddress string
	leaderElect                  bool
	resync                       time.Duration

	version, fault, namespace string
	watchNamespaces           []string
}

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(parse()); err != nil {
		ctrl.Log.Error(err, "echo-operator stopped")
		os.Exit(1)
	}
}

// parse reads flags, and from the environment what the CSV sets: ECHO_VERSION,
// ECHO_FAULT, POD_NAMESPACE and WATCH_NAMESPACE (comma-separated, empty for all).
func parse() options {
	o := options{
		version:   os.Getenv("ECHO_VERSION"),
		fault:     os.Getenv("ECHO_FAULT"),
		namespace: os.Getenv("POD_NAMESPACE"),
	}
	if w := os.Getenv("WATCH_NAMESPACE"); w != "" {
		o.watchNamespaces = strings.Split(w, ",")
	}
	flag.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "address of the metrics endpoint, 0 for none")
	flag.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address of the health endpoints")
	flag.BoolVar(&o.leaderElect, "leader-elect", false, "elect a leader, so that one replica works at a time")
	flag.DurationVar(&o.resync, "resync", 10*time.Second, "how often an unchanged EchoServer is looked at again")
	flag.Parse()
	return o
}

func run(o options) error {
	if o.version == "" {
		return errors.New("ECHO_VERSION is not set: it names the image of the servers")
	}
	fault, err := plan.ParseFault(o.fault)
	if err != nil {
		return fmt.Errorf("read ECHO_FAULT: %w", err)
	}
	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	r := &operator.Reconciler{Client: mgr.GetClient(), Version: o.version, Fault: fault, Resync: o.resync}
	if err := r.SetupWithManager(mgr); err != nil {
		return err
	}
	ctrl.Log.Info("starting echo-operator", "version", o.version, "fault", o.fault, "namespaces", o.watchNamespaces)
	return mgr.Start(ctrl.SetupSignalHandler())
}

func newManager(o options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), echov1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build scheme: %w", err)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find API server: %w", err)
	}
	namespaces := map[string]cache.Config{}
	for _, ns := range o.watchNamespaces {
		namespaces[ns] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options{DefaultNamespaces: namespaces},
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.probeAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "echo-operator.echo.bellwether.dev",
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("build controller manager: %w", err)
	}
	if err := errors.Join(
		mgr.AddHealthzCheck("healthz", healthz.Ping),
		mgr.AddReadyzCheck("readyz", healthz.Ping),
	); err != nil {
		return nil, fmt.Errorf("add health checks: %w", err)
	}
	return mgr, nil
}
