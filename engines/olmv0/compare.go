// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=list

// driftCache keeps how the CSV of each install differs from its bundle. The cache of the cluster does not have the
// spec of a CSV, so the CSV is read from the API server, once for each of its resource versions.
type driftCache struct {
	mu   sync.Mutex
	last map[client.ObjectKey]driftEntry
}

// driftEntry is the result of a comparison: csv is the compared version of the CSV.
type driftEntry struct {
	csv      plan.Object
	expected *plan.ExpectedFields
	fields   []plan.DriftField
}

// newDriftCache returns an empty cache.
func newDriftCache() *driftCache {
	return &driftCache{last: map[client.ObjectKey]driftEntry{}}
}

// readDrift adds the differences of the installed CSV and its Deployments from the bundle to an observation.
func (c *driftCache) readDrift(ctx context.Context, live client.Reader, install client.ObjectKey,
	o *Observation) error {
	csv, _ := o.facts.Cluster.Installed()
	fields, err := c.compareCSV(ctx, live, install, o, csv)
	if err != nil {
		return err
	}
	deploymentFields, err := compareDeployments(ctx, live, o)
	if err != nil {
		return err
	}
	o.Drift = &plan.Drift{Fields: slices.Concat(fields, deploymentFields)}
	return nil
}

// compareCSV returns the differing fields of the installed CSV. It reads the CSV only if the CSV or the bundle has
// changed since the last comparison.
func (c *driftCache) compareCSV(ctx context.Context, reader client.Reader, install client.ObjectKey, o *Observation,
	csv plan.CSV) ([]plan.DriftField, error) {
	expected := o.facts.Offer.Expected
	c.mu.Lock()
	last := c.last[install]
	c.mu.Unlock()
	if last.csv == csv.Object && last.expected == expected {
		return last.fields, nil
	}
	live := &operatorsv1alpha1.ClusterServiceVersion{}
	namespace := o.facts.Install.Spec.Admission.Release.TargetNamespace()
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: csv.Name}, live); err != nil {
		return nil, fmt.Errorf("get ClusterServiceVersion: %w", err)
	}
	fields, err := expected.CompareCSV(live)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[install] = driftEntry{csv: plan.ObjectOf(live), expected: expected, fields: fields}
	return fields, nil
}

// forget removes the entry of an install.
func (c *driftCache) forget(install client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, install)
}

// compareDeployments returns the differing fields of the Deployments, sorted. The replicas of a Deployment do not
// count if an autoscaler sets them. It lists autoscalers only for a Deployment whose replicas differ.
func compareDeployments(ctx context.Context, live client.Reader, o *Observation) ([]plan.DriftField, error) {
	expected := o.facts.Offer.Expected
	var all []plan.DriftField
	for _, d := range plan.DeploymentsOf(&o.Observed, o.facts.Cluster) {
		autoscaled := false
		if d.Spec.Replicas != nil && *d.Spec.Replicas != expected.Replicas[d.Name] {
			var err error
			if autoscaled, err = isAutoscaled(ctx, live, d); err != nil {
				return nil, err
			}
		}
		fields, err := expected.CompareDeployment(d, autoscaled)
		if err != nil {
			return nil, err
		}
		all = append(all, fields...)
	}
	slices.SortFunc(all, func(a, b plan.DriftField) int { return strings.Compare(a.String(), b.String()) })
	return all, nil
}

// isAutoscaled reports whether a HorizontalPodAutoscaler sets the replicas of a Deployment.
func isAutoscaled(ctx context.Context, live client.Reader, deployment *appsv1.Deployment) (bool, error) {
	var list autoscalingv1.HorizontalPodAutoscalerList
	if err := live.List(ctx, &list, client.InNamespace(deployment.Namespace)); err != nil {
		return false, fmt.Errorf("list HorizontalPodAutoscalers: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(a autoscalingv1.HorizontalPodAutoscaler) bool {
		target := a.Spec.ScaleTargetRef
		return target.Kind == "Deployment" && target.Name == deployment.Name
	}), nil
}
