// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// pod has one container that restarted so often; its last end is nil or what
// the kubelet reports.
func pod(uid string, created time.Time, restarts int32, last *corev1.ContainerStateTerminated) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), CreationTimestamp: metav1.NewTime(created)},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "manager", RestartCount: restarts,
			LastTerminationState: corev1.ContainerState{Terminated: last}}}},
	}
}

func TestPodHistory(t *testing.T) {
	old := noon.Add(-time.Hour)
	oom := &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}
	crash := &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 2}
	done := &corev1.ContainerStateTerminated{Reason: "Completed"}
	type observation struct {
		pods []corev1.Pod
		want map[string]int
	}
	tests := map[string][]observation{
		"restarts before the agent's start do not count": {
			{[]corev1.Pod{pod("a", old, 7, crash)}, map[string]int{}},
			{[]corev1.Pod{pod("a", old, 7, crash)}, map[string]int{}},
			{[]corev1.Pod{pod("a", old, 8, oom)}, map[string]int{series.RestartOOM: 1}},
		},
		"restarts of a pod that is new count from its creation": {
			{nil, map[string]int{}},
			{[]corev1.Pod{pod("b", noon.Add(30*time.Second), 2, crash)}, map[string]int{series.RestartError: 2}},
		},
		"a pod that is replaced takes no restarts away and adds none": {
			{[]corev1.Pod{pod("a", old, 5, crash), pod("b", old, 5, crash)}, map[string]int{}},
			{[]corev1.Pod{pod("b", old, 5, crash), pod("c", noon.Add(time.Second), 0, nil)}, map[string]int{}},
			{[]corev1.Pod{pod("b", old, 5, crash), pod("c", noon.Add(time.Second), 1, done)},
				map[string]int{series.RestartOther: 1}},
		},
		"the reason may be unknown": {
			{[]corev1.Pod{pod("a", old, 0, nil)}, map[string]int{}},
			{[]corev1.Pod{pod("a", old, 1, nil)}, map[string]int{series.RestartOther: 1}},
		},
		"a container whose count went back starts anew": {
			{[]corev1.Pod{pod("a", old, 5, crash)}, map[string]int{}},
			{[]corev1.Pod{pod("a", old, 0, nil)}, map[string]int{}},
			{[]corev1.Pod{pod("a", old, 1, crash)}, map[string]int{series.RestartError: 1}},
		},
	}
	for name, observations := range tests {
		t.Run(name, func(t *testing.T) {
			var h PodHistory
			for i, o := range observations {
				got := h.Observe(o.pods, noon.Add(time.Duration(i)*time.Minute))
				if diff := cmp.Diff(o.want, got); diff != "" {
					t.Errorf("observation %d (-want +have):\n%s", i, diff)
				}
			}
			if have, last := len(h.restarts), len(observations[len(observations)-1].pods); have != last {
				t.Errorf("remembers %d pods, and there are %d", have, last)
			}
		})
	}
}

func TestPodHistoryCountsInitContainers(t *testing.T) {
	var h PodHistory
	p := pod("a", noon.Add(-time.Hour), 0, nil)
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "migrate"}}
	h.Observe([]corev1.Pod{p}, noon)
	p.Status.InitContainerStatuses[0].RestartCount = 3
	if got := h.Observe([]corev1.Pod{p}, noon); got[series.RestartOther] != 3 {
		t.Errorf("restarts %v, want 3 of the init container", got)
	}
}

func TestPendingPods(t *testing.T) {
	phase := func(phase corev1.PodPhase, age time.Duration) corev1.Pod {
		p := pod("a", noon.Add(-age), 0, nil)
		p.Status.Phase = phase
		return p
	}
	going := phase(corev1.PodPending, time.Hour)
	going.DeletionTimestamp = &metav1.Time{Time: noon}
	pods := []corev1.Pod{phase(corev1.PodPending, MinAge), phase(corev1.PodPending, MinAge-time.Second),
		phase(corev1.PodRunning, time.Hour), going}
	if got := PendingPods(pods, noon); got != 1 {
		t.Errorf("%d pods are pending for long, want 1", got)
	}
}
