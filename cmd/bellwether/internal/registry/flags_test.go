// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"os"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
)

// A folder that does not exist is not resolved in a public registry with Docker's short names.
func TestSource(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("ladders.d", 0o755); err != nil {
		t.Fatal(err)
	}
	for text, wrong := range map[string]string{
		"registry.example.com/catalogs/main:latest": "",
		"localhost/catalogs/main":                   "",
		"127.0.0.1:5000/main":                       "",
		".":                                         "",
		"catalog":                                   "folder catalog does not exist",
		"catalogs/main":                             "folder catalogs/main does not exist",
		"./catalogs/main":                           "folder ./catalogs/main does not exist",
		"[::1]:5000/main":                           "",
		"10.0.0.1/main":                             "",
		"registry:5000/main":                        "",
		"bundle-1.0/manifests":                      "folder bundle-1.0/manifests does not exist",
		"v1.2.3/bundle":                             "folder v1.2.3/bundle does not exist",
		".bundles/one":                              "folder .bundles/one does not exist",
		"ladders.d/bundle":                          "folder ladders.d/bundle does not exist",
		"C:/bundles/one":                            "folder C:/bundles/one does not exist",
		"/no/such/folder":                           "folder /no/such/folder does not exist",
	} {
		_, err := (&registry.Flags{}).Source(text)
		if wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%s: got %v, want %q", text, err, wrong)
		}
	}
}
