// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// Observation is the data that was read for one install. After Observe, only the data that a plan requests is added.
type Observation struct {
	plan.Observed
	// facts are the facts of the last plan.
	facts *plan.Facts
	// view is the content of the offered view; empty if it is already served.
	view view.View
}

// formatViewKey returns the key of the view of an install.
func formatViewKey(install *v1alpha1.OperatorInstall) string { return install.Name }

// Observe reads the state of the operator's namespace and decides nothing. It reads the namespace itself from the API
// server, so it fails if the API server cannot be reached. It reads OLM's objects in the namespace from the caches,
// and the names of the CSVs in other namespaces if the operator is to run for all namespaces. Without an admission,
// it reads only the served view. Other data is read when a plan requests it.
func (e *Engine) Observe(ctx context.Context, install *v1alpha1.OperatorInstall) (*Observation, error) {
	served, isKnown := e.OLM()
	if !isKnown {
		// The agent has just started. An OLM that was not checked yet must not be
		// treated as an OLM that was removed, above all while an operator is removed.
		return nil, engines.ErrNotReady
	}
	o := &Observation{}
	if state, ok := e.Views.State(formatViewKey(install)); ok {
		o.View = plan.View{Hash: state.Hash, Address: state.Addr, Idle: state.Idle}
	}
	if install.Spec.Admission == nil {
		return o, nil
	}
	o.OLM = served
	release := install.Spec.Admission.Release
	if err := e.readNamespace(ctx, &o.Observed, release.TargetNamespace()); err != nil || !served {
		return o, err
	}
	if err := e.readObjects(ctx, &o.Observed, client.InNamespace(release.TargetNamespace())); err != nil {
		return nil, err
	}
	if release.Install.Mode == v1alpha1.InstallOwnNamespace {
		return o, nil
	}
	return o, e.readOtherCSVs(ctx, &o.Observed, release.TargetNamespace())
}

// readNamespace reads the operator's namespace from the API server.
func (e *Engine) readNamespace(ctx context.Context, observed *plan.Observed, name string) error {
	live := newObjectOfKind(kinds[plan.KindNamespace])
	err := e.Live.Get(ctx, client.ObjectKey{Name: name}, live)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("get namespace: %w", err)
	}
	observed.Namespace = live
	return nil
}

// readObjects reads OLM's objects in a namespace from the caches.
func (e *Engine) readObjects(ctx context.Context, observed *plan.Observed, namespace client.InNamespace) (err error) {
	observed.OperatorGroups, err = listAs[operatorsv1.OperatorGroup](ctx, e.Local, plan.KindOperatorGroup, namespace)
	if err != nil {
		return err
	}
	observed.CatalogSources, err = listAs[operatorsv1alpha1.CatalogSource](ctx, e.Local, plan.KindCatalogSource,
		namespace)
	if err != nil {
		return err
	}
	observed.Subscriptions, err = listAs[operatorsv1alpha1.Subscription](ctx, e.Local, plan.KindSubscription, namespace)
	if err != nil {
		return err
	}
	var (
		plans       operatorsv1alpha1.InstallPlanList
		csvs        operatorsv1alpha1.ClusterServiceVersionList
		deployments appsv1.DeploymentList
	)
	for kind, list := range map[string]client.ObjectList{plan.KindInstallPlan: &plans, plan.KindCSV: &csvs,
		plan.KindDeployment: &deployments} {
		if err := e.Local.List(ctx, list, namespace); err != nil {
			return fmt.Errorf("list %ss: %w", kind, err)
		}
	}
	observed.InstallPlans, observed.CSVs, observed.Deployments = plans.Items, csvs.Items, deployments.Items
	return nil
}

// readOtherCSVs reads the names of the ClusterServiceVersions in other namespaces.
func (e *Engine) readOtherCSVs(ctx context.Context, observed *plan.Observed, own string) error {
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := e.Local.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ClusterServiceVersions: %w", err)
	}
	for i := range list.Items {
		if csv := &list.Items[i]; csv.Namespace != own {
			observed.OtherCSVs = append(observed.OtherCSVs, client.ObjectKeyFromObject(csv))
		}
	}
	return nil
}

// listAs lists objects of a kind that the agent caches as unstructured objects, and decodes them.
func listAs[T any](ctx context.Context, reader client.Reader, kind string,
	options ...client.ListOption) ([]plan.Live[T], error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kinds[kind].GroupVersion().WithKind(kind + "List"))
	if err := reader.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind, err)
	}
	out := make([]plan.Live[T], len(list.Items))
	for i := range list.Items {
		raw := &list.Items[i]
		out[i].Raw = raw
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, &out[i].Decoded); err != nil {
			return nil, fmt.Errorf("read %s %s/%s: %w", kind, raw.GetNamespace(), raw.GetName(), err)
		}
	}
	return out, nil
}
