// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// Kept returns the record that the cluster keeps of an operator; nil if there is none, or if the cluster does not
// serve OLM's API. If several Subscriptions have a record, it returns the record with the highest revision. It returns
// engines.ErrNotReady until the cluster was checked for OLM.
func (e *Engine) Kept(ctx context.Context, operator v1alpha1.OperatorReference) (*engines.Kept, error) {
	served, isKnown := e.OLM()
	if !isKnown {
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
	var newest *plan.Record
	var subscription *unstructured.Unstructured
	for i := range list.Items {
		r := plan.ReadRecord(&list.Items[i])
		if r != nil && r.Operator == operator && (newest == nil || r.Admission.Revision > newest.Admission.Revision) {
			newest, subscription = r, &list.Items[i]
		}
	}
	if newest == nil {
		return nil, nil
	}
	kept := &engines.Kept{KeptAdmission: newest.KeptAdmission}
	var err error
	kept.Installed, err = e.readInstalled(ctx, subscription)
	return kept, err
}

// readInstalled returns the version that a Subscription has installed; nil if there is none.
func (e *Engine) readInstalled(ctx context.Context,
	subscription *unstructured.Unstructured) (*v1alpha1.InstalledVersion, error) {
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
