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

// Watcher looks for OLM on the fleet cluster. Once OLM is there it has the
// controller of OperatorInstalls watch OLM's objects. It is a manager.Runnable.
type Watcher struct {
	// Hub lists OperatorInstalls.
	Hub   client.Reader
	Local cluster.Cluster
	// Controller reconciles OperatorInstalls, and Notify has it reconcile one. Without them, OLM is looked for and
	// nobody is told.
	Controller controller.Controller
	Notify     func(client.ObjectKey)
	// Interval is how often the cluster is checked for OLM's API; default 10s.
	Interval time.Duration

	// known says that the cluster was checked for OLM's API, and served is the last
	// result.
	known, served atomic.Bool
	watching      bool
}

// OLM tells whether the cluster serves OLM's API, if that is known already.
func (w *Watcher) OLM() (served, known bool) { return w.served.Load(), w.known.Load() }

// Start checks for OLM until ctx ends.
func (w *Watcher) Start(ctx context.Context) error {
	if w.Interval == 0 {
		w.Interval = 10 * time.Second
	}
	for {
		if err := w.check(ctx); err != nil {
			log.FromContext(ctx).Error(err, "Cannot check for OLM")
		}
		wait := w.Interval
		if !w.known.Load() {
			wait = time.Second
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// check checks for OLM's API. When OLM was installed or removed, every install is
// reconciled.
func (w *Watcher) check(ctx context.Context) error {
	served, err := servesOLM(ctx, w.Local.GetAPIReader())
	if err != nil {
		return err
	}
	if served && !w.watching && w.Controller != nil {
		if err := w.watch(); err != nil {
			return err
		}
		w.watching = true
	}
	before := w.served.Swap(served)
	if w.known.Swap(true) && before == served {
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

// servesOLM uses the API itself, because a REST mapper would remember a CRD that
// is gone.
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

// watch watches everything that a decision about a namespace is made from.
func (w *Watcher) watch() error {
	toInstalls := handler.TypedEnqueueRequestsFromMapFunc(w.installsIn)
	objects := []client.Object{
		&operatorsv1alpha1.InstallPlan{}, &operatorsv1alpha1.ClusterServiceVersion{}, &appsv1.Deployment{},
		objectOfKind(kinds[plan.KindOperatorGroup]), objectOfKind(kinds[plan.KindCatalogSource]),
		objectOfKind(kinds[plan.KindSubscription]),
	}
	for _, object := range objects {
		if err := w.Controller.Watch(source.Kind(w.Local.GetCache(), object, toInstalls)); err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
	}
	err := w.Controller.Watch(source.Kind(w.Local.GetCache(), definitionMeta(),
		handler.TypedEnqueueRequestsFromMapFunc(w.allInstalls), whenDeleted))
	if err != nil {
		return fmt.Errorf("watch CustomResourceDefinitions: %w", err)
	}
	return nil
}

// whenDeleted selects deletions. That a definition is deleted is rare, and concerns whatever owns it.
var whenDeleted = predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
	CreateFunc:  func(event.TypedCreateEvent[*metav1.PartialObjectMetadata]) bool { return false },
	UpdateFunc:  func(event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool { return false },
	GenericFunc: func(event.TypedGenericEvent[*metav1.PartialObjectMetadata]) bool { return false },
}

func objectOfKind(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// installsIn maps an object to the installs whose operator is in its namespace.
func (w *Watcher) installsIn(ctx context.Context, object client.Object) []reconcile.Request {
	return w.installs(ctx, func(oi *v1alpha1.OperatorInstall) bool {
		return oi.Spec.Admission != nil && oi.Spec.Admission.Release.TargetNamespace() == object.GetNamespace()
	})
}

func (w *Watcher) allInstalls(ctx context.Context, _ *metav1.PartialObjectMetadata) []reconcile.Request {
	return w.installs(ctx, func(*v1alpha1.OperatorInstall) bool { return true })
}

func (w *Watcher) installs(ctx context.Context, which func(*v1alpha1.OperatorInstall) bool) []reconcile.Request {
	var installs v1alpha1.OperatorInstallList
	if err := w.Hub.List(ctx, &installs); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list OperatorInstalls")
		return nil
	}
	var requests []reconcile.Request
	for i := range installs.Items {
		if oi := &installs.Items[i]; which(oi) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(oi)})
		}
	}
	return requests
}
