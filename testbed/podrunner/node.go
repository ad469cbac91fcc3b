// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"context"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	leaseSeconds = 40
	leaseRenewal = 10 * time.Second
	nodeRefresh  = time.Minute
)

// node registers the machine as a node and keeps it Ready.
type node struct {
	client  kubernetes.Interface
	name    string
	address string
	maxPods int64
}

// run keeps the node's Lease and its status fresh until ctx ends.
func (n *node) run(ctx context.Context) {
	log := klog.FromContext(ctx)
	holder := lease.NewController(clock.RealClock{}, n.client, n.name, leaseSeconds, nil, leaseRenewal,
		n.name, corev1.NamespaceNodeLease, nil)
	go holder.Run(ctx)
	ticker := time.NewTicker(nodeRefresh)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := n.register(ctx); err != nil {
				log.Error(err, "Node status not renewed")
			}
		}
	}
}

// register creates the node if need be and writes its status.
func (n *node) register(ctx context.Context) error {
	nodes := n.client.CoreV1().Nodes()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, err := nodes.Get(ctx, n.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			current, err = nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name}},
				metav1.CreateOptions{})
		}
		if err != nil {
			return err
		}
		if current, err = n.updateSpec(ctx, current); err != nil {
			return err
		}
		current.Status = n.status(current.Status)
		_, err = nodes.UpdateStatus(ctx, current, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("register node %s: %w", n.name, err)
	}
	return nil
}

// updateSpec sets the labels of a node and drops its taints: a new node is
// tainted as not ready, and the controller that would lift that need not run here.
func (n *node) updateSpec(ctx context.Context, current *corev1.Node) (*corev1.Node, error) {
	want := map[string]string{
		corev1.LabelHostname:   n.name,
		corev1.LabelOSStable:   runtime.GOOS,
		corev1.LabelArchStable: runtime.GOARCH,
	}
	same := len(current.Spec.Taints) == 0
	for key, value := range want {
		same = same && current.Labels[key] == value
	}
	if same {
		return current, nil
	}
	current.Spec.Taints = nil
	if current.Labels == nil {
		current.Labels = map[string]string{}
	}
	for key, value := range want {
		current.Labels[key] = value
	}
	return n.client.CoreV1().Nodes().Update(ctx, current, metav1.UpdateOptions{})
}

func (n *node) status(before corev1.NodeStatus) corev1.NodeStatus {
	now := metav1.Now()
	ready := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "PodRunnerReady",
		Message: "the pod runner runs pods as processes", LastHeartbeatTime: now, LastTransitionTime: now,
	}
	for _, c := range before.Conditions {
		if c.Type == ready.Type && c.Status == ready.Status {
			ready.LastTransitionTime = c.LastTransitionTime
		}
	}
	// Nothing is metered, so the node claims to be large enough for all.
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             *resource.NewQuantity(n.maxPods, resource.DecimalSI),
	}
	return corev1.NodeStatus{
		Capacity: capacity, Allocatable: capacity.DeepCopy(),
		Conditions: []corev1.NodeCondition{ready},
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: n.address},
			{Type: corev1.NodeHostName, Address: n.name},
		},
		NodeInfo: corev1.NodeSystemInfo{
			KubeletVersion: "podrunner", ContainerRuntimeVersion: "process://1", OSImage: "Bellwether testbed",
			OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
		},
		RuntimeHandlers: before.RuntimeHandlers,
		Config:          before.Config,
	}
}
