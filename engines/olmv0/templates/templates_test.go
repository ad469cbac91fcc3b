// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

func data() Data {
	return Data{
		Cluster: "canary", Operator: "echo", OperatorNamespace: "fleet", Namespace: "echo-system",
		Package: "echo-operator",
		Channel: "stable", Version: "1.0.0", Mode: v1alpha1.InstallAllNamespaces, ViewAddress: "127.0.0.1:50100",
	}
}

func TestRenderGolden(t *testing.T) {
	configured := data()
	configured.Mode = v1alpha1.InstallOwnNamespace
	configured.Config = &v1alpha1.OperatorConfig{
		Env: []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "debug: yes"}},
		Resources: &corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
		NodeSelector: map[string]string{"node-role.kubernetes.io/infra": ""},
		Tolerations:  []corev1.Toleration{{Key: "infra", Operator: corev1.TolerationOpExists}},
	}
	set, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]Data{"default": data(), "configured": configured} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			for _, kind := range []string{"Namespace", "OperatorGroup", "CatalogSource", "Subscription"} {
				object, err := set.Render(kind, data)
				if err != nil {
					t.Fatal(err)
				}
				out, err := yaml.Marshal(object.Object)
				if err != nil {
					t.Fatal(err)
				}
				text.WriteString("---\n" + string(out))
			}
			golden(t, filepath.Join("testdata", name+".golden.yaml"), text.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestUserTemplates(t *testing.T) {
	tests := map[string]struct {
		file, text string
		kind       string
		wantErr    string
	}{
		"replaces the built-in one": {
			"namespace.yaml",
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: '{{ .Namespace }}', labels: {team: a}}", "Namespace", "",
		},
		"an unknown field": {"namespace.yaml", "metadata: {name: '{{ .Nmespace }}'}", "Namespace", "Nmespace"},
		"no YAML":          {"namespace.yaml", "a: b: c", "Namespace", "namespace.yaml"},
		"another kind": {"namespace.yaml", "kind: Pod\nmetadata: {name: '{{ .Namespace }}'}", "Namespace",
			`it renders a "Pod"`},
		"another namespace": {
			"subscription.yaml", "kind: Subscription\nmetadata: {name: '{{ .Package }}', namespace: default}",
			"Subscription", `must be "echo-system", not "default"`,
		},
		"another name": {
			"subscription.yaml", "kind: Subscription\nmetadata: {name: x, namespace: '{{ .Namespace }}'}",
			"Subscription", `must be "echo-operator", not "x"`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, test.file), []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			set, err := Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			object, err := set.Render(test.kind, data())
			if test.wantErr != "" {
				if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want ErrInvalid with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if object.GetLabels()["team"] != "a" || object.GetLabels()[v1alpha1.LabelManaged] != "true" {
				t.Errorf("labels %v", object.GetLabels())
			}
		})
	}
	t.Run("a template that does not parse", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "namespace.yaml"), []byte("{{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); !errors.Is(err, ErrInvalid) {
			t.Fatalf("error %v, want ErrInvalid", err)
		}
	})
}

func TestInSync(t *testing.T) {
	set, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := set.Render("Subscription", data())
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		path  []string
		value any
		want  bool
	}{
		"as rendered":             {nil, nil, true},
		"others may add":          {[]string{"metadata", "labels", "theirs"}, "x", true},
		"a status does not count": {[]string{"status", "state"}, "x", true},
		"a changed field":         {[]string{"spec", "installPlanApproval"}, "Automatic", false},
		"a changed label":         {[]string{"metadata", "labels", v1alpha1.LabelManaged}, "false", false},
		"made from an older template": {[]string{"metadata", "annotations", v1alpha1.AnnotationSpecHash}, "old",
			false},
		"a field that became an object":  {[]string{"spec", "channel"}, map[string]any{}, false},
		"an object that became a string": {[]string{"spec"}, "x", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			live := rendered.DeepCopy()
			at := live.Object
			for i, key := range test.path {
				if i == len(test.path)-1 {
					at[key] = test.value
					break
				}
				next, ok := at[key].(map[string]any)
				if !ok {
					next = map[string]any{}
					at[key] = next
				}
				at = next
			}
			if got := InSync(rendered, live); got != test.want {
				t.Errorf("InSync = %v, want %v", got, test.want)
			}
		})
	}
}
