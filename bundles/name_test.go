// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles_test

import (
	"testing"

	"github.com/bellwether-dev/bellwether/bundles"
)

func TestVersionInName(t *testing.T) {
	for name, want := range map[string]string{
		"demo.v1.2.3":        "1.2.3",
		"demo.1.2.3":         "1.2.3",
		"demo.v1.2":          "1.2.0",
		"demo.v1.2.3-rc.1+b": "1.2.3-rc.1+b",
		"demo":               "",
		"demo.latest":        "",
		"":                   "",
	} {
		version, ok := bundles.VersionInName(name)
		if ok != (want != "") || ok && version.String() != want {
			t.Errorf("version in %q: %s, %t, want %q", name, version, ok, want)
		}
	}
}
