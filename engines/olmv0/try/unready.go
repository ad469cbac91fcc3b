// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// whyUnready says why Deployments of the trial have no Pods that run, to be added to what OLM says, which is only that
// a Deployment is not available. It is empty where nothing is known.
func (t *trial) whyUnready(ctx context.Context) string {
	var deployments appsv1.DeploymentList
	var pods corev1.PodList
	if t.List(ctx, &deployments, client.InNamespace(t.namespace)) != nil ||
		t.List(ctx, &pods, client.InNamespace(t.namespace)) != nil {
		return ""
	}
	var out strings.Builder
	for _, reason := range unready(deployments.Items, pods.Items) {
		out.WriteString("; " + reason)
	}
	return out.String()
}

// unready says what keeps Deployments from making Pods, and Pods from running. It is pure.
func unready(deployments []appsv1.Deployment, pods []corev1.Pod) []string {
	var out []string
	for _, d := range deployments {
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
				out = append(out, fmt.Sprintf("Deployment %s makes no Pods: %s", d.Name, c.Message))
			}
		}
	}
	for i := range pods {
		out = append(out, waits(&pods[i])...)
	}
	return out
}

// waits says what keeps a Pod from running.
func waits(p *corev1.Pod) []string {
	var out []string
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			out = append(out, fmt.Sprintf("Pod %s is not scheduled: %s", p.Name, c.Message))
		}
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if reason := waitsFor(s); reason != "" {
			out = append(out, fmt.Sprintf("container %s of Pod %s does not run: %s", s.Name, p.Name, reason))
		}
	}
	return out
}

// startStates are reasons of containers that are only about to start.
var startStates = []string{"", "ContainerCreating", "PodInitializing"}

// waitsFor says why a container does not run, such as an image that cannot be pulled; empty if it is only starting.
func waitsFor(s corev1.ContainerStatus) string {
	w := s.State.Waiting
	if w == nil || slices.Contains(startStates, w.Reason) {
		return ""
	}
	return cmp.Or(w.Message, w.Reason)
}
