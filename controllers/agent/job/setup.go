// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Add adds the controller to an agent's manager. hub is the manager for the hub, and local is
// the fleet cluster. ownNamespace is the agent's namespace there. frozen reports whether a
// FleetFreeze stops changes.
func Add(hub ctrl.Manager, local cluster.Cluster, ownNamespace string,
	frozen func(context.Context) bool) error {
	r := &Reconciler{Hub: hub.GetClient(), Live: local.GetAPIReader(), Local: local.GetClient(),
		OwnNamespace: ownNamespace, Frozen: frozen}
	err := ctrl.NewControllerManagedBy(hub).
		Named("job").
		For(&v1alpha1.OperatorInstall{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(reconcile.AsReconciler(hub.GetClient(), r))
	if err != nil {
		return fmt.Errorf("build job controller: %w", err)
	}
	return nil
}
