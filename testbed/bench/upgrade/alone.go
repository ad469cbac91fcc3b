// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"bytes"
	"context"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/testbed/bench/lab"
	"github.com/bellwether-dev/bellwether/testbed/echo"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
)

// alone is an upgrade by OLM with automatic approval. The benchmark is its catalog.
type alone struct {
	lab      *lab.Lab
	server   *serve.Server
	old, new view.View

	namespace string
}

func newAlone(l *lab.Lab) (*alone, error) {
	a := &alone{lab: l, server: serve.New(serve.Options{})}
	for v, versions := range map[*view.View][]string{&a.old: {from}, &a.new: {from, to}} {
		content, err := echo.FBC(versions...)
		if err != nil {
			return nil, fmt.Errorf("make catalog: %w", err)
		}
		packages, err := catalogs.ReadAll(catalogs.SingleFile("catalog.json", bytes.NewReader(content)))
		if err != nil {
			return nil, fmt.Errorf("read catalog: %w", err)
		}
		if *v, err = view.All(packages); err != nil {
			return nil, fmt.Errorf("make catalog: %w", err)
		}
	}
	return a, nil
}

func (a *alone) stop() { a.server.Close() }

func (a *alone) name() string { return "olm" }

func (a *alone) ends() []phase { return []phase{succeeded} }

func (a *alone) prepare(ctx context.Context, namespace string) error {
	a.namespace = namespace
	address, _, err := a.server.Set(namespace, a.old, 0)
	if err != nil {
		return err
	}
	for _, o := range a.objects(address) {
		if err := a.lab.Cluster.Create(ctx, o); err != nil {
			return fmt.Errorf("create %T: %w", o, err)
		}
	}
	return succeeds(ctx, a.lab, namespace, from)
}

// objects are what the agent makes for its own upgrades, but for the approval.
func (a *alone) objects(address string) []client.Object {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: a.namespace, Name: name} }
	group := &operatorsv1.OperatorGroup{ObjectMeta: named("all")}
	group.Annotations = map[string]string{"olm.operatorframework.io/exclude-global-namespace-resolution": "true"}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}},
		group,
		&operatorsv1alpha1.CatalogSource{ObjectMeta: named("catalog"), Spec: operatorsv1alpha1.CatalogSourceSpec{
			SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: address,
		}},
		a.subscription(),
	}
}

func (a *alone) subscription() *operatorsv1alpha1.Subscription {
	return &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: bundle.Package},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			CatalogSource: "catalog", CatalogSourceNamespace: a.namespace, Package: bundle.Package,
			Channel: bundle.Channel, InstallPlanApproval: operatorsv1alpha1.ApprovalAutomatic,
		},
	}
}

func (a *alone) start(_ context.Context, c *clock) error {
	c.begin()
	_, _, err := a.server.Set(a.namespace, a.new, 0)
	c.reach(served)
	return err
}

func (a *alone) cleanUp(ctx context.Context) error {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: a.namespace, Name: name} }
	for _, o := range []client.Object{
		&operatorsv1alpha1.Subscription{ObjectMeta: meta(bundle.Package)},
		&operatorsv1alpha1.CatalogSource{ObjectMeta: meta("catalog")},
		&operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: meta(bundle.CSVName(to))},
		&operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: meta(bundle.CSVName(from))},
	} {
		if err := lab.Removed(ctx, a.lab.Cluster, o); err != nil {
			return err
		}
	}
	a.server.Remove(a.namespace)
	return removeNamespace(ctx, a.lab, a.namespace)
}

func removeNamespace(ctx context.Context, l *lab.Lab, name string) error {
	return lab.Removed(ctx, l.Cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func keyOf(o client.Object) client.ObjectKey { return client.ObjectKeyFromObject(o) }
