// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// endpoint says how Prometheus scrapes the pods.
func (in Input) endpoint(asked *v1alpha1.PodMetrics) monitoringv1.PodMetricsEndpoint {
	out := monitoringv1.PodMetricsEndpoint{
		Path: cmp.Or(asked.Path, "/metrics"), Interval: interval(asked.Interval),
		RelabelConfigs: append(addresses(asked), []monitoringv1.RelabelConfig{
			{TargetLabel: series.Cluster, Replacement: &in.Cluster},
			{TargetLabel: series.OperatorNamespace, Replacement: &in.Install.Spec.Operator.Namespace},
			{TargetLabel: series.Operator, Replacement: &in.Install.Spec.Operator.Name},
		}...),
		MetricRelabelConfigs: relabelings(asked.MetricRelabelings),
	}
	if asked.Port != "" {
		out.Port = &asked.Port
	}
	if asked.Scheme == v1alpha1.ProbeHTTPS {
		out.Scheme = ptr.To(monitoringv1.Scheme("https")) // older releases do not know HTTPS
		out.TLSConfig = tlsConfig(asked.TLS)
	}
	if asked.TokenSecret != nil {
		out.Authorization = &monitoringv1.SafeAuthorization{Credentials: secretKey(asked.TokenSecret)}
	}
	return out
}

// addresses gives every pod one address with the port that is asked for by its
// number. Prometheus finds a target for each container and port that a pod declares;
// without the label container those of a pod are the same target, which counts once.
func addresses(asked *v1alpha1.PodMetrics) []monitoringv1.RelabelConfig {
	if asked.PortNumber == 0 {
		return nil
	}
	ip := []monitoringv1.LabelName{"__meta_kubernetes_pod_ip"}
	return []monitoringv1.RelabelConfig{
		{SourceLabels: ip, Regex: "([^:]+)", TargetLabel: "__address__",
			Replacement: ptr.To(fmt.Sprintf("$1:%d", asked.PortNumber))},
		{SourceLabels: ip, Regex: "(.+:.+)", TargetLabel: "__address__",
			Replacement: ptr.To(fmt.Sprintf("[$1]:%d", asked.PortNumber))},
		{Action: "labeldrop", Regex: "container"},
	}
}

func secretKey(of *v1alpha1.MonitorKey) *corev1.SecretKeySelector {
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: of.Name}, Key: of.Key}
}

func tlsConfig(asked *v1alpha1.MonitorTLS) *monitoringv1.SafeTLSConfig {
	if asked == nil {
		return nil
	}
	out := &monitoringv1.SafeTLSConfig{}
	if asked.InsecureSkipVerify {
		out.InsecureSkipVerify = ptr.To(true)
	}
	if asked.ServerName != "" {
		out.ServerName = &asked.ServerName
	}
	if asked.CASecret != nil {
		out.CA.Secret = secretKey(asked.CASecret)
	}
	if ca := asked.CAConfigMap; ca != nil {
		out.CA.ConfigMap = &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: ca.Name}, Key: ca.Key}
	}
	return out
}

func relabelings(asked []v1alpha1.MetricRelabeling) []monitoringv1.RelabelConfig {
	var out []monitoringv1.RelabelConfig
	for _, r := range asked {
		c := monitoringv1.RelabelConfig{Action: r.Action, Regex: r.Regex, TargetLabel: r.TargetLabel,
			Replacement: r.Replacement}
		for _, name := range r.SourceLabels {
			c.SourceLabels = append(c.SourceLabels, monitoringv1.LabelName(name))
		}
		out = append(out, c)
	}
	return out
}
