// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
)

// Service is the name of the Service by which the operator itself is reached, and those of its ports.
const (
	Service        = "echo-operator"
	ServiceMetrics = "metrics" // /metrics
	ServiceHealth  = "health"  // /healthz and /readyz

	metricsPort = 8080
	healthPort  = 8081
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
				{Name: ServiceMetrics, Port: metricsPort, TargetPort: intstr.FromString("metrics")},
				{Name: ServiceHealth, Port: healthPort, TargetPort: intstr.FromString("health")},
			},
		},
	}
}

// properties says how the operator is to be watched: whether it answers is the SLI probe:echo-operator of whoever
// manages it.
func properties() any {
	return map[string]any{"properties": []any{map[string]any{
		"type": bundles.PropertySLO,
		"value": map[string]any{"services": []v1alpha1.ProbedService{{
			Name: Service, Port: healthPort, Path: "/healthz", Interval: &metav1.Duration{Duration: 10 * time.Second},
		}}},
	}}}
}
