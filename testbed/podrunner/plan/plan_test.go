// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/testbed/podrunner/plan"
)

func TestExpand(t *testing.T) {
	values := map[string]string{"A": "1", "B": "$(A)"}
	tests := map[string]struct{ in, want string }{
		"plain":        {"x", "x"},
		"known":        {"--a=$(A)/$(A)", "--a=1/1"},
		"unknown":      {"$(C)", "$(C)"},
		"escaped":      {"$$(A)", "$(A)"},
		"twice":        {"$$$(A)", "$1"},
		"not twice":    {"$(B)", "$(A)"},
		"open":         {"$(A", "$(A"},
		"lone dollar":  {"a$b$", "a$b$"},
		"empty":        {"", ""},
		"shell's":      {"${A}", "${A}"},
		"empty name":   {"$()", "$()"},
		"open, nested": {"$($(A)", "$($(A)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := plan.Expand(tt.in, values); got != tt.want {
				t.Errorf("Expand(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func field(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func secretKey(name, key string, optional *bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: optional}}
}

func testPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "pod", UID: "u", Labels: map[string]string{"b": "2", "a": "1"},
			Annotations: map[string]string{"olm.targetNamespaces": "x,y"},
		},
		Spec:   corev1.PodSpec{NodeName: "n", ServiceAccountName: "sa", RestartPolicy: corev1.RestartPolicyAlways},
		Status: corev1.PodStatus{PodIP: "127.1.2.3", HostIP: "127.1.2.1"},
	}
}

func TestEnvironment(t *testing.T) {
	sources := plan.Sources{
		Secrets:    map[string]map[string][]byte{"s": {"k": []byte("secret")}},
		ConfigMaps: map[string]map[string]string{"m": {"Y": "2", "X": "1"}},
	}
	resources := corev1.ResourceRequirements{Limits: corev1.ResourceList{
		corev1.ResourceMemory: resource.MustParse("64Mi"), corev1.ResourceCPU: resource.MustParse("250m")}}
	tests := map[string]struct {
		container corev1.Container
		want      []plan.Var
		wantErr   error
	}{
		"order and expansion": {
			container: corev1.Container{
				EnvFrom: []corev1.EnvFromSource{
					{
						Prefix: "P_",
						ConfigMapRef: &corev1.ConfigMapEnvSource{
							LocalObjectReference: corev1.LocalObjectReference{Name: "m"},
						},
					},
				},
				Env: []corev1.EnvVar{
					{Name: "A", Value: "$(P_X)$(LATER)"}, {Name: "LATER", Value: "l"},
					{Name: "B", Value: "$(A)"}, {Name: "P_Y", Value: "mine"},
				},
			},
			want: []plan.Var{{"P_X", "1"}, {"P_Y", "mine"}, {"A", "1$(LATER)"}, {"LATER", "l"}, {"B", "1$(LATER)"}},
		},
		"fields": {
			container: corev1.Container{Env: []corev1.EnvVar{
				{Name: "IP", ValueFrom: field("status.podIP")},
				{Name: "NS", ValueFrom: field("metadata.namespace")},
				{Name: "SA", ValueFrom: field("spec.serviceAccountName")},
				{Name: "TARGETS", ValueFrom: field("metadata.annotations['olm.targetNamespaces']")},
				{Name: "LABELS", ValueFrom: field("metadata.labels")},
			}},
			want: []plan.Var{{"IP", "127.1.2.3"}, {"NS", "ns"}, {"SA", "sa"}, {"TARGETS", "x,y"},
				{"LABELS", "a=\"1\"\nb=\"2\""}},
		},
		"unknown field": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "A", ValueFrom: field("spec.no")}}},
			wantErr:   plan.ErrConfig,
		},
		"resources": {
			container: corev1.Container{Resources: resources, Env: []corev1.EnvVar{
				{
					Name: "MEM",
					ValueFrom: &corev1.EnvVarSource{
						ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"},
					},
				},
				{
					Name: "MIB",
					ValueFrom: &corev1.EnvVarSource{
						ResourceFieldRef: &corev1.ResourceFieldSelector{
							Resource: "limits.memory",
							Divisor:  resource.MustParse("1Mi"),
						},
					},
				},
				{
					Name: "CPU",
					ValueFrom: &corev1.EnvVarSource{
						ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"},
					},
				},
				{
					Name: "NONE",
					ValueFrom: &corev1.EnvVarSource{
						ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "requests.cpu"},
					},
				},
			}},
			want: []plan.Var{{"MEM", "67108864"}, {"MIB", "64"}, {"CPU", "1"}, {"NONE", "0"}},
		},
		"secret": {
			container: corev1.Container{Env: []corev1.EnvVar{
				{Name: "S", ValueFrom: secretKey("s", "k", nil)},
				{Name: "O", ValueFrom: secretKey("s", "no", ptr.To(true))}}},
			want: []plan.Var{{"S", "secret"}},
		},
		"missing secret": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "S", ValueFrom: secretKey("no", "k", nil)}}},
			wantErr:   plan.ErrConfig,
		},
		"missing configmap": {
			container: corev1.Container{
				EnvFrom: []corev1.EnvFromSource{
					{
						ConfigMapRef: &corev1.ConfigMapEnvSource{
							LocalObjectReference: corev1.LocalObjectReference{Name: "no"},
						},
					},
				},
			},
			wantErr: plan.ErrConfig,
		},
		"optional configmap": {
			container: corev1.Container{
				EnvFrom: []corev1.EnvFromSource{
					{
						ConfigMapRef: &corev1.ConfigMapEnvSource{
							LocalObjectReference: corev1.LocalObjectReference{Name: "no"},
							Optional:             ptr.To(true),
						},
					},
				},
			},
			want: []plan.Var{},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := plan.Environment(testPod(), &tt.container, sources)
			if !errors.Is(err, tt.wantErr) {
				t.Fatalf("error = %v, want %v", err, tt.wantErr)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMountsRewrite(t *testing.T) {
	c := &corev1.Container{VolumeMounts: []corev1.VolumeMount{
		{Name: "conf", MountPath: "/etc/app"},
		{Name: "certs", MountPath: "/etc/app/certs/"},
		{Name: "sub", MountPath: "/data", SubPath: "inner"},
	}}
	mounts := plan.NewMounts(c, func(volume string) string { return "/v/" + volume })
	tests := map[string]struct{ in, want string }{
		"whole":          {"/etc/app", "/v/conf"},
		"below":          {"/etc/app/a.yaml", "/v/conf/a.yaml"},
		"longest":        {"/etc/app/certs/tls.crt", "/v/certs/tls.crt"},
		"flag":           {"--dir=/etc/app", "--dir=/v/conf"},
		"two":            {"/etc/app:/data/x", "/v/conf:/v/sub/inner/x"},
		"sub path":       {"/data", "/v/sub/inner"},
		"longer name":    {"/etc/application", "/etc/application"},
		"other root":     {"/var/etc/app", "/var/etc/app"},
		"URL":            {"http://host/etc/app", "http://host/etc/app"},
		"quoted":         {`{"dir":"/data"}`, `{"dir":"/v/sub/inner"}`},
		"not twice":      {"/data/etc/app", "/v/sub/inner/etc/app"},
		"no path at all": {"text", "text"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := mounts.Rewrite(tt.in); got != tt.want {
				t.Errorf("Rewrite(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	c := &corev1.Container{
		Command:      []string{"/manager", "run"},
		Args:         []string{"--dir=/certs", "--address=$(POD_IP):80"},
		VolumeMounts: []corev1.VolumeMount{{Name: "c", MountPath: "/certs"}},
	}
	mounts := plan.NewMounts(c, func(string) string { return "/v" })
	got := plan.Arguments(c, map[string]string{"POD_IP": "127.0.0.2"}, mounts)
	if diff := cmp.Diff([]string{"run", "--dir=/v", "--address=127.0.0.2:80"}, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestBackoff(t *testing.T) {
	tests := map[string]struct{ previous, lived, want time.Duration }{
		"first":      {0, 0, time.Second},
		"second":     {time.Second, time.Second, 2 * time.Second},
		"bounded":    {20 * time.Second, time.Second, 30 * time.Second},
		"stays":      {30 * time.Second, 59 * time.Second, 30 * time.Second},
		"lived long": {30 * time.Second, time.Minute, time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := plan.Backoff(tt.previous, tt.lived); got != tt.want {
				t.Errorf("Backoff = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestRestart(t *testing.T) {
	tests := map[string]struct {
		policy corev1.RestartPolicy
		code   int32
		want   bool
	}{
		"always, ok":      {corev1.RestartPolicyAlways, 0, true},
		"on failure, ok":  {corev1.RestartPolicyOnFailure, 0, false},
		"on failure, bad": {corev1.RestartPolicyOnFailure, 1, true},
		"never, bad":      {corev1.RestartPolicyNever, 1, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := plan.Restart(tt.policy, tt.code); got != tt.want {
				t.Errorf("Restart = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestProbeCount(t *testing.T) {
	p := &corev1.Probe{SuccessThreshold: 2, FailureThreshold: 3}
	tests := map[string]struct {
		results []bool
		want    plan.Verdict
	}{
		"one success":      {[]bool{true}, plan.Undecided},
		"two successes":    {[]bool{true, true}, plan.Passing},
		"interrupted":      {[]bool{true, false, true}, plan.Undecided},
		"three failures":   {[]bool{true, true, false, false, false}, plan.Failing},
		"recovers":         {[]bool{false, false, false, true, true}, plan.Passing},
		"failures, broken": {[]bool{false, false, true, false}, plan.Undecided},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var count plan.ProbeCount
			var got plan.Verdict
			for _, ok := range tt.results {
				got = count.Observe(p, ok)
			}
			if got != tt.want {
				t.Errorf("verdict = %d, want %d", got, tt.want)
			}
		})
	}
}
