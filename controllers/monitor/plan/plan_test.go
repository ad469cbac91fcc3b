// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

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

func TestPodMonitorGolden(t *testing.T) {
	in := asking()
	in.Install.Spec.Monitor = &v1alpha1.PodMetrics{Port: "https", Path: "/probe/metrics",
		Interval: &metav1.Duration{Duration: 90500 * time.Millisecond}}
	got, err := yaml.Marshal(Next(in).Apply[0])
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "podmonitor.yaml")
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
		t.Errorf("PodMonitor; run with -update if this is what you want (-want +got):\n%s", diff)
	}
}
