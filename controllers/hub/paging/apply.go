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

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

var managedLabels = map[string]string{v1alpha1.LabelPaging: "true", "app.kubernetes.io/managed-by": "bellwether"}

// apply plans the configuration and writes it. It writes the AlertmanagerConfigs before the
// Secret, because the Secret records which policies are in force. If the API server refuses the
// object of a policy, apply plans again without that policy, so that the other policies are
// still written and the fleet's policy receives the alerts of a policy that was never applied.
// It returns the errors of refused objects by policy.
func (r *Reconciler) apply(ctx context.Context, in paging.Input) (paging.Decision, map[types.NamespacedName]error,
	error) {
	next := paging.Next(in)
	for next.Objects != nil {
		refused := r.applyObjects(ctx, next)
		refusedCount := len(in.Refused)
		in.Refused = mergeErrors(in.Refused, refused)
		if len(in.Refused) == refusedCount {
			break // the API server refused no other object
		}
		next = paging.Next(in)
	}
	if next.Objects != nil {
		wanted := map[client.ObjectKey]bool{}
		for key := range next.Objects {
			wanted[objectKeyFromPolicy(key)] = true
		}
		if err := r.newConfigWriter().DeleteOthers(ctx, r.Client, r.Live, func(key client.ObjectKey) bool {
			return wanted[key]
		}); err != nil {
			return next, nil, err
		}
	}
	if next.Data == nil ||
		maps.EqualFunc(next.Data, in.Written, func(a, b []byte) bool { return string(a) == string(b) }) {
		return next, in.Refused, nil
	}
	secret := corev1ac.Secret(paging.SecretName, r.Options.Namespace).WithLabels(managedLabels).WithData(next.Data)
	if err := r.Client.Apply(ctx, secret, kit.PagingManager, client.ForceOwnership); err != nil {
		return next, nil, fmt.Errorf("apply Secret %s/%s: %w", r.Options.Namespace, paging.SecretName, err)
	}
	return next, in.Refused, nil
}

// applyObjects writes the AlertmanagerConfigs and returns the errors by policy. It writes the
// fleet's object last, and only if no other object was refused, because the fleet's object
// leaves out the alerts that the other objects route.
func (r *Reconciler) applyObjects(ctx context.Context, next paging.Decision) map[types.NamespacedName]error {
	refused := map[types.NamespacedName]error{}
	write := func(key types.NamespacedName) {
		if err := r.newConfigWriter().Apply(ctx, r.Client, objectKeyFromPolicy(key), next.Objects[key]); err != nil {
			refused[key] = fmt.Errorf("apply AlertmanagerConfig %s: %w", objectKeyFromPolicy(key), err)
		}
	}
	for key := range next.Objects {
		if key != next.Fleet {
			write(key)
		}
	}
	if len(refused) == 0 {
		write(next.Fleet)
	}
	return refused
}

// objectKeyFromPolicy returns the key of the AlertmanagerConfig of a policy.
func objectKeyFromPolicy(policy types.NamespacedName) client.ObjectKey {
	return client.ObjectKey{Namespace: policy.Namespace, Name: paging.ObjectName(policy.Name)}
}

// mergeErrors returns the errors of both maps. The errors in a take precedence.
func mergeErrors(a, b map[types.NamespacedName]error) map[types.NamespacedName]error {
	out := maps.Clone(b)
	maps.Copy(out, a)
	return out
}

// joinErrors returns one error with all errors of the map; nil if the map is empty.
func joinErrors(refused map[types.NamespacedName]error) error {
	return errors.Join(slices.Collect(maps.Values(refused))...)
}

// newConfigWriter returns the writer of the AlertmanagerConfigs of this hub. The label with the
// hub's namespace separates these objects from the objects of another hub in the same cluster.
func (r *Reconciler) newConfigWriter() kit.OptionalKind {
	ownLabels := maps.Clone(managedLabels)
	ownLabels[v1alpha1.LabelPagingHub] = r.Options.Namespace
	return kit.OptionalKind{Kind: monitoring.SchemeGroupVersion.WithKind(monitoring.AlertmanagerConfigKind),
		Manager: kit.PagingManager, Own: ownLabels, Labels: r.Options.Labels}
}
