// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// requestsPerSecond limits the requests of a migration to the API server.
const requestsPerSecond = 50

// Add adds the controller to an agent's manager. hub is a manager for the hub whose cache is
// restricted to the cluster's namespace. local is the fleet cluster, now its clock, veto reads
// the veto of its owner, and freeze reads the FleetFreeze of the cluster.
func Add(hub ctrl.Manager, local cluster.Cluster, owned Definitions, now func() time.Time,
	veto func(context.Context) (*v1alpha1.ClusterVeto, error),
	freeze func(context.Context) (*v1alpha1.FleetFreeze, error)) error {
	config := rest.CopyConfig(local.GetConfig())
	config.QPS, config.Burst, config.RateLimiter = requestsPerSecond, requestsPerSecond, nil
	objects, err := metadata.NewForConfigAndClient(config, local.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make client for storage migrations: %w", err)
	}
	r := &Reconciler{
		Hub: hub.GetClient(), HubLive: hub.GetAPIReader(), Definitions: owned, Writer: local.GetClient(),
		Objects: Cluster{Client: objects}, Events: hub.GetEventRecorder("bellwether-agent"), Now: now, Veto: veto,
		Freeze: freeze,
	}
	err = ctrl.NewControllerManagedBy(hub).
		Named("storage-migration").
		For(&v1alpha1.OperatorInstall{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, newReleasePredicate()))).
		// Operators are migrated one after the other, so that the load on
		// the API server is limited.
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("build storage-migration controller: %w", err)
	}
	return nil
}

// newReleasePredicate returns a predicate that selects updates of the installed release.
func newReleasePredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return identifyRelease(e.ObjectOld) != identifyRelease(e.ObjectNew)
	}}
}

// identifyRelease returns a string that changes with the installed release or with its upgrade
// path; empty if nothing is installed.
func identifyRelease(object client.Object) string {
	install, ok := object.(*v1alpha1.OperatorInstall)
	if !ok || install.Status.Installed == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %d", install.Status.Installed.Bundle, install.Status.SucceededHash,
		len(install.Status.Path))
}
