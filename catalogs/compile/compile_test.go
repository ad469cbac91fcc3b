// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// bundle returns a version of the test package, with one CRD and one Deployment.
func bundle(t *testing.T, version string, change ...func(csv map[string]any)) *bundles.Bundle {
	t.Helper()
	csv := catalogtest.CSV(catalogtest.HistoryPackage+".v"+version, version, "echo.example.com")
	csv["spec"].(map[string]any)["description"] = "Says <what> it's told & more."
	for _, c := range change {
		c(csv)
	}
	var manifests [][]byte
	for _, object := range []any{csv, catalogtest.CRD("echo.example.com", 0)} {
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, raw)
	}
	b, err := bundles.FromManifests(manifests, map[string]string{
		bundles.AnnotationMediaType: bundles.MediaType, bundles.AnnotationPackage: catalogtest.HistoryPackage,
		bundles.AnnotationManifests: "manifests/", bundles.AnnotationMetadata: "metadata/",
		bundles.AnnotationChannels: "alpha",
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// contents returns the contents of an example.
func contents(in *compile.Input) compile.ContentMap { return in.Contents.(compile.ContentMap) }

// example returns an input in which every feature occurs.
func example(t *testing.T) compile.Input {
	t.Helper()
	l := &ladder.Ladder{
		APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: catalogtest.HistoryPackage,
		Description: "Echoes <what> it's told.",
		Blocks: []ladder.Block{
			{Version: "1.1.0", Reason: "loses data", Expires: "2026-12-31", Instead: "1.2.0"},
			{Version: "1.4.0", Reason: "does not start"},
		},
		Deprecations: []ladder.Deprecation{{Version: "1.0.0", Message: "old"},
			{Channel: "fast", Message: "use stable"}},
		Retired: []ladder.Retired{{Version: "0.9.0", Channel: "stable"}},
	}
	in := compile.Input{
		Ladder: l, Contents: compile.ContentMap{}, Now: catalogtest.HistoryDay,
		Icon: &catalogs.Icon{Data: []byte("<svg/>"), MediaType: "image/svg+xml"},
	}
	for version, channel := range map[string]string{
		"1.0.0": "stable", "1.1.0": "stable", "1.2.0": "stable", "1.3.0": "candidate", "1.4.0": "candidate",
	} {
		l.Bundles = append(l.Bundles, ladder.Bundle{Version: version, Image: catalogtest.HistoryImage(version),
			Channel: channel})
		contents(&in)[version] = compile.Content{Bundle: bundle(t, version)}
	}
	return in
}

func mustCompile(t *testing.T, in compile.Input) (compile.Result, []byte) {
	t.Helper()
	r, err := compile.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	return r, text.Bytes()
}

func TestCompile(t *testing.T) {
	r, text := mustCompile(t, example(t))
	golden := filepath.Join("testdata", "catalog.json")
	if *update {
		if err := os.WriteFile(golden, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	wantWaiting := []compile.Waiting{{Channel: "candidate", Bundle: "echo-operator.v1.4.0", Version: "1.4.0",
		Blocked: "does not start"}}
	if diff := cmp.Diff(wantWaiting, r.Waiting); diff != "" {
		t.Error(diff)
	}
}

func TestOutputIsReproducible(t *testing.T) {
	_, first := mustCompile(t, example(t))
	for range 10 { // the example's map gives the ladder another order each time
		in := example(t)
		in.Now = in.Now.Add(24 * time.Hour)
		in.Previous, _ = compile.Graph(in.Ladder)
		in.Installed = []catalogs.Installed{{Name: "echo-operator.v1.0.7"}}
		if _, again := mustCompile(t, in); !bytes.Equal(first, again) {
			t.Fatalf("got\n%s\nand then\n%s", first, again)
		}
	}
}

// emit makes the input emit its documents, and returns the place that receives them.
func emit(in *compile.Input) *bytes.Buffer {
	var documents bytes.Buffer
	in.Emit = func(document []byte) error {
		documents.Write(document)
		return documents.WriteByte('\n')
	}
	return &documents
}

func TestEmittedAndCachedResultsAreIdentical(t *testing.T) {
	in := example(t)
	whole, want := mustCompile(t, in)
	documents := emit(&in)
	r, err := compile.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(r.Cacheable())
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, r compile.Result) {
		t.Helper()
		var got bytes.Buffer
		if err := r.WriteWithDocuments(&got, bytes.NewReader(documents.Bytes())); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("in memory (-) and %s (+):\n%s", what, diff)
		}
		if diff := cmp.Diff(whole.Notes, r.Notes); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		if diff := cmp.Diff(whole.Relations, r.Relations); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	check("emitted", r)
	in.Cached, in.Contents, in.Icon = &compile.Cacheable{}, nil, nil
	if err := json.Unmarshal(stored, in.Cached); err != nil {
		t.Fatal(err)
	}
	again, err := compile.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	check("cached", again)
	in.Now = in.Now.AddDate(1, 0, 0)
	if _, err := compile.Compile(in); !errors.Is(err, compile.ErrExpired) {
		t.Errorf("with the cache an expired block gives %v", err)
	}
}

func TestWrittenCatalogReadsAsResult(t *testing.T) {
	for name, content := range map[string]ladder.Content{"images": ladder.Image, "inline": ladder.Inline} {
		t.Run(name, func(t *testing.T) {
			in := example(t)
			in.Ladder.Policy.Content = content
			r, text := mustCompile(t, in)
			read, err := catalogs.ReadPackage(catalogs.SingleFile("catalog.json", bytes.NewReader(text)),
				catalogtest.HistoryPackage)
			if err != nil {
				t.Fatal(err)
			}
			// The reader orders the fields of values.
			values := cmp.Transformer("value", func(p bundles.Property) []any {
				var v any
				if err := json.Unmarshal(p.Value, &v); err != nil {
					t.Fatal(err)
				}
				return []any{p.Type, v}
			})
			if diff := cmp.Diff(r.Package, read, cmpopts.EquateEmpty(), values); diff != "" {
				t.Errorf("the result (-) reads as (+):\n%s", diff)
			}
		})
	}
}

func TestOpmAcceptsTheResult(t *testing.T) {
	_, text := mustCompile(t, example(t))
	c, err := declcfg.LoadReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := declcfg.ConvertToModel(*c); err != nil {
		t.Error(err)
	}
}

func TestBundleWithPathIsInlined(t *testing.T) {
	in := example(t)
	for i := range in.Ladder.Bundles {
		in.Ladder.Bundles[i].Image, in.Ladder.Bundles[i].Path = "", "bundles/x"
	}
	r, _ := mustCompile(t, in)
	for name, b := range r.Package.Bundles {
		if b.Image != "" || len(b.Objects) != 2 {
			t.Errorf("%s has image %q and %d objects, want none and 2", name, b.Image, len(b.Objects))
		}
	}
	contents(&in)["1.0.0"] = compile.Content{Bundle: contents(&in)["1.0.0"].Bundle,
		Image: catalogtest.HistoryImage("1.0.0")}
	r, _ = mustCompile(t, in)
	b := r.Package.Bundles["echo-operator.v1.0.0"]
	if b.Image != catalogtest.HistoryImage("1.0.0") || len(b.Objects) != 0 {
		t.Errorf("with the image that it will have it has image %q and %d objects", b.Image, len(b.Objects))
	}
}

func TestCompileRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, in *compile.Input)
		is     error
		want   string
	}{
		"an expired block": {func(_ *testing.T, in *compile.Input) {
			in.Now = time.Date(2026, time.December, 31, 0, 0, 0, 0, time.UTC)
		}, compile.ErrExpired,
			"the block of version 1.1.0 (loses data) expired on 2026-12-31: unblock it, or block it until a later day"},
		"a bundle that was not read": {func(_ *testing.T, in *compile.Input) {
			delete(contents(in), "1.2.0")
		}, compile.ErrContent, "version 1.2.0: its bundle was not read"},
		"a bundle of another version": {func(t *testing.T, in *compile.Input) {
			contents(in)["1.2.0"] = compile.Content{Bundle: bundle(t, "1.2.1")}
		}, compile.ErrContent, "version 1.2.0: its bundle has version 1.2.1"},
		"a bundle of another name": {func(t *testing.T, in *compile.Input) {
			contents(in)["1.2.0"] = compile.Content{Bundle: bundle(t, "1.2.0", func(csv map[string]any) {
				csv["metadata"].(map[string]any)["name"] = "echo.v1.2.0"
			})}
		}, compile.ErrContent, "its bundle is called echo.v1.2.0; write `name: echo.v1.2.0` into the ladder"},
		"a bundle of another package": {func(_ *testing.T, in *compile.Input) {
			other := *contents(in)["1.2.0"].Bundle
			other.Package = "ecco"
			contents(in)["1.2.0"] = compile.Content{Bundle: &other}
		}, compile.ErrContent, `its bundle is of package "ecco"`},
		"an image that opm refuses": {func(t *testing.T, in *compile.Input) {
			contents(in)["1.2.0"] = compile.Content{Bundle: bundle(t, "1.2.0", func(csv map[string]any) {
				csv["spec"].(map[string]any)["relatedImages"] = []any{map[string]any{"name": "chart",
					"image": "oci://example.com/chart"}}
			})}
		}, compile.ErrContent, `version 1.2.0: invalid package "echo-operator": opm refuses it: `},
		"an empty package": {func(_ *testing.T, in *compile.Input) {
			in.Ladder.Bundles, in.Ladder.Blocks, in.Ladder.Deprecations, in.Ladder.Retired = nil, nil, nil, nil
		}, compile.ErrNothingToOffer, "has no version yet"},
		"an empty default channel": {func(_ *testing.T, in *compile.Input) {
			in.Ladder.Blocks = append(in.Ladder.Blocks, ladder.Block{Version: "1.0.0", Reason: "x"},
				ladder.Block{Version: "1.2.0", Reason: "x"})
			in.Ladder.Blocks[0].Instead = ""
		}, compile.ErrNothingToOffer,
			`default channel "stable" of package "echo-operator" has no version left`},
		"an invalid ladder": {func(_ *testing.T, in *compile.Input) {
			in.Ladder.Package = ""
		}, ladder.ErrInvalid, "package"},
	} {
		t.Run(name, func(t *testing.T) {
			in := example(t)
			c.change(t, &in)
			_, err := compile.Compile(in)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %v: %s", err, c.is, c.want)
			}
		})
	}
}

func TestContinuity(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *ladder.Ladder)
		want   string
	}{
		"nothing changed": {func(*ladder.Ladder) {}, ""},
		"a new version":   {func(l *ladder.Ladder) { mustEdit(l.Add(ladder.Bundle{Version: "2.0.0", Path: "x"})) }, ""},
		"a block": {func(l *ladder.Ladder) {
			mustEdit(l.Block(ladder.Block{Version: "1.3.0", Reason: "x"}, catalogtest.HistoryDay))
		}, ""},
		"the newest block": {func(l *ladder.Ladder) { mustEdit(l.Unblock("1.4.0")) }, ""},
		"a retired one":    {func(l *ladder.Ladder) { mustEdit(l.Retire("1.0.0", "old")) }, ""},
		"an edit by hand": {func(l *ladder.Ladder) { l.Bundles = without(l.Bundles, "1.0.0"); l.Deprecations = nil },
			"bundle echo-operator.v1.0.0, version 1.0.0, was offered and is no longer in the ladder"},
		"a lost block": {func(l *ladder.Ladder) { l.Bundles = without(l.Bundles, "1.4.0"); l.Blocks = l.Blocks[:1] },
			"bundle echo-operator.v1.4.0 was offered and blocked, and is no longer in the ladder"},
		"a demotion": {func(l *ladder.Ladder) { mustEdit(l.Demote("1.2.0", "candidate")) },
			"version 1.2.0 was offered in channel stable and is only in candidate now"},
		"another channel": {func(l *ladder.Ladder) {
			l.Channels = []string{"candidate", "stable"}
		}, ""}, // fast was deprecated
		"a lost channel": {func(l *ladder.Ladder) {
			l.Channels, l.Deprecations = []string{"fast", "stable"}, nil
			for i := range l.Bundles {
				l.Bundles[i].Channel = "stable"
			}
		}, "channel candidate was offered and is no longer a channel of the ladder: deprecate it first"},
		"another content": {func(l *ladder.Ladder) {
			mustBundle(l, "1.0.0").Image = "registry.example.com/x@sha256:" + strings.Repeat("0", 64)
		}, "and is sha256:000000000000 now: a published version must not change"},
		"another registry": {func(l *ladder.Ladder) {
			b := mustBundle(l, "1.0.0")
			b.Image = strings.Replace(b.Image, "registry", "mirror", 1)
		}, ""},
		"another version": {func(l *ladder.Ladder) {
			l.Bundles = without(l.Bundles, "1.3.0")
			l.Bundles = append(l.Bundles, ladder.Bundle{Version: "1.3.1", Name: "echo-operator.v1.3.0", Path: "x",
				Channel: "candidate"})
		}, "bundle echo-operator.v1.3.0 was published as version 1.3.0 and is 1.3.1 now"},
	} {
		t.Run(name, func(t *testing.T) {
			in := example(t)
			previous, err := compile.Graph(in.Ladder)
			if err != nil {
				t.Fatal(err)
			}
			later := in.Ladder.Clone()
			if name == "another channel" {
				for i := range later.Bundles {
					if later.Bundles[i].Channel == "fast" {
						later.Bundles[i].Channel = "stable"
					}
				}
				later.Deprecations = later.Deprecations[:1]
			}
			c.change(later)
			err = compile.CheckContinuity(previous, later)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.Is(err, compile.ErrContinuity) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// mustEdit fails the test if an edit is not accepted.
func mustEdit(err error) {
	if err != nil {
		panic(err)
	}
}

func mustBundle(l *ladder.Ladder, version string) *ladder.Bundle {
	b, err := l.Bundle(version)
	mustEdit(err)
	return b
}

func without(all []ladder.Bundle, version string) []ladder.Bundle {
	var out []ladder.Bundle
	for _, b := range all {
		if b.Version != version {
			out = append(out, b)
		}
	}
	return out
}

func TestUnknownInstalledVersions(t *testing.T) {
	in := example(t)
	in.Installed = []catalogs.Installed{{Name: "echo-operator.v1.0.5"}, {Name: "own-build", Version: "1.1.9"},
		{Name: "echo-operator.v7.0.0"}}
	r, _ := mustCompile(t, in)
	var about []string
	for _, n := range r.Notes {
		if strings.Contains(n, "7.0.0") || strings.Contains(n, "1.0.5") || strings.Contains(n, "1.1.9") {
			about = append(about, n)
		}
	}
	if len(about) != 3 || !strings.HasPrefix(about[0], "channel candidate, from 7.0.0") {
		t.Errorf("got notes %q, want one for each channel, about 7.0.0", about)
	}
}

func TestDeprecatedHeadIsNotMarked(t *testing.T) {
	in := example(t)
	mustEdit(in.Ladder.Deprecate(ladder.Deprecation{Version: "1.2.0", Message: "too slow"}))
	r, _ := mustCompile(t, in)
	if got := r.Package.Bundles["echo-operator.v1.2.0"].Deprecation; got != "" {
		t.Errorf("the head of stable is marked as deprecated: %q", got)
	}
	if text := strings.Join(r.Notes, "\n"); !strings.Contains(text,
		"version 1.2.0 is not marked as deprecated as long as it is the head of fast, stable") {
		t.Errorf("the notes are %q", r.Notes)
	}
}

func TestRollbacks(t *testing.T) {
	r, _ := mustCompile(t, example(t))
	got := map[string][]string{}
	for name, b := range r.Package.Bundles {
		for _, way := range b.Rollbacks() {
			if way.Class == "" || way.Reason == "" {
				t.Errorf("%s: %+v says nothing", name, way)
			}
			got[name] = append(got[name], way.From)
		}
	}
	want := map[string][]string{
		"echo-operator.v1.1.0": {"echo-operator.v1.0.0"}, // clusters that run the blocked version can go back
		"echo-operator.v1.2.0": {"echo-operator.v1.0.0"}, // not to the blocked version
		"echo-operator.v1.3.0": {"echo-operator.v1.2.0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
