// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/bellwether-dev/bellwether/alerts/monitors"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Options configure the monitors.
type Options struct {
	// Cluster is the FleetCluster's name.
	Cluster string
	// Labels are put on every PodMonitor, so that the cluster's Prometheus
	// selects it.
	Labels map[string]string
	// BundleOf returns the bundle that an object was created for; empty if the object was not
	// created for a bundle of the engine.
	BundleOf func(metav1.Object) string
}

// Add adds the controller to the hub's manager. local is the fleet cluster.
func Add(hub ctrl.Manager, local cluster.Cluster, o Options) error {
	r := &Reconciler{
		Local: local.GetClient(), Live: local.GetAPIReader(), Cluster: o.Cluster, Labels: o.Labels,
		BundleOf: o.BundleOf,
		Recorder: hub.GetEventRecorder("bellwether-agent"),
	}
	enqueueInstalls := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context,
		d *appsv1.Deployment) []reconcile.Request {
		return listInstallRequests(ctx, hub.GetClient(), d.Namespace)
	})
	changed := predicate.Or(predicate.TypedGenerationChangedPredicate[*appsv1.Deployment]{},
		predicate.TypedLabelChangedPredicate[*appsv1.Deployment]{})
	err := ctrl.NewControllerManagedBy(hub).
		Named("monitor").
		For(&v1alpha1.OperatorInstall{},
			builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{},
				newInstalledPredicate()))).
		WatchesRawSource(source.Kind(local.GetCache(), &appsv1.Deployment{}, enqueueInstalls, changed)).
		Complete(reconcile.AsReconciler(hub.GetClient(), r))
	if err != nil {
		return fmt.Errorf("build monitor controller: %w", err)
	}
	return nil
}

// newInstalledPredicate returns a predicate that selects updates of the installed bundle.
func newInstalledPredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return readInstalledBundle(e.ObjectOld) != readInstalledBundle(e.ObjectNew)
	}}
}

// readInstalledBundle returns the installed bundle of an OperatorInstall;
// empty if none is installed.
func readInstalledBundle(object client.Object) string {
	if oi, ok := object.(*v1alpha1.OperatorInstall); ok && oi.Status.Installed != nil {
		return oi.Status.Installed.Bundle
	}
	return ""
}

// listInstallRequests returns requests for the installs that request monitors and whose
// operator runs in the namespace.
func listInstallRequests(ctx context.Context, hub client.Reader, namespace string) []reconcile.Request {
	var installs v1alpha1.OperatorInstallList
	if err := hub.List(ctx, &installs, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list OperatorInstalls")
		return nil
	}
	var requests []reconcile.Request
	for i := range installs.Items {
		oi := &installs.Items[i]
		if monitors.IsWanted(oi) && oi.Spec.Admission.Release.TargetNamespace() == namespace {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(oi)})
		}
	}
	return requests
}
