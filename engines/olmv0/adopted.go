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

	"github.com/bellwether-dev/bellwether/apis/own"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
	"github.com/bellwether-dev/bellwether/phrase"
)

// original is what a Subscription was before it was adopted, as its annotation has it.
type original struct {
	At       metav1.Time                `json:"at"`
	Operator v1alpha1.OperatorReference `json:"operator"`
	// Bundle is the CSV that was installed.
	Bundle string            `json:"bundle,omitempty"`
	Spec   map[string]any    `json:"spec"`
	Labels map[string]string `json:"labels,omitempty"`
}

// readOriginal returns nil where a Subscription was not adopted, or nobody can read what it was.
func readOriginal(subscription client.Object) *original {
	text := subscription.GetAnnotations()[v1alpha1.AnnotationAdopted]
	o := &original{}
	if text == "" || json.Unmarshal([]byte(text), o) != nil || o.Spec == nil || o.Operator.Name == "" {
		return nil
	}
	return o
}

// findOurs returns the operator's Subscription among those of its namespace; nil where there is none. Of several it is
// the one that has the package's name, or the first.
func (r *reader) findOurs(subscriptions []unstructured.Unstructured) *unstructured.Unstructured {
	var ours *unstructured.Unstructured
	for i := range subscriptions {
		live := &subscriptions[i]
		if r.isOurs(live) && (ours == nil || live.GetName() == r.data.Package) {
			ours = live
		}
	}
	return ours
}

// isOurs tells whether a Subscription is the operator's. That it has the name which Bellwether gives says nothing about
// who made it.
func (r *reader) isOurs(live *unstructured.Unstructured) bool {
	pkg, _, _ := unstructured.NestedString(live.Object, "spec", "name")
	hasName := live.GetName() == r.data.Package
	if pkg != r.data.Package && !hasName {
		return false
	}
	operator := r.install.Spec.Operator
	if o := readOriginal(live); o != nil && o.Operator == operator {
		return true
	}
	switch {
	case !managed(live):
		return hasName && own.IsAgent(r.data.Package)
	case operatorOf(live) == operator:
		return true
	default:
		// Another ManagedOperator has left it on the cluster (removal policy Orphan).
		return pkg == r.data.Package && readRecord(live) == nil
	}
}

// operatorOf is the ManagedOperator that an object's labels name.
func operatorOf(o client.Object) v1alpha1.OperatorReference {
	labels := o.GetLabels()
	return v1alpha1.OperatorReference{Namespace: labels[v1alpha1.LabelOperatorNamespace],
		Name: labels[v1alpha1.LabelOperator]}
}

// readAdopted says what the operator's Subscription was before it was adopted, and whether it has the view by now.
func (r *reader) readAdopted(live *unstructured.Unstructured, observed *plan.Subscription) {
	o := readOriginal(live)
	if o == nil {
		return
	}
	text := func(field string, most int) string {
		value, _, _ := unstructured.NestedString(o.Spec, field)
		return phrase.Truncate(value, most)
	}
	observed.Adopted = &v1alpha1.AdoptedSubscription{Name: live.GetName(), Since: o.At,
		Bundle: phrase.Truncate(o.Bundle, maxName), Channel: text("channel", maxName), Source: text("source", maxName),
		SourceNamespace: text("sourceNamespace", maxLabelName), Approval: text("installPlanApproval", maxApproval)}
	if observed.Adopted.Approval == "" {
		observed.Adopted.Approval = string(operatorsv1alpha1.ApprovalAutomatic)
	}
	rendered := r.observation.rendered[plan.KindSubscription]
	if rendered == nil {
		return // the template does not render; the status says so
	}
	for _, field := range []string{"source", "sourceNamespace"} {
		is, _, _ := unstructured.NestedString(live.Object, "spec", field)
		want, _, _ := unstructured.NestedString(rendered.Object, "spec", field)
		observed.AwaitsView = observed.AwaitsView || is != want
	}
}

// The lengths that a status permits.
const maxName, maxApproval = 253, 32

// errNotAsObserved says that a Subscription is not there as it was observed. It is observed again.
var errNotAsObserved = errors.New("not as it was observed")

// takeOver records in a Subscription what it is, marks it as the operator's, and makes its approval Manual, in one
// write. The agent owns the settings from then on: what others wrote could never be removed otherwise.
func (e *Engine) takeOver(ctx context.Context, install *v1alpha1.OperatorInstall, o *Observation, a plan.Action) error {
	live := o.subscriptions[a.Name]
	if live == nil || objectOf(live) != a.Object {
		return errNotAsObserved
	}
	spec, _, _ := unstructured.NestedMap(live.Object, "spec")
	bundle, _, _ := unstructured.NestedString(live.Object, "status", "installedCSV")
	was, err := json.Marshal(original{At: metav1.NewTime(e.Now()), Operator: install.Spec.Operator, Bundle: bundle,
		Spec: spec, Labels: live.GetLabels()})
	if err != nil {
		return fmt.Errorf("encode what the Subscription was: %w", err)
	}
	kept, err := json.Marshal(recordOf(install))
	if err != nil {
		return fmt.Errorf("encode what the cluster keeps: %w", err)
	}
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"resourceVersion": a.Object.ResourceVersion,
			"labels":          install.Spec.Operator.ManagedLabels(),
			"annotations": map[string]string{v1alpha1.AnnotationAdopted: string(was),
				v1alpha1.AnnotationKept: string(kept)},
			"managedFields": []any{ownerOf(spec, e.Now())},
		},
		"spec": map[string]any{"installPlanApproval": operatorsv1alpha1.ApprovalManual},
	})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	return e.Local.Patch(ctx, objectFor(install, a), client.RawPatch(types.MergePatchType, text), fieldOwner)
}

// ownerOf makes the agent the only one who has applied the settings of a Subscription. Nobody owns its other fields:
// they stay as they are where the agent does not set them.
func ownerOf(spec map[string]any, now time.Time) metav1.ManagedFieldsEntry {
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

// giveBack makes a Subscription what it was before it was adopted, in one write. Labels and annotations that others
// have given it since then stay.
func (e *Engine) giveBack(ctx context.Context, install *v1alpha1.OperatorInstall, o *Observation, a plan.Action) error {
	live := o.subscriptions[a.Name]
	if live == nil || objectOf(live) != a.Object {
		return errNotAsObserved
	}
	was := readOriginal(live)
	if was == nil {
		return errNotAsObserved
	}
	labels, annotations := maps.Clone(live.GetLabels()), maps.Clone(live.GetAnnotations())
	for name := range install.Spec.Operator.ManagedLabels() {
		delete(labels, name)
		if before, ok := was.Labels[name]; ok {
			labels[name] = before
		}
	}
	for _, name := range []string{v1alpha1.AnnotationAdopted, v1alpha1.AnnotationKept, v1alpha1.AnnotationSpecHash} {
		delete(annotations, name)
	}
	text, err := json.Marshal([]map[string]any{
		// What has another resource version is not written.
		{"op": "add", "path": "/metadata/resourceVersion", "value": a.Object.ResourceVersion},
		{"op": "add", "path": "/metadata/labels", "value": labels},
		{"op": "add", "path": "/metadata/annotations", "value": annotations},
		{"op": "replace", "path": "/spec", "value": was.Spec},
	})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	return e.Local.Patch(ctx, objectFor(install, a), client.RawPatch(types.JSONPatchType, text), fieldOwner)
}
