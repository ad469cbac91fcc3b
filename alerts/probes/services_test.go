// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func install(services ...v1alpha1.ProbedService) *v1alpha1.OperatorInstall {
	oi := &v1alpha1.OperatorInstall{}
	oi.Spec.Operator = v1alpha1.OperatorReference{Namespace: "fleet", Name: "echo"}
	oi.Spec.Admission = &v1alpha1.Admission{Release: v1alpha1.Release{Package: "echo",
		Install: v1alpha1.InstallSettings{Namespace: "echo-system"}}}
	oi.Spec.Services = services
	oi.Status.SucceededHash = "some"
	return oi
}

// carry plays the API server.
func carry(steps []ServiceStep, made []v1alpha1.EndpointProbe) []v1alpha1.EndpointProbe {
	var out []v1alpha1.EndpointProbe
	changed := map[string]ServiceStep{}
	for _, s := range steps {
		changed[s.Probe.Name] = s
	}
	for _, p := range made {
		switch s, ok := changed[p.Name]; {
		case !ok:
			out = append(out, p)
		case s.Verb == Update:
			out = append(out, *s.Probe)
		}
	}
	for _, s := range steps {
		if s.Verb == Create {
			out = append(out, *s.Probe)
		}
	}
	return out
}

func tell(steps []ServiceStep) []string {
	var out []string
	for _, s := range steps {
		out = append(out, fmt.Sprintf("%s %s/%s", s.Verb, s.Probe.Namespace, s.Probe.Name))
	}
	return out
}

// TestSteps checks the steps for an operator's services during the life and the deletion of its OperatorInstall.
func TestSteps(t *testing.T) {
	web, api := v1alpha1.ProbedService{Name: "web", Port: 8080},
		v1alpha1.ProbedService{Name: "api", Port: 443, Scheme: v1alpha1.ProbeHTTPS, Path: "/readyz"}
	slower := web
	slower.Interval = &metav1.Duration{Duration: time.Minute}
	going := install(web, api)
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	waiting := install(web)
	waiting.Spec.Admission = nil
	moved := install(web)
	moved.Spec.Admission.Release.Install.Namespace = "elsewhere"
	first := install(web, api)
	first.Status.SucceededHash = ""
	lost := install(slower, api)
	lost.Status.SucceededHash = ""
	var made []v1alpha1.EndpointProbe
	for _, step := range []struct {
		name    string
		install *v1alpha1.OperatorInstall
		want    []string
	}{
		{"not admitted", waiting, nil},
		{"never ran", first, nil},
		{"two services", install(web, api),
			[]string{"create echo-system/fleet.echo.api", "create echo-system/fleet.echo.web"}},
		{"nothing changed", install(web, api), nil},
		{"one changed", install(slower, api), []string{"update echo-system/fleet.echo.web"}},
		{"status lost", lost, nil},
		{"one gone", install(slower), []string{"delete echo-system/fleet.echo.api"}},
		{"another namespace", moved, []string{"delete echo-system/fleet.echo.web", "create elsewhere/fleet.echo.web"}},
		{"back", install(web, api), []string{"delete elsewhere/fleet.echo.web", "create echo-system/fleet.echo.api",
			"create echo-system/fleet.echo.web"}},
		{"being removed", going, []string{"delete echo-system/fleet.echo.api", "delete echo-system/fleet.echo.web"}},
		{"removed", nil, nil},
	} {
		steps := ServiceSteps(step.install, made)
		if diff := cmp.Diff(step.want, tell(steps)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", step.name, diff)
		}
		made = carry(steps, made)
	}
	made = carry(ServiceSteps(install(web), nil), nil)
	if diff := cmp.Diff([]string{"delete echo-system/fleet.echo.web"}, tell(ServiceSteps(nil, made))); diff != "" {
		t.Errorf("an install that went while nobody looked (-want +got):\n%s", diff)
	}
}

func TestProbeOfAService(t *testing.T) {
	ca := &v1alpha1.ProbeTLS{CAConfigMap: &v1alpha1.ConfigMapKey{Name: "openshift-service-ca.crt",
		Key: "service-ca.crt"}}
	steps := ServiceSteps(install(v1alpha1.ProbedService{Name: "api", Port: 443, Scheme: v1alpha1.ProbeHTTPS,
		Path: "/readyz", TLS: ca}), nil)
	want := v1alpha1.EndpointProbeSpec{
		Operator: v1alpha1.OperatorReference{Namespace: "fleet", Name: "echo"}, Name: "api",
		Target: v1alpha1.ProbeTarget{Service: &v1alpha1.ServiceTarget{Name: "api", Port: 443,
			Scheme: v1alpha1.ProbeHTTPS, Path: "/readyz"}},
		Interval: &metav1.Duration{Duration: 30 * time.Second}, Timeout: &metav1.Duration{Duration: 5 * time.Second},
		TLS: ca,
	}
	if diff := cmp.Diff(want, steps[0].Probe.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// TestRecoveredStays: a hub that recovers an install names its services only later.
func TestRecoveredStays(t *testing.T) {
	made := carry(ServiceSteps(install(v1alpha1.ProbedService{Name: "web", Port: 8080}), nil), nil)
	recovered := install()
	recovered.Spec.Admission.Recovered = true
	if steps := ServiceSteps(recovered, made); len(made) != 1 || len(steps) != 0 {
		t.Errorf("of %d: %v", len(made), tell(steps))
	}
	recovered.Spec.Admission.Recovered = false
	if steps := ServiceSteps(recovered, made); len(steps) != 1 {
		t.Errorf("once it is admitted: %v", tell(steps))
	}
}
