// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload says why the pods of an operator's Deployments are not available. It is pure:
// it is given the objects. The agent reports what it says, and the command line shows it.
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
	"github.com/bellwether-dev/bellwether/phrase"
)

// waitReasons are the reasons for those that Kubernetes gives for a container that waits.
var waitReasons = map[string]string{
	"CrashLoopBackOff": v1alpha1.ProblemCrashLoopBackOff, "ImagePullBackOff": v1alpha1.ProblemImagePull,
	"ErrImagePull": v1alpha1.ProblemImagePull, "InvalidImageName": v1alpha1.ProblemImagePull,
	"ErrImageNeverPull": v1alpha1.ProblemImagePull, "CreateContainerConfigError": v1alpha1.ProblemContainerConfig,
	"CreateContainerError": v1alpha1.ProblemContainerConfig, "RunContainerError": v1alpha1.ProblemContainerFailed,
}

// ReasonOf is what is wrong with a container; empty where nothing is.
func ReasonOf(c corev1.ContainerStatus) string {
	switch {
	case c.State.Waiting != nil: // ContainerCreating and PodInitializing have no reason in the table
		return cmp.Or(waitReasons[c.State.Waiting.Reason], v1alpha1.ProblemContainerNotReady)
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
	// maxTermination cuts the message of a container that ended, which may be a log.
	maxTermination = 200
)

// IsComplete tells whether all replicas of a Deployment are available and of its newest template, and none of an older
// one is left. While a new pod replaces an old one, which is available until then, it is not complete.
func IsComplete(d *appsv1.Deployment) bool {
	wanted, s := ptr.Deref(d.Spec.Replicas, 1), d.Status
	return s.AvailableReplicas >= wanted && s.UpdatedReplicas >= wanted && s.Replicas <= s.UpdatedReplicas
}

// Problems says why the replicas of a Deployment are not available: at most MaxProblems, those first that keep pods
// from existing, then those that keep most pods from running. What changes while the cause stays, such as the names of
// pods, counts of restarts and times until the next attempt, is left out: each change would be written to the hub.
func Problems(d *appsv1.Deployment, pods []corev1.Pod) []v1alpha1.WorkloadProblem {
	var all []v1alpha1.WorkloadProblem
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			all = append(all, problem(d, "", v1alpha1.ProblemFailedCreate, c.Message))
		}
	}
	for i := range pods {
		if isReady(&pods[i]) || !pods[i].DeletionTimestamp.IsZero() {
			continue
		}
		for _, p := range ofPod(d, &pods[i]) {
			all = count(all, p)
		}
	}
	slices.SortFunc(all, func(a, b v1alpha1.WorkloadProblem) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Pods, a.Pods),
			cmp.Compare(a.Container, b.Container), cmp.Compare(a.Message, b.Message))
	})
	return all[:min(len(all), MaxProblems)]
}

// rank puts what keeps pods from existing before what keeps them from running, and that before what
// they may be waiting for.
func rank(p v1alpha1.WorkloadProblem) int {
	switch p.Reason {
	case v1alpha1.ProblemFailedCreate:
		return 0
	case v1alpha1.ProblemContainerNotReady:
		return 2
	}
	return 1
}

func problem(d *appsv1.Deployment, container, reason, message string) v1alpha1.WorkloadProblem {
	return v1alpha1.WorkloadProblem{Deployment: d.Name, Container: container, Reason: reason,
		Message: phrase.Truncate(phrase.OneLine(message), maxMessage)}
}

// NotRead is the problem that the pods of a Deployment could not be read.
func NotRead(d *appsv1.Deployment, err error) v1alpha1.WorkloadProblem {
	return problem(d, "", v1alpha1.ProblemPodsNotRead, "the pods could not be read: "+err.Error())
}

func count(all []v1alpha1.WorkloadProblem, p v1alpha1.WorkloadProblem) []v1alpha1.WorkloadProblem {
	p.Pods = 1
	for i := range all {
		if all[i].Container == p.Container && all[i].Reason == p.Reason && all[i].Message == p.Message {
			all[i].Pods++
			return all
		}
	}
	return append(all, p)
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func ofPod(d *appsv1.Deployment, p *corev1.Pod) []v1alpha1.WorkloadProblem {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			message := cmp.Or(c.Message, c.Reason)
			return []v1alpha1.WorkloadProblem{problem(d, "", v1alpha1.ProblemUnschedulable, message)}
		}
	}
	if p.Status.Phase == corev1.PodFailed { // such as one that its node evicted
		message := Describe(p.Status.Reason, p.Status.Message)
		return []v1alpha1.WorkloadProblem{problem(d, "", v1alpha1.ProblemContainerFailed, message)}
	}
	var all []v1alpha1.WorkloadProblem
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if reason := ReasonOf(c); reason != "" {
			all = append(all, problem(d, c.Name, reason, describe(p, c, reason)))
		}
	}
	return all
}

// describe says what is wrong with a container, in words that stay the same while nothing changes.
func describe(p *corev1.Pod, c corev1.ContainerStatus, reason string) string {
	switch reason {
	case v1alpha1.ProblemImagePull:
		return "the image " + cmp.Or(c.Image, "of the container") + " cannot be pulled" + pullError(c.State.Waiting)
	case v1alpha1.ProblemContainerConfig:
		return Describe(c.State.Waiting.Reason, c.State.Waiting.Message)
	case v1alpha1.ProblemContainerNotReady:
		return notReady(p, c)
	}
	if ended := cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated); ended != nil {
		return exit(ended)
	}
	return Describe(c.State.Waiting.Reason, "")
}

// pullError is what the registry or the node answered, where Kubernetes tells it: while it waits for
// the next attempt, some versions do.
func pullError(w *corev1.ContainerStateWaiting) string {
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

func exit(t *corev1.ContainerStateTerminated) string {
	return fmt.Sprintf("it ended with exit code %d: %s", t.ExitCode, Describe(t.Reason, t.Message))
}

// notReady names the probe that a container which runs has not passed.
func notReady(p *corev1.Pod, c corev1.ContainerStatus) string {
	if c.State.Waiting != nil {
		return "it has not been started yet (" + cmp.Or(c.State.Waiting.Reason, "no reason is given") + ")"
	}
	at := slices.IndexFunc(p.Spec.Containers, func(s corev1.Container) bool { return s.Name == c.Name })
	if at < 0 {
		return "it runs and is not ready"
	}
	spec := p.Spec.Containers[at]
	text := "it runs and is not ready"
	switch started := c.Started == nil || *c.Started; {
	case !started && spec.StartupProbe != nil:
		text += ": its startup probe (" + probe(spec.StartupProbe) + ") has not succeeded"
	case spec.ReadinessProbe != nil:
		text += ": its readiness probe (" + probe(spec.ReadinessProbe) + ") does not succeed"
	}
	if last := c.LastTerminationState.Terminated; last != nil {
		text += "; before, " + exit(last)
	}
	return text
}

func probe(p *corev1.Probe) string {
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

// Text words a problem, such as "CrashLoopBackOff of container manager: it ended with exit code 1: Error". It does not
// end with a full stop.
func Text(p v1alpha1.WorkloadProblem) string {
	text := p.Reason
	if p.Container != "" {
		text += " of container " + p.Container
	}
	if p.Message != "" {
		text += ": " + strings.TrimSuffix(p.Message, ".")
	}
	return text
}

// Describe returns a reason with its message, which is cut at 200 characters: that of a container may be a log.
func Describe(reason, message string) string {
	message = phrase.Truncate(phrase.OneLine(message), maxTermination)
	if reason == "" || message == "" {
		return cmp.Or(reason, message, "no message")
	}
	return reason + ": " + message
}
