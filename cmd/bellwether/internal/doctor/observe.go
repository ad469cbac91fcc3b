// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/internal/startup"
	"github.com/bellwether-dev/bellwether/explain/doctor"
)

// Target says what to look at.
type Target struct {
	// Namespace that hub and agents are installed in.
	Namespace string
	// Cluster of the fleet to look at too, if it is given.
	Cluster hub.ClusterFlags
}

// Observe looks at an installation. Only a hub that cannot be reached at all is an error; everything else that cannot
// be read is a gap of the observation.
func Observe(ctx context.Context, env *command.Env, target Target) (doctor.Observation, error) {
	c, err := env.Connect()
	if err != nil {
		return doctor.Observation{}, err
	}
	o := &observer{env: env, in: doctor.Observation{Program: env.Self, Now: env.Now()}}
	if err := o.observeKinds(ctx, c); err != nil {
		return doctor.Observation{}, err
	}
	if err := o.observeChart(ctx, c); err != nil {
		return doctor.Observation{}, err
	}
	config, configErr := env.ClusterConfig()
	h := site{Reader: c, creator: c, config: config, configErr: configErr, observer: o, check: doctor.CheckHub,
		seen: doctor.Site{Name: "the hub", Namespace: target.Namespace, Component: "hub"}}
	h.observe(ctx)
	o.in.Hub = h.seen
	if h.seen.Ahead != nil {
		o.in.Now = o.in.Now.Add(*h.seen.Ahead)
	}
	o.observeLeader(ctx, c)
	if target.Cluster.Given() {
		o.observeCluster(ctx, target)
	}
	return o.in, nil
}

// observer collects the observation.
type observer struct {
	env *command.Env
	in  doctor.Observation
}

func (o *observer) gap(check doctor.Check, what string, err error) {
	g := doctor.Gap{Check: check, What: what, Why: o.env.Sentence(err)}
	if !slices.Contains(o.in.Gaps, g) {
		o.in.Gaps = append(o.in.Gaps, g)
	}
}

// observeKinds lists the objects of the fleet. An API that the hub does not serve is told by its missing CRD.
func (o *observer) observeKinds(ctx context.Context, c client.Reader) error {
	clusters, catalogs := &v1alpha1.FleetClusterList{}, &v1alpha1.OperatorCatalogList{}
	objectives, paging := &v1alpha1.OperatorSLOList{}, &v1alpha1.PagingPolicyList{}
	leases := &coordinationv1.LeaseList{}
	for _, look := range []struct {
		check doctor.Check
		what  string
		list  client.ObjectList
		opts  []client.ListOption
	}{
		{doctor.CheckAgents, "FleetClusters", clusters, nil},
		{doctor.CheckCatalogs, "OperatorCatalogs", catalogs, nil},
		{doctor.CheckAlerts, "OperatorSLOs", objectives, nil},
		{doctor.CheckAlerts, "PagingPolicies", paging, nil},
		{doctor.CheckClocks, "the Leases of the agents", leases,
			[]client.ListOption{client.MatchingFields{"metadata.name": v1alpha1.LeaseName}}},
	} {
		err := c.List(ctx, look.list, look.opts...)
		switch {
		case err == nil, meta.IsNoMatchError(err):
		case apierrors.ReasonForError(err) == "" && look.check == doctor.CheckAgents, apierrors.IsUnauthorized(err):
			return fmt.Errorf("list %s: %w", look.what, err) // no answer at all
		default:
			o.gap(look.check, look.what, err)
		}
	}
	o.in.Clusters, o.in.Catalogs, o.in.Objectives = clusters.Items, catalogs.Items, objectives.Items
	o.in.Paging, o.in.Leases = paging.Items, leases.Items
	return nil
}

// observeChart compares the hub's CRDs with those of the built-in chart.
func (o *observer) observeChart(ctx context.Context, c client.Reader) error {
	chart, err := charts.Load()
	if err != nil {
		return err
	}
	o.in.ChartVersion = chart.AppVersion()
	definitions, err := charts.Definitions()
	if err != nil {
		return err
	}
	for _, want := range definitions {
		got := &unstructured.Unstructured{}
		got.SetGroupVersionKind(want.GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(want), got)
		switch {
		case apierrors.IsNotFound(err):
			o.in.CRDs = append(o.in.CRDs, doctor.CRD{Name: want.GetName(), Missing: true})
		case err != nil:
			o.gap(doctor.CheckVersions, "CustomResourceDefinitions", err)
		case !reflect.DeepEqual(schemas(want), schemas(got)):
			o.in.CRDs = append(o.in.CRDs, doctor.CRD{Name: want.GetName()})
		}
	}
	return nil
}

// schemas returns the schema of each version of a CRD.
func schemas(crd *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if m, ok := v.(map[string]any); ok {
			out[fmt.Sprint(m["name"])] = m["schema"]
		}
	}
	return out
}

// observeLeader reads the Lease that replicas of the hub agree through.
func (o *observer) observeLeader(ctx context.Context, c client.Reader) {
	for _, d := range o.in.Hub.Deployments {
		for _, container := range d.Deployment.Spec.Template.Spec.Containers {
			o.in.LeaderElsewhere = o.in.LeaderElsewhere || slices.ContainsFunc(container.Args, func(arg string) bool {
				return strings.HasPrefix(arg, "--leader-election-kubeconfig")
			})
		}
	}
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, client.ObjectKey{Namespace: o.in.Hub.Namespace, Name: v1alpha1.HubLeaseName}, lease)
	switch {
	case err == nil:
		o.in.Leader = lease
	case !apierrors.IsNotFound(err):
		o.gap(doctor.CheckHub, "the Lease of the leader", err)
	}
}

// observeCluster looks at a cluster of the fleet.
func (o *observer) observeCluster(ctx context.Context, target Target) {
	config, err := target.Cluster.Flags("").ToRESTConfig()
	if err != nil {
		o.gap(doctor.CheckAgents, "the fleet cluster", err)
		return
	}
	c, err := client.New(config, client.Options{Scheme: hub.Scheme})
	if err != nil {
		o.gap(doctor.CheckAgents, "the fleet cluster", err)
		return
	}
	s := site{Reader: c, creator: c, config: config, observer: o, check: doctor.CheckAgents,
		seen: doctor.Site{Name: "the fleet cluster", Flags: target.Cluster.Kubectl(), Namespace: target.Namespace,
			Component: "agent"}}
	s.observe(ctx)
	s.observeOLM(ctx)
	o.in.Fleet = &s.seen
}

// ahead is how far the clock of an API server is ahead of this machine's.
func ahead(config *rest.Config) (time.Duration, error) {
	clock := &startup.Clock{}
	config = rest.CopyConfig(config)
	clock.Follow(config)
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("make client: %w", err)
	}
	if _, err := c.Discovery().ServerVersion(); err != nil {
		return 0, fmt.Errorf("read the version of the API server: %w", err)
	}
	return time.Until(clock.Now()), nil
}
