// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload explains why the pods of an operator's Deployments are not available. It is pure: its inputs are
// the objects. The agent reports its results, and the command line shows them.
package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// problemByWaitReason maps the reasons that Kubernetes gives for a waiting container to the reasons of this API.
var problemByWaitReason = map[string]string{
	"CrashLoopBackOff": v1alpha1.ProblemCrashLoopBackOff, "ImagePullBackOff": v1alpha1.ProblemImagePull,
	"ErrImagePull": v1alpha1.ProblemImagePull, "InvalidImageName": v1alpha1.ProblemImagePull,
	"ErrImageNeverPull": v1alpha1.ProblemImagePull, "CreateContainerConfigError": v1alpha1.ProblemContainerConfig,
	"CreateContainerError": v1alpha1.ProblemContainerConfig, "RunContainerError": v1alpha1.ProblemContainerFailed,
}

// ContainerProblem returns the problem of a container; empty if it has no problem.
func ContainerProblem(c corev1.ContainerStatus) string {
	switch {
	case c.State.Waiting != nil: // ContainerCreating and PodInitializing have no reason in the table
		return cmp.Or(problemByWaitReason[c.State.Waiting.Reason], v1alpha1.ProblemContainerNotReady)
	case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
		return v1alpha1.ProblemContainerFailed
	case !c.Ready && c.State.Running != nil:
		return v1alpha1.ProblemContainerNotReady
	}
	return ""
}

const (
	// MaxProblems and maxMessage are the API's limits.
	MaxProblems = 8
	maxMessage  = 512
	// maxTerminationMessage limits the message of a container that ended, which may be a log.
	maxTerminationMessage = 200
)

// IsComplete reports whether all replicas of a Deployment are available and have its newest template, and no older
// replica is left. A Deployment is not complete while new pods replace old pods that are still available.
func IsComplete(d *appsv1.Deployment) bool {
	wanted, s := ptr.Deref(d.Spec.Replicas, 1), d.Status
	return s.AvailableReplicas >= wanted && s.UpdatedReplicas >= wanted && s.Replicas <= s.UpdatedReplicas
}

// Problems returns why the replicas of a Deployment are not available: at most MaxProblems, sorted by rank and then
// by the number of affected pods. It leaves out details that change while the cause stays, such as the names of pods,
// restart counts and backoff times, because each change of the result is written to the hub.
func Problems(d *appsv1.Deployment, pods []corev1.Pod) []v1alpha1.WorkloadProblem {
	var all []v1alpha1.WorkloadProblem
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			all = append(all, newProblem(d, "", v1alpha1.ProblemFailedCreate, c.Message))
		}
	}
	for i := range pods {
		if isReady(&pods[i]) || !pods[i].DeletionTimestamp.IsZero() {
			continue
		}
		for _, p := range listPodProblems(d, &pods[i]) {
			all = countProblem(all, p)
		}
	}
	slices.SortFunc(all, func(a, b v1alpha1.WorkloadProblem) int {
		return cmp.Or(cmp.Compare(rankProblem(a), rankProblem(b)), cmp.Compare(b.Pods, a.Pods),
			cmp.Compare(a.Container, b.Container), cmp.Compare(a.Message, b.Message))
	})
	return all[:min(len(all), MaxProblems)]
}

// rankProblem returns the sort order of a problem: first problems that prevent pods from being created, then problems
// of single containers, and last containers that are not ready, because they may wait for the other containers.
func rankProblem(p v1alpha1.WorkloadProblem) int {
	switch p.Reason {
	case v1alpha1.ProblemFailedCreate:
		return 0
	case v1alpha1.ProblemContainerNotReady:
		return 2
	}
	return 1
}

// newProblem returns a problem whose message is one line of at most maxMessage characters.
func newProblem(d *appsv1.Deployment, container, reason, message string) v1alpha1.WorkloadProblem {
	return v1alpha1.WorkloadProblem{Deployment: d.Name, Container: container, Reason: reason,
		Message: phrase.Truncate(phrase.OneLine(message), maxMessage)}
}

// NewNotReadProblem returns the problem that the pods of a Deployment could not be read.
func NewNotReadProblem(d *appsv1.Deployment, err error) v1alpha1.WorkloadProblem {
	return newProblem(d, "", v1alpha1.ProblemPodsNotRead, "the pods could not be read: "+err.Error())
}

// countProblem adds a problem of one pod to a list. If the list has the same problem, it counts one more pod there.
func countProblem(all []v1alpha1.WorkloadProblem, p v1alpha1.WorkloadProblem) []v1alpha1.WorkloadProblem {
	p.Pods = 1
	for i := range all {
		if all[i].Container == p.Container && all[i].Reason == p.Reason && all[i].Message == p.Message {
			all[i].Pods++
			return all
		}
	}
	return append(all, p)
}

// isReady reports whether a pod is Ready.
func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// listPodProblems returns the problems of a pod and its containers. A pod that is not scheduled, or that failed as a
// whole, has only this problem.
func listPodProblems(d *appsv1.Deployment, p *corev1.Pod) []v1alpha1.WorkloadProblem {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			message := cmp.Or(c.Message, c.Reason)
			return []v1alpha1.WorkloadProblem{newProblem(d, "", v1alpha1.ProblemUnschedulable, message)}
		}
	}
	if p.Status.Phase == corev1.PodFailed { // for instance an evicted pod
		message := FormatReason(p.Status.Reason, p.Status.Message)
		return []v1alpha1.WorkloadProblem{newProblem(d, "", v1alpha1.ProblemContainerFailed, message)}
	}
	var all []v1alpha1.WorkloadProblem
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if reason := ContainerProblem(c); reason != "" {
			all = append(all, newProblem(d, c.Name, reason, describeContainer(p, c, reason)))
		}
	}
	return all
}

// describeContainer describes a problem (reason) of a container: the failed pull, the missing configuration or the
// probe that does not succeed, and for all other problems the last exit of the container. The text stays the same
// while the problem stays the same.
func describeContainer(p *corev1.Pod, c corev1.ContainerStatus, reason string) string {
	switch reason {
	case v1alpha1.ProblemImagePull:
		return "the image " + cmp.Or(c.Image, "of the container") + " cannot be pulled" +
			formatPullError(c.State.Waiting)
	case v1alpha1.ProblemContainerConfig:
		return FormatReason(c.State.Waiting.Reason, c.State.Waiting.Message)
	case v1alpha1.ProblemContainerNotReady:
		return describeNotReady(p, c)
	}
	if ended := cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated); ended != nil {
		return describeExit(ended)
	}
	return FormatReason(c.State.Waiting.Reason, "")
}

// formatPullError returns the answer of the registry or the node to a failed pull, with a leading ": "; empty if
// Kubernetes does not report the answer. Some versions report it while they wait for the next attempt.
func formatPullError(w *corev1.ContainerStateWaiting) string {
	if w == nil {
		return ""
	}
	message := w.Message
	if w.Reason == "ImagePullBackOff" {
		_, message, _ = strings.Cut(message, "ErrImagePull: ")
	}
	if message = phrase.OneLine(message); message == "" {
		return ""
	}
	return ": " + message
}

// describeExit describes how a container ended.
func describeExit(t *corev1.ContainerStateTerminated) string {
	return fmt.Sprintf("it ended with exit code %d: %s", t.ExitCode, FormatReason(t.Reason, t.Message))
}

// describeNotReady describes a container that has not started or is not ready, with the probe that it has not passed.
func describeNotReady(p *corev1.Pod, c corev1.ContainerStatus) string {
	if c.State.Waiting != nil {
		return "it has not been started yet (" + cmp.Or(c.State.Waiting.Reason, "no reason is given") + ")"
	}
	index := slices.IndexFunc(p.Spec.Containers, func(s corev1.Container) bool { return s.Name == c.Name })
	if index < 0 {
		return "it runs and is not ready"
	}
	spec := p.Spec.Containers[index]
	text := "it runs and is not ready"
	switch started := c.Started == nil || *c.Started; {
	case !started && spec.StartupProbe != nil:
		text += ": its startup probe (" + describeProbe(spec.StartupProbe) + ") has not succeeded"
	case spec.ReadinessProbe != nil:
		text += ": its readiness probe (" + describeProbe(spec.ReadinessProbe) + ") does not succeed"
	}
	if last := c.LastTerminationState.Terminated; last != nil {
		text += "; before, " + describeExit(last)
	}
	return text
}

// describeProbe describes what a probe requests.
func describeProbe(p *corev1.Probe) string {
	switch {
	case p.HTTPGet != nil:
		return fmt.Sprintf("HTTP GET %s on port %s", cmp.Or(p.HTTPGet.Path, "/"), p.HTTPGet.Port.String())
	case p.TCPSocket != nil:
		return "TCP port " + p.TCPSocket.Port.String()
	case p.GRPC != nil:
		return fmt.Sprintf("gRPC on port %d", p.GRPC.Port)
	default:
		return "a command in the container"
	}
}

// FormatProblem returns a problem as text without a full stop, such as "CrashLoopBackOff of container manager: it ended
// with exit code 1: Error".
func FormatProblem(p v1alpha1.WorkloadProblem) string {
	text := p.Reason
	if p.Container != "" {
		text += " of container " + p.Container
	}
	if p.Message != "" {
		text += ": " + strings.TrimSuffix(p.Message, ".")
	}
	return text
}

// FormatReason returns a reason with its message; "no message" if both are empty. The message is truncated to 200
// characters, because the message of a container may be a log.
func FormatReason(reason, message string) string {
	message = phrase.Truncate(phrase.OneLine(message), maxTerminationMessage)
	if reason == "" || message == "" {
		return cmp.Or(reason, message, "no message")
	}
	return reason + ": " + message
}
