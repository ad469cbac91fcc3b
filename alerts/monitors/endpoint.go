// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package monitors

import (
	"cmp"
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// buildEndpoint returns how Prometheus scrapes the pods.
func (in Input) buildEndpoint(spec *v1alpha1.PodMetrics) monitoringv1.PodMetricsEndpoint {
	out := monitoringv1.PodMetricsEndpoint{
		Path: cmp.Or(spec.Path, "/metrics"), Interval: toInterval(spec.Interval),
		RelabelConfigs: append(buildAddressRelabelings(spec), []monitoringv1.RelabelConfig{
			{TargetLabel: series.Cluster, Replacement: &in.Cluster},
			{TargetLabel: series.OperatorNamespace, Replacement: &in.Install.Spec.Operator.Namespace},
			{TargetLabel: series.Operator, Replacement: &in.Install.Spec.Operator.Name},
		}...),
		MetricRelabelConfigs: toRelabelConfigs(spec.MetricRelabelings),
	}
	if spec.Port != "" {
		out.Port = &spec.Port
	}
	if spec.Scheme == v1alpha1.ProbeHTTPS {
		out.Scheme = ptr.To(monitoringv1.Scheme("https")) // older releases do not support HTTPS
		out.TLSConfig = toTLSConfig(spec.TLS)
	}
	if spec.TokenSecret != nil {
		out.Authorization = &monitoringv1.SafeAuthorization{Credentials: toSecretKey(spec.TokenSecret)}
	}
	return out
}

// buildAddressRelabelings gives every pod one address with the configured port number.
// Prometheus finds a target for each container and port that a pod declares. The label
// container is dropped, so that the targets of a pod are equal and count once.
func buildAddressRelabelings(spec *v1alpha1.PodMetrics) []monitoringv1.RelabelConfig {
	if spec.PortNumber == 0 {
		return nil
	}
	ip := []monitoringv1.LabelName{"__meta_kubernetes_pod_ip"}
	return []monitoringv1.RelabelConfig{
		{SourceLabels: ip, Regex: "([^:]+)", TargetLabel: "__address__",
			Replacement: ptr.To(fmt.Sprintf("$1:%d", spec.PortNumber))},
		{SourceLabels: ip, Regex: "(.+:.+)", TargetLabel: "__address__",
			Replacement: ptr.To(fmt.Sprintf("[$1]:%d", spec.PortNumber))},
		{Action: "labeldrop", Regex: "container"},
	}
}

func toSecretKey(key *v1alpha1.MonitorKey) *corev1.SecretKeySelector {
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: key.Name}, Key: key.Key}
}

func toTLSConfig(spec *v1alpha1.MonitorTLS) *monitoringv1.SafeTLSConfig {
	if spec == nil {
		return nil
	}
	out := &monitoringv1.SafeTLSConfig{}
	if spec.InsecureSkipVerify {
		out.InsecureSkipVerify = ptr.To(true)
	}
	if spec.ServerName != "" {
		out.ServerName = &spec.ServerName
	}
	if spec.CASecret != nil {
		out.CA.Secret = toSecretKey(spec.CASecret)
	}
	if ca := spec.CAConfigMap; ca != nil {
		out.CA.ConfigMap = &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: ca.Name}, Key: ca.Key}
	}
	return out
}

func toRelabelConfigs(relabelings []v1alpha1.MetricRelabeling) []monitoringv1.RelabelConfig {
	var out []monitoringv1.RelabelConfig
	for _, r := range relabelings {
		c := monitoringv1.RelabelConfig{Action: r.Action, Regex: r.Regex, TargetLabel: r.TargetLabel,
			Replacement: r.Replacement}
		for _, name := range r.SourceLabels {
			c.SourceLabels = append(c.SourceLabels, monitoringv1.LabelName(name))
		}
		out = append(out, c)
	}
	return out
}
