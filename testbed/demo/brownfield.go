// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/testbed/echo"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

// existing is the cluster on which somebody has installed the operator before the cluster joins.
const existing = "prod-eu"

// installed is an operator that somebody installed by an ordinary Subscription.
type installed struct {
	client  client.Client
	catalog *serve.Server
	pod     types.UID
	// service is what users saw of it since then.
	service service
	asking  sync.WaitGroup
	stop    context.CancelFunc
}

// preinstall installs the operator as people do who have no Bellwether, and asks its echo server from then on.
func (d *demo) preinstall(ctx context.Context) error {
	c, err := d.platform.Client(existing, platform.Scheme())
	if err != nil {
		return err
	}
	d.existing = &installed{client: c, catalog: serve.New(serve.Options{}), service: service{cluster: existing}}
	address, err := d.existing.serve(before)
	if err != nil {
		return err
	}
	own := metav1.ObjectMeta{Namespace: bundle.Package, Name: bundle.Package}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bundle.Package}},
		&operatorsv1.OperatorGroup{ObjectMeta: own},
		&operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: bundle.Package, Name: "community"},
			Spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: address}},
		&operatorsv1alpha1.Subscription{ObjectMeta: own, Spec: &operatorsv1alpha1.SubscriptionSpec{
			CatalogSource: "community", CatalogSourceNamespace: bundle.Package, Package: bundle.Package,
			Channel: bundle.Channel, InstallPlanApproval: operatorsv1alpha1.ApprovalAutomatic}},
	} {
		if err := c.Create(ctx, o); err != nil {
			return fmt.Errorf("create %T on %s: %w", o, existing, err)
		}
	}
	if err := d.isServed(ctx); err != nil {
		return err
	}
	if err := d.createGreeter(ctx, c, existing); err != nil {
		return err
	}
	if _, err := d.ask(ctx, c, before); err != nil {
		return fmt.Errorf("ask the echo server of %s: %w", existing, err)
	}
	if d.existing.pod, err = d.existing.operatorPod(ctx); err != nil {
		return err
	}
	asking, stop := context.WithCancel(ctx)
	d.existing.stop = stop
	d.existing.asking.Go(func() { d.existing.service.ask(asking, c) })
	d.say("%s runs echo-operator %s from CatalogSource community, with automatic approval, and its EchoServer answers",
		existing, before)
	return nil
}

// serve has somebody's catalog offer a version, and returns its address.
func (i *installed) serve(version string) (string, error) {
	content, err := echo.FBC(version)
	if err != nil {
		return "", err
	}
	packages, err := catalogs.ReadAll(catalogs.SingleFile("catalog.json", bytes.NewReader(content)))
	if err != nil {
		return "", err
	}
	all, err := view.All(packages)
	if err != nil {
		return "", err
	}
	address, _, err := i.catalog.Set("community", all, 0)
	return address, err
}

// isServed waits until the cluster serves the operator's API.
func (d *demo) isServed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	err := wait.PollUntilContextCancel(ctx, look, true, func(ctx context.Context) (bool, error) {
		key := client.ObjectKey{Namespace: bundle.Package, Name: bundle.CSVName(before)}
		err := d.existing.client.Get(ctx, key, csv)
		return csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait until OLM has installed %s on %s: %w (phase %q: %s)", csv.Name, existing, err,
			csv.Status.Phase, csv.Status.Message)
	}
	return nil
}

// operatorPod is the UID of the operator's pod.
func (i *installed) operatorPod(ctx context.Context) (types.UID, error) {
	var pods corev1.PodList
	if err := i.client.List(ctx, &pods, client.InNamespace(bundle.Package)); err != nil {
		return "", fmt.Errorf("list pods: %w", err)
	}
	if len(pods.Items) != 1 {
		return "", fmt.Errorf("namespace %s of %s has %d pods, and should have one", bundle.Package, existing,
			len(pods.Items))
	}
	return pods.Items[0].UID, nil
}

// scan shows what runs on the fleet, once the agent of the cluster has reported it.
func (d *demo) scan(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	scan := &v1alpha1.OperatorScan{}
	key := client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(existing), Name: v1alpha1.ScanName}
	if err := wait.PollUntilContextCancel(waiting, look, true, func(ctx context.Context) (bool, error) {
		err := d.hub.Get(ctx, key, scan)
		return scan.Status.Counts.Operators > 0, client.IgnoreNotFound(err)
	}); err != nil {
		return fmt.Errorf("wait for the report of %s: %w", existing, err)
	}
	return d.show(ctx, "fleet", "scan")
}

// adopt takes over what runs, and installs the operator on the other clusters.
func (d *demo) adopt(ctx context.Context) error {
	if err := d.show(ctx, "operator", "adopt", bundle.Package, "--name", operatorName, "--all-clusters", "--version",
		before, "--dry-run"); err != nil {
		return err
	}
	if err := d.create(ctx, func(spec *v1alpha1.ManagedOperatorSpec) {
		spec.Adopt = &v1alpha1.OperatorAdoption{}
	}); err != nil {
		return err
	}
	if err := d.follow(ctx, 1); err != nil {
		return err
	}
	d.adoptions = 1
	pod, err := d.existing.operatorPod(ctx)
	if err != nil {
		return err
	}
	if pod != d.existing.pod {
		return fmt.Errorf("the operator's pod on %s is another one than before", existing)
	}
	d.say("%s: the operator's pod is the one of before (%s)", existing, pod)
	return d.follow(ctx, 1)
}

// uninterrupted says what users saw while the operator was taken over.
func (d *demo) uninterrupted(context.Context) error {
	d.existing.end()
	s := d.existing.service
	if s.failed > 0 {
		return fmt.Errorf("%d of %d requests to the echo server of %s failed while the operator was taken over",
			s.failed, s.answered+s.failed, existing)
	}
	d.say("%s: the EchoServer has answered all of %d requests since before the cluster joined", existing, s.answered)
	return nil
}

// end ends what asks the echo server, and the catalog.
func (i *installed) end() {
	if i.stop != nil {
		i.stop()
	}
	i.asking.Wait()
	i.catalog.Close()
}
