// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations that Grafana's sidecar goes by, in the helm charts of
// Grafana and of kube-prometheus-stack by default.
const (
	SidecarLabel            = "grafana_dashboard"
	SidecarFolderAnnotation = "grafana_folder"
	// Folder is where dashboards are listed.
	Folder = "Bellwether"
)

// ConfigMap carries a dashboard to Grafana's sidecar.
func ConfigMap(d Dashboard, namespace string) (*corev1.ConfigMap, error) {
	text, err := JSON(d)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: objectName(d),
			Labels:      map[string]string{SidecarLabel: "1", "app.kubernetes.io/managed-by": "bellwether"},
			Annotations: map[string]string{SidecarFolderAnnotation: Folder},
		},
		Data: map[string]string{FileName(d): string(text)},
	}, nil
}

// GrafanaDashboard is the part of grafana-operator's kind (v1beta1) that carries
// a dashboard.
type GrafanaDashboard struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        GrafanaDashboardMetadata `json:"metadata"`
	Spec            GrafanaDashboardSpec     `json:"spec"`
}

// GrafanaDashboardMetadata names one.
type GrafanaDashboardMetadata struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
}

// GrafanaDashboardSpec says which dashboard goes into which Grafana.
type GrafanaDashboardSpec struct {
	// AllowCrossNamespaceImport lets a Grafana in another namespace have it.
	AllowCrossNamespaceImport bool                 `json:"allowCrossNamespaceImport"`
	Folder                    string               `json:"folder"`
	InstanceSelector          metav1.LabelSelector `json:"instanceSelector"`
	JSON                      string               `json:"json"`
}

// ForGrafanaOperator carries a dashboard to the Grafanas with these labels, by
// grafana-operator.
func ForGrafanaOperator(d Dashboard, namespace string, instances map[string]string) (*GrafanaDashboard, error) {
	text, err := JSON(d)
	if err != nil {
		return nil, err
	}
	return &GrafanaDashboard{
		TypeMeta: metav1.TypeMeta{APIVersion: "grafana.integreatly.org/v1beta1", Kind: "GrafanaDashboard"},
		Metadata: GrafanaDashboardMetadata{Namespace: namespace, Name: objectName(d),
			Labels: map[string]string{"app.kubernetes.io/managed-by": "bellwether"}},
		Spec: GrafanaDashboardSpec{
			AllowCrossNamespaceImport: true, Folder: Folder, JSON: string(text),
			InstanceSelector: metav1.LabelSelector{MatchLabels: instances},
		},
	}, nil
}

func objectName(d Dashboard) string { return uidOf(d) + "-dashboard" }
