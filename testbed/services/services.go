// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package services makes Services answer at their cluster IPs, in the place of kube-proxy: for each address of a
// Service with a ready pod it listens on loopback and brings connections to the ready pods in turn. Where they go is
// decided in package plan. TCP only; sessions have no affinity; node ports, external addresses and EndpointSlices are
// not looked at.
//
// Inputs are a client that may read Services and pods, and the range of loopback addresses that the API server allots
// to Services. It must not change either, and it writes nothing but Events.
package services

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/bellwether-dev/bellwether/testbed/services/plan"
)

const (
	// An address that cannot be listened on is tried again: it may be that of a Service that is just going.
	firstRetry, lastRetry = 50 * time.Millisecond, 5 * time.Second

	// reasonNotServed is that of the Event about an address that nobody can connect to.
	reasonNotServed = "NotServed"
)

type proxy struct {
	within   netip.Prefix
	services listers.ServiceLister
	pods     listers.PodLister
	recorder record.EventRecorder
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	fronts   map[cache.ObjectName]map[netip.AddrPort]*front // by Service; of the one worker alone
	conns    *connections
}

// Run serves the Services whose cluster IPs are in the range within, such as 127.1.2.0/23, until ctx ends. Then all
// connections are closed and it returns nil.
func Run(ctx context.Context, client kubernetes.Interface, within string) error {
	prefix, err := netip.ParsePrefix(within)
	if err != nil {
		return fmt.Errorf("parse service range: %w", err)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})

	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropManagedFields))
	p := &proxy{
		within:   prefix,
		services: factory.Core().V1().Services().Lister(),
		pods:     factory.Core().V1().Pods().Lister(),
		recorder: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "services"}),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry)),
		fronts: map[cache.ObjectName]map[netip.AddrPort]*front{},
		conns:  newConnections(),
	}
	services, pods := factory.Core().V1().Services().Informer(), factory.Core().V1().Pods().Informer()
	_, serviceErr := services.AddEventHandler(handler(p.onService))
	_, podErr := pods.AddEventHandler(handler(p.onPod))
	if err := errors.Join(serviceErr, podErr); err != nil {
		return fmt.Errorf("watch services and pods: %w", err)
	}
	factory.StartWithContext(ctx)
	if cache.WaitForCacheSync(ctx.Done(), services.HasSynced, pods.HasSynced) {
		p.serve(ctx)
	}
	factory.Shutdown()
	return nil
}

// handler calls on for each object that comes, changes (as it was and as it is) or goes.
func handler(on func(any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: on,
		UpdateFunc: func(before, after any) {
			on(before)
			on(after)
		},
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			on(object)
		},
	}
}

func dropManagedFields(object any) (any, error) {
	if m, err := meta.Accessor(object); err == nil {
		m.SetManagedFields(nil)
	}
	return object, nil
}

func (p *proxy) onService(object any) {
	if service, ok := object.(*corev1.Service); ok {
		p.queue.Add(cache.MetaObjectToName(service))
	}
}

func (p *proxy) onPod(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	services, err := p.services.Services(pod.Namespace).List(labels.Everything())
	if err != nil {
		return // a lister of an informer's store has no errors
	}
	for _, service := range services {
		if plan.Selects(service, pod.Labels) {
			p.queue.Add(cache.MetaObjectToName(service))
		}
	}
}

// serve works until ctx ends, with one worker: which Service has an address is decided in one place.
func (p *proxy) serve(ctx context.Context) {
	stop := context.AfterFunc(ctx, p.queue.ShutDown)
	defer stop()
	for {
		name, shutdown := p.queue.Get()
		if shutdown {
			break
		}
		if err := p.sync(ctx, name); err != nil {
			klog.FromContext(ctx).Error(err, "Service not served", "service", name)
			p.queue.AddRateLimited(name)
		} else {
			p.queue.Forget(name)
		}
		p.queue.Done(name)
	}
	for _, fronts := range p.fronts {
		for _, f := range fronts {
			f.close()
		}
	}
	p.conns.cut()
}

// sync makes the listeners of one Service those that it should have now.
func (p *proxy) sync(ctx context.Context, name cache.ObjectName) error {
	service, err := p.services.Services(name.Namespace).Get(name.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("get service: %w", err)
	}
	var routes map[netip.AddrPort][]netip.AddrPort
	if service != nil && err == nil {
		pods, err := p.pods.Pods(name.Namespace).List(labels.Everything())
		if err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		routes = plan.Routes(service, pods, p.within)
	}
	p.close(name, routes)
	return p.open(ctx, name, service, routes)
}

// close ends the listeners that have no route any more.
func (p *proxy) close(name cache.ObjectName, routes map[netip.AddrPort][]netip.AddrPort) {
	for addr, f := range p.fronts[name] {
		if _, ok := routes[addr]; !ok {
			f.close()
			delete(p.fronts[name], addr)
		}
	}
	if len(p.fronts[name]) == 0 {
		delete(p.fronts, name)
	}
}

// open brings the listeners of the routes up to date, and makes those that are missing. An address that this user may
// not listen on is told to the Service's readers, and not tried again until something changes.
func (p *proxy) open(ctx context.Context, name cache.ObjectName, service *corev1.Service,
	routes map[netip.AddrPort][]netip.AddrPort) error {
	var failures []error
	for addr, backs := range routes {
		if f, ok := p.fronts[name][addr]; ok {
			f.lead(backs)
			continue
		}
		f, err := openFront(ctx, addr, backs, p.conns)
		if errors.Is(err, os.ErrPermission) {
			p.recorder.Eventf(service, corev1.EventTypeWarning, reasonNotServed,
				"port %d is not served: %v (the testbed does not run as root; let users listen on low ports by the "+
					"sysctl "+
					"net.ipv4.ip_unprivileged_port_start, or use a port from 1024 on)", addr.Port(), err)
			continue
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if p.fronts[name] == nil {
			p.fronts[name] = map[netip.AddrPort]*front{}
		}
		p.fronts[name][addr] = f
	}
	return errors.Join(failures...)
}
