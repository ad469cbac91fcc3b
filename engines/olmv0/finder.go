// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// Finder lists all operators that OLM runs on a cluster, including operators that others installed. It reads from the
// agent's caches and decides nothing: package adoption judges the result.
type Finder struct {
	// Local reads from the caches of the cluster.
	Local client.Reader
	// OLM reports whether the cluster serves OLM's API. known is false until the cluster was checked.
	OLM func() (served, known bool)
}

// Find returns everything that OLM has on the cluster. It applies no limits and does not set the time. It returns
// engines.ErrNotReady until the cluster was checked for OLM.
func (f *Finder) Find(ctx context.Context) (v1alpha1.OperatorScanStatus, error) {
	served, isKnown := f.OLM()
	switch {
	case !isKnown:
		return v1alpha1.OperatorScanStatus{}, engines.ErrNotReady
	case !served:
		return v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMNotServed}, nil
	}
	all, err := f.readInventory(ctx)
	if err != nil {
		return v1alpha1.OperatorScanStatus{}, err
	}
	return all.ToScan(), nil
}

// readInventory reads all objects of OLM on the cluster from the caches.
func (f *Finder) readInventory(ctx context.Context) (*plan.Inventory, error) {
	var (
		csvs        operatorsv1alpha1.ClusterServiceVersionList
		plans       operatorsv1alpha1.InstallPlanList
		deployments appsv1.DeploymentList
	)
	definitions := &metav1.PartialObjectMetadataList{}
	definitions.SetGroupVersionKind(newDefinitionMeta().GroupVersionKind())
	for _, list := range []client.ObjectList{&csvs, &plans, &deployments, definitions} {
		// The objects are only read, and copies would be the most expensive part.
		if err := f.Local.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	all := &plan.Inventory{CSVs: csvs.Items, InstallPlans: plans.Items, Deployments: deployments.Items,
		Definitions: definitions.Items}
	var err error
	all.Subscriptions, err = listAs[operatorsv1alpha1.Subscription](ctx, f.Local, plan.KindSubscription,
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	all.OperatorGroups, err = listAs[operatorsv1.OperatorGroup](ctx, f.Local, plan.KindOperatorGroup,
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	all.CatalogSources, err = listAs[operatorsv1alpha1.CatalogSource](ctx, f.Local, plan.KindCatalogSource,
		client.UnsafeDisableDeepCopy)
	return all, err
}
