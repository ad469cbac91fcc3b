// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Record is the record of an admission in an annotation of the operator's Subscription. It is deleted with the
// Subscription, and so needs no cleanup.
type Record struct {
	Operator v1alpha1.OperatorReference `json:"operator"`
	v1alpha1.KeptAdmission
}

// RecordOf returns the record of an install.
func RecordOf(install *v1alpha1.OperatorInstall) Record {
	r := Record{Operator: install.Spec.Operator}
	r.Admission, r.Holds = *install.Spec.Admission.DeepCopy(), install.Spec.Holds
	r.Admission.Recovered = false // Recovered describes the hub, not the cluster
	return r
}

// ReadRecord returns the record in a Subscription; nil if there is none, or if it is not valid.
func ReadRecord(subscription metav1.Object) *Record {
	text := subscription.GetAnnotations()[v1alpha1.AnnotationKept]
	r := &Record{}
	if text == "" || json.Unmarshal([]byte(text), r) != nil || r.Admission.Revision == 0 {
		return nil
	}
	return r
}

// Original is the state of a Subscription before it was adopted, from its annotation.
type Original struct {
	At       metav1.Time                `json:"at"`
	Operator v1alpha1.OperatorReference `json:"operator"`
	// Bundle is the name of the CSV that was installed.
	Bundle string            `json:"bundle,omitempty"`
	Spec   map[string]any    `json:"spec"`
	Labels map[string]string `json:"labels,omitempty"`
}

// ReadOriginal returns the original state of a Subscription; nil if it was not adopted, or if the annotation is
// not valid.
func ReadOriginal(subscription metav1.Object) *Original {
	text := subscription.GetAnnotations()[v1alpha1.AnnotationAdopted]
	o := &Original{}
	if text == "" || json.Unmarshal([]byte(text), o) != nil || o.Spec == nil || o.Operator.Name == "" {
		return nil
	}
	return o
}

// isManaged reports whether Bellwether manages an object, by its label.
func isManaged(o metav1.Object) bool { return o.GetLabels()[v1alpha1.LabelManaged] == "true" }

// readOperator returns the ManagedOperator that an object's labels name.
func readOperator(o metav1.Object) v1alpha1.OperatorReference {
	labels := o.GetLabels()
	return v1alpha1.OperatorReference{Namespace: labels[v1alpha1.LabelOperatorNamespace],
		Name: labels[v1alpha1.LabelOperator]}
}

// isOwnSubscription reports whether a Subscription to a package belongs to the operator of an install: the operator
// adopted it, its labels name the operator, or it stayed after the removal of another ManagedOperator. The name of the
// Subscription alone is not enough, because others can make a Subscription with the name that Bellwether uses.
func isOwnSubscription(live metav1.Object, pkg string, install *v1alpha1.OperatorInstall) bool {
	wanted, operator := install.Spec.Admission.Release.Package, install.Spec.Operator
	hasName := live.GetName() == wanted
	if pkg != wanted && !hasName {
		return false
	}
	if o := ReadOriginal(live); o != nil && o.Operator == operator {
		return true
	}
	switch {
	case !isManaged(live): // people create the agent's Subscription, without Bellwether's labels
		return hasName && v1alpha1.IsAgent(wanted)
	case readOperator(live) == operator:
		return true
	default:
		// The Subscription stayed after the removal of another ManagedOperator (removal policy Orphan).
		return pkg == wanted && ReadRecord(live) == nil
	}
}
