// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command olm runs OLM v0's olm-operator (ClusterServiceVersions, OperatorGroups, OperatorConditions) from upstream's
// own packages. It differs from upstream's main in three things: metrics listen on a given address, /readyz tells when
// the informers have synced, and the parts that exist only on OpenShift are left out.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/clientset/versioned"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/operators/olm"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/operators/validatingroundtripper"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/feature"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/lib/operatorclient"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/lib/queueinformer"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/metrics"
	"github.com/sirupsen/logrus"
	"github.com/spf13/pflag"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/bellwether-dev/bellwether/testbed/components/olm/internal/serve"
)

type options struct {
	kubeconfig     string
	metricsAddress string
	resync         time.Duration
}

func main() {
	var o options
	pflag.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of the cluster to serve")
	pflag.StringVar(&o.metricsAddress, "metrics-bind-address", "127.0.0.1:0",
		"address of /metrics, /healthz and /readyz")
	pflag.DurationVar(&o.resync, "interval", 5*time.Minute, "period of the full resync")
	feature.AddFlag(pflag.CommandLine)
	pflag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "olm:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	metrics.RegisterOLM()
	ready := make(chan struct{})
	if err := serve.Metrics(ctx, o.metricsAddress, ready); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("load kubeconfig: %w", err)
	}
	if err := setLimits(config); err != nil {
		return err
	}
	mgr, err := newManager(config)
	if err != nil {
		return err
	}
	operator, err := newOperator(ctx, o, config, mgr)
	if err != nil {
		return err
	}
	operator.Run(ctx)
	<-operator.Ready()
	if err := operator.EnsureCSVMetric(); err != nil {
		return fmt.Errorf("emit CSV metrics: %w", err)
	}
	go func() {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			close(ready)
		}
	}()
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run controllers: %w", err)
	}
	<-operator.Done()
	return nil
}

// setLimits sets how many requests each client may send. Without TESTBED_CLIENT_QPS, requests a second, they keep to
// client-go's default, as upstream's program does.
func setLimits(config *rest.Config) error {
	text := os.Getenv("TESTBED_CLIENT_QPS")
	if text == "" {
		return nil
	}
	if _, err := fmt.Sscan(text, &config.QPS); err != nil {
		return fmt.Errorf("TESTBED_CLIENT_QPS is no number: %w", err)
	}
	config.Burst = int(2 * config.QPS)
	return nil
}

func newOperator(ctx context.Context, o options, config *rest.Config, mgr ctrl.Manager) (*olm.Operator, error) {
	// OLM lists only objects that carry its label; this wrapper refuses to create one without it.
	validating := validatingroundtripper.Wrap(config, mgr.GetScheme())
	objects, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create OLM client: %w", err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create metadata client: %w", err)
	}
	cluster, err := operatorclient.NewClientFromRestConfig(validating)
	if err != nil {
		return nil, fmt.Errorf("create operator client: %w", err)
	}
	openshift, err := configclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create OpenShift configuration client: %w", err)
	}
	operator, err := olm.NewOperator(ctx,
		olm.WithLogger(logrus.New()),
		olm.WithResyncPeriod(queueinformer.ResyncWithJitter(o.resync, 0.2)),
		olm.WithExternalClient(objects),
		olm.WithMetadataClient(meta),
		olm.WithOperatorClient(cluster),
		olm.WithRestConfig(validating),
		olm.WithConfigClient(openshift),
		olm.WithOpenshiftConfigAPIExists(false),
	)
	if err != nil {
		return nil, fmt.Errorf("create olm operator: %w", err)
	}
	return operator, nil
}
