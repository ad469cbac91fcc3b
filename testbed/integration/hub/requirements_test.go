// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/echo"
)

// TestRolloutCarriesItsRequirements publishes a bundle with all its manifests.
func TestRolloutCarriesItsRequirements(t *testing.T) {
	f := newFixture(t, first, "a")
	content, err := echo.FBC("1.0.0")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(f.dir, "catalog.json"), content, 0o600))
	f.lookAgain(t, f.catalog)
	f.operator.Spec.Package = "echo-operator"
	f.create()
	r := f.rollouts("echo-1")["echo-1"]
	if diff := cmp.Diff(&v1alpha1.ReleaseRequirements{MinKubeVersion: "1.30.0"}, r.Spec.Requirements); diff != "" {
		t.Errorf("requirements (-want +got):\n%s", diff)
	}
}
