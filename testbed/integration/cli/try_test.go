// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/engines/olmv0/try"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestTry tries bundles of the sample operator on a cluster where it really runs. Each
// trial must leave the cluster as it was.
func TestTry(t *testing.T) {
	h := connect(t, testenv.Cluster(t, cluster.Options{OLM: true, Pods: true, Images: map[string]cluster.Image{
		"example.com/bellwether/echo-operator": {Path: testenv.Binary(t, build.EchoOperator)},
		"example.com/bellwether/echo-server":   {Path: testenv.Binary(t, build.EchoServer)},
	}}))
	before := h.outsideOfNamespaces(t)
	for _, test := range []struct {
		name string
		do   func(t *testing.T, h *hub)
	}{
		{"an upgrade", tryUpgrade},
		{"a bundle that does not pass", tryBadExample},
		{"an interrupt", interruptTrial},
		{"what was there before", tryBesideExisting},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.do(t, h)
			if diff := cmp.Diff(before, h.outsideOfNamespaces(t)); diff != "" {
				t.Errorf("the trial did not leave the cluster as it was; before (-), after (+):\n%s", diff)
			}
		})
	}
}

func tryUpgrade(t *testing.T, h *hub) {
	got := h.run(t, "bundle", "try", echoBundle(t, "1.1.0"), "--from", echoBundle(t, "1.0.0"), "-o", "json")
	var r try.Report
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		t.Fatalf("read the report: %v\n%s%s", err, got.out, got.err)
	}
	if got.code != 0 || !r.Complete || !r.Passed() {
		t.Errorf("it ends with %d and says\n%s%s", got.code, got.out, got.err)
	}
	if len(r.Examples) != 1 || r.Examples[0].State != try.Ready {
		t.Errorf("the example is not ready: %+v", r.Examples)
	}
	if r.Pods.Total == 0 || r.Pods.Stubs > 0 {
		t.Errorf("the operator does not run: %+v", r.Pods)
	}
	if len(r.Rights) != 1 || r.Rights[0].Rules != 7 || len(r.Rights[0].Missing) > 0 {
		t.Errorf("the ServiceAccount has not all permissions: %+v", r.Rights)
	}
	for _, step := range []string{"installed echo-operator.v1.0.0", "installed echo-operator.v1.1.0",
		"created EchoServer/hello", "removed everything"} {
		if !strings.Contains(got.err, step) {
			t.Errorf("no step %q in\n%s", step, got.err)
		}
	}
}

// tryBadExample tries a bundle with an example that its definition does not accept, and
// whose image the testbed does not know. Then it removes a trial that was kept.
func tryBadExample(t *testing.T, h *hub) {
	bad := changedBundle(t, "1.0.0", `"replicas":1`, `"replicas":"one"`, "example.com/bellwether/echo-operator:",
		"example.com/unknown:")
	got := h.run(t, "bundle", "try", bad, "--keep")
	for _, want := range []string{"Pods are stubs", "example EchoServer/hello of echo-operator.v1.0.0 is refused",
		"did not pass: 1 problem", "bundle try --remove bellwether-try-"} {
		if got.code != 2 || !strings.Contains(got.out, want) {
			t.Errorf("it ends with %d, want 2, and %q in\n%s%s", got.code, want, got.out, got.err)
		}
	}
	namespaces := h.trials(t)
	if len(namespaces) != 1 {
		t.Fatalf("namespaces of trials: %v", namespaces)
	}
	if got := h.run(t, "bundle", "try", "--remove", namespaces[0]); got.code != 0 {
		t.Errorf("remove ends with %d and says\n%s%s", got.code, got.out, got.err)
	}
	if got := h.run(t, "bundle", "try", "--remove", "default"); got.code != 1 ||
		!strings.Contains(got.err, "was not created by a trial") {
		t.Errorf("a namespace of somebody else: it ends with %d and says\n%s%s", got.code, got.out, got.err)
	}
}

func interruptTrial(t *testing.T, h *hub) {
	c := h.command(t.Context(), "bundle", "try", echoBundle(t, "1.0.0"))
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	must(t, c.Start())
	eventually(t, "OLM has created the definition", func() bool {
		d := definition()
		return h.Get(t.Context(), client.ObjectKeyFromObject(d), d) == nil
	})
	must(t, c.Process.Signal(syscall.SIGINT))
	_ = c.Wait() // an exit code is no error here
	if code := c.ProcessState.ExitCode(); code != 130 || !strings.Contains(out.String(), "Interrupted. Removing") ||
		!strings.HasSuffix(out.String(), "\ninterrupted\n") {
		t.Errorf("it ends with %d and says\n%s", code, &out)
	}
}

// tryBesideExisting finds a definition of the same name on the cluster.
func tryBesideExisting(t *testing.T, h *hub) {
	text, err := os.ReadFile(filepath.Join(echoBundle(t, "1.0.0"), "manifests", "echo.bellwether.dev_echoservers.yaml"))
	must(t, err)
	d := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(text, &d.Object))
	must(t, h.Create(t.Context(), d))
	eventually(t, "the definition is established", func() bool {
		must(t, h.Get(t.Context(), client.ObjectKeyFromObject(d), d))
		return strings.Contains(string(must2(json.Marshal(d.Object["status"]))), "Established")
	})
	got := h.run(t, "bundle", "try", echoBundle(t, "1.1.0"))
	if got.code != 1 || !strings.Contains(got.err, "CustomResourceDefinition echoservers.echo.bellwether.dev exists") ||
		!strings.Contains(got.err, "--allow-existing") {
		t.Errorf("it ends with %d and says\n%s%s", got.code, got.out, got.err)
	}
	now := definition()
	must(t, h.Get(t.Context(), client.ObjectKeyFromObject(d), now))
	if now.GetGeneration() != d.GetGeneration() || now.GetUID() != d.GetUID() {
		t.Error("the definition was changed")
	}
	got = h.run(t, "bundle", "try", echoBundle(t, "1.1.0"), "--allow-existing")
	if got.code != 0 || !strings.Contains(got.out, "is not removed: CustomResourceDefinition") {
		t.Errorf("with --allow-existing it ends with %d and says\n%s%s", got.code, got.out, got.err)
	}
	must(t, h.Get(t.Context(), client.ObjectKeyFromObject(d), now))
	if now.GetUID() != d.GetUID() {
		t.Error("the definition that was there before was removed")
	}
	must(t, h.Delete(t.Context(), d))
	eventually(t, "the definition is gone", func() bool {
		return client.IgnoreNotFound(h.Get(t.Context(), client.ObjectKeyFromObject(d), now)) == nil &&
			!slices.Contains(h.outsideOfNamespaces(t), "CustomResourceDefinition "+d.GetName())
	})
}

func must2(text []byte, err error) []byte {
	if err != nil {
		panic(err) // what came from the API server can be encoded
	}
	return text
}

func definition() *unstructured.Unstructured {
	d := &unstructured.Unstructured{}
	d.SetAPIVersion("apiextensions.k8s.io/v1")
	d.SetKind("CustomResourceDefinition")
	d.SetName("echoservers.echo.bellwether.dev")
	return d
}

// trials are the namespaces that trials made.
func (h *hub) trials(t *testing.T) []string {
	t.Helper()
	var list corev1.NamespaceList
	must(t, h.List(t.Context(), &list, client.HasLabels{try.LabelTry}))
	var out []string
	for _, n := range list.Items {
		out = append(out, n.Name)
	}
	return out
}

// outsideOfNamespaces names the objects of the cluster that are in no namespace.
func (h *hub) outsideOfNamespaces(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "operators.coreos.com", Version: "v1", Kind: "Operator"},
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		must(t, h.List(t.Context(), list))
		for _, o := range list.Items {
			out = append(out, gvk.Kind+" "+o.Name)
		}
	}
	slices.Sort(out)
	return out
}

// echoBundle is the folder of a bundle of the sample operator.
func echoBundle(t *testing.T, version string) string {
	t.Helper()
	root, err := build.Root()
	must(t, err)
	return filepath.Join(root, "testbed", "echo", "bundles", version)
}

// changedBundle is a copy of such a folder in which texts are replaced.
func changedBundle(t *testing.T, version string, oldNew ...string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(echoBundle(t, version))))
	file := filepath.Join(dir, "manifests", "echo-operator.clusterserviceversion.yaml")
	text, err := os.ReadFile(file)
	must(t, err)
	changed := strings.NewReplacer(oldNew...).Replace(string(text))
	if changed == string(text) {
		t.Fatal("nothing of the bundle was changed")
	}
	must(t, os.WriteFile(file, []byte(changed), 0o600))
	return dir
}
