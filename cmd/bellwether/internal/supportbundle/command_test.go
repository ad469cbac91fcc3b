// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package supportbundle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/supportbundle"
)

// TestSupportBundleCommand: without a kubeconfig, the bundle of a hub has objects, but no logs and no metrics.
func TestSupportBundleCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	h := clitest.NewHub(clitest.Cluster("prod-1", nil))
	got := h.MustRun(t, "support-bundle", "--file", file)
	for _, want := range []string{"✓ Wrote " + file + " with ", "could not be read. README.md in the bundle says why:",
		"  - the version of Kubernetes of the hub\n", "No Secret was read."} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("no %q in\n%s", want, got.Out)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := supportbundle.Unpack(t, data)
	for _, name := range []string{"doctor.json", "doctor.txt", "versions.json", "hub/objects/fleetclusters.json"} {
		if files[name] == "" {
			t.Errorf("no %s among %d files", name, len(files))
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if got := clitest.NewHub().Run(t, "support-bundle", "--file", file); got.Code != 1 ||
		!strings.Contains(got.Err, "no cluster could be read") {
		t.Errorf("of nothing: %+v", got)
	}
	if got := h.Run(t, "support-bundle", "--since", "0s"); got.Code != 1 || !strings.Contains(got.Err, "--since") {
		t.Errorf("--since 0s: %+v", got)
	}
}
