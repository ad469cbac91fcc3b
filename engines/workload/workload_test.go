// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/workload"
)

func deployment() *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Name = "echo"
	return d
}

// pod has one container, which is not ready.
func pod(status corev1.ContainerStatus) corev1.Pod {
	p := corev1.Pod{}
	status.Name = "manager"
	p.Spec.Containers = []corev1.Container{{Name: "manager"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	return p
}

func waits(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Image: "registry.example.com/echo:v1",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func ended(code int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason,
		Message: message}}
}

func TestProblems(t *testing.T) {
	quota := deployment()
	quota.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure,
		Status: corev1.ConditionTrue, Reason: "FailedCreate",
		Message: `pods "echo-5d-x" is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0`}}
	crash := waits("CrashLoopBackOff", "back-off 5m0s restarting failed container=manager pod=echo-5d-x_echo(1)")
	crash.LastTerminationState, crash.RestartCount = ended(1, "Error", "cannot parse\nflag -greeting"), 7
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	probed := func(change func(*corev1.Pod)) corev1.Pod {
		p := pod(running)
		change(&p)
		return p
	}
	unschedulable := corev1.Pod{}
	unschedulable.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient memory."}}
	ready := pod(waits("CrashLoopBackOff", ""))
	ready.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	evicted := corev1.Pod{}
	evicted.Status.Phase, evicted.Status.Reason, evicted.Status.Message = corev1.PodFailed, "Evicted", "low on memory"
	killed := waits("CrashLoopBackOff", "")
	killed.LastTerminationState = ended(137, "OOMKilled", "")

	tests := map[string]struct {
		deployment *appsv1.Deployment
		pods       []corev1.Pod
		want       []string
	}{
		"nothing is known": {deployment(), nil, nil},
		"a quota": {quota, nil, []string{
			`FailedCreate "" 0: pods "echo-5d-x" is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0`}},
		"the pods are ready": {deployment(), []corev1.Pod{ready}, nil},
		"it ends again and again": {deployment(), []corev1.Pod{pod(crash), pod(crash)}, []string{
			`CrashLoopBackOff "manager" 2: it ended with exit code 1: Error: cannot parse flag -greeting`}},
		"out of memory": {deployment(), []corev1.Pod{pod(killed)}, []string{
			`CrashLoopBackOff "manager" 1: it ended with exit code 137: OOMKilled`}},
		"it ended just now": {deployment(), []corev1.Pod{pod(corev1.ContainerStatus{State: ended(2, "Error", "")})},
			[]string{`ContainerFailed "manager" 1: it ended with exit code 2: Error`}},
		"the image is not there": {deployment(), []corev1.Pod{pod(waits("ErrImagePull", "not found"))},
			[]string{`ImagePull "manager" 1: the image registry.example.com/echo:v1 cannot be pulled: not found`}},
		"and the next attempt is waited for": {deployment(), []corev1.Pod{pod(waits("ImagePullBackOff",
			`Back-off pulling image "registry.example.com/echo:v1": ErrImagePull: not found`))},
			[]string{`ImagePull "manager" 1: the image registry.example.com/echo:v1 cannot be pulled: not found`}},
		"an older Kubernetes does not say why": {deployment(), []corev1.Pod{pod(waits("ImagePullBackOff",
			`Back-off pulling image "registry.example.com/echo:v1"`))},
			[]string{`ImagePull "manager" 1: the image registry.example.com/echo:v1 cannot be pulled`}},
		"a Secret is missing": {deployment(), []corev1.Pod{pod(waits("CreateContainerConfigError",
			`secret "token" not found`))},
			[]string{`ContainerConfig "manager" 1: CreateContainerConfigError: secret "token" not found`}},
		"no node fits": {deployment(), []corev1.Pod{unschedulable},
			[]string{`Unschedulable "" 1: 0/3 nodes are available: 3 Insufficient memory.`}},
		"evicted": {deployment(), []corev1.Pod{evicted}, []string{`ContainerFailed "" 1: Evicted: low on memory`}},
		"it starts": {deployment(), []corev1.Pod{pod(waits("ContainerCreating", ""))},
			[]string{`ContainerNotReady "manager" 1: it has not been started yet (ContainerCreating)`}},
		"no probe": {deployment(), []corev1.Pod{pod(running)},
			[]string{`ContainerNotReady "manager" 1: it runs and is not ready`}},
		"the readiness probe": {deployment(), []corev1.Pod{probed(func(p *corev1.Pod) {
			p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(8081)}}}
		})}, []string{`ContainerNotReady "manager" 1: it runs and is not ready: its readiness probe (HTTP GET /readyz on ` +
			`port 8081) does not succeed`}},
		"the startup probe": {deployment(), []corev1.Pod{probed(func(p *corev1.Pod) {
			p.Spec.Containers[0].StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("grpc")}}}
			p.Status.ContainerStatuses[0].Started = ptr.To(false)
			p.Status.ContainerStatuses[0].LastTerminationState = ended(143, "Error", "")
		})}, []string{`ContainerNotReady "manager" 1: it runs and is not ready: its startup probe (TCP port grpc) has not ` +
			`succeeded; before, it ended with exit code 143: Error`}},
		"what keeps most pods from running comes first": {deployment(), []corev1.Pod{pod(waits("ContainerCreating", "")),
			pod(waits("ContainerCreating", "")), unschedulable, pod(crash), pod(crash)}, []string{
			`CrashLoopBackOff "manager" 2: it ended with exit code 1: Error: cannot parse flag -greeting`,
			`Unschedulable "" 1: 0/3 nodes are available: 3 Insufficient memory.`,
			`ContainerNotReady "manager" 2: it has not been started yet (ContainerCreating)`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range workload.Problems(test.deployment, test.pods) {
				if p.Deployment != "echo" {
					t.Errorf("the problem is of Deployment %q", p.Deployment)
				}
				got = append(got, fmt.Sprintf("%s %q %d: %s", p.Reason, p.Container, p.Pods, p.Message))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestProblemsAreBounded has pods with many different long messages.
func TestProblemsAreBounded(t *testing.T) {
	var pods []corev1.Pod
	for i := range 40 {
		pods = append(pods, pod(waits("CreateContainerConfigError", fmt.Sprint(i, strings.Repeat("é", 5000)))))
	}
	got := workload.Problems(deployment(), pods)
	if len(got) != workload.MaxProblems {
		t.Errorf("%d problems, want %d", len(got), workload.MaxProblems)
	}
	for _, p := range append(got, workload.NewNotReadProblem(deployment(), errors.New(strings.Repeat("x", 5000)))) {
		if n := len([]rune(p.Message)); n > 512 {
			t.Errorf("a message of %d characters", n)
		}
	}
}

// TestProblemsStayTheSame checks that details that change while a container ends again and again do not change the
// result, because each change is written to the hub.
func TestProblemsStayTheSame(t *testing.T) {
	var reports [][]v1alpha1.WorkloadProblem
	for i := range 3 {
		c := waits("CrashLoopBackOff", fmt.Sprintf("back-off %ds restarting failed container", 10<<i))
		c.RestartCount, c.LastTerminationState = int32(i), ended(1, "Error", "no such flag")
		p := pod(c)
		p.Name = fmt.Sprint("echo-", i)
		reports = append(reports, workload.Problems(deployment(), []corev1.Pod{p}))
	}
	if diff := cmp.Diff(reports[0], reports[2]); diff != "" {
		t.Errorf("the report changed (-first +last):\n%s", diff)
	}
}

// TestIsComplete: while a new pod replaces an old pod, all wanted replicas are available, and the pods that are not
// available must be checked.
func TestIsComplete(t *testing.T) {
	tests := map[string]struct {
		wanted *int32
		status appsv1.DeploymentStatus
		want   bool
	}{
		"nothing is there yet": {nil, appsv1.DeploymentStatus{}, false},
		"all are available": {ptr.To(int32(2)),
			appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}, true},
		"one is not available": {ptr.To(int32(2)),
			appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 1}, false},
		"no new pod can be made": {nil, appsv1.DeploymentStatus{Replicas: 1, AvailableReplicas: 1}, false},
		"the new pod does not start, and the old one serves": {nil,
			appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1}, false},
		"none is wanted": {ptr.To(int32(0)), appsv1.DeploymentStatus{}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := deployment()
			d.Spec.Replicas, d.Status = tt.wanted, tt.status
			if got := workload.IsComplete(d); got != tt.want {
				t.Errorf("IsComplete = %t, want %t", got, tt.want)
			}
		})
	}
}
