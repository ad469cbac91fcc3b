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

// apply plans, and writes. AlertmanagerConfigs come first: the Secret says what is in
// force. One that the API server refuses holds up no other one: it is planned again
// without, so that the fleet's policy has the alerts of a policy that was never applied.
// What was refused is returned by the policy.
func (r *Reconciler) apply(ctx context.Context, in plan.Input) (plan.Decision, map[types.NamespacedName]error, error) {
	next := plan.Next(in)
	for next.Objects != nil {
		refused := r.applyObjects(ctx, next)
		before := len(in.Refused)
		in.Refused = merged(in.Refused, refused)
		if len(in.Refused) == before {
			break
		}
		next = plan.Next(in)
	}
	if next.Objects != nil {
		wanted := map[client.ObjectKey]bool{}
		for key := range next.Objects {
			wanted[objectKey(key)] = true
		}
		if err := r.configs().DeleteOthers(ctx, r.Client, r.Live, func(key client.ObjectKey) bool {
			return wanted[key]
		}); err != nil {
			return next, nil, err
		}
	}
	if next.Data == nil ||
		maps.EqualFunc(next.Data, in.Written, func(a, b []byte) bool { return string(a) == string(b) }) {
		return next, in.Refused, nil
	}
	secret := corev1ac.Secret(plan.SecretName, r.Options.Namespace).WithLabels(labels).WithData(next.Data)
	if err := r.Client.Apply(ctx, secret, kit.PagingManager, client.ForceOwnership); err != nil {
		return next, nil, fmt.Errorf("apply Secret %s/%s: %w", r.Options.Namespace, plan.SecretName, err)
	}
	return next, in.Refused, nil
}

// applyObjects writes the AlertmanagerConfigs, the fleet's last, and only if no other one
// is refused: it leaves out what the others have.
func (r *Reconciler) applyObjects(ctx context.Context, next plan.Decision) map[types.NamespacedName]error {
	refused := map[types.NamespacedName]error{}
	write := func(key types.NamespacedName) {
		if err := r.configs().Apply(ctx, r.Client, objectKey(key), next.Objects[key]); err != nil {
			refused[key] = fmt.Errorf("apply AlertmanagerConfig %s: %w", objectKey(key), err)
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

func objectKey(policy types.NamespacedName) client.ObjectKey {
	return client.ObjectKey{Namespace: policy.Namespace, Name: plan.ObjectName(policy.Name)}
}

func merged(a, b map[types.NamespacedName]error) map[types.NamespacedName]error {
	out := maps.Clone(b)
	maps.Copy(out, a)
	return out
}

// joined is one error of all.
func joined(refused map[types.NamespacedName]error) error {
	return errors.Join(slices.Collect(maps.Values(refused))...)
}

// configs are the AlertmanagerConfigs that this hub writes. Another one of the same
// cluster, with its configuration in another namespace, has its own.
func (r *Reconciler) configs() kit.Optional {
	own := maps.Clone(labels)
	own[v1alpha1.LabelPagingHub] = r.Options.Namespace
	return kit.Optional{Kind: monitoring.SchemeGroupVersion.WithKind(monitoring.AlertmanagerConfigKind),
		Manager: kit.PagingManager, Own: own, Labels: r.Options.Labels}
}
