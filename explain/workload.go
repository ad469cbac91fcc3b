// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/workload"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Deployment is a Deployment that the operator should have, with its pods.
type Deployment struct {
	Name string
	// Want is the number of replicas in the bundle; nil means 1.
	Want *int32
	// Deployment is nil if it does not exist.
	Deployment *appsv1.Deployment
	Pods       []corev1.Pod
}

// Link describes the Deployment and its pods. If pods are not available, the reason is the reason of the deepest link.
func (d Deployment) Link() Link {
	if d.Deployment == nil {
		return Link{State: Failed, Reason: remedy.ObjectMissing, Text: "Deployment " + d.Name + " does not exist"}
	}
	want, available := countReplicas(d.Deployment.Spec.Replicas), d.Deployment.Status.AvailableReplicas
	l := Link{State: Healthy, Check: "Deployment " + d.Name, Text: fmt.Sprintf(
		"Deployment %s: %d of %d replicas are available", d.Name, available, want)}
	object := "Deployment " + d.Deployment.Namespace + "/" + d.Name
	l.Evidence = []Evidence{{Object: object, Field: "status.availableReplicas", Observed: fmt.Sprint(available)},
		{Object: object, Field: "spec.replicas", Observed: fmt.Sprint(want)}}
	switch {
	case want == 0 && countReplicas(d.Want) > 0:
		l.State, l.Reason = Failed, v1alpha1.ReasonScaledToZero
		l.Text = fmt.Sprintf("Deployment %s is scaled to 0 replicas, and the bundle asks for %d", d.Name,
			countReplicas(d.Want))
	case d.Deployment.Status.ObservedGeneration < d.Deployment.Generation:
		l.State, l.Reason = Progressing, remedy.StatusOutdated
		l.Text = "the status of Deployment " + d.Name + " is about an older spec"
	case available < want:
		l.State, l.Reason = Failed, v1alpha1.ReasonPodsUnavailable
		l.Links = listFailedConditions(object, d.Deployment)
	}
	for i := range d.Pods {
		l.Links = append(l.Links, buildPodLink(&d.Pods[i]))
	}
	if l.Reason == v1alpha1.ReasonPodsUnavailable { // the agent reports the cause by the same reason
		l.Reason = findDeepest(l).Reason
	}
	return l
}

// countReplicas returns the number of replicas; nil means 1.
func countReplicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// listFailedConditions returns links for the conditions of a Deployment that report a failure.
func listFailedConditions(object string, d *appsv1.Deployment) []Link {
	var links []Link
	for _, c := range d.Status.Conditions {
		text := fmt.Sprintf("%s: %s", c.Reason, phrase.OneLine(c.Message))
		l := Link{Text: text, Since: toTime(c.LastTransitionTime), Evidence: []Evidence{{Object: object,
			Field: "condition " + string(c.Type), Observed: text, Time: toTime(c.LastTransitionTime)}}}
		switch {
		case c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue:
			l.State, l.Reason = Failed, remedy.FailedCreate
		case c.Status != corev1.ConditionFalse: // the other conditions report a failure if they are False
			continue
		}
		links = append(links, l)
	}
	return links
}

// buildPodLink describes a pod and the problems of its containers. The pod is Failed if it is not scheduled or
// not Ready.
func buildPodLink(p *corev1.Pod) Link {
	object := "Pod " + p.Namespace + "/" + p.Name
	l := Link{State: Healthy, Text: fmt.Sprintf("pod %s is %s", p.Name, p.Status.Phase),
		Evidence: []Evidence{{Object: object, Field: "status.phase", Observed: string(p.Status.Phase)}}}
	for _, c := range p.Status.Conditions {
		isJudged := c.Type == corev1.PodReady || c.Type == corev1.PodScheduled
		if !isJudged || c.Status == corev1.ConditionTrue {
			continue
		}
		l.State, l.Reason, l.Since = Failed, v1alpha1.ReasonPodsUnavailable, toTime(c.LastTransitionTime)
		if c.Type == corev1.PodScheduled {
			l.Reason = remedy.Unschedulable
		}
		if c.Message != "" {
			l.Text += ": " + phrase.OneLine(c.Message)
		}
		break
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if below, hasProblem := buildContainerLink(object, c); hasProblem {
			l.Links = append(l.Links, below)
		}
	}
	return l
}

// buildContainerLink describes the problem of a container. hasProblem is false if there is none.
func buildContainerLink(object string, c corev1.ContainerStatus) (l Link, hasProblem bool) {
	reason := workload.ContainerProblem(c)
	if reason == "" {
		return Link{}, false
	}
	l = Link{State: Failed, Reason: reason}
	switch {
	case c.State.Waiting != nil:
		if reason == remedy.NotReadyYet { // such as ContainerCreating or PodInitializing
			l.State = Progressing
		}
		l.Text = fmt.Sprintf("container %s waits: %s", c.Name,
			workload.FormatReason(c.State.Waiting.Reason, c.State.Waiting.Message))
	case c.State.Terminated != nil:
		l.Text = fmt.Sprintf("container %s ended with exit code %d: %s", c.Name, c.State.Terminated.ExitCode,
			workload.FormatReason(c.State.Terminated.Reason, c.State.Terminated.Message))
	default:
		l.Text = fmt.Sprintf("container %s runs and is not ready", c.Name)
	}
	if last := c.LastTerminationState.Terminated; last != nil {
		l.Text += fmt.Sprintf("; it ended before with exit code %d (%d restarts): %s", last.ExitCode, c.RestartCount,
			workload.FormatReason(last.Reason, last.Message))
	}
	l.Evidence = []Evidence{{Object: object, Field: "container " + c.Name, Observed: l.Text}}
	return l, true
}

// Cause returns the deepest link below this link, including this link, whose state is at least as bad.
func (l Link) Cause() Link { return findDeepest(l) }
