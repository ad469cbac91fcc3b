// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
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

// Target selects the API servers that are observed.
type Target struct {
	// Namespace is the namespace of the hub and of the agents.
	Namespace string
	// Cluster is a cluster of the fleet that is also observed, if its flags are set.
	Cluster hub.ClusterFlags
}

// Observe observes an installation. It returns an error only if the hub is not reachable; any other part that cannot
// be read is a gap of the observation.
func Observe(ctx context.Context, env *command.Env, target Target) (doctor.Observation, error) {
	c, err := env.Connect()
	if err != nil {
		return doctor.Observation{}, err
	}
	o := &observer{env: env, observation: doctor.Observation{Program: env.Self, Now: env.Now()}}
	if err := o.observeKinds(ctx, c); err != nil {
		return doctor.Observation{}, err
	}
	if err := o.observeChart(ctx, c); err != nil {
		return doctor.Observation{}, err
	}
	config, configErr := env.ClusterConfig()
	h := siteObserver{Reader: c, creator: c, config: config, configErr: configErr, observer: o, check: doctor.CheckHub,
		site: doctor.Site{Name: "the hub", Namespace: target.Namespace, Component: "hub"}}
	h.observe(ctx)
	o.observation.Hub = h.site
	if h.site.Ahead != nil { // the times in objects are from the clock of the hub
		o.observation.Now = o.observation.Now.Add(*h.site.Ahead)
	}
	o.observeLeader(ctx, c)
	if target.Cluster.IsSet() {
		o.observeCluster(ctx, target)
	}
	return o.observation, nil
}

// observer collects the observation.
type observer struct {
	env         *command.Env
	observation doctor.Observation
}

// addGap records that a subject could not be read, once for each reason.
func (o *observer) addGap(check doctor.Check, subject string, err error) {
	g := doctor.Gap{Check: check, What: subject, Why: o.env.FormatSentence(err)}
	if !slices.Contains(o.observation.Gaps, g) {
		o.observation.Gaps = append(o.observation.Gaps, g)
	}
}

// observeKinds lists the objects of the fleet. It skips an API that the hub does not
// serve, because observeChart reports the missing CRD.
func (o *observer) observeKinds(ctx context.Context, c client.Reader) error {
	clusters, catalogs := &v1alpha1.FleetClusterList{}, &v1alpha1.OperatorCatalogList{}
	objectives, paging := &v1alpha1.OperatorSLOList{}, &v1alpha1.PagingPolicyList{}
	leases := &coordinationv1.LeaseList{}
	for _, query := range []struct {
		check   doctor.Check
		subject string
		list    client.ObjectList
		opts    []client.ListOption
	}{
		{doctor.CheckAgents, "FleetClusters", clusters, nil},
		{doctor.CheckCatalogs, "OperatorCatalogs", catalogs, nil},
		{doctor.CheckAlerts, "OperatorSLOs", objectives, nil},
		{doctor.CheckAlerts, "PagingPolicies", paging, nil},
		{doctor.CheckClocks, "the Leases of the agents", leases,
			[]client.ListOption{client.MatchingFields{"metadata.name": v1alpha1.LeaseName}}},
	} {
		err := c.List(ctx, query.list, query.opts...)
		// An error without a reason is not from the API server. The first list detects a hub that is not reachable.
		isUnreachable := apierrors.ReasonForError(err) == "" && query.check == doctor.CheckAgents
		switch {
		case err == nil, meta.IsNoMatchError(err): // no gap
		case isUnreachable, apierrors.IsUnauthorized(err):
			return fmt.Errorf("list %s: %w", query.subject, err) // the hub did not answer, or refused the credentials
		default:
			o.addGap(query.check, query.subject, err)
		}
	}
	o.observation.Clusters, o.observation.Catalogs, o.observation.Objectives =
		clusters.Items, catalogs.Items, objectives.Items
	o.observation.Paging, o.observation.Leases = paging.Items, leases.Items
	return nil
}

// observeChart compares the hub's CRDs with the CRDs of the built-in chart.
func (o *observer) observeChart(ctx context.Context, c client.Reader) error {
	chart, err := charts.Load()
	if err != nil {
		return err
	}
	o.observation.ChartVersion = chart.AppVersion()
	definitions, err := charts.Definitions()
	if err != nil {
		return err
	}
	for _, chartCRD := range definitions {
		installedCRD := &unstructured.Unstructured{}
		installedCRD.SetGroupVersionKind(chartCRD.GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(chartCRD), installedCRD)
		switch {
		case apierrors.IsNotFound(err):
			installedCRD = nil
		case err != nil:
			o.addGap(doctor.CheckVersions, "CustomResourceDefinitions", err)
			continue
		}
		if crd, isDifferent := doctor.CompareCRD(chartCRD, installedCRD); isDifferent {
			o.observation.CRDs = append(o.observation.CRDs, crd)
		}
	}
	return nil
}

// observeLeader reads the Lease of the leader election among the replicas of the hub.
func (o *observer) observeLeader(ctx context.Context, c client.Reader) {
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, client.ObjectKey{Namespace: o.observation.Hub.Namespace, Name: v1alpha1.HubLeaseName}, lease)
	switch {
	case err == nil:
		o.observation.Leader = lease
	case !apierrors.IsNotFound(err):
		o.addGap(doctor.CheckHub, "the Lease of the leader", err)
	}
}

// observeCluster observes the cluster of the fleet in target.
func (o *observer) observeCluster(ctx context.Context, target Target) {
	config, err := target.Cluster.Flags("").ToRESTConfig()
	if err != nil {
		o.addGap(doctor.CheckAgents, "the fleet cluster", err)
		return
	}
	c, err := client.New(config, client.Options{Scheme: hub.Scheme})
	if err != nil {
		o.addGap(doctor.CheckAgents, "the fleet cluster", err)
		return
	}
	s := siteObserver{Reader: c, creator: c, config: config, observer: o, check: doctor.CheckAgents,
		site: doctor.Site{Name: "the fleet cluster", Flags: target.Cluster.Kubectl(), Namespace: target.Namespace,
			Component: "agent"}}
	s.observe(ctx)
	s.observeOLM(ctx)
	o.observation.Fleet = &s.site
}

// measureClockOffset returns how far the clock of an API server is ahead of the clock of this machine.
func measureClockOffset(config *rest.Config) (time.Duration, error) {
	clock := &startup.Clock{} // follows the clock of the API server
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
