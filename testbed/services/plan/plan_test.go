// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/testbed/services/plan"
)

// pod returns a ready pod of app a with a port of that name.
func pod(ip string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http",
			ContainerPort: 8080}}}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: ip,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// service returns a Service of app a at 127.1.2.9 with one port, 80.
func service(target intstr.IntOrString, change ...func(*corev1.ServiceSpec)) *corev1.Service {
	s := &corev1.Service{Spec: corev1.ServiceSpec{
		ClusterIP: "127.1.2.9", Selector: map[string]string{"app": "a"},
		Ports: []corev1.ServicePort{{Port: 80, TargetPort: target}},
	}}
	for _, c := range change {
		c(&s.Spec)
	}
	return s
}

func TestRoutes(t *testing.T) {
	name, number := intstr.FromString("http"), intstr.FromInt32(9090)
	notReady := func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
	const front = "127.1.2.9:80"
	tests := map[string]struct {
		service *corev1.Service
		pods    []*corev1.Pod
		want    map[string][]string
	}{
		"named port": {service(name), []*corev1.Pod{pod("127.1.0.3"), pod("127.1.0.2")},
			map[string][]string{front: {"127.1.0.2:8080", "127.1.0.3:8080"}}},
		"number": {service(number), []*corev1.Pod{pod("127.1.0.2")},
			map[string][]string{front: {"127.1.0.2:9090"}}},
		"no target": {service(intstr.IntOrString{}), []*corev1.Pod{pod("127.1.0.2")},
			map[string][]string{front: {"127.1.0.2:80"}}},
		"unknown name": {service(intstr.FromString("grpc")), []*corev1.Pod{pod("127.1.0.2")}, nil},
		"sidecar's port": {service(intstr.FromString("side")), []*corev1.Pod{pod("127.1.0.2", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{
				{Ports: []corev1.ContainerPort{{Name: "side", ContainerPort: 1}}},
				{Ports: []corev1.ContainerPort{{Name: "side", ContainerPort: 7070}},
					RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
			}
		})}, map[string][]string{front: {"127.1.0.2:7070"}}},
		"no pod": {service(number), nil, nil},
		"other labels": {service(number), []*corev1.Pod{pod("127.1.0.2",
			func(p *corev1.Pod) { p.Labels["app"] = "b" })}, nil},
		"not ready": {service(number), []*corev1.Pod{pod("127.1.0.2", notReady), pod("127.1.0.3")},
			map[string][]string{front: {"127.1.0.3:9090"}}},
		"publish not ready": {service(number, func(s *corev1.ServiceSpec) { s.PublishNotReadyAddresses = true }),
			[]*corev1.Pod{pod("127.1.0.2", notReady)}, map[string][]string{front: {"127.1.0.2:9090"}}},
		"going": {service(number), []*corev1.Pod{pod("127.1.0.2",
			func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })}, nil},
		"done": {service(number), []*corev1.Pod{pod("127.1.0.2",
			func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, nil},
		"no address yet": {service(number), []*corev1.Pod{pod("")}, nil},
		"headless": {service(number, func(s *corev1.ServiceSpec) { s.ClusterIP = corev1.ClusterIPNone }),
			[]*corev1.Pod{pod("127.1.0.2")}, nil},
		"out of the range": {service(number, func(s *corev1.ServiceSpec) { s.ClusterIP = "127.1.4.1" }),
			[]*corev1.Pod{pod("127.1.0.2")}, nil},
		"no selector": {service(number, func(s *corev1.ServiceSpec) { s.Selector = nil }),
			[]*corev1.Pod{pod("127.1.0.2")}, nil},
		"UDP": {service(number, func(s *corev1.ServiceSpec) { s.Ports[0].Protocol = corev1.ProtocolUDP }),
			[]*corev1.Pod{pod("127.1.0.2")}, nil},
		"two ports": {service(number, func(s *corev1.ServiceSpec) {
			s.Ports = append(s.Ports, corev1.ServicePort{Port: 81, TargetPort: name, Protocol: corev1.ProtocolTCP})
		}), []*corev1.Pod{pod("127.1.0.2")}, map[string][]string{front: {"127.1.0.2:9090"},
			"127.1.2.9:81": {"127.1.0.2:8080"}}},
	}
	for test, tt := range tests {
		t.Run(test, func(t *testing.T) {
			var got map[string][]string
			for front, backs := range plan.Routes(tt.service, tt.pods, netip.MustParsePrefix("127.1.2.0/23")) {
				if got == nil {
					got = map[string][]string{}
				}
				for _, b := range backs {
					got[front.String()] = append(got[front.String()], b.String())
				}
				if len(backs) == 0 {
					t.Errorf("%s has no backend and is there", front)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("routes (-want +got):\n%s", diff)
			}
		})
	}
}
