// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestSupportBundle plants a secret in objects of a real API server, in its Secrets, annotations, environment and
// Events, and looks for it in every file of the bundle. A part that may not be read is listed.
func TestSupportBundle(t *testing.T) {
	h := newHub(t)
	const planted = "hunter2-is-planted"
	meta := metav1.ObjectMeta{Namespace: system, Name: "planted"}
	must(t, h.Create(t.Context(), &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"a": planted}}))
	must(t, h.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": planted}}))
	must(t, h.Create(t.Context(), &corev1.Event{ObjectMeta: meta,
		Message:        "401 for https://u:" + planted + "@example.com",
		InvolvedObject: corev1.ObjectReference{Namespace: system}}))
	c := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "bundled", Annotations: map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": `{"password":"` + planted + `"}`,
		"example.com/copy": `{"kind":"Secret","data":{"a":"` + base64.StdEncoding.EncodeToString([]byte(planted)) + `"}}`}}}
	must(t, h.Create(t.Context(), c))
	t.Cleanup(func() { must(t, h.Delete(context.Background(), c)) })

	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if got := h.run(t, "support-bundle", "--file", file); got.code != 0 || !strings.Contains(got.out, "✓ Wrote "+file) {
		t.Fatalf("it ends with %d and says\n%s%s", got.code, got.out, got.err)
	}
	files := unpack(t, file)
	for name, text := range files {
		for _, leak := range []string{planted, base64.StdEncoding.EncodeToString([]byte(planted))} {
			if strings.Contains(text, leak) {
				t.Errorf("%s contains %q", name, leak)
			}
		}
	}
	for name, want := range map[string]string{"hub/objects/fleetclusters.json": `"bundled"`, "doctor.txt": "Nothing found",
		"hub/objects/" + system + "/deployments.json": "bellwether-hub", "hub/version.json": "gitVersion",
		"hub/objects/" + system + "/events.json": "[redacted]@example.com", "hub/objects/clusterroles.json": "bellwether-view"} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s does not contain %q:\n%.2000s", name, want, files[name])
		}
	}
	h.bind(t, "bundler", "bellwether-view")
	eventually(t, "the binding is in force", func() bool {
		return h.run(t, "rollout", "get", "--as", "bundler").code == 0
	})
	if got := h.run(t, "support-bundle", "--file", file, "--as", "bundler"); got.code != 0 {
		t.Fatalf("of a part it ends with %d and says\n%s%s", got.code, got.out, got.err)
	}
	files = unpack(t, file)
	if !strings.Contains(files["hub/objects/fleetclusters.json"], `"bundled"`) ||
		!strings.Contains(files["README.md"], "- Deployment in namespace "+system+" of the hub: ") ||
		!strings.Contains(files["README.md"], "forbidden") {
		t.Errorf("the index of a part is\n%s", files["README.md"])
	}
}

// unpack returns the files of a bundle, without the folder that they are in.
func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	must(t, err)
	defer func() { _ = f.Close() }()
	gz, err := gzip.NewReader(f)
	must(t, err)
	files := map[string]string{}
	for archive := tar.NewReader(gz); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		text, err := io.ReadAll(archive)
		must(t, err)
		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = string(text)
	}
}
