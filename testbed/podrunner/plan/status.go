// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Container is what is known of one container.
type Container struct {
	corev1.ContainerStatus
	Init bool
	// Sidecar is an init container that keeps running.
	Sidecar bool
}

// Observed is all that a pod's status is computed from.
type Observed struct {
	Pod        *corev1.Pod // the newest seen
	HostIP     string
	PodIP      string
	Started    metav1.Time // when the runner took the pod
	Now        metav1.Time
	Previous   []corev1.PodCondition // as reported before, for their transition times
	Containers []Container           // init containers first
}

// Status returns the status of a pod. Conditions that did not change keep
// their transition time, and conditions of others are left out.
func Status(o Observed) corev1.PodStatus {
	st := corev1.PodStatus{
		ObservedGeneration: o.Pod.Generation,
		Phase:              phase(o),
		HostIP:             o.HostIP,
		HostIPs:            []corev1.HostIP{{IP: o.HostIP}},
		PodIP:              o.PodIP,
		PodIPs:             []corev1.PodIP{{IP: o.PodIP}},
		StartTime:          &o.Started,
		QOSClass:           o.Pod.Status.QOSClass,
	}
	for _, c := range o.Containers {
		if c.Init {
			st.InitContainerStatuses = append(st.InitContainerStatuses, c.ContainerStatus)
		} else {
			st.ContainerStatuses = append(st.ContainerStatuses, c.ContainerStatus)
		}
	}
	st.Conditions = conditions(o, st.Phase)
	return st
}

func phase(o Observed) corev1.PodPhase {
	if !initialized(o) {
		if slices.ContainsFunc(o.Containers, func(c Container) bool {
			return c.Init && !c.Sidecar && failedForGood(o.Pod, c)
		}) {
			return corev1.PodFailed
		}
		return corev1.PodPending
	}
	var running, waiting, stopped, failed int
	for _, c := range o.Containers {
		switch {
		case c.Init:
		case c.State.Running != nil:
			running++
		case c.State.Terminated != nil:
			stopped++
			if c.State.Terminated.ExitCode != 0 {
				failed++
			}
		case c.LastTerminationState.Terminated != nil:
			stopped++
		default:
			waiting++
		}
	}
	switch {
	case waiting > 0:
		return corev1.PodPending
	case running > 0 || o.Pod.Spec.RestartPolicy == corev1.RestartPolicyAlways:
		return corev1.PodRunning
	case slices.ContainsFunc(o.Containers, func(c Container) bool { return !c.Init && c.State.Terminated == nil }):
		return corev1.PodRunning
	case failed == 0:
		return corev1.PodSucceeded
	case o.Pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return corev1.PodFailed
	default:
		return corev1.PodRunning
	}
}

// initialized reports whether every init container has succeeded, or started
// if it is a sidecar. Once a main container has started, it stays so.
func initialized(o Observed) bool {
	return mainStarted(o) || !slices.ContainsFunc(o.Containers, incomplete)
}

func mainStarted(o Observed) bool {
	return slices.ContainsFunc(o.Containers, func(c Container) bool {
		return !c.Init && (c.State.Running != nil || c.State.Terminated != nil ||
			c.LastTerminationState.Terminated != nil)
	})
}

func failedForGood(pod *corev1.Pod, c Container) bool {
	return pod.Spec.RestartPolicy == corev1.RestartPolicyNever && c.State.Terminated != nil &&
		c.State.Terminated.ExitCode != 0
}

func conditions(o Observed, p corev1.PodPhase) []corev1.PodCondition {
	holds := func(kind corev1.PodConditionType, notReason, message string) corev1.PodCondition {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, ObservedGeneration: o.Pod.Generation}
		if notReason != "" {
			c.Status, c.Reason, c.Message = corev1.ConditionFalse, notReason, message
		}
		return keepTransition(o, c)
	}
	initReason, initMessage := "", ""
	if !initialized(o) {
		initReason, initMessage = "ContainersNotInitialized", "containers with incomplete status: "+names(o, incomplete)
	}
	readyReason, readyMessage := readiness(o, p)
	gateReason, gateMessage := readyReason, readyMessage
	if missing := closedGates(o.Pod); readyReason == "" && len(missing) > 0 {
		gateReason, gateMessage = "ReadinessGatesNotReady",
			"readiness gates that are not True: "+strings.Join(missing, ", ")
	}
	return []corev1.PodCondition{
		holds(corev1.PodScheduled, "", ""),
		holds(corev1.PodInitialized, initReason, initMessage),
		holds(corev1.ContainersReady, readyReason, readyMessage),
		holds(corev1.PodReady, gateReason, gateMessage),
	}
}

// Owned returns those of the conditions that Status computes.
func Owned(conditions []corev1.PodCondition) []corev1.PodCondition {
	var owned []corev1.PodCondition
	for _, c := range conditions {
		switch c.Type {
		case corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady:
			owned = append(owned, c)
		}
	}
	return owned
}

func readiness(o Observed, p corev1.PodPhase) (reason, message string) {
	switch p {
	case corev1.PodSucceeded:
		return "PodCompleted", ""
	case corev1.PodFailed:
		return "PodFailed", ""
	}
	if unready := names(o, func(c Container) bool { return !c.Init && !c.Ready }); unready != "" {
		return "ContainersNotReady", "containers with unready status: " + unready
	}
	return "", ""
}

func incomplete(c Container) bool {
	if c.Sidecar {
		return c.Started == nil || !*c.Started
	}
	return c.Init && (c.State.Terminated == nil || c.State.Terminated.ExitCode != 0)
}

func names(o Observed, which func(Container) bool) string {
	var found []string
	for _, c := range o.Containers {
		if which(c) {
			found = append(found, c.Name)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("[%s]", strings.Join(found, " "))
}

func closedGates(pod *corev1.Pod) []string {
	var closed []string
	for _, gate := range pod.Spec.ReadinessGates {
		open := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
		if !open {
			closed = append(closed, string(gate.ConditionType))
		}
	}
	return closed
}

func keepTransition(o Observed, c corev1.PodCondition) corev1.PodCondition {
	c.LastTransitionTime = o.Now
	for _, old := range o.Previous {
		if old.Type == c.Type && old.Status == c.Status && !old.LastTransitionTime.IsZero() {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	return c
}

// Waiting is the state of a container that does not run for the given reason.
func Waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// CrashLoop is the state of a container that waits for its next start.
func CrashLoop(c *corev1.Container, pod *corev1.Pod, wait time.Duration) corev1.ContainerState {
	return Waiting("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
		wait, c.Name, pod.Name, pod.Namespace, pod.UID))
}

// Adopted returns the status that a container starts with when the runner
// takes over a pod that an earlier run of it has left: what ran then is gone.
// done is true for a container that had ended and is not to be started again.
func Adopted(policy corev1.RestartPolicy, before corev1.ContainerStatus, now metav1.Time) (next corev1.ContainerStatus,
	done bool) {
	ended := before.State.Terminated
	if ended != nil && !Restart(policy, ended.ExitCode) {
		return before, true
	}
	next = corev1.ContainerStatus{
		Name: before.Name, RestartCount: before.RestartCount, LastTerminationState: before.LastTerminationState,
	}
	switch {
	case before.State.Running != nil:
		next.RestartCount++
		next.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "ContainerStatusUnknown", StartedAt: before.State.Running.StartedAt, FinishedAt: now,
			Message: "the pod runner was restarted", ContainerID: before.ContainerID,
		}}
	case ended != nil:
		next.RestartCount++
		next.LastTerminationState = before.State
	}
	return next, false
}
