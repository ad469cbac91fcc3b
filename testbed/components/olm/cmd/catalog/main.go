// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command catalog runs OLM v0's catalog-operator (CatalogSources, Subscriptions, InstallPlans) from upstream's own
// packages. It differs from upstream's main in three things: metrics listen on a given address, /readyz tells when the
// informers have synced, and the parts that exist only on OpenShift are left out.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/operators/catalog"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/operators/catalogtemplate"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/metrics"
	"github.com/sirupsen/logrus"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"

	"github.com/bellwether-dev/bellwether/testbed/components/olm/internal/serve"
)

// anyUser leaves the user id of the pods that OLM creates to the cluster.
const anyUser = int64(-1)

type options struct {
	kubeconfig          string
	metricsAddress      string
	namespace           string
	resync              time.Duration
	configMapImage      string
	opmImage            string
	utilImage           string
	installPlanTimeout  time.Duration
	bundleUnpackTimeout time.Duration
}

func main() {
	var o options
	pflag.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of the cluster to serve")
	pflag.StringVar(&o.metricsAddress, "metrics-bind-address", "127.0.0.1:0",
		"address of /metrics, /healthz and /readyz")
	pflag.StringVar(&o.namespace, "namespace", "olm", "namespace of the global catalogs")
	pflag.DurationVar(&o.resync, "interval", 15*time.Minute, "period of the full resync")
	pflag.StringVar(&o.configMapImage, "configmap-server-image",
		"quay.io/operator-framework/configmap-operator-registry:latest", "image that serves a catalog from a ConfigMap")
	pflag.StringVar(&o.opmImage, "opm-image", "quay.io/operator-framework/opm:latest", "image that unpacks bundles")
	pflag.StringVar(&o.utilImage, "util-image", "quay.io/operator-framework/olm:latest",
		"image that copies files into the unpack pod")
	pflag.DurationVar(&o.bundleUnpackTimeout, "bundle-unpack-timeout", 10*time.Minute,
		"limit for the unpacking of a bundle; 0 means none")
	pflag.DurationVar(&o.installPlanTimeout, "install-plan-retry-timeout", time.Minute,
		"time after which an error of an InstallPlan is final")
	pflag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	metrics.RegisterCatalog()
	ready := make(chan struct{})
	if err := serve.Metrics(ctx, o.metricsAddress, ready); err != nil {
		return err
	}
	// The operator refuses to create objects of kinds that its scheme does not know.
	if err := apiextensionsv1.AddToScheme(scheme.Scheme); err != nil {
		return fmt.Errorf("register CRD types: %w", err)
	}
	if err := apiregistrationv1.AddToScheme(scheme.Scheme); err != nil {
		return fmt.Errorf("register APIService types: %w", err)
	}
	logger := logrus.New()
	operator, err := catalog.NewOperator(ctx, o.kubeconfig, clock.RealClock{}, logger, o.resync,
		o.configMapImage, o.opmImage, o.utilImage, o.namespace, scheme.Scheme,
		o.installPlanTimeout, o.bundleUnpackTimeout, anyUser)
	if err != nil {
		return fmt.Errorf("create catalog operator: %w", err)
	}
	template, err := catalogtemplate.NewOperator(ctx, o.kubeconfig, logger, o.resync, o.namespace)
	if err != nil {
		return fmt.Errorf("create catalog template operator: %w", err)
	}
	operator.Run(ctx)
	<-operator.Ready()
	template.Run(ctx)
	<-template.Ready()
	close(ready)
	<-operator.Done()
	return nil
}
