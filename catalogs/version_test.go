// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
)

func TestCompareVersions(t *testing.T) {
	want := []string{"", "latest", "1.2.0", "v1.2.0", "1.10.0-rc.1", "1.10.0"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, catalogs.CompareVersions)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
