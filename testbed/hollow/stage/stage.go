// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stage gives hollow fleets what they run against: a real API server with what the chart installs for the hub,
// the hub's own program as a process, FleetClusters, a catalog and operators. It measures nothing and judges nothing.
package stage

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/hubchart"
	"github.com/bellwether-dev/bellwether/testbed/poll"
)

const (
	// HubNamespace is where the hub is installed.
	HubNamespace = "bellwether-system"
	// Namespace has the catalog and the operators.
	Namespace = "fleet"
	// LabelFleet is on all FleetClusters; its value is their fleet.
	LabelFleet = "fleet"
	// LabelTenth divides a fleet into ten parts of the same size, with the values 0 to 9.
	LabelTenth = "tenth"

	catalogName = "main"
	// parallel is how many objects are made at a time.
	parallel = 16
	look     = 50 * time.Millisecond
)

// Stage is an API server with what a hub needs.
type Stage struct {
	client.WithWatch
	// API is the API server.
	API *cluster.Cluster
	// Dir holds the hubs' logs and the catalog; it is the caller's to remove.
	Dir string
	// HubProgram is the path of cmd/hub, built.
	HubProgram string
}

// Prepare installs the CRDs and what the chart gives the hub, but for its Deployment.
func Prepare(ctx context.Context, api *cluster.Cluster, dir, hubProgram string) (*Stage, error) {
	root, err := build.Root()
	if err != nil {
		return nil, err
	}
	if err := api.InstallCRDs(filepath.Join(root, "charts", "bellwether", "files", "crds")); err != nil {
		return nil, err
	}
	s := &Stage{API: api, Dir: dir, HubProgram: hubProgram}
	s.WithWatch, err = client.NewWithWatch(api.RESTConfig(), client.Options{Scheme: Scheme()})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	for _, name := range []string{HubNamespace, Namespace} {
		if err := s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return nil, fmt.Errorf("create namespace: %w", err)
		}
	}
	return s, s.installChart(ctx)
}

func (s *Stage) installChart(ctx context.Context) error {
	objects, err := hubchart.Objects(HubNamespace, nil)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := s.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// Scheme knows Bellwether's kinds, those of OLM and Kubernetes' own.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, operatorsv1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// ClusterNames are those of a fleet of n clusters.
func ClusterNames(fleet string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%05d", fleet, i)
	}
	return names
}

// Register makes FleetClusters of a fleet and waits until the hub has made the namespaces of all of them, and what
// their agents may do there.
func (s *Stage) Register(ctx context.Context, fleet string, names []string) error {
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, name := range names {
		group.Go(func() error {
			return s.Create(running, &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{LabelFleet: fleet, LabelTenth: strconv.Itoa(i % 10)},
			}})
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("create FleetClusters: %w", err)
	}
	return s.untilClusters(ctx, fleet, len(names), "registered", func(c *v1alpha1.FleetCluster) bool {
		ready := conditions.Get(c.Status.Conditions, v1alpha1.ConditionReady)
		return c.Status.Namespace != "" && ready.Reason == v1alpha1.ReasonNeverJoined
	})
}

// Publish writes a catalog and waits until the hub has read it.
func (s *Stage) Publish(ctx context.Context, o catalogtest.Options) error {
	dir := filepath.Join(s.Dir, "catalog")
	if err := catalogtest.WriteDir(dir, o); err != nil {
		return err
	}
	catalog := &v1alpha1.OperatorCatalog{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: catalogName},
		Spec:       v1alpha1.OperatorCatalogSpec{Source: v1alpha1.CatalogSource{Directory: dir}},
	}
	if err := s.Create(ctx, catalog); err != nil {
		return fmt.Errorf("create OperatorCatalog: %w", err)
	}
	return poll.Until(ctx, look, func() error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(catalog), catalog); err != nil {
			return err
		}
		if ready := conditions.Get(catalog.Status.Conditions, v1alpha1.ConditionReady); ready.Status !=
			metav1.ConditionTrue {
			return fmt.Errorf("OperatorCatalog is not ready: %s: %s", ready.Reason, ready.Message)
		}
		return nil
	})
}

// Operator is the ManagedOperator of the i-th package at its j-th version, on the clusters that labels select.
func Operator(i, j int, labels map[string]string, strategy v1alpha1.RolloutStrategy) *v1alpha1.ManagedOperator {
	return &v1alpha1.ManagedOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: catalogtest.PackageName(i)},
		Spec: v1alpha1.ManagedOperatorSpec{
			Package: catalogtest.PackageName(i), Catalog: v1alpha1.LocalReference{Name: catalogName},
			Version:         catalogtest.Version(j),
			ClusterSelector: metav1.LabelSelector{MatchLabels: labels}, Strategy: strategy,
		},
	}
}

// Waves is a strategy of n waves of the same size, each of which changes all of its clusters at once.
func Waves(n, clusters int) v1alpha1.RolloutStrategy {
	all, size := intstr.FromString("100%"), intstr.FromInt32(int32(max(clusters/n, 1)))
	var strategy v1alpha1.RolloutStrategy
	for i := range n {
		wave := v1alpha1.Wave{Name: "wave-" + strconv.Itoa(i), MaxConcurrency: &all, Size: &size}
		if i == n-1 {
			wave.Size = nil
		}
		strategy.Waves = append(strategy.Waves, wave)
	}
	return strategy
}

// Set makes a ManagedOperator, or brings the one that is there to this version and strategy.
func (s *Stage) Set(ctx context.Context, operator *v1alpha1.ManagedOperator) error {
	current := &v1alpha1.ManagedOperator{}
	err := s.Get(ctx, client.ObjectKeyFromObject(operator), current)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get ManagedOperator: %w", err)
	}
	if err != nil {
		if err := s.Create(ctx, operator.DeepCopy()); err != nil {
			return fmt.Errorf("create ManagedOperator: %w", err)
		}
		return nil
	}
	patch := client.MergeFrom(current.DeepCopy())
	current.Spec.Version, current.Spec.Strategy = operator.Spec.Version, operator.Spec.Strategy
	if err := s.Patch(ctx, current, patch); err != nil {
		return fmt.Errorf("change ManagedOperator: %w", err)
	}
	return nil
}
