// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package newoperator

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/platform"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const patience = 8 * time.Minute

// TestNewOperatorsOnThreeClusters publishes a catalog of each kind of operator, and rolls it out to a fleet: each has
// an objective and its dashboard there, and its end-to-end tests pass.
func TestNewOperatorsOnThreeClusters(t *testing.T) {
	var authors []*author
	images := map[string]cluster.Image{}
	for _, k := range []kind{namespaced(), clusterScoped(), existingTypes(t)} {
		a := newAuthor(t, k)
		a.run("make", "generate", "catalog")
		a.run(a.program, "catalog", "promote", "ladders", "0.1.0", "--to", "stable")
		a.run(a.program, "catalog", "keygen", "release", "--no-password")
		images[a.image()] = cluster.Image{Path: a.binary()}
		authors = append(authors, a)
	}
	started := time.Now()
	p, err := platform.StartFleet(t.Context(), platform.Options{Name: fmt.Sprintf("new-%d", os.Getpid()),
		Monitoring: true, Quick: true, MoreImages: images, Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(context.Background(), t.Failed()); err != nil {
			t.Error(err)
		}
	})
	if err := p.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	hub, err := p.Client("hub", platform.Scheme())
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: platform.Namespace}}
	if err := hub.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	t.Logf("the fleet is there after %s", time.Since(started).Round(time.Second))
	for _, a := range authors {
		t.Run(a.kind.name, func(t *testing.T) {
			a.t = t
			a.rollOut(p, hub)
		})
	}
}

// rollOut publishes the catalog, and has the hub bring the operator to all clusters.
func (a *author) rollOut(p *platform.Platform, hub client.Client) {
	t, name, started := a.t, a.kind.name, time.Now()
	t.Helper()
	ref := p.Registry + "/catalogs/" + name + ":latest"
	a.run("make", "publish", "CATALOG="+ref, "PUBLISH_FLAGS=--key release.key")
	meta := metav1.ObjectMeta{Namespace: platform.Namespace, Name: name}
	for _, object := range []client.Object{
		&v1alpha1.OperatorCatalog{ObjectMeta: meta,
			Spec: v1alpha1.OperatorCatalogSpec{Source: v1alpha1.CatalogSource{Image: ref, Insecure: true}}},
		&v1alpha1.ManagedOperator{ObjectMeta: meta, Spec: v1alpha1.ManagedOperatorSpec{
			Package: name, Catalog: v1alpha1.LocalReference{Name: name}, Channel: "stable",
			RemovalPolicy: v1alpha1.RemovalUninstall,
		}},
	} {
		if err := hub.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, patience, name+" is on every cluster", func(ctx context.Context) error {
		ro := &v1alpha1.OperatorRollout{}
		if err := hub.Get(ctx, client.ObjectKey{Namespace: platform.Namespace, Name: name + "-1"}, ro); err != nil {
			return err
		}
		of := ro.Status.Clusters
		if ro.Status.Phase != v1alpha1.RolloutSucceeded || of.Succeeded != of.Total || of.Total != 3 {
			return fmt.Errorf("rollout is %s with %+v: %s", ro.Status.Phase, of, ro.Status.Message)
		}
		return nil
	})
	t.Logf("%s is on three clusters after %s", name, time.Since(started).Round(time.Second))
	a.isWatched(p)
	member := p.Fleet.Cluster("canary")
	a.env = append(a.env, "KUBECONFIG="+member.Kubeconfig())
	a.run("make", "e2e")
}

// isWatched waits for the objective of the SLO profile, and looks for the dashboard.
func (a *author) isWatched(p *platform.Platform) {
	t, name, started := a.t, a.kind.name, time.Now()
	t.Helper()
	query := fmt.Sprintf(`%s{operator=%q,sli="reconcile"}`, series.SLOObjective, name)
	testenv.Eventually(t, patience, name+" has an objective", func(ctx context.Context) error {
		found, err := p.Prometheus().Query(ctx, query, time.Now())
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("no series %s", query)
		}
		return err
	})
	t.Logf("%s has an objective after %s more", name, time.Since(started).Round(time.Second))
	member, err := p.Client("canary", platform.Scheme())
	if err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: name, Name: name + "-dashboard"}
	dashboard := &corev1.ConfigMap{}
	if err := member.Get(t.Context(), key, dashboard); err != nil || dashboard.Labels["grafana_dashboard"] != "1" {
		t.Errorf("dashboard: %v, labels %v", err, dashboard.Labels)
	}
}
