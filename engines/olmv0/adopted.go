// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// errNotAsObserved means that an object has changed since it was observed. It is observed again.
var errNotAsObserved = errors.New("not as it was observed")

// findSubscription returns the observed Subscription with a name; nil if there is none.
func (o *Observation) findSubscription(name string) *unstructured.Unstructured {
	for _, sub := range o.Subscriptions {
		if sub.Raw.GetName() == name {
			return sub.Raw
		}
	}
	return nil
}

// takeOver records the state of a Subscription in the Subscription, labels it as the operator's, and makes its
// approval Manual, in one write. The agent then owns the settings, because it could never remove settings that
// another field manager owns.
func (e *Engine) takeOver(ctx context.Context, install *v1alpha1.OperatorInstall, o *Observation, a plan.Action) error {
	live := o.findSubscription(a.Name)
	if live == nil || plan.ObjectOf(live) != a.Object {
		return errNotAsObserved
	}
	spec, _, _ := unstructured.NestedMap(live.Object, "spec")
	bundle, _, _ := unstructured.NestedString(live.Object, "status", "installedCSV")
	original, err := json.Marshal(plan.Original{At: metav1.NewTime(e.Now()), Operator: install.Spec.Operator,
		Bundle: bundle,
		Spec:   spec, Labels: live.GetLabels()})
	if err != nil {
		return fmt.Errorf("encode what the Subscription was: %w", err)
	}
	kept, err := json.Marshal(plan.RecordOf(install))
	if err != nil {
		return fmt.Errorf("encode what the cluster keeps: %w", err)
	}
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"resourceVersion": a.Object.ResourceVersion,
			"labels":          install.Spec.Operator.ManagedLabels(),
			"annotations": map[string]string{v1alpha1.AnnotationAdopted: string(original),
				v1alpha1.AnnotationKept: string(kept)},
			"managedFields": []any{newFieldOwner(spec, e.Now())},
		},
		"spec": map[string]any{"installPlanApproval": operatorsv1alpha1.ApprovalManual},
	})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	return e.Local.Patch(ctx, newActionObject(install, a), client.RawPatch(types.MergePatchType, text), fieldOwner)
}

// newFieldOwner returns a managed-fields entry that makes the agent the only owner of the settings (spec.config) of a
// Subscription. Without settings, it names the approval, because an entry must name a field. The other fields have no
// owner: they stay as they are unless the agent sets them.
func newFieldOwner(spec map[string]any, now time.Time) metav1.ManagedFieldsEntry {
	fields := `{"f:spec":{"f:installPlanApproval":{}}}`
	if config, _, _ := unstructured.NestedMap(spec, "config"); len(config) > 0 {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(config)) {
			names = append(names, fmt.Sprintf(`"f:%s":{}`, name))
		}
		fields = fmt.Sprintf(`{"f:spec":{"f:config":{".":{},%s}}}`, strings.Join(names, ","))
	}
	at := metav1.NewTime(now)
	return metav1.ManagedFieldsEntry{Manager: string(fieldOwner), Operation: metav1.ManagedFieldsOperationApply,
		APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Time: &at, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields)}
}

// restoreSubscription writes the state of a Subscription from before its adoption, in one write. Labels and
// annotations that others have added since then stay.
func (e *Engine) restoreSubscription(ctx context.Context, install *v1alpha1.OperatorInstall, o *Observation,
	a plan.Action) error {
	live := o.findSubscription(a.Name)
	if live == nil || plan.ObjectOf(live) != a.Object {
		return errNotAsObserved
	}
	original := plan.ReadOriginal(live)
	if original == nil {
		return errNotAsObserved
	}
	labels, annotations := maps.Clone(live.GetLabels()), maps.Clone(live.GetAnnotations())
	for name := range install.Spec.Operator.ManagedLabels() {
		delete(labels, name)
		if originalValue, ok := original.Labels[name]; ok {
			labels[name] = originalValue
		}
	}
	for _, name := range []string{v1alpha1.AnnotationAdopted, v1alpha1.AnnotationKept, v1alpha1.AnnotationSpecHash} {
		delete(annotations, name)
	}
	text, err := json.Marshal([]map[string]any{
		// The API server refuses the patch if the resource version has changed.
		{"op": "add", "path": "/metadata/resourceVersion", "value": a.Object.ResourceVersion},
		{"op": "add", "path": "/metadata/labels", "value": labels},
		{"op": "add", "path": "/metadata/annotations", "value": annotations},
		{"op": "replace", "path": "/spec", "value": original.Spec},
	})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	return e.Local.Patch(ctx, newActionObject(install, a), client.RawPatch(types.JSONPatchType, text), fieldOwner)
}
