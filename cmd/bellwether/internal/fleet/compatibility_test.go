// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/compatibility"
)

// supportedUpTo is a catalog of echo-operator in a folder: 1.0.0 uses an API that Kubernetes 1.25 removed, 1.1.0 does
// not state its support and has its manifests in an image that cannot be read, and 1.2.0 is supported up to 1.37.
func supportedUpTo(t *testing.T) string {
	t.Helper()
	object := func(text string) string {
		return fmt.Sprintf(`, {"type": "olm.bundle.object", "value": {"data": %q}}`,
			base64.StdEncoding.EncodeToString([]byte(text)))
	}
	text := `{"schema": "olm.package", "name": "echo-operator", "defaultChannel": "stable"}
		{"schema": "olm.channel", "package": "echo-operator", "name": "stable", "entries": [
		{"name": "echo-operator.v1.0.0"}, {"name": "echo-operator.v1.1.0", "replaces": "echo-operator.v1.0.0"},
		{"name": "echo-operator.v1.2.0", "replaces": "echo-operator.v1.1.0"}]}`
	for version, more := range map[string]string{
		"1.0.0": object(`{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
			"metadata": {"name": "echo-operator.v1.0.0"}, "spec": {"version": "1.0.0"}}`) +
			object(`{"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "echo"}}`),
		"1.2.0": `, {"type": "bellwether.dev/support", "value": {"endOfSupport": "2026-06-30", "kubernetes":
			{"min": "1.30", "max": "1.37"}}}`,
		"1.1.0": "",
	} {
		image := ""
		if version != "1.0.0" {
			image = `"image": "127.0.0.1:1/echo@sha256:` + strings.Repeat("a", 64) + `",`
		}
		text += fmt.Sprintf(`{"schema": "olm.bundle", "package": "echo-operator", "name": "echo-operator.v%s", %s
			"properties": [{"type": "olm.package", "value": {"packageName": "echo-operator", "version": %q}}%s]}`,
			version, image, version, more)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "catalog.json"), []byte(text), 0o600); err != nil {
		t.Fatalf("write catalog: %v", err)
	}
	return dir
}

func installed(cluster, version string) *v1alpha1.OperatorInstall {
	return &v1alpha1.OperatorInstall{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(cluster), Name: "default.echo"},
		Spec: v1alpha1.OperatorInstallSpec{Cluster: cluster,
			Operator: v1alpha1.OperatorReference{Namespace: "default", Name: "echo"}},
		Status: v1alpha1.OperatorInstallStatus{Installed: &v1alpha1.InstalledVersion{
			Bundle: "echo-operator.v" + version, Version: version}},
	}
}

func TestCompatibility(t *testing.T) {
	dir := supportedUpTo(t)
	catalog := &v1alpha1.OperatorCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "main"},
		Spec: v1alpha1.OperatorCatalogSpec{Source: v1alpha1.CatalogSource{Directory: dir}}}
	catalog.Status.Digest = clitest.MustResolve(t, oci.Source{Directory: dir})
	old := clitest.Cluster("old", map[string]string{"env": "test"})
	old.Status.Versions.Kubernetes = "v1.24.9"
	h := clitest.NewHub(catalog, clitest.Operator("echo", "1.2.0"), old, clitest.Cluster("unread", nil),
		clitest.Cluster("new", nil), clitest.Cluster("bare", nil),
		installed("old", "1.0.0"), installed("unread", "1.1.0"), installed("new", "1.2.0"))
	run := func(args ...string) clitest.Result {
		return h.Run(t, append([]string{"fleet", "compatibility"}, args...)...)
	}
	got := run("--kubernetes", "1.37", "-o", "wide")
	if got.Code != 1 || got.Err != "" {
		t.Errorf("exit code %d: %s", got.Code, got.Err)
	}
	fixture.AssertGolden(t, "compatibility", got.Out)

	got = run("--kubernetes", "v1.37.2", "-o", "json", "--cluster", "old")
	var report compatibility.Report
	if err := json.Unmarshal([]byte(got.Out), &report); err != nil {
		t.Fatalf("decode: %v", err)
	}
	if len(report.Rows) != 1 || report.Rows[0].Upgrade != "1.2.0" ||
		report.Rows[0].Clusters[0] != (compatibility.Cluster{Name: "old", Kubernetes: "v1.24.9"}) {
		t.Errorf("report %+v", report)
	}

	for name, test := range map[string]struct {
		args     []string
		code     int
		out, err string
	}{
		"nothing breaks": {[]string{"--kubernetes", "1.24", "-l", "env=test"}, exit.OK, "uses no removed API", ""},
		"only unknown":   {[]string{"--kubernetes", "1.37", "--cluster", "unread"}, exit.OK, "unknown", ""},
		"unknown fails": {[]string{"--kubernetes", "1.37", "--cluster", "unread", "--fail-on-unknown"}, 1, "unknown",
			""},
		"beyond what the newest is supported on": {[]string{"--kubernetes", "1.38"}, 1,
			"no newer version is known to be OK", ""},
		"another catalog": {[]string{"--kubernetes", "1.37", "--catalog", dir, "--cluster", "new"}, exit.OK,
			"supported on Kubernetes 1.30 to 1.37", ""},
		"a cluster without operators": {[]string{"--kubernetes", "1.37", "--cluster", "bare"}, exit.OK, "",
			"No operators are installed"},
		"no version":      {nil, 2, "", "missing flag --kubernetes"},
		"no such version": {[]string{"--kubernetes", "37"}, 2, "", "use a version such as 1.37"},
		"no such cluster": {[]string{"--kubernetes", "1.37", "--cluster", "x"}, 2, "", `no cluster "x"`},
		"no such catalog": {[]string{"--kubernetes", "1.37", "--catalog", "./none"}, 2, "", "does not exist"},
		"no such flag":    {[]string{"--none"}, 2, "", "unknown flag"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(test.args...)
			if got.Code != test.code || !strings.Contains(phrase.OneLine(got.Out), test.out) ||
				!strings.Contains(got.Err, test.err) {
				t.Errorf("exit code %d: %s%s, want %d: %s%s", got.Code, got.Out, got.Err, test.code, test.out, test.err)
			}
		})
	}
}
