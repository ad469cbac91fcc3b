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

// Triggers has OperatorInstalls reconciled for reasons that no watch reports.
type Triggers chan event.TypedGenericEvent[*v1alpha1.OperatorInstall]

// queued bounds how many triggers wait for the controller to start.
const queued = 1024

// NewTriggers returns triggers for Add.
func NewTriggers() Triggers { return make(Triggers, queued) }

// Notify has an OperatorInstall reconciled.
func (t Triggers) Notify(key client.ObjectKey) {
	install := &v1alpha1.OperatorInstall{}
	install.Namespace, install.Name = key.Namespace, key.Name
	t <- event.TypedGenericEvent[*v1alpha1.OperatorInstall]{Object: install}
}

// Add adds the controller to the manager and returns it, so that the engine can
// have it watch the fleet cluster.
func Add[O, A any](manager ctrl.Manager, recorder events.EventRecorder, r *Reconciler[O, A],
	triggers Triggers) (controller.Controller, error) {
	c, err := ctrl.NewControllerManagedBy(manager).
		Named("install").
		For(&v1alpha1.OperatorInstall{}).
		WatchesRawSource(source.Channel(triggers, &handler.TypedEnqueueRequestForObject[*v1alpha1.OperatorInstall]{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 2}).
		Build(kit.Shell(manager.GetClient(), recorder, r))
	if err != nil {
		return nil, fmt.Errorf("build install controller: %w", err)
	}
	return c, nil
}
