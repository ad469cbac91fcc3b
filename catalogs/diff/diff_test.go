// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/diff"
)

func read(t *testing.T, graph string) *catalogs.Package {
	t.Helper()
	p, err := catalogs.ReadPackage(catalogs.SingleFile("f", strings.NewReader(catalogtest.Graph("p", graph))), "p")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func block(t *testing.T, p *catalogs.Package, version, reason string) *catalogs.Package {
	t.Helper()
	out, err := p.WithBlocked(catalogs.Block{Version: version, Reason: reason})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func running(version string, clusters int) diff.Installed {
	return diff.Installed{Installed: catalogs.Installed{Name: "p.v" + version, Version: version}, Clusters: clusters}
}

// show returns a diff as one list of words per line.
func show(p diff.Package) []string {
	out := p.Headlines()
	lines, left := p.Lines(true)
	for _, l := range lines {
		text := strings.Join([]string{l.Version, l.Clusters, l.Channel, l.Before + " => " + l.After, l.Changes}, " | ")
		if l.Bad {
			text += " !"
		}
		out = append(out, text)
	}
	if left > 0 {
		out = append(out, diff.OmittedText(left))
	}
	return out
}

func TestPackages(t *testing.T) {
	const three = "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0"
	deprecated := read(t, three)
	deprecated.Bundles["p.v1.0.0"].Deprecation = "old"
	rebuilt := read(t, three)
	rebuilt.Bundles["p.v1.1.0"].Image = "registry.example.com/other"
	renamed := read(t, "1.0.0")
	renamed.Channels["fast"] = &catalogs.Channel{Name: "fast", Entries: renamed.Channels["stable"].Entries}
	renamed.DefaultChannel = "fast"
	delete(renamed.Channels, "stable")
	// stranding lacks 1.0.0, which a cluster could run.
	stranding := read(t, "1.1.0\n1.2.0 replaces 1.1.0")
	for name, test := range map[string]struct {
		before, after *catalogs.Package
		installed     []diff.Installed
		want          []string
	}{
		"nothing": {before: read(t, three), after: read(t, three), installed: []diff.Installed{running("1.0.0", 5)}},
		"a new head": {
			before: read(t, "1.0.0\n1.1.0 replaces 1.0.0"), after: read(t, three),
			installed: []diff.Installed{running("1.0.0", 5)},
			want: []string{
				"channel stable: head 1.1.0 → 1.2.0",
				"1.2.0 |  | stable | - => head | added; joined channel",
				"1.1.0 |  | stable | head => 1.2.0 | next hop",
				"1.0.0 | 5 | stable | 1.1.0 => 1.1.0, 2 hops | path length",
			},
		},
		"a longer path for nobody is only counted": {
			before: read(t, "1.0.0\n1.1.0 replaces 1.0.0"), after: read(t, three),
			want: []string{
				"channel stable: head 1.1.0 → 1.2.0",
				"1.2.0 |  | stable | - => head | added; joined channel",
				"1.1.0 |  | stable | head => 1.2.0 | next hop",
				"The upgrade path of 1 more version only changes its length.",
			},
		},
		"a block in the middle": {
			before: read(t, three), after: block(t, read(t, three), "1.1.0", "loses data"),
			want: []string{
				"1.1.0 |  |  |  =>  | blocked: loses data",
				"1.0.0 |  | stable | 1.1.0, 2 hops => 1.2.0 | next hop",
			},
		},
		"a block at the top": {
			before: read(t, three), after: block(t, read(t, three), "1.2.0", "loses data"),
			installed: []diff.Installed{running("1.2.0", 7)},
			want: []string{
				"channel stable: head 1.2.0 → 1.1.0",
				"1.2.0 | 7 | stable | head => - | blocked, removed: loses data; no upgrade path in any channel; " +
					"stranded, left channel !",
				"1.1.0 |  | stable | 1.2.0 => head | next hop",
				"The upgrade path of 1 more version only changes its length.",
			},
		},
		"an unblocked version": {
			before: block(t, read(t, three), "1.1.0", "loses data"), after: read(t, three),
			want: []string{
				"1.1.0 |  |  |  =>  | unblocked",
				"1.0.0 |  | stable | 1.2.0 => 1.1.0, 2 hops | next hop",
			},
		},
		"a version that nothing leads on from": {
			before: read(t, three), after: stranding,
			installed: []diff.Installed{running("1.0.0", 2), running("1.1.0", 1)},
			want: []string{"1.0.0 | 2 | stable | 1.1.0, 2 hops => - | removed; no upgrade path in any channel; " +
				"stranded, left channel !"},
		},
		"a version that left the catalog before": {
			before: read(t, "1.0.0\n1.1.0 replaces 1.0.0"), after: read(t, "1.0.0\n1.1.0 replaces 1.0.0 range <1.1.0"),
			installed: []diff.Installed{running("0.9.0", 4)},
			want:      []string{"0.9.0 | 4 | stable | - => 1.1.0 | no longer stranded"},
		},
		"a deprecation": {before: read(t, three), after: deprecated,
			want: []string{"1.0.0 |  |  |  =>  | deprecated: old"}},
		"its end": {before: deprecated, after: read(t, three),
			want: []string{"1.0.0 |  |  |  =>  | no longer deprecated"}},
		"a rebuild": {before: read(t, three), after: rebuilt, want: []string{"1.1.0 |  |  |  =>  | other content"}},
		"a renamed channel": {
			before: read(t, "1.0.0"), after: renamed,
			want: []string{
				"default channel stable → fast", "channel fast added, head 1.0.0",
				"channel stable removed, its head was 1.0.0",
				"1.0.0 |  | fast | - => head | joined channel", " |  | stable | head => - | stranded !",
			},
		},
		"a package added": {after: read(t, "1.0.0"),
			want: []string{"package added", "channel stable added, head 1.0.0",
				"1.0.0 |  | stable | - => head | added; joined channel"}},
		"a package removed": {before: read(t, "1.0.0"),
			want: []string{"package removed", "channel stable removed, its head was 1.0.0",
				"1.0.0 |  | stable | head => - | removed; no upgrade path in any channel; stranded !"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, changed, err := diff.ComparePackages(test.before, test.after, test.installed...)
			if err != nil {
				t.Fatal(err)
			}
			if changed != (len(test.want) > 0) {
				t.Errorf("changed %t", changed)
			}
			if d := cmp.Diff(test.want, show(p)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCatalogs(t *testing.T) {
	before, after := read(t, "1.0.0\n1.1.0 replaces 1.0.0"),
		block(t, read(t, "1.0.0\n1.1.0 replaces 1.0.0"), "1.1.0", "a | b\nc")
	same := read(t, "1.0.0")
	same.Name = "same"
	d, err := diff.CompareCatalogs([]*catalogs.Package{before, same}, []*catalogs.Package{same, after},
		running("1.1.0", 3),
		running("9.9.9", 9))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Packages) != 1 || d.Stuck() != 3 || d.IsEmpty() {
		t.Fatalf("diff %+v", d)
	}
	want := `### p

- channel stable: head 1.1.0 → 1.0.0

| version | clusters | channel | before | after | what |
|---|---:|---|---|---|---|
| 1.1.0 | 3 | stable | head | - | **blocked, removed: a \| b c; no upgrade path in any channel; stranded, left ` +
		`channel** |
| 1.0.0 |  | stable | 1.1.0 | head | next hop |
`
	if diff := cmp.Diff(want, diff.Markdown(d)); diff != "" {
		t.Error(diff)
	}
	if none, err := diff.CompareCatalogs([]*catalogs.Package{same}, []*catalogs.Package{same}); err != nil ||
		!none.IsEmpty() ||
		diff.Markdown(none) != "The catalogs do not differ.\n" {
		t.Errorf("the same catalogs: %+v, %v", none, err)
	}
}
