// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides where connections to a Service go. Inputs are the Service and the pods of its namespace; it does
// not listen, dial or watch.
package plan

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Routes returns, for each address that service is dialled at, the pods' addresses that serve it, in a stable order. An
// address without a backend is left out: connections to it are to be refused. So are
//   - Services without a cluster IP in within (headless ones and ExternalName among them),
//   - Services without a selector: nobody here serves hand-written EndpointSlices,
//   - ports of UDP and SCTP,
//   - a named target port that a pod does not have, for that pod.
func Routes(service *corev1.Service, pods []*corev1.Pod, within netip.Prefix) map[netip.AddrPort][]netip.AddrPort {
	ip, err := netip.ParseAddr(service.Spec.ClusterIP)
	if err != nil || !within.Contains(ip) || len(service.Spec.Selector) == 0 {
		return nil
	}
	routes := map[netip.AddrPort][]netip.AddrPort{}
	for _, port := range service.Spec.Ports {
		if port.Protocol != "" && port.Protocol != corev1.ProtocolTCP {
			continue
		}
		front := netip.AddrPortFrom(ip, uint16(port.Port))
		for _, pod := range pods {
			if back, ok := backend(service, port, pod); ok {
				routes[front] = append(routes[front], back)
			}
		}
		slices.SortFunc(routes[front], netip.AddrPort.Compare)
	}
	return routes
}

// Selects reports whether service sends connections to pods with these labels, if they are ready.
func Selects(service *corev1.Service, pod labels.Set) bool {
	return len(service.Spec.Selector) > 0 && labels.SelectorFromSet(service.Spec.Selector).Matches(pod)
}

// backend returns the address at which pod serves port, and false if it does not.
func backend(service *corev1.Service, port corev1.ServicePort, pod *corev1.Pod) (netip.AddrPort, bool) {
	ip, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil || !Selects(service, pod.Labels) || !serves(service, pod) {
		return netip.AddrPort{}, false
	}
	target, ok := targetPort(port, pod)
	return netip.AddrPortFrom(ip, target), ok
}

// serves reports whether pod is to get connections. One that is being deleted still is, by kube-proxy, if there is no
// other; here it is not.
func serves(service *corev1.Service, pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	return service.Spec.PublishNotReadyAddresses ||
		slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
}

// targetPort finds the pod's port: the Service's number, or the container port of that name. Init containers count if
// they are sidecars.
func targetPort(port corev1.ServicePort, pod *corev1.Pod) (uint16, bool) {
	if port.TargetPort.Type == intstr.Int {
		number := port.TargetPort.IntVal
		if number == 0 {
			number = port.Port
		}
		return uint16(number), true
	}
	containers := slices.Clone(pod.Spec.Containers)
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	for _, c := range containers {
		for _, p := range c.Ports {
			if p.Name == port.TargetPort.StrVal && (p.Protocol == "" || p.Protocol == corev1.ProtocolTCP) {
				return uint16(p.ContainerPort), true
			}
		}
	}
	return 0, false
}
