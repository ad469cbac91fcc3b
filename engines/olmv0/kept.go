// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"encoding/json"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// record is what an operator's Subscription says of its admission. It lives as long as
// what it is about, and so needs no cleaning up.
type record struct {
	Operator v1alpha1.OperatorReference `json:"operator"`
	v1alpha1.KeptAdmission
}

func recordOf(install *v1alpha1.OperatorInstall) record {
	r := record{Operator: install.Spec.Operator}
	r.Admission, r.Holds = *install.Spec.Admission.DeepCopy(), install.Spec.Holds
	r.Admission.Recovered = false // that says something about a hub, not about the cluster
	return r
}

// readRecord returns nil where there is none, or one that nobody can read.
func readRecord(subscription client.Object) *record {
	text := subscription.GetAnnotations()[v1alpha1.AnnotationKept]
	r := &record{}
	if text == "" || json.Unmarshal([]byte(text), r) != nil || r.Admission.Revision == 0 {
		return nil
	}
	return r
}

// keep puts the record into the Subscription that was rendered.
func (r *reader) keep() error {
	rendered := r.observation.rendered[plan.KindSubscription]
	if rendered == nil {
		return nil // the template does not render; the status says so
	}
	text, err := json.Marshal(recordOf(r.install))
	if err != nil {
		return fmt.Errorf("encode what the cluster keeps: %w", err)
	}
	annotations := rendered.GetAnnotations()
	annotations[v1alpha1.AnnotationKept] = string(text)
	rendered.SetAnnotations(annotations)
	return nil
}

// readKept compares the record of the install's Subscription with what it has to be.
func (r *reader) readKept(live *unstructured.Unstructured, observed *plan.Subscription) {
	is := readRecord(live)
	observed.Keeps = is != nil
	observed.Outdated = is == nil || !equality.Semantic.DeepEqual(*is, recordOf(r.install))
}

// Kept returns what the cluster keeps of an operator; nil where that is nothing, or it
// does not serve OLM's API.
func (e *Engine) Kept(ctx context.Context, operator v1alpha1.OperatorReference) (*engines.Kept, error) {
	served, known := e.OLM()
	if !known {
		return nil, engines.ErrNotReady
	}
	if !served {
		return nil, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(plan.KindSubscription + "List"))
	if err := e.Local.List(ctx, list, client.MatchingLabels(operator.ManagedLabels())); err != nil {
		return nil, fmt.Errorf("list Subscriptions: %w", err)
	}
	var newest *record
	var subscription *unstructured.Unstructured
	for i := range list.Items {
		r := readRecord(&list.Items[i])
		if r != nil && r.Operator == operator && (newest == nil || r.Admission.Revision > newest.Admission.Revision) {
			newest, subscription = r, &list.Items[i]
		}
	}
	if newest == nil {
		return nil, nil
	}
	kept := &engines.Kept{KeptAdmission: newest.KeptAdmission}
	var err error
	kept.Installed, err = e.installedBy(ctx, subscription)
	return kept, err
}

// installedBy returns the version that a Subscription has installed; nil if there is
// none.
func (e *Engine) installedBy(ctx context.Context, subscription *unstructured.Unstructured) (*v1alpha1.InstalledVersion,
	error) {
	name, _, _ := unstructured.NestedString(subscription.Object, "status", "installedCSV")
	if name == "" {
		return nil, nil
	}
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	err := e.Local.Get(ctx, client.ObjectKey{Namespace: subscription.GetNamespace(), Name: name}, csv)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get ClusterServiceVersion: %w", err)
	}
	return &v1alpha1.InstalledVersion{Bundle: name, Version: csv.Spec.Version.String()}, nil
}
