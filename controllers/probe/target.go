// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

var (
	routeKind     = schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"}
	httpRouteKind = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
	gatewayKind   = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "Gateway"}
)

// readTimeout limits how long a run waits for the cache. The cache is filled at
// the first read of a kind.
const readTimeout = 2 * time.Second

// readTarget reads a target's object from the cache before each run, so that the probe uses a
// changed Route immediately without a request to the API server. The result has the problem if
// the object cannot be read.
func (r *Reconciler) readTarget(ctx context.Context, namespace string, target v1alpha1.ProbeTarget) probes.Object {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var object probes.Object
	var err error
	switch {
	case target.Service != nil:
		object.Service, err = getOrNil(ctx, r.Client, &corev1.Service{}, namespace, target.Service.Name)
	case target.Ingress != nil:
		object.Ingress, err = getOrNil(ctx, r.Client, &networkingv1.Ingress{}, namespace, target.Ingress.Name)
	case target.Route != nil:
		object.Route, err = r.readUnstructured(ctx, routeKind, namespace, target.Route.Name)
	case target.HTTPRoute != nil:
		if object.HTTPRoute, err = r.readUnstructured(ctx, httpRouteKind, namespace,
			target.HTTPRoute.Name); err == nil {
			object.Gateway, err = r.readGateway(ctx, namespace, object.HTTPRoute)
		}
	}
	if err != nil {
		object.Unreadable = fmt.Sprintf("cannot read the target: %v", err)
	}
	return object
}

// getOrNil reads an object into the given empty object and returns it. It returns nil if
// the object does not exist.
func getOrNil[T client.Object](ctx context.Context, reader client.Reader, into T, namespace, name string) (none T,
	err error) {
	err = reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	return into, err
}

// readUnstructured returns the content of an object of a kind; nil if the object does not exist.
// It is an error if the cluster does not serve the kind.
func (r *Reconciler) readUnstructured(ctx context.Context, kind schema.GroupVersionKind, namespace,
	name string) (map[string]any,
	error) {
	into := &unstructured.Unstructured{}
	into.SetGroupVersionKind(kind)
	into, err := getOrNil(ctx, r.Client, into, namespace, name)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the cluster does not serve the kind %s", kind.Kind)
	}
	if into == nil || err != nil {
		return nil, err
	}
	return into.Object, nil
}

// readGateway returns the Gateway that is the first parent of an HTTPRoute; nil if the route has
// no parent, or its first parent is of another kind. A missing Gateway is not an error, because
// the hosts can be known without the Gateway.
func (r *Reconciler) readGateway(ctx context.Context, namespace string, route map[string]any) (map[string]any, error) {
	parents, _, _ := unstructured.NestedSlice(route, "spec", "parentRefs")
	if len(parents) == 0 {
		return nil, nil
	}
	parent, _ := parents[0].(map[string]any)
	if kind, ok := parent["kind"].(string); ok && kind != gatewayKind.Kind {
		return nil, nil
	}
	if gatewayNamespace, ok := parent["namespace"].(string); ok && gatewayNamespace != "" {
		namespace = gatewayNamespace
	}
	name, _ := parent["name"].(string)
	return r.readUnstructured(ctx, gatewayKind, namespace, name)
}

// CacheByObject returns transforms for the cache. They keep only the fields of targets, and of
// the objects with their CAs, that are needed to resolve targets, because the cache holds all
// objects of a kind after the first probe that names one.
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Service{}:       {Transform: trimService},
		&networkingv1.Ingress{}: {Transform: trimIngress},
		newCRD():                {Transform: trimCRD},
	}
}

// trimService removes the fields of a Service that are not used.
func trimService(object any) (any, error) {
	s, ok := object.(*corev1.Service)
	if !ok {
		return object, nil
	}
	slim := &corev1.Service{ObjectMeta: trimMeta(s.ObjectMeta)}
	slim.Spec.Type, slim.Spec.ClusterIP = s.Spec.Type, s.Spec.ClusterIP
	slim.Spec.Selector = s.Spec.Selector
	for _, port := range s.Spec.Ports {
		slim.Spec.Ports = append(slim.Spec.Ports, corev1.ServicePort{Port: port.Port})
	}
	return slim, nil
}

// trimIngress removes the metadata of an Ingress that is not used.
func trimIngress(object any) (any, error) {
	i, ok := object.(*networkingv1.Ingress)
	if !ok {
		return object, nil
	}
	return &networkingv1.Ingress{ObjectMeta: trimMeta(i.ObjectMeta), Spec: i.Spec, Status: i.Status}, nil
}

// trimMeta returns the metadata that is used.
func trimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Labels: m.Labels, CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp}
}
