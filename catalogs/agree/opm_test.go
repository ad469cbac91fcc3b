// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agree_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree"
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
			b.Properties = []bundles.Property{{Type: bundles.PropertyGVK, Value: []byte(`"x"`)}}
		}, "olm.gvk"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &catalogs.Bundle{Name: "echo.v1.0.0", Version: semver.MustParse("1.0.0"), Image: "example.com/b"}
			tc.change(b)
			expect(t, agree.CheckBundleWithOPM("echo", b), tc.says)
		})
	}
}

func TestCheckWithOPM(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*catalogs.Package)
		says   string
	}{
		"a package":          {change: func(*catalogs.Package) {}},
		"a name with dots":   {func(p *catalogs.Package) { p.Name = "echo.example.com" }, "invalid package name"},
		"a name in capitals": {func(p *catalogs.Package) { p.Name = "Echo" }, "invalid package name"},
		"two heads":          {func(p *catalogs.Package) { p.Channels["a"].Entries[1].Replaces = "" }, "has 2 heads"},
		"a bundle in no channel": {func(p *catalogs.Package) {
			p.Channels["a"].Entries = p.Channels["a"].Entries[1:]
		}, "no channel"},
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
			expect(t, agree.CheckWithOPM(p), tc.says)
		})
	}
}

// Package.Validate checks chains of replacements instead of opm, so it must refuse all chains that opm refuses.
func TestChains(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	accepted, refused := 0, 0
	for range 5000 {
		p := randomPackage(random)
		whole := declcfg.DeclarativeConfig{Packages: []declcfg.Package{{Schema: declcfg.SchemaPackage, Name: p.Name,
			DefaultChannel: p.DefaultChannel}}}
		c := declcfg.Channel{Schema: declcfg.SchemaChannel, Package: p.Name, Name: p.DefaultChannel}
		for _, e := range p.Channels[c.Name].Entries {
			c.Entries = append(c.Entries, declcfg.ChannelEntry{Name: e.Name, Replaces: e.Replaces, Skips: e.Skips})
			whole.Bundles = append(whole.Bundles, declcfg.Bundle{Schema: declcfg.SchemaBundle, Package: p.Name,
				Name: e.Name, Image: "example.com/b",
				Properties: []property.Property{property.MustBuildPackage(p.Name, p.Bundles[e.Name].Version.String())}})
		}
		whole.Channels = []declcfg.Channel{c}
		_, theirs := declcfg.ConvertToModel(whole)
		ours := agree.CheckWithOPM(p)
		switch {
		case ours == nil && theirs != nil:
			t.Fatalf("opm refuses %+v: %v", c.Entries, theirs)
		case ours == nil:
			accepted++
		case theirs != nil:
			refused++
		}
	}
	if accepted < 100 || refused < 100 {
		t.Errorf("%d packages were accepted and %d refused, want at least 100 of both", accepted, refused)
	}
}

// randomPackage returns a package with one channel, in which bundles replace and skip each other at random.
func randomPackage(random *rand.Rand) *catalogs.Package {
	name := func(i int) string { return fmt.Sprintf("echo.v1.%d.0", i) }
	p := &catalogs.Package{Name: "echo", DefaultChannel: "a", Bundles: map[string]*catalogs.Bundle{}}
	c := &catalogs.Channel{Name: "a"}
	for i := range 1 + random.IntN(5) {
		p.Bundles[name(i)] = &catalogs.Bundle{Name: name(i), Version: semver.MustParse(fmt.Sprintf("1.%d.0", i))}
		e := catalogs.Entry{Name: name(i)}
		switch random.IntN(4) {
		case 0:
			e.Replaces = name(random.IntN(6)) // perhaps one that is not there, or above
		default:
			if i > 0 {
				e.Replaces = name(i - 1)
			}
		}
		if random.IntN(3) == 0 {
			e.Skips = []string{name(random.IntN(6))}
		}
		c.Entries = append(c.Entries, e)
	}
	p.Channels = map[string]*catalogs.Channel{c.Name: c}
	return p
}

// expect compares an error with its expected text; an empty text means no error.
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
