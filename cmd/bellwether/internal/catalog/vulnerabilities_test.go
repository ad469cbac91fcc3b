// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/scan"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/catalog"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
)

const (
	osvDir  = "../../../../catalogs/scan/testdata/osv"
	sbomDir = "../../../../catalogs/scan/testdata/sboms"
)

// imageOf is an image with a digest of one letter, as the SBOMs of the tests name theirs.
func imageOf(letter string) string {
	return "registry.example.com/echo@sha256:" + strings.Repeat(letter, 64)
}

// withImages is a catalog of the package p whose versions 1.0.0, 1.1.0 and so on run one image each.
func withImages(t *testing.T, images ...string) string {
	t.Helper()
	text := `{"schema": "olm.package", "name": "p", "defaultChannel": "stable"}`
	entries := []string{}
	for i, image := range images {
		version := fmt.Sprintf("1.%d.0", i)
		entry := fmt.Sprintf(`{"name": "p.v%s"}`, version)
		if i > 0 {
			entry = fmt.Sprintf(`{"name": "p.v%s", "replaces": "p.v1.%d.0"}`, version, i-1)
		}
		entries = append(entries, entry)
		text += fmt.Sprintf(`{"schema": "olm.bundle", "package": "p", "name": "p.v%s", "image":
			"registry.example.com/bundle:%s", "relatedImages": [{"image": "registry.example.com/bundle:%s"},
			{"image": %q}], "properties": [{"type": "olm.package", "value": {"packageName": "p", "version": %q}}]}`,
			version, version, version, image, version)
	}
	text += fmt.Sprintf(`{"schema": "olm.channel", "package": "p", "name": "stable", "entries": [%s]}`,
		strings.Join(entries, ", "))
	return write(t, "catalog.json", text, true)
}

func TestCatalogVulnerabilities(t *testing.T) {
	h := clitest.NewHub(runs("a", "p", "1.0.0"), runs("b", "p", "1.0.0"), runs("c", "p", "0.9.0"),
		runs("d", "other", "1.0.0"))
	dir := withImages(t, imageOf("a"), imageOf("b"), imageOf("c"))
	run := func(args ...string) clitest.Result {
		return h.Run(t, append([]string{"catalog", "vulnerabilities", dir, "--no-referrers"}, args...)...)
	}
	got := run("p", "--osv", osvDir, "--sbom", sbomDir, "--hub")
	if got.Code != catalog.VulnerabilitiesFound || got.Err != "" {
		t.Errorf("exit code %d: %s", got.Code, got.Err)
	}
	fixture.AssertGolden(t, "vulnerabilities", got.Out)

	got = run("--osv", osvDir, "--sbom", sbomDir, "-o", "json", "--fail-on", "critical")
	var report scan.Report
	if err := json.Unmarshal([]byte(got.Out), &report); err != nil || got.Code != exit.OK {
		t.Fatalf("exit code %d (%s), JSON: %v", got.Code, got.Err, err)
	}
	if v := report.Versions[2]; v.Version != "1.0.0" || v.Counts[scan.High] != 1 || v.Clusters != nil {
		t.Errorf("version %+v", v)
	}

	for name, test := range map[string]struct {
		args []string
		code int
		err  string
	}{
		"unknown images":          {[]string{"--osv", osvDir, "--fail-on-unknown"}, catalog.VulnerabilitiesFound, ""},
		"unknown images are fine": {[]string{"--osv", osvDir}, exit.OK, ""},
		"never":                   {[]string{"--osv", osvDir, "--sbom", sbomDir, "--fail-on", "never"}, exit.OK, ""},
		"an SBOM for a named image": {[]string{"--osv", osvDir, "--sbom",
			imageOf("c") + "=" + filepath.Join(sbomDir, "echo-1.0.0.spdx.json")}, catalog.VulnerabilitiesFound, ""},
		"no database":       {nil, catalog.ExitTrouble, "missing flag --osv"},
		"no such folder":    {[]string{"--osv", "none"}, catalog.ExitTrouble, "folder none does not exist"},
		"a file, no folder": {[]string{"--osv", "graph.go"}, catalog.ExitTrouble, "graph.go is a file"},
		"an empty database": {[]string{"--osv", t.TempDir()}, catalog.ExitTrouble, "no vulnerability database"},
		"no such level":     {[]string{"--osv", osvDir, "--fail-on", "x"}, catalog.ExitTrouble, `invalid value "x"`},
		"no such package":   {[]string{"q", "--osv", osvDir}, catalog.ExitTrouble, `no such package "q"`},
		"no such SBOM":      {[]string{"--osv", osvDir, "--sbom", "none.json"}, catalog.ExitTrouble, "none.json"},
		"a file of no SBOM": {[]string{"--osv", osvDir, "--sbom", "graph.go"}, catalog.ExitTrouble, "not an SBOM"},
		"a folder of none":  {[]string{"--osv", osvDir, "--sbom", osvDir}, catalog.ExitTrouble, "has no SBOMs"},
		"no such flag":      {[]string{"--none"}, catalog.ExitTrouble, "unknown flag"},
		"too many arguments": {[]string{"p", "q", "--osv", osvDir}, catalog.ExitTrouble,
			`unexpected argument "q"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(test.args...)
			if got.Code != test.code || !strings.Contains(got.Err, test.err) {
				t.Errorf("exit code %d: %s, want %d: %s", got.Code, got.Err, test.code, test.err)
			}
		})
	}
}

// TestCatalogVulnerabilitiesReadsReferrers attaches an SBOM to an image in a registry.
func TestCatalogVulnerabilitiesReadsReferrers(t *testing.T) {
	address := clitest.StartLocalRegistry(t)
	client := oci.NewClient(oci.Options{})
	// Any image will do; they differ by their content.
	var images []string
	for _, name := range []string{"one", "two"} {
		digest, err := client.Push(t.Context(), write(t, "catalog.json", catalogtest.Graph(name, "1.0.0"), true),
			address+"/echo:"+name, oci.Access{})
		if err != nil {
			t.Fatalf("push image: %v", err)
		}
		images = append(images, address+"/echo@"+digest)
	}
	for artifact, content := range map[string]string{
		"application/spdx+json":  filepath.Join(sbomDir, "echo-1.0.0.spdx.json"),
		"application/text+plain": filepath.Join(sbomDir, "echo-1.1.0.cdx.json"),
	} {
		text, err := os.ReadFile(content)
		if err != nil {
			t.Fatalf("read SBOM: %v", err)
		}
		if _, err := client.Attach(t.Context(), images[0], oci.Artifact{Type: artifact, Content: text},
			oci.Access{}); err != nil {
			t.Fatalf("attach SBOM: %v", err)
		}
	}
	got := clitest.NewHub().Run(t, "catalog", "vulnerabilities", withImages(t, images[0], images[1],
		address+"/echo:gone"), "--osv", osvDir, "-o", "json")
	var report scan.Report
	if err := json.Unmarshal([]byte(got.Out), &report); err != nil || got.Code != catalog.VulnerabilitiesFound {
		t.Fatalf("exit code %d (%s), JSON: %v", got.Code, got.Err, err)
	}
	for _, image := range report.Images {
		switch image.Image {
		case images[0]:
			if image.Unknown != "" || image.Packages != 3 || len(image.Vulnerabilities) != 2 {
				t.Errorf("the image with an SBOM: %+v", image)
			}
		case images[1]:
			if image.Unknown != "no SBOM" {
				t.Errorf("the image without an SBOM: %+v", image)
			}
		default:
			if !strings.Contains(image.Unknown, "not found") {
				t.Errorf("the image that does not exist: %+v", image)
			}
		}
	}
}
