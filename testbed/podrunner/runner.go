// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podrunner is the testbed's node: it schedules every pod to itself and
// runs each container as a process of this machine, with the identity, the
// environment, the volumes, the probes and the restarts that the pod asks for.
// There is no isolation: processes see the host's files and network.
//
// What it decides is in package plan. README.md says what a pod can rely on.
package podrunner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// Options are what a pod runner is told. All are required.
type Options struct {
	// Config is the way to the API server, with the rights of a node and a
	// scheduler. Pods get its address and CA, never its credentials.
	Config *rest.Config
	// Node is the name to register.
	Node string
	// Images says what to run; pods with any other image are stubs.
	Images Images
	// Dir is the folder for logs and volumes. No other runner may use it.
	Dir string
	// IPRange is a range of loopback addresses, as 127.1.2.0/24. No other runner may use it.
	IPRange string
}

type runner struct {
	opts      Options
	client    kubernetes.Interface
	src       source
	api       apiServer
	addresses *addresses
	recorder  record.EventRecorder

	mu      sync.Mutex
	workers map[types.UID]*worker
	running sync.WaitGroup
}

// Run registers the node and runs its pods until ctx ends; then it ends their
// processes and returns. The pods stay bound, and another run takes them over.
func Run(ctx context.Context, opts Options) error {
	config := rest.CopyConfig(opts.Config)
	config.QPS, config.Burst = 100, 200
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("build client: %w", err)
	}
	addrs, err := newAddresses(opts.IPRange)
	if err != nil {
		return err
	}
	api, err := newAPIServer(config)
	if err != nil {
		return err
	}
	if opts.Dir, err = filepath.Abs(opts.Dir); err != nil {
		return fmt.Errorf("find folder: %w", err)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})

	r := &runner{
		opts: opts, client: client, src: source{client}, api: api, addresses: addrs,
		recorder: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "podrunner", Host: opts.Node}),
		workers:  map[types.UID]*worker{},
	}
	n := &node{client: client, name: opts.Node, address: addrs.node.String(), maxPods: int64(addrs.size())}
	if err := n.register(ctx); err != nil {
		return err
	}
	go n.run(ctx)
	err = r.serve(ctx)
	r.running.Wait()
	return err
}

// serve watches pods until ctx ends.
func (r *runner) serve(ctx context.Context) error {
	unscheduled := podInformer(r.client, fields.OneTermEqualSelector("spec.nodeName", ""))
	s, err := newScheduler(r.client, r.opts.Node, unscheduled)
	if err != nil {
		return err
	}
	mine := podInformer(r.client, fields.OneTermEqualSelector("spec.nodeName", r.opts.Node))
	go mine.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), mine.HasSynced) {
		return nil
	}
	if err := r.adopt(mine.GetStore().List()); err != nil {
		return err
	}
	_, err = mine.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { r.onPod(ctx, object) },
		UpdateFunc: func(_, object any) { r.onPod(ctx, object) },
		DeleteFunc: r.onGone,
	})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	go unscheduled.RunWithContext(ctx)
	s.run(ctx)
	return nil
}

func podInformer(client kubernetes.Interface, selector fields.Selector) cache.SharedIndexInformer {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = selector.String() }),
		informers.WithTransform(dropManagedFields))
	return factory.Core().V1().Pods().Informer()
}

func dropManagedFields(object any) (any, error) {
	if m, err := apimeta.Accessor(object); err == nil {
		m.SetManagedFields(nil)
	}
	return object, nil
}

// adopt prepares for the pods that an earlier run has left: they keep their
// addresses, so these are taken before any new pod gets one, and the folders
// of pods that are gone are removed.
func (r *runner) adopt(objects []any) error {
	known := map[string]bool{}
	for _, object := range objects {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			continue
		}
		known[podFolder(pod)] = true
		if pod.Status.PodIP != "" && !finished(pod) {
			if _, err := r.addresses.take(pod.UID, pod.Status.PodIP); err != nil {
				return fmt.Errorf("adopt pod %s/%s: %w", pod.Namespace, pod.Name, err)
			}
		}
	}
	return r.removeFolders(known)
}

// removeFolders removes the pods' folders that are not in keep.
func (r *runner) removeFolders(keep map[string]bool) error {
	folders, err := os.ReadDir(r.podsDir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("list pod folders: %w", err)
	}
	for _, f := range folders {
		if keep[f.Name()] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.podsDir(), f.Name())); err != nil {
			return fmt.Errorf("remove folder of a gone pod: %w", err)
		}
	}
	return nil
}

// onPod brings a pod to its worker, and makes the worker if there is none.
func (r *runner) onPod(ctx context.Context, object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if w, ok := r.workers[pod.UID]; ok {
		w.update(pod)
		return
	}
	if ctx.Err() != nil || (finished(pod) && pod.DeletionTimestamp == nil) {
		return
	}
	w := newWorker(r, pod)
	r.workers[pod.UID] = w
	r.running.Go(func() {
		w.run(ctx)
		r.mu.Lock()
		delete(r.workers, pod.UID)
		r.mu.Unlock()
	})
}

// onGone ends the worker of a pod that somebody removed without waiting for it.
func (r *runner) onGone(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if w, ok := r.workers[pod.UID]; ok {
		w.kill()
	}
}

func (r *runner) podsDir() string { return filepath.Join(r.opts.Dir, "run") }

func podFolder(pod *corev1.Pod) string {
	return strings.Join([]string{pod.Namespace, pod.Name, string(pod.UID)}, "_")
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
