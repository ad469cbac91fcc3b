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
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/engines/olmv0/drift"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=list

// comparisons keeps how the CSV of each install differs from its bundle. The
// cache does not have the spec of a CSV, so the CSV is read from the API server,
// once for each of its resource versions.
type comparisons struct {
	mu   sync.Mutex
	last map[client.ObjectKey]comparison
}

type comparison struct {
	csv      plan.Object
	expected *drift.Expected
	fields   []drift.Field
}

func newComparisons() *comparisons {
	return &comparisons{last: map[client.ObjectKey]comparison{}}
}

// add adds to an observation how the installed CSV and its Deployments differ from
// the bundle, if it is known what the bundle sets.
func (c *comparisons) add(ctx context.Context, r *reader, install client.ObjectKey) error {
	o := r.observation
	csv, ok := o.Cluster.Installed()
	if !ok || o.Offer.Expected == nil || o.Offer.Expected.Bundle != csv.Name {
		return nil
	}
	fields, err := c.ofCSV(ctx, r, install, csv)
	if err != nil {
		return err
	}
	more, err := r.ofDeployments(ctx)
	if err != nil {
		return err
	}
	o.Cluster.Compared, o.Cluster.Drifted = true, slices.Concat(fields, more)
	return nil
}

func (c *comparisons) ofCSV(ctx context.Context, r *reader, install client.ObjectKey, csv plan.CSV) ([]drift.Field,
	error) {
	expected := r.observation.Offer.Expected
	c.mu.Lock()
	last := c.last[install]
	c.mu.Unlock()
	if last.csv == csv.Object && last.expected == expected {
		return last.fields, nil
	}
	live := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: r.data.Namespace, Name: csv.Name}, live); err != nil {
		return nil, fmt.Errorf("get ClusterServiceVersion: %w", err)
	}
	fields, err := expected.CSV(live)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[install] = comparison{csv: objectOf(live), expected: expected, fields: fields}
	return fields, nil
}

// forget drops what is known of an install.
func (c *comparisons) forget(install client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, install)
}

// ofDeployments returns the differing fields of the Deployments. Autoscalers are
// looked for only where the replicas differ.
func (r *reader) ofDeployments(ctx context.Context) ([]drift.Field, error) {
	expected := r.observation.Offer.Expected
	var all []drift.Field
	for _, d := range r.observation.deployments {
		autoscaled := false
		if d.Spec.Replicas != nil && *d.Spec.Replicas != expected.Replicas[d.Name] {
			var err error
			if autoscaled, err = r.isAutoscaled(ctx, d.Name); err != nil {
				return nil, err
			}
		}
		fields, err := expected.Deployment(d, autoscaled)
		if err != nil {
			return nil, err
		}
		all = append(all, fields...)
	}
	slices.SortFunc(all, func(a, b drift.Field) int { return strings.Compare(a.String(), b.String()) })
	return all, nil
}

// isAutoscaled tells whether a HorizontalPodAutoscaler sets the replicas of a
// Deployment.
func (r *reader) isAutoscaled(ctx context.Context, deployment string) (bool, error) {
	var list autoscalingv1.HorizontalPodAutoscalerList
	if err := r.live.List(ctx, &list, client.InNamespace(r.data.Namespace)); err != nil {
		return false, fmt.Errorf("list HorizontalPodAutoscalers: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(a autoscalingv1.HorizontalPodAutoscaler) bool {
		target := a.Spec.ScaleTargetRef
		return target.Kind == "Deployment" && target.Name == deployment
	}), nil
}
