// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scan_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs/scan"
)

func testdata(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/sboms/" + name)
	if err != nil {
		t.Fatalf("read SBOM: %v", err)
	}
	return string(text)
}

func TestRead(t *testing.T) {
	first, second := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	image := "registry.example.com/echo"
	net23 := []scan.Component{{Name: "example.com/net", Version: "v0.23.0",
		PURL: "pkg:golang/example.com/net@v0.23.0"}}
	cyclone := testdata(t, "echo-1.1.0.cdx.json")
	statement := fmt.Sprintf(`{"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://cyclonedx.org/bom",
		"subject": [{"name": "other", "digest": {"sha256": %q}}], "predicate": %s}`, strings.Repeat("c", 64), cyclone)
	stated := scan.Inventory{Digests: []string{second, "sha256:" + strings.Repeat("c", 64)},
		Names: []string{"other", image}, Components: net23}
	envelope := fmt.Sprintf(`{"payloadType": "application/vnd.in-toto+json", "payload": %q}`,
		base64.StdEncoding.EncodeToString([]byte(statement)))
	for name, test := range map[string]struct {
		content string
		want    scan.Inventory
	}{
		"SPDX": {testdata(t, "echo-1.0.0.spdx.json"), scan.Inventory{Digests: []string{first},
			Names: []string{image, image + ":" + first},
			Components: []scan.Component{
				{Name: "vendored-tool", Version: "2.1"},
				{Name: "libssl3", Version: "3.0.11-1~deb12u2",
					PURL: "pkg:deb/debian/libssl3@3.0.11-1~deb12u2?arch=amd64&distro=debian-12&upstream=openssl"},
				{Name: "example.com/net", Version: "v0.7.0", PURL: "pkg:golang/example.com/net@v0.7.0"},
			}}},
		"CycloneDX": {cyclone, scan.Inventory{Digests: []string{second}, Names: []string{image},
			Components: net23}},
		"in a statement":       {statement, stated},
		"in an envelope":       {envelope, stated},
		"in a sigstore bundle": {`{"dsseEnvelope": ` + envelope + `}`, stated},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := scan.ReadInventory([]byte(test.content))
			if err != nil {
				t.Fatalf("read: %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("inventory (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	for name, content := range map[string]string{
		"another document":       `{"kind": "ConfigMap"}`,
		"no JSON":                "SPDXVersion: SPDX-2.3",
		"a version not known":    `{"spdxVersion": "SPDX-9.9"}`,
		"a broken document":      `{"bomFormat": "CycloneDX", "components": 3}`,
		"another predicate":      `{"predicate": {"builder": {}}}`,
		"envelopes without end":  strings.Repeat(`{"predicate": `, 20) + "{}" + strings.Repeat("}", 20),
		"a predicate of nothing": `{"predicate": null}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := scan.ReadInventory([]byte(content)); !errors.Is(err, scan.ErrNotSBOM) {
				t.Errorf("read %+v: %v", got, err)
			}
		})
	}
}

func TestConcerns(t *testing.T) {
	i := scan.Inventory{Digests: []string{"sha256:1"}, Names: []string{"example.com/echo", "example.com/echo:1.0"}}
	for image, want := range map[string]bool{
		"example.com/echo@sha256:1":  true,
		"mirror.example/x@sha256:1":  true,
		"example.com/echo@sha256:2":  false,
		"example.com/echo:1.0":       true,
		"example.com/echo:1.1":       false,
		"example.com/other@sha256:2": false,
	} {
		if got := i.IsAbout(image); got != want {
			t.Errorf("%s: %t, want %t", image, got, want)
		}
	}
}
