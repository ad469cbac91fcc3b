// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/testbed/podrunner/plan"
)

func main(state corev1.ContainerState, ready bool) plan.Container {
	return plan.Container{ContainerStatus: corev1.ContainerStatus{Name: "main", State: state, Ready: ready}}
}

func initial(state corev1.ContainerState) plan.Container {
	return plan.Container{ContainerStatus: corev1.ContainerStatus{Name: "init", State: state}, Init: true}
}

func sidecar(started bool) plan.Container {
	return plan.Container{
		ContainerStatus: corev1.ContainerStatus{Name: "side", State: running, Started: ptr.To(started)}, Init: true,
		Sidecar: true}
}

func crashed(c plan.Container) plan.Container {
	c.LastTerminationState, c.State = ended(1), plan.Waiting("CrashLoopBackOff", "")
	return c
}

var (
	running = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waiting = plan.Waiting("PodInitializing", "")
)

func ended(code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
}

func TestStatus(t *testing.T) {
	type want struct {
		Phase                         corev1.PodPhase
		Initialized, Containers, Pods corev1.ConditionStatus
	}
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	tests := map[string]struct {
		policy     corev1.RestartPolicy
		gate       string
		containers []plan.Container
		want       want
	}{
		"new": {corev1.RestartPolicyAlways, "", []plan.Container{main(waiting, false)},
			want{corev1.PodPending, yes, no, no}},
		"init runs": {corev1.RestartPolicyAlways, "",
			[]plan.Container{initial(running), main(waiting, false)}, want{corev1.PodPending, no, no, no}},
		"init done": {corev1.RestartPolicyAlways, "",
			[]plan.Container{initial(ended(0)), main(running, true)}, want{corev1.PodRunning, yes, yes, yes}},
		"init failed for good": {corev1.RestartPolicyNever, "",
			[]plan.Container{initial(ended(1)), main(waiting, false)}, want{corev1.PodFailed, no, no, no}},
		"init fails and retries": {corev1.RestartPolicyAlways, "",
			[]plan.Container{crashed(initial(waiting)), main(waiting, false)}, want{corev1.PodPending, no, no, no}},
		"sidecar starts": {corev1.RestartPolicyAlways, "",
			[]plan.Container{sidecar(false), main(waiting, false)}, want{corev1.PodPending, no, no, no}},
		"sidecar started": {corev1.RestartPolicyAlways, "",
			[]plan.Container{sidecar(true), main(running, true)}, want{corev1.PodRunning, yes, yes, yes}},
		"sidecar gone, main done": {corev1.RestartPolicyNever, "",
			[]plan.Container{sidecar(false), main(ended(0), false)}, want{corev1.PodSucceeded, yes, no, no}},
		"not ready": {corev1.RestartPolicyAlways, "", []plan.Container{main(running, false)},
			want{corev1.PodRunning, yes, no, no}},
		"one of two ready": {corev1.RestartPolicyAlways, "",
			[]plan.Container{main(running, true), main(running, false)}, want{corev1.PodRunning, yes, no, no}},
		"crash loop": {corev1.RestartPolicyAlways, "", []plan.Container{crashed(main(waiting, false))},
			want{corev1.PodRunning, yes, no, no}},
		"crash loop of a job": {corev1.RestartPolicyOnFailure, "", []plan.Container{crashed(main(waiting, false))},
			want{corev1.PodRunning, yes, no, no}},
		"succeeded": {corev1.RestartPolicyOnFailure, "", []plan.Container{main(ended(0), false)},
			want{corev1.PodSucceeded, yes, no, no}},
		"failed": {corev1.RestartPolicyNever, "",
			[]plan.Container{main(ended(0), false), main(ended(2), false)}, want{corev1.PodFailed, yes, no, no}},
		"one still runs": {corev1.RestartPolicyNever, "",
			[]plan.Container{main(ended(2), false), main(running, true)}, want{corev1.PodRunning, yes, no, no}},
		"gate closed": {corev1.RestartPolicyAlways, "shut", []plan.Container{main(running, true)},
			want{corev1.PodRunning, yes, yes, no}},
		"gate open": {corev1.RestartPolicyAlways, "open", []plan.Container{main(running, true)},
			want{corev1.PodRunning, yes, yes, yes}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pod := testPod()
			pod.Spec.RestartPolicy = tt.policy
			pod.Status.Conditions = []corev1.PodCondition{{Type: "open", Status: corev1.ConditionTrue}}
			if tt.gate != "" {
				pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: corev1.PodConditionType(tt.gate)}}
			}
			st := plan.Status(plan.Observed{Pod: pod, PodIP: "127.1.2.3", Containers: tt.containers})
			conditions := map[corev1.PodConditionType]corev1.ConditionStatus{}
			for _, c := range st.Conditions {
				conditions[c.Type] = c.Status
			}
			got := want{st.Phase, conditions[corev1.PodInitialized], conditions[corev1.ContainersReady],
				conditions[corev1.PodReady]}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusKeepsTransitionTimes(t *testing.T) {
	early, late := metav1.Unix(100, 0), metav1.Unix(200, 0)
	first := plan.Status(plan.Observed{Pod: testPod(), Now: early, Containers: []plan.Container{main(running, false)}})
	second := plan.Status(plan.Observed{Pod: testPod(), Now: late, Previous: first.Conditions,
		Containers: []plan.Container{main(running, true)}})
	for _, c := range second.Conditions {
		want := early
		if c.Type == corev1.ContainersReady || c.Type == corev1.PodReady {
			want = late
		}
		if !c.LastTransitionTime.Equal(&want) {
			t.Errorf("%s changed at %s, want %s", c.Type, c.LastTransitionTime.UTC().Format(time.RFC3339),
				want.UTC().Format(time.RFC3339))
		}
	}
}

func TestAdopted(t *testing.T) {
	tests := map[string]struct {
		policy   corev1.RestartPolicy
		before   corev1.ContainerStatus
		restarts int32
		done     bool
		last     int32 // exit code of the last termination, 0 for none
	}{
		"never seen": {corev1.RestartPolicyAlways, corev1.ContainerStatus{}, 0, false, 0},
		"was running": {corev1.RestartPolicyAlways, corev1.ContainerStatus{State: running, RestartCount: 2}, 3,
			false, 137},
		"had crashed": {corev1.RestartPolicyAlways, corev1.ContainerStatus{State: ended(9)}, 1, false, 9},
		"crash loop": {corev1.RestartPolicyAlways,
			corev1.ContainerStatus{State: waiting, LastTerminationState: ended(9), RestartCount: 1}, 1, false, 9},
		"job, succeeded": {corev1.RestartPolicyOnFailure, corev1.ContainerStatus{State: ended(0)}, 0, true, 0},
		"job, failed":    {corev1.RestartPolicyNever, corev1.ContainerStatus{State: ended(1)}, 0, true, 0},
		"job, running":   {corev1.RestartPolicyNever, corev1.ContainerStatus{State: running}, 1, false, 137},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, done := plan.Adopted(tt.policy, tt.before, metav1.Unix(1, 0))
			var last int32
			if ended := got.LastTerminationState.Terminated; ended != nil {
				last = ended.ExitCode
			}
			if got.RestartCount != tt.restarts || done != tt.done || last != tt.last {
				t.Errorf("restarts %d, done %t, last exit code %d; want %d, %t, %d", got.RestartCount, done, last,
					tt.restarts, tt.done, tt.last)
			}
		})
	}
}
