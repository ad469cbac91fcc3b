// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
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

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/monitor/plan"
)

// Options configure the monitors.
type Options struct {
	// Cluster is the FleetCluster's name.
	Cluster string
	// Labels are put on every PodMonitor, so that the cluster's Prometheus
	// selects it.
	Labels map[string]string
}

// Add adds the controller to the hub's manager; local is the fleet cluster.
func Add(hub ctrl.Manager, local cluster.Cluster, o Options) error {
	r := &Reconciler{
		Local: local.GetClient(), Live: local.GetAPIReader(), Cluster: o.Cluster, Labels: o.Labels,
		Recorder: hub.GetEventRecorder("bellwether-agent"),
	}
	toInstalls := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context,
		d *appsv1.Deployment) []reconcile.Request {
		return installsIn(ctx, hub.GetClient(), d.Namespace)
	})
	changed := predicate.Or(predicate.TypedGenerationChangedPredicate[*appsv1.Deployment]{},
		predicate.TypedLabelChangedPredicate[*appsv1.Deployment]{})
	err := ctrl.NewControllerManagedBy(hub).
		Named("monitor").
		For(&v1alpha1.OperatorInstall{},
			builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{},
				installedChanged()))).
		WatchesRawSource(source.Kind(local.GetCache(), &appsv1.Deployment{}, toInstalls, changed)).
		Complete(reconcile.AsReconciler(hub.GetClient(), r))
	if err != nil {
		return fmt.Errorf("build monitor controller: %w", err)
	}
	return nil
}

// installedChanged passes a change of what is installed.
func installedChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return installed(e.ObjectOld) != installed(e.ObjectNew)
	}}
}

func installed(object client.Object) string {
	if oi, ok := object.(*v1alpha1.OperatorInstall); ok && oi.Status.Installed != nil {
		return oi.Status.Installed.Bundle
	}
	return ""
}

// installsIn are those with monitors whose operator lives in a namespace.
func installsIn(ctx context.Context, hub client.Reader, namespace string) []reconcile.Request {
	var installs v1alpha1.OperatorInstallList
	if err := hub.List(ctx, &installs, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list OperatorInstalls")
		return nil
	}
	var requests []reconcile.Request
	for i := range installs.Items {
		oi := &installs.Items[i]
		if plan.Wanted(oi) && oi.Spec.Admission.Release.TargetNamespace() == namespace {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(oi)})
		}
	}
	return requests
}
