// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/own"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
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
