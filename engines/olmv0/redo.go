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

// redo has OLM carry out again the steps of an InstallPlan for a CSV. The cache has no manifests, which OLM needs, so
// only what differs is written.
func (e *Engine) redo(ctx context.Context, install *v1alpha1.OperatorInstall, a plan.Action) error {
	live := &operatorsv1alpha1.InstallPlan{}
	key := client.ObjectKeyFromObject(objectFor(install, a))
	if err := e.Live.Get(ctx, key, live); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if objectOf(live) != a.Object {
		return apierrors.NewConflict(operatorsv1alpha1.Resource(a.Kind), a.Name, errChangedMeanwhile)
	}
	text, err := json.Marshal(redone(live, a.Value))
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	return e.Local.Status().Patch(ctx, objectFor(install, a), client.RawPatch(types.JSONPatchType, text), fieldOwner)
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// redone returns the patch that sets the steps of an InstallPlan for a CSV back to where OLM carries them out. A plan
// has more kinds than the agent may write; OLM makes them as the bundle has them, and belonging to the CSV. An older
// definition would prune what custom resources have (olm.md, fact 8).
func redone(p *operatorsv1alpha1.InstallPlan, csv string) []operation {
	patch := []operation{
		{"test", "/metadata/resourceVersion", p.ResourceVersion},
		{"add", "/status/phase", operatorsv1alpha1.InstallPlanPhaseInstalling},
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
		case kindDefinition, operatorsv1alpha1.ClusterServiceVersionKind, operatorsv1alpha1.SubscriptionKind:
		default:
			patch = append(patch, operation{"add", fmt.Sprintf("/status/plan/%d/status", i),
				operatorsv1alpha1.StepStatusUnknown})
		}
	}
	return patch
}
