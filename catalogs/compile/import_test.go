// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

func published(t *testing.T, graph string) *catalogs.Package {
	t.Helper()
	p, err := catalogs.ReadPackage(catalogs.SingleFile("catalog.json", strings.NewReader(graph)),
		catalogtest.HistoryPackage)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// foreign is a catalog that another tool wrote: two channels that share a version, one skipped version, and one
// missing version.
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
		catalogtest.HistoryImage(version) +
		`","properties":[{"type":"olm.package","value":{"packageName":"echo-operator","version":"` + version + `"}}]}` +
		"\n"
}

func TestImport(t *testing.T) {
	l := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: catalogtest.HistoryPackage}
	p := published(t, foreign)
	notes, err := compile.Import(l, p)
	if err != nil {
		t.Fatal(err)
	}
	want := &ladder.Ladder{
		APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: catalogtest.HistoryPackage,
		Channels: []string{"alpha", "stable"}, DefaultChannel: "stable",
		Bundles: []ladder.Bundle{
			{Version: "1.0.0", Image: catalogtest.HistoryImage("1.0.0"), Channel: "stable"},
			{Version: "1.2.0", Image: catalogtest.HistoryImage("1.2.0"), Channel: "stable"},
			{Version: "2.0.0", Name: "echo-2.0.0", Image: catalogtest.HistoryImage("2.0.0"), Channel: "alpha"},
		},
		Deprecations: []ladder.Deprecation{{Version: "1.0.0", Message: "old"}, {Channel: "alpha", Message: "going"}},
		Retired: []ladder.Retired{
			{Version: "0.9.0", Reason: "not in the catalog any more when it was imported"},
			{Version: "1.1.0", Image: catalogtest.HistoryImage("1.1.0"), Channel: "alpha",
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
	if err := compile.CheckContinuity(p, l); err != nil {
		t.Errorf("what was imported does not continue what it was imported from: %v", err)
	}
}

// catalogOf returns a catalog with the default channel stable. Each line has the channel and the version of an entry,
// and the version that it replaces.
func catalogOf(graph string) string {
	entries, seen := map[string][]string{}, map[string]bool{}
	var bundles strings.Builder
	for line := range strings.Lines(graph) {
		words := append(strings.Fields(line), "")
		entry := `{"name":"echo-operator.v` + words[1] + `"`
		if words[2] != "" {
			entry += `,"replaces":"echo-operator.v` + words[2] + `"`
		}
		entries[words[0]] = append(entries[words[0]], entry+"}")
		if !seen[words[1]] {
			bundles.WriteString(foreignBundle("echo-operator.v"+words[1], words[1]))
		}
		seen[words[1]] = true
	}
	out := `{"schema":"olm.package","name":"echo-operator","defaultChannel":"stable"}` + "\n"
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		out += `{"schema":"olm.channel","package":"echo-operator","name":"` + name + `","entries":[` +
			strings.Join(entries[name], ",") + "]}\n"
	}
	return out + bundles.String()
}

// hops returns the versions that clusters with a version pass in a channel, which must be equal for the plan and
// both OLMs.
func hops(t *testing.T, p *catalogs.Package, channel, from string) string {
	t.Helper()
	installed := catalogs.Installed{Name: "echo-operator.v" + from, Version: from}
	report, err := agree.Check(p, installed)
	if err != nil {
		t.Fatal(err)
	}
	if found := report.Disagreements(); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	for _, c := range report.Channels {
		for _, r := range c.Routes {
			if c.Name == channel && r.Installed.Name == installed.Name {
				return strings.ReplaceAll(strings.Join(r.Plan.Path, " "), "echo-operator.v", "")
			}
		}
	}
	t.Fatalf("channel %s has no route from %s", channel, from)
	return ""
}

// A catalog can downgrade clusters, but a ladder cannot: the notes describe the result for both versions, and
// clusters on both versions are upgraded.
func TestImportReportsDowngrades(t *testing.T) {
	for name, tc := range map[string]struct {
		// graph has a line for each entry: its channel, its version, and the version that it replaces.
		graph string
		notes []string
		// paths are the hops from each version in the channel.
		channel string
		paths   map[string]string
	}{
		"the head is lower": {
			graph: "stable 1.0.0\nstable 1.2.0 1.0.0\nstable 1.1.0 1.2.0",
			notes: []string{"in channel stable the catalog replaces 1.2.0 by 1.1.0, which is a lower version, and a " +
				"ladder has no downgrades: 1.2.0 is retired, and clusters on it stay there until a version above it " +
				"is added"},
			channel: "stable", paths: map[string]string{"1.0.0": "1.1.0", "1.1.0": "", "1.2.0": ""},
		},
		"a lower version amid the chain": {
			graph: "stable 1.0.0\nstable 1.2.0 1.0.0\nstable 1.1.0 1.2.0\n" +
				"stable 1.3.0 1.1.0",
			notes: []string{"in channel stable the catalog replaces 1.2.0 by 1.1.0, which is a lower version, and a " +
				"ladder has no downgrades: 1.2.0 is retired, and clusters on 1.2.0 or 1.1.0 are upgraded to 1.3.0"},
			channel: "stable", paths: map[string]string{"1.0.0": "1.1.0 1.3.0", "1.1.0": "1.3.0", "1.2.0": "1.3.0"},
		},
		"another channel offers it": {
			graph: "alpha 1.0.0\nalpha 1.2.0 1.0.0\nalpha 1.1.0 1.2.0\n" +
				"alpha 1.3.0 1.1.0\nstable 1.0.0\nstable 1.2.0 1.0.0",
			notes: []string{"in channel alpha the catalog replaces 1.2.0 by 1.1.0, which is a lower version, and a " +
				"ladder has no downgrades: another channel offers 1.2.0, so clusters on 1.1.0 are upgraded to 1.2.0; " +
				"block 1.2.0 if no cluster may get it"},
			channel: "alpha", paths: map[string]string{"1.0.0": "1.1.0 1.2.0 1.3.0", "1.2.0": "1.3.0"},
		},
		"a hot-fix is the head": {
			graph: "stable 2.6.1\nstable 2.6.2 2.6.1\n" +
				"stable 2.6.2-hotfix1 2.6.2",
			notes: []string{"in channel stable the catalog replaces 2.6.2 by 2.6.2-hotfix1, which is a pre-release " +
				"and so a lower version, and a ladder has no downgrades: 2.6.2 is retired, and clusters on it stay " +
				"there until a version above it is added"},
			channel: "stable", paths: map[string]string{"2.6.1": "2.6.2-hotfix1", "2.6.2-hotfix1": "", "2.6.2": ""},
		},
		"a hot-fix is dangling": {
			graph: "stable 2.6.1\nstable 2.6.2 2.6.1\n" +
				"stable 2.6.2-hotfix1 2.6.2\nstable 2.6.3 2.6.2",
			notes: []string{
				"in channel stable of the catalog 2.6.2-hotfix1 is dangling: no version replaces it, since 2.6.3 " +
					"replaces 2.6.2; in the ladder clusters on it are upgraded to 2.6.3",
				"in channel stable the catalog replaces 2.6.2 by 2.6.2-hotfix1, which is a pre-release and so a " +
					"lower version, and a ladder has no downgrades: 2.6.2 is retired, and clusters on 2.6.2 or " +
					"2.6.2-hotfix1 are upgraded to 2.6.3"},
			channel: "stable",
			paths:   map[string]string{"2.6.1": "2.6.2-hotfix1 2.6.3", "2.6.2-hotfix1": "2.6.3", "2.6.2": "2.6.3"},
		},
		"an older branch is dangling": {
			graph: "stable 1.0.0\nstable 1.0.1 1.0.0\nstable 1.0.2 1.0.1\n" +
				"stable 1.1.0 1.0.0\nstable 1.2.0 1.1.0",
			notes: []string{"in channel stable of the catalog 1.0.2 is dangling: no version replaces it, since 1.1.0 " +
				"replaces 1.0.0; in the ladder clusters on it are upgraded to 1.1.0"},
			channel: "stable", paths: map[string]string{"1.0.0": "1.0.1 1.0.2 1.1.0 1.2.0", "1.0.2": "1.1.0 1.2.0"},
		},
		"two hot-fixes of one version are dangling": {
			graph: "stable 2.6.1\nstable 2.6.2 2.6.1\nstable 2.6.2-hotfix1 2.6.2\n" +
				"stable 2.6.2-hotfix2 2.6.2\nstable 2.6.3 2.6.2",
			notes: []string{
				"in channel stable of the catalog 2.6.2-hotfix2 is dangling: no version replaces it, since 2.6.3 " +
					"replaces 2.6.2; in the ladder clusters on it are upgraded to 2.6.3",
				"in channel stable of the catalog 2.6.2-hotfix1 is dangling: no version replaces it, since " +
					"2.6.2-hotfix2 replaces 2.6.2; in the ladder clusters on it are upgraded to 2.6.2-hotfix2",
				"in channel stable the catalog replaces 2.6.2 by 2.6.2-hotfix1, which is a pre-release and so a " +
					"lower version, and a ladder has no downgrades: 2.6.2 is retired, and clusters on it are " +
					"upgraded to 2.6.3",
				"in channel stable the catalog replaces 2.6.2 by 2.6.2-hotfix2, which is a pre-release and so a " +
					"lower version, and a ladder has no downgrades: 2.6.2 is retired, and clusters on 2.6.2 or " +
					"2.6.2-hotfix2 are upgraded to 2.6.3"},
			channel: "stable",
			paths: map[string]string{"2.6.1": "2.6.2-hotfix1 2.6.2-hotfix2 2.6.3", "2.6.2": "2.6.3",
				"2.6.2-hotfix1": "2.6.2-hotfix2 2.6.3", "2.6.2-hotfix2": "2.6.3"},
		},
		"two patches of one version are dangling": {
			graph: "stable 1.0.0\nstable 1.0.1 1.0.0\nstable 1.0.2 1.0.0\n" +
				"stable 1.1.0 1.0.0",
			notes: []string{
				"in channel stable of the catalog 1.0.2 is dangling: no version replaces it, since 1.1.0 replaces " +
					"1.0.0; in the ladder clusters on it are upgraded to 1.1.0",
				"in channel stable of the catalog 1.0.1 is dangling: no version replaces it, since 1.0.2 replaces " +
					"1.0.0; in the ladder clusters on it are upgraded to 1.0.2"},
			channel: "stable",
			paths:   map[string]string{"1.0.0": "1.0.1 1.0.2 1.1.0", "1.0.1": "1.0.2 1.1.0", "1.0.2": "1.1.0"},
		},
		"a dangling head is above the entry that it meets": {
			graph: "stable 1.0.0\nstable 1.1.0 1.0.0\nstable 1.2.0 1.1.0\n" +
				"stable 1.1.5 1.0.0",
			notes: []string{"in channel stable of the catalog 1.1.5 is dangling: no version replaces it, since 1.1.0 " +
				"replaces 1.0.0; in the ladder clusters on it are upgraded to 1.2.0"},
			channel: "stable",
			paths:   map[string]string{"1.0.0": "1.1.0 1.1.5 1.2.0", "1.1.0": "1.1.5 1.2.0", "1.1.5": "1.2.0"},
		},
		"a higher channel has it as its head": {
			graph: "alpha 1.0.0\nalpha 1.2.0 1.0.0\nstable 1.0.0\nstable 1.2.0 1.0.0\n" +
				"stable 1.1.0 1.2.0",
			notes: []string{
				"in channel stable the catalog replaces 1.2.0 by 1.1.0, which is a lower version, and a ladder " +
					"has no downgrades: 1.2.0 stays in channel alpha only, and clusters on it stay there until a " +
					"version above it is added; block 1.2.0 if no cluster may get it",
				"channel alpha will offer 1.1.0 as well, since a higher channel does"},
			channel: "stable", paths: map[string]string{"1.0.0": "1.1.0", "1.1.0": "", "1.2.0": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: catalogtest.HistoryPackage}
			p, err := catalogs.ReadPackageToImport(catalogs.SingleFile("catalog.json",
				strings.NewReader(catalogOf(tc.graph))), catalogtest.HistoryPackage)
			if err != nil {
				t.Fatal(err)
			}
			notes, err := compile.Import(l, p)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.notes, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			after, err := compile.Graph(l)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for from := range tc.paths {
				got[from] = hops(t, after, tc.channel, from)
			}
			if diff := cmp.Diff(tc.paths, got); diff != "" {
				t.Errorf("paths (-want +got):\n%s", diff)
			}
		})
	}
}

func TestImportRefuses(t *testing.T) {
	for name, c := range map[string]struct{ old, text, want string }{
		"a tag": {catalogtest.HistoryImage("1.2.0"), "registry.example.com/echo:1.2.0",
			"bundle echo-operator.v1.2.0: image \"registry.example.com/echo:1.2.0\" has no digest"},
		"no image": {`"image":"` + catalogtest.HistoryImage("1.2.0"), `"image":"`,
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
			l := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: catalogtest.HistoryPackage}
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

// A compiled catalog can be imported, and compiles to the same graph.
func TestImportOfCompiledCatalogRoundTrips(t *testing.T) {
	everyGraph(t, func(t *testing.T, from *ladder.Ladder, p *catalogs.Package) {
		l := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: catalogtest.HistoryPackage,
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
		if err := compile.CheckContinuity(p, l); err != nil {
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

// Imported versions can be pre-releases and have build metadata. Compile fails if the OLMs disagree about the next
// version of one of them.
func TestVersionsThatAreNotPlain(t *testing.T) {
	versions := []string{"1.0.0-next.1", "1.0.0-rc.1", "1.0.0", "1.0.0+1", "1.0.0+2", "1.1.0-beta.1", "1.1.0",
		"2.0.0-alpha.x"}
	nameOf := func(version string) string {
		return catalogtest.HistoryPackage + ".v" + strings.ReplaceAll(version, "+", "-build")
	}
	for _, upgrades := range []ladder.Upgrades{ladder.Stepwise, ladder.Direct} {
		l := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: catalogtest.HistoryPackage,
			Policy: ladder.Policy{Upgrades: upgrades}}
		contents := compile.ContentMap{}
		in := compile.Input{Ladder: l, Contents: contents, Now: catalogtest.HistoryDay}
		var want []string
		for _, v := range versions {
			name := nameOf(v)
			want = append(want, name)
			b := bundle(t, v, func(csv map[string]any) { csv["metadata"].(map[string]any)["name"] = name })
			l.Bundles = append(l.Bundles, ladder.Bundle{Version: v, Name: name,
				Image: catalogtest.HistoryImage("1.0.0"), Channel: "stable"})
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
		again := &ladder.Ladder{APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: catalogtest.HistoryPackage}
		if _, err := compile.Import(again, result.Package); err != nil || len(again.Bundles) != len(versions) {
			t.Errorf("%s: import what was compiled: %d bundles, %v", upgrades, len(again.Bundles), err)
		}
	}
}
