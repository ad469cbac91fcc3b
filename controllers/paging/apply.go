// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/controllers/paging/plan"
)

var labels = map[string]string{v1alpha1.LabelPaging: "true", "app.kubernetes.io/managed-by": "bellwether"}

// apply writes objects first: the Secret says what is in force. An AlertmanagerConfig
// that cannot be written holds up no other one; refused has why, by its policy.
func (r *Reconciler) apply(ctx context.Context, in plan.Input, next plan.Decision) (
	refused map[types.NamespacedName]error, err error) {
	if next.Objects != nil {
		if refused, err = r.applyObjects(ctx, next); err != nil {
			return nil, err
		}
	}
	if next.Data == nil ||
		maps.EqualFunc(next.Data, in.Written, func(a, b []byte) bool { return string(a) == string(b) }) {
		return refused, nil
	}
	secret := corev1ac.Secret(plan.SecretName, r.Options.Namespace).WithLabels(labels).WithData(next.Data)
	if err := r.Client.Apply(ctx, secret, kit.PagingManager, client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("apply Secret %s/%s: %w", r.Options.Namespace, plan.SecretName, err)
	}
	return refused, nil
}

// applyObjects writes the AlertmanagerConfigs and deletes those that are not wanted any
// more.
func (r *Reconciler) applyObjects(ctx context.Context, next plan.Decision) (map[types.NamespacedName]error, error) {
	refused, wanted := map[types.NamespacedName]error{}, map[client.ObjectKey]bool{}
	for key, spec := range next.Objects {
		object := client.ObjectKey{Namespace: key.Namespace, Name: plan.ObjectName(key.Name)}
		wanted[object] = true
		if err := r.configs().Apply(ctx, r.Client, object, spec); err != nil {
			refused[key] = fmt.Errorf("apply AlertmanagerConfig %s: %w", object, err)
		}
	}
	return refused, r.configs().DeleteOthers(ctx, r.Client, r.Live,
		func(key client.ObjectKey) bool { return wanted[key] })
}

// joined is one error of all.
func joined(refused map[types.NamespacedName]error) error {
	return errors.Join(slices.Collect(maps.Values(refused))...)
}

// configs are the AlertmanagerConfigs that the hub writes.
func (r *Reconciler) configs() kit.Optional {
	return kit.Optional{Kind: monitoring.SchemeGroupVersion.WithKind(monitoring.AlertmanagerConfigKind),
		Manager: kit.PagingManager, Own: labels, Labels: r.Options.Labels}
}
