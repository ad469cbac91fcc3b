// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
)

func TestCatalogGet(t *testing.T) {
	main := &v1alpha1.OperatorCatalog{}
	main.Namespace, main.Name = "default", "main"
	main.Spec.Source.Image = "registry.example.com/catalogs/main:latest"
	main.Status.BlockedVersions = []v1alpha1.BlockedVersion{{
		VersionBlock: v1alpha1.VersionBlock{Package: "echo", Version: "1.2.0", Reason: "it loses data"},
		Origin:       v1alpha1.BlockFromSpec, Clusters: 3, Proposal: "upgrade to 1.2.1",
	}}
	main.Status.Packages = []v1alpha1.CatalogPackage{{Name: "echo", Versions: []v1alpha1.CatalogVersion{
		{Bundle: "echo.v1.1.0", Version: "1.1.0", EndOfSupport: "2027-06-30"},
		{Bundle: "echo.v1.0.0", Version: "1.0.0", EndOfSupport: "2026-06-30"}}}}
	other := main.DeepCopy()
	other.Namespace, other.Name = "team", "theirs"
	h := clitest.NewHub(main, other)
	for name, test := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"a catalog": {args: []string{"get", "main"},
			says: []string{"Catalog:     main", "it loses data", "upgrade to 1.2.1", "supported until 2027-06-30",
				"not supported since 2026-06-30"}},
		"its name": {args: []string{"get", "main", "-o", "name"},
			says: []string{"operatorcatalog.bellwether.dev/main"}},
		"there is none": {args: []string{"get", "mian"}, code: 1,
			says: []string{`there is no catalog "mian" in namespace "default"`, "main", "team/theirs"}},
		"in a list": {args: []string{"list"}, says: []string{"1 (on 3 clusters)"}},
		"no name":   {args: []string{"get"}, code: 1, says: []string{"the catalog's name"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.Run(t, append([]string{"catalog"}, test.args...)...)
			if got.Code != test.code {
				t.Errorf("exit status %d, want %d", got.Code, test.code)
			}
			for _, text := range test.says {
				if !strings.Contains(got.Out+got.Err, text) {
					t.Errorf("it does not say %q:\n%s%s", text, got.Out, got.Err)
				}
			}
		})
	}
}
