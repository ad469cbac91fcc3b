// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// scheduler binds every unscheduled pod to the one node. Selectors, affinities
// and taints are not looked at: there is no other place to run.
type scheduler struct {
	client kubernetes.Interface
	node   string
	pods   cache.SharedIndexInformer // of pods without a node
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

func newScheduler(client kubernetes.Interface, node string, pods cache.SharedIndexInformer) (*scheduler, error) {
	s := &scheduler{
		client: client, node: node, pods: pods,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    s.enqueue,
		UpdateFunc: func(_, pod any) { s.enqueue(pod) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch unscheduled pods: %w", err)
	}
	return s, nil
}

func (s *scheduler) enqueue(object any) {
	if pod, ok := object.(*corev1.Pod); ok {
		s.queue.Add(cache.MetaObjectToName(pod))
	}
}

func (s *scheduler) run(ctx context.Context) {
	go func() {
		<-ctx.Done()
		s.queue.ShutDown()
	}()
	for {
		name, shutdown := s.queue.Get()
		if shutdown {
			return
		}
		if err := s.bind(ctx, name); err != nil {
			klog.FromContext(ctx).Error(err, "Pod not bound", "pod", name)
			s.queue.AddRateLimited(name)
		} else {
			s.queue.Forget(name)
		}
		s.queue.Done(name)
	}
}

func (s *scheduler) bind(ctx context.Context, name cache.ObjectName) error {
	object, exists, err := s.pods.GetStore().GetByKey(name.String())
	if err != nil || !exists {
		return err
	}
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 {
		return nil
	}
	err = s.client.CoreV1().Pods(name.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: s.node},
	}, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or bound meanwhile
	}
	if err != nil {
		return fmt.Errorf("bind pod: %w", err)
	}
	return nil
}
