// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Service is the name of the Service by which the operator itself is reached, and those of its ports.
const (
	Service        = "echo-operator"
	ServiceMetrics = "metrics" // /metrics
	ServiceHealth  = "health"  // /healthz and /readyz
)

// service returns the Service of the operator's own pods. It is the same in every release; OLM creates it beside them.
func service() *corev1.Service {
	labels := map[string]string{"app.kubernetes.io/name": "echo-operator"}
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: Service, Labels: labels},
		Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports: []corev1.ServicePort{
				{Name: ServiceMetrics, Port: 8080, TargetPort: intstr.FromString("metrics")},
				{Name: ServiceHealth, Port: 8081, TargetPort: intstr.FromString("health")},
			},
		},
	}
}
