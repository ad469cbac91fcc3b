// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations that select dashboards for Grafana's sidecar. They are the defaults in the Helm charts of
// Grafana and kube-prometheus-stack.
const (
	SidecarLabel            = "grafana_dashboard"
	SidecarFolderAnnotation = "grafana_folder"
	// Folder is the folder of the dashboards in Grafana.
	Folder = "Bellwether"
)

// ConfigMap returns a ConfigMap from which Grafana's sidecar loads a dashboard.
func ConfigMap(d Dashboard, namespace string) (*corev1.ConfigMap, error) {
	text, err := JSON(d)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: formatObjectName(d),
			Labels:      map[string]string{SidecarLabel: "1", "app.kubernetes.io/managed-by": "bellwether"},
			Annotations: map[string]string{SidecarFolderAnnotation: Folder},
		},
		Data: map[string]string{FileName(d): string(text)},
	}, nil
}

// GrafanaDashboard has the fields of grafana-operator's kind GrafanaDashboard (v1beta1) that a dashboard needs.
type GrafanaDashboard struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        GrafanaDashboardMetadata `json:"metadata"`
	Spec            GrafanaDashboardSpec     `json:"spec"`
}

// GrafanaDashboardMetadata is the metadata of a GrafanaDashboard.
type GrafanaDashboardMetadata struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
}

// GrafanaDashboardSpec selects a dashboard and the Grafana instances that load it.
type GrafanaDashboardSpec struct {
	// AllowCrossNamespaceImport lets Grafana instances in other namespaces load the dashboard.
	AllowCrossNamespaceImport bool                 `json:"allowCrossNamespaceImport"`
	Folder                    string               `json:"folder"`
	InstanceSelector          metav1.LabelSelector `json:"instanceSelector"`
	JSON                      string               `json:"json"`
}

// NewGrafanaDashboard returns an object with which grafana-operator loads a dashboard into the
// Grafana instances with these labels.
func NewGrafanaDashboard(d Dashboard, namespace string, instances map[string]string) (*GrafanaDashboard, error) {
	text, err := JSON(d)
	if err != nil {
		return nil, err
	}
	return &GrafanaDashboard{
		TypeMeta: metav1.TypeMeta{APIVersion: "grafana.integreatly.org/v1beta1", Kind: "GrafanaDashboard"},
		Metadata: GrafanaDashboardMetadata{Namespace: namespace, Name: formatObjectName(d),
			Labels: map[string]string{"app.kubernetes.io/managed-by": "bellwether"}},
		Spec: GrafanaDashboardSpec{
			AllowCrossNamespaceImport: true, Folder: Folder, JSON: string(text),
			InstanceSelector: metav1.LabelSelector{MatchLabels: instances},
		},
	}, nil
}

func formatObjectName(d Dashboard) string { return readUID(d) + "-dashboard" }
