// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
)

func block(pkg, version, reason string) v1alpha1.VersionBlock {
	return v1alpha1.VersionBlock{Package: pkg, Version: version, Reason: reason}
}

func TestTold(t *testing.T) {
	marked := &catalogs.Package{Name: "echo", Blocks: map[string]catalogs.Block{
		"echo.v1.1.0": {Bundle: "echo.v1.1.0", Version: "1.1.0", Reason: "of the catalog", Expires: "soon"},
		"echo.v1.2.0": {Bundle: "echo.v1.2.0", Version: "1.2.0", Expires: "2026-12-31"},
		"echo.old":    {Bundle: "echo.old", Reason: "without a version"},
	}}
	catalog := &v1alpha1.OperatorCatalog{}
	catalog.Spec.Blocks = []v1alpha1.VersionBlock{block("other", "3.0.0", "theirs"),
		block("echo", "1.1.0", "of the spec")}
	catalog.Status.BlockedVersions = []v1alpha1.BlockedVersion{
		{VersionBlock: block("echo", "1.9.0", "remembered"), Origin: v1alpha1.BlockFromCatalog},
		{VersionBlock: block("echo", "1.8.0", "lifted since"), Origin: v1alpha1.BlockFromSpec},
	}
	unexplained := block("echo", "1.2.0", "the catalog does not say why")
	with := func(p bundles.Property) *catalogs.Package {
		needy := *marked
		needy.Bundles = map[string]*catalogs.Bundle{"echo.v1.0.0": {Name: "echo.v1.0.0"},
			"echo.v1.1.0": {Name: "echo.v1.1.0", Properties: []bundles.Property{p}}}
		return &needy
	}
	tests := map[string]struct {
		catalog *v1alpha1.OperatorCatalog
		pkg     *catalogs.Package
		want    []v1alpha1.VersionBlock
	}{
		"no catalog": {},
		"the spec's word comes before the catalog's": {catalog, marked, []v1alpha1.VersionBlock{
			block("echo", "1.1.0", "of the spec"), unexplained,
		}},
		"a version depends on another package": {catalog, with(bundles.Property{
			Type: bundles.PropertyPackageRequired, Value: []byte(`{"packageName":"other","versionRange":">=1.0.0"}`)}),
			[]v1alpha1.VersionBlock{
				block("echo", "1.1.0", "of the spec"), unexplained, block("other", "3.0.0", "theirs"),
			}},
		"a version depends on an API": {catalog, with(bundles.Property{
			Type: bundles.PropertyGVKRequired, Value: []byte(`{"group":"a.example.com","kind":"A","version":"v1"}`)}),
			[]v1alpha1.VersionBlock{
				block("echo", "1.1.0", "of the spec"), unexplained, block("other", "3.0.0", "theirs"),
			}},
		"what a version depends on cannot be read": {catalog, with(bundles.Property{
			Type: bundles.PropertyConstraint, Value: []byte("0")}), []v1alpha1.VersionBlock{
			block("echo", "1.1.0", "of the spec"), unexplained, block("other", "3.0.0", "theirs"),
		}},
		"while the catalog cannot be read its blocks stay": {catalog, nil, []v1alpha1.VersionBlock{
			block("echo", "1.1.0", "of the spec"), block("echo", "1.9.0", "remembered"),
			block("other", "3.0.0", "theirs"),
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, catalogs.BlocksForInstalls(test.catalog, test.pkg, "echo")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestToldStaysWithinTheAPI(t *testing.T) {
	pkg := &catalogs.Package{Name: "echo", Blocks: map[string]catalogs.Block{}}
	for i := range 2 * catalogs.MaxBlocksPerInstall {
		version := fmt.Sprintf("1.%d.0", i)
		pkg.Blocks["echo.v"+version] = catalogs.Block{Version: version, Reason: strings.Repeat("ä", 1000)}
	}
	got := catalogs.BlocksForInstalls(&v1alpha1.OperatorCatalog{}, pkg, "echo")
	if len(got) != catalogs.MaxBlocksPerInstall || len([]rune(got[0].Reason)) != 512 {
		t.Errorf("%d blocks, the first with a reason of %d characters", len(got), len([]rune(got[0].Reason)))
	}
}
