// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/fstest"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/operator-framework/operator-registry/pkg/cache"
	"github.com/operator-framework/operator-registry/pkg/server"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	health "google.golang.org/grpc/health/grpc_health_v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/echo"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

func contains(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// serveCatalog serves a catalog of the sample operator's given versions, as opm would, and returns its address.
func serveCatalog(t *testing.T, versions ...string) string {
	t.Helper()
	content, err := echo.FBC(versions...)
	if err != nil {
		t.Fatal(err)
	}
	store, err := cache.New(t.TempDir(), cache.WithLog(logrus.NewEntry(&logrus.Logger{Out: t.Output(),
		Formatter: &logrus.TextFormatter{}})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := cache.LoadOrRebuild(t.Context(), store,
		fstest.MapFS{"catalog.yaml": {Data: content, Mode: 0o444}}); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving := grpc.NewServer()
	api.RegisterRegistryServer(serving, server.NewRegistryServer(store))
	health.RegisterHealthServer(serving, server.NewHealthServer())
	done := make(chan error, 1)
	go func() { done <- serving.Serve(listener) }()
	t.Cleanup(func() {
		serving.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func olmClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, operatorsv1.AddToScheme,
		operatorsv1alpha1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: known})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestOLMInstallsFromAnAddress checks two facts that Bellwether stands on: a CatalogSource with an address needs no
// pod, and a bundle that is inlined in the catalog needs no unpack Job. The operator's pods are stubs.
func TestOLMInstallsFromAnAddress(t *testing.T) {
	c := testenv.Shared(t, cluster.Options{OLM: true, Pods: true})
	objects := olmClient(t, c.RESTConfig())
	ns := testenv.Namespace(t, c.RESTConfig(), "echo")
	meta := metav1.ObjectMeta{Name: "echo", Namespace: ns}
	for _, object := range []client.Object{
		&operatorsv1.OperatorGroup{ObjectMeta: meta,
			Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{ns}}},
		&operatorsv1alpha1.CatalogSource{ObjectMeta: meta, Spec: operatorsv1alpha1.CatalogSourceSpec{
			SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: serveCatalog(t, "1.0.0")}},
		&operatorsv1alpha1.Subscription{ObjectMeta: meta, Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: "echo-operator", Channel: "stable", CatalogSource: "echo", CatalogSourceNamespace: ns,
			InstallPlanApproval: operatorsv1alpha1.ApprovalManual}},
	} {
		if err := objects.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}

	eventually(t, "InstallPlan waits for approval and gets it",
		func(ctx context.Context) error { return approve(ctx, objects, ns) })
	eventually(t, "operator is installed", func(ctx context.Context) error {
		var csv operatorsv1alpha1.ClusterServiceVersion
		if err := objects.Get(ctx, client.ObjectKey{Namespace: ns, Name: "echo-operator.v1.0.0"}, &csv); err != nil {
			return err
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return fmt.Errorf("CSV is %s: %s", csv.Status.Phase, csv.Status.Message)
		}
		return nil
	})

	var jobs batchv1.JobList
	if err := objects.List(t.Context(), &jobs); err != nil || len(jobs.Items) > 0 {
		t.Errorf("want no unpack Job, have %d (%v)", len(jobs.Items), err)
	}
	var pods corev1.PodList
	if err := objects.List(t.Context(), &pods, client.HasLabels{"olm.catalogSource"}); err != nil ||
		len(pods.Items) > 0 {
		t.Errorf("want no catalog pod, have %d (%v)", len(pods.Items), err)
	}
}

// approve approves the one plan of the namespace once OLM asks for it.
func approve(ctx context.Context, objects client.Client, ns string) error {
	var plans operatorsv1alpha1.InstallPlanList
	if err := objects.List(ctx, &plans, client.InNamespace(ns)); err != nil {
		return err
	}
	if len(plans.Items) != 1 {
		return fmt.Errorf("%d InstallPlans", len(plans.Items))
	}
	plan := &plans.Items[0]
	if plan.Status.Phase != operatorsv1alpha1.InstallPlanPhaseRequiresApproval {
		return fmt.Errorf("InstallPlan is %q", plan.Status.Phase)
	}
	plan.Spec.Approved = true
	return objects.Update(ctx, plan)
}
