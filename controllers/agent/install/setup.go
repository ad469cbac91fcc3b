// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// Triggers request reconciles of OperatorInstalls for reasons that no watch reports.
type Triggers chan event.TypedGenericEvent[*v1alpha1.OperatorInstall]

// maxQueued limits how many triggers wait for the controller to start.
const maxQueued = 1024

// NewTriggers returns triggers for Add.
func NewTriggers() Triggers { return make(Triggers, maxQueued) }

// Notify requests a reconcile of an OperatorInstall. It blocks while the queue is full.
func (t Triggers) Notify(key client.ObjectKey) {
	install := &v1alpha1.OperatorInstall{}
	install.Namespace, install.Name = key.Namespace, key.Name
	t <- event.TypedGenericEvent[*v1alpha1.OperatorInstall]{Object: install}
}

// Add adds the controller to the manager and returns it, so that the engine can add
// watches of the fleet cluster.
func Add[O, A any](manager ctrl.Manager, recorder events.EventRecorder, r *Reconciler[O, A],
	triggers Triggers) (controller.Controller, error) {
	c, err := ctrl.NewControllerManagedBy(manager).
		Named("install").
		For(&v1alpha1.OperatorInstall{}).
		WatchesRawSource(source.Channel(triggers, &handler.TypedEnqueueRequestForObject[*v1alpha1.OperatorInstall]{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 2}).
		Build(kit.WrapReconciler(manager.GetClient(), recorder, r))
	if err != nil {
		return nil, fmt.Errorf("build install controller: %w", err)
	}
	return c, nil
}
