// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package opm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/opm"
)

func TestCheckBundle(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*catalogs.Bundle)
		says   string
	}{
		"a bundle":                 {change: func(*catalogs.Bundle) {}},
		"manifests and no image":   {change: func(b *catalogs.Bundle) { b.Image, b.Inlined = "", true }},
		"no image and no manifest": {func(b *catalogs.Bundle) { b.Image = "" }, "bundle image must be set"},
		"a scheme before its image": {func(b *catalogs.Bundle) { b.Image = "docker://example.com/b" },
			`invalid image pull spec "docker://example.com/b"`},
		"a scheme before another image": {func(b *catalogs.Bundle) {
			b.RelatedImages = []catalogs.RelatedImage{{Image: "example.com/a"}, {Image: "oci://example.com/chart"}}
		}, `relatedImages[1].image: invalid image pull spec "oci://example.com/chart"`},
		"an image that is empty": {change: func(b *catalogs.Bundle) { b.RelatedImages = []catalogs.RelatedImage{{}} }},
		"a property that is none": {func(b *catalogs.Bundle) {
			b.Properties = []registryv1.Property{{Type: registryv1.PropertyGVK, Value: []byte(`"x"`)}}
		}, "olm.gvk"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &catalogs.Bundle{Name: "echo.v1.0.0", Version: semver.MustParse("1.0.0"), Image: "example.com/b"}
			tc.change(b)
			expect(t, opm.CheckBundle("echo", b), tc.says)
		})
	}
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*catalogs.Package)
		says   string
	}{
		"a package":                {change: func(*catalogs.Package) {}},
		"a name with dots":         {func(p *catalogs.Package) { p.Name = "echo.example.com" }, "invalid package name"},
		"a name in capitals":       {func(p *catalogs.Package) { p.Name = "Echo" }, "invalid package name"},
		"two heads":                {func(p *catalogs.Package) { p.Channels["a"].Entries[1].Replaces = "" }, "multiple channel heads"},
		"a bundle in no channel":   {func(p *catalogs.Package) { p.Channels["a"].Entries = p.Channels["a"].Entries[1:] }, "not found"},
		"a release in no name":     {func(p *catalogs.Package) { p.Bundles["echo.v1.0.0"].Release = "1" }, "normalized name"},
		"a channel without a name": {func(p *catalogs.Package) { p.Channels[""] = p.Channels["a"] }, "channel with no name"},
	} {
		t.Run(name, func(t *testing.T) {
			bundle := func(version string) *catalogs.Bundle {
				return &catalogs.Bundle{Name: "echo.v" + version, Version: semver.MustParse(version)}
			}
			p := &catalogs.Package{Name: "echo", DefaultChannel: "a",
				Bundles: map[string]*catalogs.Bundle{"echo.v1.0.0": bundle("1.0.0"), "echo.v1.1.0": bundle("1.1.0")},
				Channels: map[string]*catalogs.Channel{"a": {Name: "a", Entries: []catalogs.Entry{{Name: "echo.v1.0.0"},
					{Name: "echo.v1.1.0", Replaces: "echo.v1.0.0"}}}}}
			tc.change(p)
			expect(t, opm.Check(p), tc.says)
		})
	}
}

// expect compares an error with what it has to say; nothing means none.
func expect(t *testing.T, err error, says string) {
	t.Helper()
	switch {
	case says == "" && err != nil:
		t.Errorf("refused: %v", err)
	case says != "" && (!errors.Is(err, catalogs.ErrInvalidPackage) || !strings.Contains(fmt.Sprint(err), says)):
		t.Errorf("got %v, want one that says %q", err, says)
	case strings.Contains(fmt.Sprint(err), "\n"):
		t.Errorf("several lines: %q", err)
	}
}
