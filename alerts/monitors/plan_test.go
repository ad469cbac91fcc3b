// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package monitors

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

func asking() Input {
	oi := &v1alpha1.OperatorInstall{Spec: v1alpha1.OperatorInstallSpec{
		Operator:  v1alpha1.OperatorReference{Namespace: "fleet", Name: "echo"},
		Admission: &v1alpha1.Admission{Release: v1alpha1.Release{Package: "echo-operator"}},
		Monitor:   &v1alpha1.PodMetrics{Port: "metrics"},
	}}
	oi.Status.Installed = &v1alpha1.InstalledVersion{Bundle: "echo-operator.v1.1.0"}
	selector := func(app string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	return Input{
		Install: oi, Cluster: "prod-eu", Labels: map[string]string{"release": "prometheus"},
		Deployments: []Deployment{
			{Name: "echo-webhook", UID: "2", CSV: "echo-operator.v1.1.0", Selector: selector("webhook")},
			{Name: "library", UID: "3", CSV: "library.v1.0.0", Selector: selector("library")},
			{Name: "echo", UID: "1", CSV: "echo-operator.v1.1.0", Selector: selector("echo")},
		},
	}
}

func TestNext(t *testing.T) {
	type want struct{ Apply, Delete []string }
	for name, tc := range map[string]struct {
		change func(*Input)
		want   want
	}{
		"asked for":     {want: want{Apply: []string{"bellwether-echo", "bellwether-echo-webhook"}}},
		"not asked for": {change: func(in *Input) { in.Install.Spec.Monitor = nil }},
		"not asked for any more": {
			change: func(in *Input) { in.Install.Spec.Monitor, in.Existing = nil, []string{"bellwether-echo"} },
			want:   want{Delete: []string{"bellwether-echo"}},
		},
		"being removed": {
			change: func(in *Input) {
				in.Install.DeletionTimestamp, in.Existing = &metav1.Time{Time: time.Unix(1, 0)},
					[]string{"bellwether-echo"}
			},
			want: want{Delete: []string{"bellwether-echo"}},
		},
		"nothing installed": {change: func(in *Input) { in.Install.Status.Installed = nil }},
		"in the midst of an upgrade": {
			change: func(in *Input) {
				in.Install.Status.Installed.Bundle, in.Existing = "echo-operator.v1.2.0",
					[]string{"bellwether-echo", "bellwether-echo-webhook"}
			},
		},
		"a Deployment is gone": {
			change: func(in *Input) { in.Existing = []string{"bellwether-old", "bellwether-echo"} },
			want: want{Apply: []string{"bellwether-echo", "bellwether-echo-webhook"},
				Delete: []string{"bellwether-old"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := asking()
			if tc.change != nil {
				tc.change(&in)
			}
			next := Next(in)
			got := want{Delete: next.Delete}
			for _, m := range next.Apply {
				got.Apply = append(got.Apply, m.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPodMonitorGolden has a plain endpoint, the default endpoint
// of kubebuilder, and an endpoint with a verified certificate.
func TestPodMonitorGolden(t *testing.T) {
	drop := v1alpha1.MetricRelabeling{Action: "drop", SourceLabels: []string{"__name__"}, Regex: "go_.*"}
	for name, asked := range map[string]v1alpha1.PodMetrics{
		"podmonitor.yaml": {Port: "https", Path: "/probe/metrics",
			Interval: &metav1.Duration{Duration: 90500 * time.Millisecond}},
		"kubebuilder.yaml": {PortNumber: 8443, Scheme: v1alpha1.ProbeHTTPS,
			TokenSecret: &v1alpha1.MonitorKey{Name: "metrics-reader", Key: "token"},
			TLS:         &v1alpha1.MonitorTLS{InsecureSkipVerify: true}},
		"verified.yaml": {Port: "https", Scheme: v1alpha1.ProbeHTTPS, TLS: &v1alpha1.MonitorTLS{
			CASecret: &v1alpha1.MonitorKey{Name: "metrics-cert", Key: "ca.crt"}, ServerName: "echo-metrics.echo.svc"},
			MetricRelabelings: []v1alpha1.MetricRelabeling{drop}},
	} {
		goldenPodMonitor(t, name, asked)
	}
}

func goldenPodMonitor(t *testing.T, name string, asked v1alpha1.PodMetrics) {
	t.Helper()
	in := asking()
	in.Install.Spec.Monitor = &asked
	monitor := Next(in).Apply[0]
	if err := monitor.Spec.PodMetricsEndpoints[0].Validate(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	got, err := yaml.Marshal(monitor)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s; run with -update if this is what you want (-want +got):\n%s", name, diff)
	}
}
