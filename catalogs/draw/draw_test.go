// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/draw"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	goldenFile(t, filepath.Join("testdata", name), got)
}

func goldenFile(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatalf("write golden file: %v", err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read golden file: %v", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); run with -update if it should:\n%s", path, diff)
	}
}

func read(t *testing.T, content, name string) *catalogs.Package {
	t.Helper()
	p, err := catalogs.ReadPackage(catalogs.SingleFile("f", strings.NewReader(content)), name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func build(t *testing.T, p *catalogs.Package, o draw.Options) *draw.Graph {
	t.Helper()
	g, err := draw.Build(p, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func running(version string, clusters int) draw.Installed {
	return draw.Installed{Installed: catalogs.Installed{Name: "p.v" + version, Version: version}, Clusters: clusters}
}

// small is a plain package.
func small(t *testing.T) *draw.Graph {
	return build(t, read(t, catalogtest.Graph("p", "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0"), "p"),
		draw.Options{})
}

// eventful is a package with all features that a graph can show.
func eventful(t *testing.T) *draw.Graph {
	p := read(t, catalogtest.Graph("p", `
		1.0.0
		1.1.0 replaces 1.0.0 range >=0.9.0_<1.1.0
		1.1.1
		1.2.0 replaces 1.1.0 skips 1.1.1 range >=0.9.0_<1.2.0
		1.3.0 replaces 1.2.0
		1.4.0 replaces 1.3.0
		2.0.0 replaces 1.4.0 skips 0.8.0`), "p")
	p.Channels["fast"] = &catalogs.Channel{Name: "fast", Deprecation: "use <stable>", Entries: []catalogs.Entry{
		{Name: "p.v1.2.0"}, {Name: "p.v1.4.0", Replaces: "p.v1.2.0", SkipRange: ">=1.0.0 <1.4.0"},
		{Name: "p.v2.0.0", Replaces: "p.v1.4.0"},
	}}
	p.Bundles["p.v1.0.0"].Deprecation = "no longer \"maintained\" & <unsafe>"
	p.Bundles["p.v1.2.0"].Properties = append(p.Bundles["p.v1.2.0"].Properties,
		bundles.Property{Type: bundles.PropertyRollback,
			Value: []byte(`[{"from":"p.v1.1.0","class":"needs-backup","reason":"field spec.size is gone"}]`)})
	p.Bundles["p.v2.0.0"].Properties = append(p.Bundles["p.v2.0.0"].Properties,
		bundles.Property{Type: bundles.PropertyRollback,
			Value: []byte(`[{"from":"p.v1.4.0","class":"one-way","reason":"v1 is not served any more"}]`)})
	p, err := p.WithBlocked(catalogs.Block{Version: "1.3.0", Reason: "loses data under load", Instead: "1.4.0",
		Expires: "2027-01-31"})
	if err != nil {
		t.Fatal(err)
	}
	return build(t, p, draw.Options{
		Installed: []draw.Installed{
			running("1.0.0", 3), running("1.2.0", 12), running("1.3.0", 2), running("2.0.0", 103), running("0.9.5", 1),
			running("0.1.0", 4), running("1.1.0", 0),
		},
		Differences: []draw.Difference{{Channel: "stable", From: "p.v1.1.0", Text: "v0 goes to 1.2.0, v1 to 1.4.0"}},
	})
}

// long returns a package with n versions: ten patch releases per minor release, each with a skipRange.
func long(t *testing.T, n int, o draw.Options) *draw.Graph {
	var content strings.Builder
	if err := catalogtest.Write(&content, catalogtest.Options{Versions: n, Images: true}); err != nil {
		t.Fatal(err)
	}
	return build(t, read(t, content.String(), catalogtest.PackageName(0)), o)
}

func TestGolden(t *testing.T) {
	for name, g := range map[string]*draw.Graph{
		"small": small(t), "eventful": eventful(t), "thirty": long(t, 30, draw.Options{}),
		"folded": long(t, 200,
			draw.Options{Installed: []draw.Installed{{Installed: catalogs.Installed{Name: catalogtest.BundleName(0,
				77)}, Clusters: 5}}}),
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".svg", string(draw.SVG(g)))
			golden(t, name+".mmd", draw.Mermaid(g))
			golden(t, name+".dot", draw.DOT(g))
			golden(t, name+".txt", draw.Text(g))
		})
	}
}

// Lines of the text must fit a terminal without losing any text.
func TestTextFitsTheTerminal(t *testing.T) {
	g := eventful(t)
	golden(t, "eventful-72.txt", draw.TextWithin(g, 72))
	words := func(text string) []string {
		out := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n;│", r) })
		slices.Sort(out)
		return out
	}
	for _, columns := range []int{48, 60, 80, 200} {
		text := draw.TextWithin(g, columns)
		for line := range strings.Lines(text) {
			if width := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); width > columns {
				t.Errorf("a line has %d columns of %d: %s", width, columns, line)
			}
		}
		if diff := cmp.Diff(words(draw.Text(g)), words(text)); diff != "" {
			t.Errorf("in %d columns other words are there (-want +got):\n%s", columns, diff)
		}
	}
}

func TestLongChainsAreFolded(t *testing.T) {
	whole, folded := long(t, 200, draw.Options{Whole: true}), long(t, 200, draw.Options{})
	if len(whole.Rows) != 200 {
		t.Errorf("the whole graph has %d rows", len(whole.Rows))
	}
	versions := 0
	for _, r := range folded.Rows {
		versions += r.Folded
	}
	if len(folded.Rows) > 10 || versions != 200 {
		t.Errorf("the folded graph has %d rows of %d versions", len(folded.Rows), versions)
	}
}

func TestOneChannel(t *testing.T) {
	p := read(t, catalogtest.Graph("p", "1.0.0\n1.1.0 replaces 1.0.0"), "p")
	if _, err := draw.Build(p, draw.Options{Channel: "ghost"}); !errors.Is(err, catalogs.ErrNoChannel) {
		t.Errorf("unknown channel: %v", err)
	}
	if g := build(t, p, draw.Options{Channel: "stable"}); len(g.Lanes) != 1 || g.Lanes[0].Head != "p.v1.1.0" {
		t.Errorf("lanes %+v", g.Lanes)
	}
}

// TestHostileTexts draws names and messages that would be markup if they were not escaped.
func TestHostileTexts(t *testing.T) {
	const evil = "\"]</text><script>alert(1)</script>\x00\x1b[31m\n--> x; \\\" `#amp;"
	p := read(t, catalogtest.Graph("p", "1.0.0\n1.1.0 replaces 1.0.0"), "p")
	p.Name, p.Deprecation = evil, evil
	p.Bundles["p.v1.0.0"].Deprecation = evil
	c := p.Channels["stable"]
	delete(p.Channels, "stable")
	c.Name, c.Deprecation, p.DefaultChannel = evil, evil, evil
	p.Channels[evil] = c
	g := build(t, p, draw.Options{Installed: []draw.Installed{{Installed: catalogs.Installed{Name: evil},
		Clusters: 1}}})
	picture := string(draw.SVG(g))
	wellFormed(t, picture)
	if strings.Contains(picture, "<script") {
		t.Error("the picture has a script")
	}
	for _, line := range strings.Split(draw.Mermaid(g), "\n")[3:] {
		if strings.Contains(line, "<script") || strings.Count(line, `"`)%2 != 0 {
			t.Errorf("Mermaid: %s", line)
		}
	}
	if dot := draw.DOT(g); strings.Contains(dot, "\x00") || strings.Contains(dot, "\x1b") {
		t.Error("DOT has control characters")
	}
}

func wellFormed(t *testing.T, picture string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("the picture is not well-formed: %v", err)
		}
		if start, ok := token.(xml.StartElement); ok &&
			(start.Name.Local == "script" || start.Name.Local == "foreignObject") {
			t.Errorf("the picture has a %s", start.Name.Local)
		}
	}
}

// TestRandomGraphs draws all graphs that the reader of catalogs accepts: drawing must not fail, all versions must be
// in the picture, and drawing twice must give the same bytes.
func TestRandomGraphs(t *testing.T) {
	drawn := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		p, n := randomPackage(r)
		if p.Validate() != nil {
			continue
		}
		drawn++
		g := build(t, p, draw.Options{Installed: []draw.Installed{running("0.5.0", 1),
			running(fmt.Sprintf("1.%d.0", r.IntN(n)), 2)}})
		versions := 0
		for _, row := range g.Rows {
			if row.Listed {
				versions += row.Folded
			}
		}
		if versions != n {
			t.Errorf("seed %d: %d versions in rows, want %d", seed, versions, n)
		}
		first := draw.SVG(g)
		wellFormed(t, string(first))
		again := build(t, p, draw.Options{Installed: []draw.Installed{running("0.5.0", 1),
			running(fmt.Sprintf("1.%d.0", 0), 0)}})
		if draw.Mermaid(again) == "" || draw.DOT(again) == "" || draw.Text(again) == "" {
			t.Errorf("seed %d: an empty picture", seed)
		}
		if diff := cmp.Diff(string(first), string(draw.SVG(g))); diff != "" {
			t.Errorf("seed %d: drawing again gave another picture: %s", seed, diff)
		}
	}
	if drawn < 50 {
		t.Errorf("only %d of the random packages were valid", drawn)
	}
}

func randomPackage(r *rand.Rand) (*catalogs.Package, int) {
	n := 2 + r.IntN(70)
	p := &catalogs.Package{Name: "p", DefaultChannel: "c0", Channels: map[string]*catalogs.Channel{},
		Bundles: map[string]*catalogs.Bundle{}}
	name := func(i int) string { return fmt.Sprintf("p.v1.%d.0", i) }
	for i := range n {
		p.Bundles[name(i)] = &catalogs.Bundle{Name: name(i), Version: semver.Version{Major: 1, Minor: uint64(i)}}
	}
	for k := range 1 + r.IntN(4) {
		c := &catalogs.Channel{Name: fmt.Sprintf("c%d", k)}
		last := ""
		for i := range n {
			if k > 0 && r.IntN(3) == 0 {
				continue
			}
			e := catalogs.Entry{Name: name(i), Replaces: last}
			for j := range i {
				if r.IntN(12*n) == 0 && name(j) != last {
					e.Skips = append(e.Skips, name(j))
				}
			}
			if i > 0 && r.IntN(4) == 0 {
				e.SkipRange = fmt.Sprintf(">=1.%d.0 <1.%d.0", r.IntN(i), i)
			}
			c.Entries = append(c.Entries, e)
			last = e.Name
		}
		p.Channels[c.Name] = c
	}
	return p, n
}

// TestPictureInTheDocs checks the picture that the documentation shows.
func TestPictureInTheDocs(t *testing.T) {
	const pkg = "echo-operator"
	p := read(t, catalogtest.Graph(pkg, `
		1.0.0
		1.0.1 replaces 1.0.0
		1.1.0 replaces 1.0.1
		1.2.0 replaces 1.1.0
		1.2.1 replaces 1.2.0
		1.3.0 replaces 1.2.1 skips 0.9.0
		2.0.0 replaces 1.3.0`), pkg)
	name := func(version string) string { return pkg + ".v" + version }
	stable := p.Channels["stable"]
	p.Channels["fast"] = &catalogs.Channel{Name: "fast", Entries: stable.Entries}
	p.Channels["stable"] = &catalogs.Channel{Name: "stable", Entries: stable.Entries[:len(stable.Entries)-1]}
	p.Bundles[name("1.0.0")].Deprecation = "out of support since May"
	rollback := func(version, value string) {
		b := p.Bundles[name(version)]
		b.Properties = append(
			b.Properties,
			bundles.Property{Type: bundles.PropertyRollback, Value: []byte(value)},
		)
	}
	rollback("1.3.0", `[{"from":"`+name("1.2.1")+`","class":"needs-backup","reason":"field spec.retries is gone"}]`)
	rollback("2.0.0", `[{"from":"`+name("1.3.0")+`","class":"one-way","reason":"v1alpha1 is not served any more"}]`)
	p, err := p.WithBlocked(catalogs.Block{Version: "1.2.0", Reason: "drops status updates", Instead: "1.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	var fleet []draw.Installed
	for version, clusters := range map[string]int{"0.9.0": 2, "1.0.1": 14, "1.1.0": 31, "1.2.0": 6, "1.2.1": 58,
		"1.3.0": 96, "2.0.0": 12} {
		fleet = append(fleet, draw.Installed{Installed: catalogs.Installed{Name: name(version), Version: version},
			Clusters: clusters})
	}
	goldenFile(t, filepath.Join("..", "..", "docs", "images", "upgrade-graph.svg"),
		string(draw.SVG(build(t, p, draw.Options{Installed: fleet}))))
}
