// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// Watcher checks whether the fleet cluster has OLM. Once it has, the controller of OperatorInstalls watches OLM's
// objects. It is a manager.Runnable.
type Watcher struct {
	// Hub lists OperatorInstalls.
	Hub   client.Reader
	Local cluster.Cluster
	// Controller reconciles OperatorInstalls, and Notify makes it reconcile one OperatorInstall. If Controller is
	// nil, the Watcher only checks for OLM.
	Controller controller.Controller
	Notify     func(client.ObjectKey)
	// Interval is how often the cluster is checked for OLM's API; default 10s.
	Interval time.Duration

	// known is set once the cluster was checked for OLM's API, and served is the last result.
	known, served atomic.Bool
	watching      bool
}

// OLM reports whether the cluster serves OLM's API. known is false until the cluster was checked.
func (w *Watcher) OLM() (served, known bool) { return w.served.Load(), w.known.Load() }

// Start checks for OLM until ctx ends.
func (w *Watcher) Start(ctx context.Context) error {
	if w.Interval == 0 {
		w.Interval = 10 * time.Second
	}
	for {
		if err := w.checkOLM(ctx); err != nil {
			log.FromContext(ctx).Error(err, "Cannot check for OLM")
		}
		delay := w.Interval
		if !w.known.Load() { // installs wait for the first result
			delay = time.Second
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay):
		}
	}
}

// checkOLM checks for OLM's API, and watches OLM's objects as soon as the API is served. After the first check, and
// if OLM was installed or removed, it notifies the controller of every install.
func (w *Watcher) checkOLM(ctx context.Context) error {
	served, err := servesOLM(ctx, w.Local.GetAPIReader())
	if err != nil {
		return err
	}
	if served && !w.watching && w.Controller != nil {
		if err := w.startWatches(); err != nil {
			return err
		}
		w.watching = true
	}
	wasServed := w.served.Swap(served)
	if w.known.Swap(true) && wasServed == served {
		return nil
	}
	log.FromContext(ctx).Info("Checked for OLM's API", "served", served)
	if w.Controller == nil {
		return nil
	}
	var installs v1alpha1.OperatorInstallList
	if err := w.Hub.List(ctx, &installs); err != nil {
		return fmt.Errorf("list OperatorInstalls: %w", err)
	}
	for i := range installs.Items {
		w.Notify(client.ObjectKeyFromObject(&installs.Items[i]))
	}
	return nil
}

// servesOLM reports whether the cluster serves OLM's API. It sends a request, because a REST mapper would still have
// a CRD that was deleted.
func servesOLM(ctx context.Context, live client.Reader) (bool, error) {
	err := live.List(ctx, &operatorsv1alpha1.SubscriptionList{}, client.Limit(1))
	switch {
	case err == nil:
		return true, nil
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return false, nil
	}
	return false, fmt.Errorf("check for OLM: %w", err)
}

// startWatches watches all objects that a decision about a namespace depends on.
func (w *Watcher) startWatches() error {
	toInstalls := handler.TypedEnqueueRequestsFromMapFunc(w.mapToInstalls)
	objects := []client.Object{
		&operatorsv1alpha1.InstallPlan{}, &operatorsv1alpha1.ClusterServiceVersion{}, &appsv1.Deployment{},
		newObjectOfKind(kinds[plan.KindOperatorGroup]), newObjectOfKind(kinds[plan.KindCatalogSource]),
		newObjectOfKind(kinds[plan.KindSubscription]),
	}
	for _, object := range objects {
		if err := w.Controller.Watch(source.Kind(w.Local.GetCache(), object, toInstalls)); err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
	}
	err := w.Controller.Watch(source.Kind(w.Local.GetCache(), newDefinitionMeta(),
		handler.TypedEnqueueRequestsFromMapFunc(w.mapToAllInstalls), deletions))
	if err != nil {
		return fmt.Errorf("watch CustomResourceDefinitions: %w", err)
	}
	return nil
}

// deletions selects deletions. The deletion of a CustomResourceDefinition is rare and concerns every install that may
// own it.
var deletions = predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
	CreateFunc:  func(event.TypedCreateEvent[*metav1.PartialObjectMetadata]) bool { return false },
	UpdateFunc:  func(event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool { return false },
	GenericFunc: func(event.TypedGenericEvent[*metav1.PartialObjectMetadata]) bool { return false },
}

// newObjectOfKind returns an empty object of a kind.
func newObjectOfKind(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// mapToInstalls returns requests for the installs whose operator is in the namespace of an object.
func (w *Watcher) mapToInstalls(ctx context.Context, object client.Object) []reconcile.Request {
	return w.listRequests(ctx, func(oi *v1alpha1.OperatorInstall) bool {
		return oi.Spec.Admission != nil && oi.Spec.Admission.Release.TargetNamespace() == object.GetNamespace()
	})
}

// mapToAllInstalls returns requests for all installs.
func (w *Watcher) mapToAllInstalls(ctx context.Context, _ *metav1.PartialObjectMetadata) []reconcile.Request {
	return w.listRequests(ctx, func(*v1alpha1.OperatorInstall) bool { return true })
}

// listRequests returns requests for the selected installs.
func (w *Watcher) listRequests(ctx context.Context,
	isSelected func(*v1alpha1.OperatorInstall) bool) []reconcile.Request {
	var installs v1alpha1.OperatorInstallList
	if err := w.Hub.List(ctx, &installs); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list OperatorInstalls")
		return nil
	}
	var requests []reconcile.Request
	for i := range installs.Items {
		if oi := &installs.Items[i]; isSelected(oi) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(oi)})
		}
	}
	return requests
}
