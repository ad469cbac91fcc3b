// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package demo_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/demo"
)

func TestPodProblems(t *testing.T) {
	pod := func(name string, change func(*corev1.PodStatus)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-system", Name: name}}
		change(&p.Status)
		return p
	}
	waiting := func(reason, message string) func(*corev1.PodStatus) {
		return func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
		}
	}
	got := demo.ListPodProblems([]corev1.Pod{
		pod("runs", func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
				Running: &corev1.ContainerStateRunning{}}}}
		}),
		pod("begins", waiting("ContainerCreating", "")),
		pod("hub", waiting("ImagePullBackOff", "Back-off pulling image\n\"hub\"")),
		pod("agent", waiting("CrashLoopBackOff", "")),
		pod("large", func(s *corev1.PodStatus) {
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Message: "0/1 nodes are available"}}
		}),
	})
	want := []string{
		`pod bellwether-system/hub does not run (ImagePullBackOff): Back-off pulling image "hub"`,
		"pod bellwether-system/agent does not run (CrashLoopBackOff): no message",
		"pod bellwether-system/large is not scheduled: 0/1 nodes are available",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
