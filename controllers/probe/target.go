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

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/probe/plan"
)

var (
	routes     = schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"}
	httpRoutes = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
	gateways   = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "Gateway"}
)

// readTimeout bounds how long a run waits for the cache, which is filled on the
// first read of a kind.
const readTimeout = 2 * time.Second

// readTarget reads a target's object from the cache before each run, so that a
// changed Route is followed immediately without a request to the API server.
func (r *Reconciler) readTarget(ctx context.Context, namespace string, target v1alpha1.ProbeTarget) plan.Object {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var object plan.Object
	var err error
	switch {
	case target.Service != nil:
		object.Service, err = getOrNil(ctx, r.Client, &corev1.Service{}, namespace, target.Service.Name)
	case target.Ingress != nil:
		object.Ingress, err = getOrNil(ctx, r.Client, &networkingv1.Ingress{}, namespace, target.Ingress.Name)
	case target.Route != nil:
		object.Route, err = r.readUnstructured(ctx, routes, namespace, target.Route.Name)
	case target.HTTPRoute != nil:
		if object.HTTPRoute, err = r.readUnstructured(ctx, httpRoutes, namespace, target.HTTPRoute.Name); err == nil {
			object.Gateway, err = r.gatewayOf(ctx, namespace, object.HTTPRoute)
		}
	}
	if err != nil {
		object.Unreadable = fmt.Sprintf("cannot read the target: %v", err)
	}
	return object
}

// getOrNil returns nil if the object does not exist.
func getOrNil[T client.Object](ctx context.Context, from client.Reader, into T, namespace, name string) (none T,
	err error) {
	err = from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	return into, err
}

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

// gatewayOf reads the first parent of an HTTPRoute. A missing Gateway is no
// error: the hosts may be known without it.
func (r *Reconciler) gatewayOf(ctx context.Context, namespace string, route map[string]any) (map[string]any, error) {
	parents, _, _ := unstructured.NestedSlice(route, "spec", "parentRefs")
	if len(parents) == 0 {
		return nil, nil
	}
	parent, _ := parents[0].(map[string]any)
	if kind, ok := parent["kind"].(string); ok && kind != gateways.Kind {
		return nil, nil
	}
	if other, ok := parent["namespace"].(string); ok && other != "" {
		namespace = other
	}
	name, _ := parent["name"].(string)
	return r.readUnstructured(ctx, gateways, namespace, name)
}

// CacheByObject keeps only the fields of targets, and of what holds their CAs, that
// are needed to resolve them, because the cache holds all objects of a kind once a
// probe names one.
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Service{}:       {Transform: slimService},
		&networkingv1.Ingress{}: {Transform: slimIngress},
		crdObject():             {Transform: slimCRD},
	}
}

func slimService(object any) (any, error) {
	s, ok := object.(*corev1.Service)
	if !ok {
		return object, nil
	}
	slim := &corev1.Service{ObjectMeta: slimMeta(s.ObjectMeta)}
	slim.Spec.Type, slim.Spec.ClusterIP = s.Spec.Type, s.Spec.ClusterIP
	slim.Spec.Selector = s.Spec.Selector
	for _, port := range s.Spec.Ports {
		slim.Spec.Ports = append(slim.Spec.Ports, corev1.ServicePort{Port: port.Port})
	}
	return slim, nil
}

func slimIngress(object any) (any, error) {
	i, ok := object.(*networkingv1.Ingress)
	if !ok {
		return object, nil
	}
	return &networkingv1.Ingress{ObjectMeta: slimMeta(i.ObjectMeta), Spec: i.Spec, Status: i.Status}, nil
}

func slimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Labels: m.Labels, CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp}
}
