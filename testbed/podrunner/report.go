// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/testbed/podrunner/plan"
)

// report writes the pod's status whenever it changes, and a last time after
// ended is closed.
func (w *worker) report(ctx context.Context, ended <-chan struct{}) {
	for last := false; !last; {
		select {
		case <-ctx.Done():
			return
		case <-ended:
			last = true
		case <-w.changed:
		}
		for {
			err := w.reportOnce(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			if errors.Is(err, errGone) {
				return
			}
			klog.FromContext(ctx).Error(err, "Pod status not written")
			if !wait(ctx, retryPeriod) {
				return
			}
		}
	}
}

// reportOnce patches the status if it is not what was written last.
func (w *worker) reportOnce(ctx context.Context) error {
	observed, before, gone := w.observe()
	if gone {
		return errGone
	}
	if observed.PodIP == "" {
		return nil
	}
	status := plan.Status(observed)
	if equality.Semantic.DeepEqual(before, status) {
		return nil
	}
	pod := observed.Pod
	patch, err := statusPatch(pod.UID, before, status)
	if err != nil {
		return err
	}
	_, err = w.r.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name,
		types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("patch pod status: %w", err)
	}
	w.mu.Lock()
	w.reported = &status
	w.mu.Unlock()
	return nil
}

// observe returns what the status is computed from, and the status before.
func (w *worker) observe() (observed plan.Observed, before corev1.PodStatus, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before = w.pod.Status
	before.Conditions = plan.Owned(before.Conditions)
	if w.reported != nil {
		before = *w.reported
	}
	observed = plan.Observed{
		Pod: w.pod, HostIP: w.r.addresses.node.String(), PodIP: w.address,
		Started: w.started, Now: metav1.Now(), Previous: before.Conditions,
	}
	for _, c := range w.statuses {
		c.ContainerStatus = *c.DeepCopy()
		observed.Containers = append(observed.Containers, c)
	}
	return observed, before, w.gone
}

// statusPatch returns the change from one status to the other. It names the
// pod's UID, so that it never meets a namesake.
func statusPatch(uid types.UID, before, after corev1.PodStatus) ([]byte, error) {
	type object struct {
		Metadata map[string]types.UID `json:"metadata,omitempty"`
		Status   corev1.PodStatus     `json:"status"`
	}
	from, err := json.Marshal(object{Status: before})
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	to, err := json.Marshal(object{Status: after, Metadata: map[string]types.UID{"uid": uid}})
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(from, to, corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("compare status: %w", err)
	}
	return patch, nil
}

// remove deletes what is left of an ended pod: its folder, and its object,
// which has been waiting for that.
func (w *worker) remove(ctx context.Context) {
	if err := os.RemoveAll(w.dir); err != nil {
		klog.FromContext(ctx).Error(err, "Pod folder not removed")
	}
	w.retry(ctx, "FailedKillPod", func() error {
		pod := w.current()
		err := w.r.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0),
			Preconditions:      &metav1.Preconditions{UID: &pod.UID},
		})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	})
}

// Stub marks a pod that only pretends to run, as label and as annotation.
const Stub = "testbed.bellwether.dev/stub"

// pretend shows a pod whose image is not known as running and Ready until ctx
// ends. It never ends by itself: a Job's stub must not pass for a success.
func (w *worker) pretend(ctx context.Context) error {
	pod := w.current()
	mark := map[string]any{"metadata": map[string]any{
		"uid":         pod.UID,
		"labels":      map[string]string{Stub: "true"},
		"annotations": map[string]string{Stub: "true"},
	}}
	patch, err := json.Marshal(mark)
	if err != nil {
		return fmt.Errorf("encode stub mark: %w", err)
	}
	w.retry(ctx, "FailedCreatePodSandBox", func() error {
		_, err := w.r.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name,
			types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	})
	w.event(corev1.EventTypeNormal, "Stub", "an image of this pod is not known to the pod runner; it runs nothing")
	now := metav1.Now()
	for i := range w.containers {
		keeps := !w.status(i).Init || w.status(i).Sidecar
		w.set(i, func(s *corev1.ContainerStatus) {
			s.Ready, s.Started, s.ImageID = true, ptr.To(keeps), "stub://"
			s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
			if !keeps {
				s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					Reason: "Completed", StartedAt: now, FinishedAt: now,
				}}
			}
		})
	}
	<-ctx.Done()
	return nil
}
