// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles_test

import (
	"slices"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/bundles"
)

func TestCompareVersions(t *testing.T) {
	want := []string{"1.0.0-alpha.2", "1.0.0-alpha.10", "1.0.0-rc1", "1.0.0", "1.0.0+2", "1.0.0+2.1", "1.0.0+10",
		"1.0.0+abc", "1.0.1-rc1+1", "1.0.1"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, func(a, b string) int {
		return bundles.CompareVersions(semver.MustParse(a), semver.MustParse(b))
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if bundles.CompareVersions(semver.MustParse("1.0.0+01"), semver.MustParse("1.0.0")) != 0 {
		t.Error("OLM v1 does not order by build metadata with a leading zero")
	}
}
