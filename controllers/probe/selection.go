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

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// kindRecheck is the delay before a kind that the cluster does not serve is checked again.
const kindRecheck = time.Minute

// selectTargets returns the objects that a selector matches; probes.NotServed if the cluster does
// not serve the kind. It starts to watch the kind on its first use.
func (r *Reconciler) selectTargets(ctx context.Context, namespace string, selection probes.Selection) (probes.Selected,
	error) {
	object, list := newObjectsOfKind(selection.Kind)
	gvk, err := apiutil.GVKForObject(object, r.Client.Scheme())
	if err != nil {
		return probes.Selected{}, fmt.Errorf("find the kind %s: %w", selection.Kind, err)
	}
	_, err = r.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return probes.NotServed(selection.Kind, kindRecheck), nil
	}
	if err == nil {
		err = r.watch.start(selection.Kind, object)
	}
	if err != nil {
		return probes.Selected{}, fmt.Errorf("watch the kind %s: %w", selection.Kind, err)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := r.Client.List(ctx, list, client.InNamespace(namespace),
		client.MatchingLabelsSelector{Selector: selection.Labels}); err != nil {
		return probes.Selected{}, fmt.Errorf("list the kind %s in namespace %s: %w", selection.Kind, namespace, err)
	}
	var found []probes.ObjectMeta
	err = meta.EachListItem(list, func(item runtime.Object) error {
		m, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		found = append(found, probes.ObjectMeta{Name: m.GetName(), Labels: m.GetLabels(),
			Created: m.GetCreationTimestamp().Time, Deleting: m.GetDeletionTimestamp() != nil})
		return nil
	})
	if err != nil {
		return probes.Selected{}, fmt.Errorf("read the list of %s: %w", selection.Kind, err)
	}
	return probes.Select(namespace, selection, found, r.now()), nil
}

// newObjectsOfKind returns an empty object and an empty list of a kind of targets.
func newObjectsOfKind(kind probes.Kind) (client.Object, client.ObjectList) {
	switch kind {
	case probes.KindService:
		return &corev1.Service{}, &corev1.ServiceList{}
	case probes.KindIngress:
		return &networkingv1.Ingress{}, &networkingv1.IngressList{}
	case probes.KindRoute:
		return newUnstructuredOfKind(routeKind)
	case probes.KindHTTPRoute:
		return newUnstructuredOfKind(httpRouteKind)
	}
	panic("no kind of targets is " + string(kind))
}

// newUnstructuredOfKind returns an empty unstructured object and list of a kind.
func newUnstructuredOfKind(kind schema.GroupVersionKind) (client.Object, client.ObjectList) {
	object, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	object.SetGroupVersionKind(kind)
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return object, list
}

// targetWatch watches the kinds that selectors use, each from its first use. Most clusters need
// no such watch, and a watch keeps all objects of its kind in memory.
type targetWatch struct {
	client     client.Reader
	cache      cache.Cache
	controller controller.Controller

	mu      sync.Mutex
	started map[probes.Kind]bool
}

// start watches a kind, unless it is watched already.
func (w *targetWatch) start(kind probes.Kind, object client.Object) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started[kind] {
		return nil
	}
	mapToProbes := func(ctx context.Context, changed client.Object) []reconcile.Request {
		return w.listSelectingProbes(ctx, kind, changed.GetNamespace())
	}
	if err := w.controller.Watch(source.Kind(w.cache, object,
		handler.TypedEnqueueRequestsFromMapFunc(mapToProbes))); err != nil {
		return err
	}
	w.started[kind] = true
	return nil
}

// listSelectingProbes returns requests for the EndpointProbes of a namespace that select objects
// of a kind. The labels of the changed object are not compared, because the object might have
// matched before the change.
func (w *targetWatch) listSelectingProbes(ctx context.Context, kind probes.Kind, namespace string) []reconcile.Request {
	var all v1alpha1.EndpointProbeList
	if err := w.client.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list EndpointProbes", "namespace", namespace)
		return nil
	}
	var requests []reconcile.Request
	for i := range all.Items {
		selection, _ := probes.ReadSelection(all.Items[i].Spec.Target)
		if selection != nil && selection.Kind == kind {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}
