// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/compile/compiletest"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

func published(t *testing.T, graph string) *catalogs.Package {
	t.Helper()
	p, err := catalogs.ReadPackage(catalogs.SingleFile("catalog.json", strings.NewReader(graph)), compiletest.Package)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// foreign is a catalog as others write them: two channels that share a version, one skipped version, one that is gone.
var foreign = `{"schema":"olm.package","name":"echo-operator","defaultChannel":"stable"}
{"schema":"olm.channel","package":"echo-operator","name":"stable","entries":[{"name":"echo-operator.v1.0.0",` +
	`"replaces":"echo-operator.v0.9.0"},{"name":"echo-operator.v1.2.0","replaces":"echo-operator.v1.0.0"}]}
{"schema":"olm.channel","package":"echo-operator","name":"alpha","entries":[{"name":"echo-operator.v1.2.0"},` +
	`{"name":"echo-operator.v1.1.0"},` +
	`{"name":"echo-2.0.0","replaces":"echo-operator.v1.2.0","skips":["echo-operator.v1.1.0"]}]}
` + foreignBundle("echo-operator.v1.0.0", "1.0.0") + foreignBundle("echo-operator.v1.1.0", "1.1.0") +
	foreignBundle("echo-operator.v1.2.0", "1.2.0") + foreignBundle("echo-2.0.0", "2.0.0") +
	`{"schema":"olm.deprecations","package":"echo-operator","entries":[{"reference":{"schema":"olm.bundle",` +
	`"name":"echo-operator.v1.0.0"},"message":"old"},{"reference":{"schema":"olm.channel","name":"alpha"},` +
	`"message":"going"}]}
`

func foreignBundle(name, version string) string {
	return `{"schema":"olm.bundle","package":"echo-operator","name":"` + name + `","image":"` +
		compiletest.Image(version) +
		`","properties":[{"type":"olm.package","value":{"packageName":"echo-operator","version":"` + version + `"}}]}` +
		"\n"
}

func TestImport(t *testing.T) {
	l := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: compiletest.Package}
	p := published(t, foreign)
	notes, err := compile.Import(l, p)
	if err != nil {
		t.Fatal(err)
	}
	want := &ladder.Ladder{
		APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: compiletest.Package,
		Channels: []string{"alpha", "stable"}, DefaultChannel: "stable",
		Bundles: []ladder.Bundle{
			{Version: "1.0.0", Image: compiletest.Image("1.0.0"), Channel: "stable"},
			{Version: "1.2.0", Image: compiletest.Image("1.2.0"), Channel: "stable"},
			{Version: "2.0.0", Name: "echo-2.0.0", Image: compiletest.Image("2.0.0"), Channel: "alpha"},
		},
		Deprecations: []ladder.Deprecation{{Version: "1.0.0", Message: "old"}, {Channel: "alpha", Message: "going"}},
		Retired: []ladder.Retired{
			{Version: "0.9.0", Reason: "not in the catalog any more when it was imported"},
			{Version: "1.1.0", Image: compiletest.Image("1.1.0"), Channel: "alpha",
				Reason: "skipped by every channel when it was imported"},
		},
	}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"channel alpha will offer 1.0.0 as well, since a higher channel does"},
		notes); diff != "" {
		t.Error(diff)
	}
	if err := compile.Continuity(p, l); err != nil {
		t.Errorf("what was imported does not continue what it was imported from: %v", err)
	}
}

// A catalog can take clusters back to a lower version, which a ladder does not: the head that changes is reported.
func TestImportReportsChangedHeads(t *testing.T) {
	const graph = `{"schema":"olm.package","name":"echo-operator","defaultChannel":"stable"}
{"schema":"olm.channel","package":"echo-operator","name":"stable","entries":[{"name":"echo-operator.v1.0.0"},` +
		`{"name":"echo-operator.v1.2.0","replaces":"echo-operator.v1.0.0"},` +
		`{"name":"echo-operator.v1.1.0","replaces":"echo-operator.v1.2.0"}]}
`
	l := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: compiletest.Package}
	notes, err := compile.Import(l, published(t, graph+foreignBundle("echo-operator.v1.0.0", "1.0.0")+
		foreignBundle("echo-operator.v1.1.0", "1.1.0")+foreignBundle("echo-operator.v1.2.0", "1.2.0")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"the head of channel stable was 1.1.0 and will be 1.2.0: a ladder has no " +
		"downgrades, and in the catalog 1.1.0 replaces 1.2.0; block 1.2.0 if no cluster may get it"},
		notes); diff != "" {
		t.Error(diff)
	}
}

func TestImportRefuses(t *testing.T) {
	for name, c := range map[string]struct{ old, text, want string }{
		"a tag": {compiletest.Image("1.2.0"), "registry.example.com/echo:1.2.0",
			"bundle echo-operator.v1.2.0: image \"registry.example.com/echo:1.2.0\" has no digest"},
		"no image": {`"image":"` + compiletest.Image("1.2.0"), `"image":"`,
			"bundle echo-operator.v1.2.0 has no image"},
		"a release": {`"version":"2.0.0"`, `"version":"2.0.0","release":"1"`,
			"bundle echo-2.0.0 has release 1 of version 2.0.0"},
		"a strange name":  {`echo-2.0.0"`, `Echo"`, "is no name of a ClusterServiceVersion"},
		"a strange track": {`"alpha"`, `"Alpha!"`, `channel "Alpha!" is no name of a channel`},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(foreign, c.old) {
				t.Fatalf("%q is not there", c.old)
			}
			l := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: compiletest.Package}
			_, err := compile.Import(l, published(t, strings.ReplaceAll(foreign, c.old, c.text)))
			if !errors.Is(err, ladder.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if len(l.Bundles) > 0 {
				t.Error("it has filled in something all the same")
			}
		})
	}
}

// What we compile, we can import, and it compiles to the same graph.
func TestImportOfCompiledCatalogRoundTrips(t *testing.T) {
	everyGraph(t, func(t *testing.T, from *ladder.Ladder, p *catalogs.Package) {
		l := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: compiletest.Package,
			Policy: from.Policy}
		if _, err := compile.Import(l, p); err != nil {
			t.Errorf("import: %v", err)
			return
		}
		again, err := compile.Graph(l)
		if err != nil {
			t.Errorf("compile: %v", err)
			return
		}
		for name := range p.Channels {
			if diff := cmp.Diff(headOf(p, name), headOf(again, name)); diff != "" {
				t.Errorf("head of %s: %s", name, diff)
			}
		}
		if err := compile.Continuity(p, l); err != nil {
			t.Error(err)
		}
	})
}

func headOf(p *catalogs.Package, channel string) string {
	if c := p.Channels[channel]; c != nil {
		head, _ := c.Head()
		return head
	}
	return ""
}

// Imported versions may be pre-releases and have build metadata. Compile fails if the OLMs disagree about the next
// version from any of them.
func TestVersionsThatAreNotPlain(t *testing.T) {
	versions := []string{"1.0.0-next.1", "1.0.0-rc.1", "1.0.0", "1.0.0+1", "1.0.0+2", "1.1.0-beta.1", "1.1.0",
		"2.0.0-alpha.x"}
	nameOf := func(version string) string {
		return compiletest.Package + ".v" + strings.ReplaceAll(version, "+", "-build")
	}
	for _, upgrades := range []ladder.Upgrades{ladder.Stepwise, ladder.Direct} {
		l := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: compiletest.Package,
			Policy: ladder.Policy{Upgrades: upgrades}}
		contents := compile.ContentMap{}
		in := compile.Input{Ladder: l, Contents: contents, Now: compiletest.Now}
		var want []string
		for _, v := range versions {
			name := nameOf(v)
			want = append(want, name)
			b := bundle(t, v, func(csv map[string]any) { csv["metadata"].(map[string]any)["name"] = name })
			l.Bundles = append(l.Bundles, ladder.Bundle{Version: v, Name: name, Image: compiletest.Image("1.0.0"),
				Channel: "stable"})
			contents[v] = compile.Content{Bundle: b}
		}
		slices.Reverse(l.Bundles) // their order in the file means nothing
		result, err := compile.Compile(in)
		if err != nil {
			t.Fatalf("%s: %v", upgrades, err)
		}
		var got []string
		before := ""
		for _, e := range result.Package.Channels["stable"].Entries {
			got = append(got, e.Name)
			if e.Replaces != before {
				t.Errorf("%s: %s replaces %q, want %q", upgrades, e.Name, e.Replaces, before)
			}
			before = e.Name
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: entries (-want +got):\n%s", upgrades, diff)
		}
		again := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: compiletest.Package}
		if _, err := compile.Import(again, result.Package); err != nil || len(again.Bundles) != len(versions) {
			t.Errorf("%s: import what was compiled: %d bundles, %v", upgrades, len(again.Bundles), err)
		}
	}
}
