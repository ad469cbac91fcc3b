// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"encoding/json"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// redoPlan makes OLM carry out the steps of an InstallPlan for a CSV again. It writes a JSON patch, because the
// cached plan lacks the manifests, which OLM needs.
func (e *Engine) redoPlan(ctx context.Context, install *v1alpha1.OperatorInstall, a plan.Action) error {
	live := &operatorsv1alpha1.InstallPlan{}
	key := client.ObjectKeyFromObject(newActionObject(install, a))
	if err := e.Live.Get(ctx, key, live); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if plan.ObjectOf(live) != a.Object {
		return apierrors.NewConflict(operatorsv1alpha1.Resource(a.Kind), a.Name, errChangedMeanwhile)
	}
	text, err := json.Marshal(newRedoPatch(live, a.Value))
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	return e.Local.Status().Patch(ctx, newActionObject(install, a), client.RawPatch(types.JSONPatchType, text),
		fieldOwner)
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// newRedoPatch returns the patch that makes OLM carry out the steps of an InstallPlan for a CSV again. OLM writes
// the objects, because the plan has kinds that the agent must not write; the objects then belong to the CSV.
// CustomResourceDefinitions are left out: an older definition would remove fields of custom resources (olm.md,
// fact 8). The CSV and Subscriptions already exist, so they are left out too.
func newRedoPatch(p *operatorsv1alpha1.InstallPlan, csv string) []operation {
	patch := []operation{
		{Op: "test", Path: "/metadata/resourceVersion", Value: p.ResourceVersion},
		{Op: "add", Path: "/status/phase", Value: operatorsv1alpha1.InstallPlanPhaseInstalling},
	}
	if p.Status.StartTime != nil {
		patch = append(patch, operation{Op: "remove", Path: "/status/startTime"})
	}
	if p.Status.Conditions != nil {
		patch = append(patch, operation{Op: "remove", Path: "/status/conditions"})
	}
	for i, step := range p.Status.Plan {
		if step == nil || step.Resolving != csv {
			continue
		}
		switch step.Resource.Kind {
		case plan.KindDefinition, operatorsv1alpha1.ClusterServiceVersionKind, operatorsv1alpha1.SubscriptionKind:
			// OLM does not carry out these steps again
		default:
			patch = append(patch, operation{Op: "add", Path: fmt.Sprintf("/status/plan/%d/status", i),
				Value: operatorsv1alpha1.StepStatusUnknown})
		}
	}
	return patch
}
