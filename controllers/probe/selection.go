// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/probe/plan"
)

// recheckKind is when a kind that the cluster did not serve is looked for again.
const recheckKind = time.Minute

// selectTargets lists the objects that a selector matches. The kind is watched from
// the first time on.
func (r *Reconciler) selectTargets(ctx context.Context, namespace string, selection plan.Selection) (plan.Selected,
	error) {
	object, list := objectsOfKind(selection.Kind)
	gvk, err := apiutil.GVKForObject(object, r.Client.Scheme())
	if err != nil {
		return plan.Selected{}, fmt.Errorf("find the kind %s: %w", selection.Kind, err)
	}
	_, err = r.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return plan.NotServed(selection.Kind, recheckKind), nil
	}
	if err == nil {
		err = r.watch.start(selection.Kind, object)
	}
	if err != nil {
		return plan.Selected{}, fmt.Errorf("watch the kind %s: %w", selection.Kind, err)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := r.Client.List(ctx, list, client.InNamespace(namespace),
		client.MatchingLabelsSelector{Selector: selection.Labels}); err != nil {
		return plan.Selected{}, fmt.Errorf("list the kind %s in namespace %s: %w", selection.Kind, namespace, err)
	}
	var found []plan.ObjectMeta
	err = meta.EachListItem(list, func(item runtime.Object) error {
		m, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		found = append(found, plan.ObjectMeta{Name: m.GetName(), Labels: m.GetLabels(),
			Created: m.GetCreationTimestamp().Time, Deleting: m.GetDeletionTimestamp() != nil})
		return nil
	})
	if err != nil {
		return plan.Selected{}, fmt.Errorf("read the list of %s: %w", selection.Kind, err)
	}
	return plan.Select(namespace, selection, found, r.now()), nil
}

// objectsOfKind returns an empty object and an empty list of a kind of targets.
func objectsOfKind(kind plan.Kind) (client.Object, client.ObjectList) {
	switch kind {
	case plan.KindService:
		return &corev1.Service{}, &corev1.ServiceList{}
	case plan.KindIngress:
		return &networkingv1.Ingress{}, &networkingv1.IngressList{}
	case plan.KindRoute:
		return unstructuredOfKind(routes)
	case plan.KindHTTPRoute:
		return unstructuredOfKind(httpRoutes)
	}
	panic("no kind of targets is " + string(kind))
}

func unstructuredOfKind(kind schema.GroupVersionKind) (client.Object, client.ObjectList) {
	object, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	object.SetGroupVersionKind(kind)
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return object, list
}

// targetWatch watches the kinds that selectors need, each from the first time that
// one needs it: most clusters need none, and a watch keeps all objects of its kind in
// memory.
type targetWatch struct {
	client     client.Reader
	cache      cache.Cache
	controller controller.Controller

	mu      sync.Mutex
	started map[plan.Kind]bool
}

func (w *targetWatch) start(kind plan.Kind, object client.Object) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started[kind] {
		return nil
	}
	toProbes := func(ctx context.Context, changed client.Object) []reconcile.Request {
		return w.probesThatSelect(ctx, kind, changed.GetNamespace())
	}
	if err := w.controller.Watch(source.Kind(w.cache, object,
		handler.TypedEnqueueRequestsFromMapFunc(toProbes))); err != nil {
		return err
	}
	w.started[kind] = true
	return nil
}

// probesThatSelect returns the EndpointProbes of a namespace that select objects of a
// kind. An object that changed may have matched before, so its labels do not count.
func (w *targetWatch) probesThatSelect(ctx context.Context, kind plan.Kind, namespace string) []reconcile.Request {
	var probes v1alpha1.EndpointProbeList
	if err := w.client.List(ctx, &probes, client.InNamespace(namespace)); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list EndpointProbes", "namespace", namespace)
		return nil
	}
	var requests []reconcile.Request
	for i := range probes.Items {
		selection, _ := plan.ReadSelection(probes.Items[i].Spec.Target)
		if selection != nil && selection.Kind == kind {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&probes.Items[i])})
		}
	}
	return requests
}
