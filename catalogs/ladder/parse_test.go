// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ladder_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

const digest = "@sha256:1111111111111111111111111111111111111111111111111111111111111111"

const small = `apiVersion: bellwether.dev/v1alpha1
kind: CatalogLadder
package: echo
bundles:
- version: 1.0.0
  image: registry.example.com/echo` + digest + `
  channel: stable
- version: 1.1.0
  path: bundles/1.1.0
  channel: candidate
`

func parse(t *testing.T, text string) *ladder.File {
	t.Helper()
	f, err := ladder.Parse("echo.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParse(t *testing.T) {
	got := parse(t, small).Ladder
	want := &ladder.Ladder{
		APIVersion: ladder.APIVersion, Kind: ladder.Kind, Package: "echo",
		Bundles: []ladder.Bundle{
			{Version: "1.0.0", Image: "registry.example.com/echo" + digest, Channel: "stable"},
			{Version: "1.1.0", Path: "bundles/1.1.0", Channel: "candidate"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, want := got.Default(), "stable"; got != want {
		t.Errorf("the default channel is %q, want %q", got, want)
	}
}

func TestParseErrors(t *testing.T) {
	replace := func(old, text string) string {
		if !strings.Contains(small, old) {
			t.Fatalf("%q is not in the file", old)
		}
		return strings.Replace(small, old, text, 1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "it is empty"},
		"comments only": {"# nothing\n", "it is empty"},
		"broken YAML":   {"package: [", "echo.yaml: yaml: line 1"},
		"a list":        {"- 1\n", "echo.yaml:1: the file must have fields"},
		"two documents": {small + "---\npackage: other\n", "more than one YAML document"},
		"anchor":        {replace("package: echo", "package: &p echo"), "echo.yaml:3: anchors and aliases"},
		"unknown field": {replace("bundles:", "bundels:"),
			`echo.yaml:4: unknown field "bundels": did you mean bundles?`},
		"unknown field, deep": {replace("path:", "pth:"), `echo.yaml:9: unknown field "pth": did you mean path?`},
		"field twice": {replace("bundles:", "package: x\nbundles:"),
			`echo.yaml:4: field "package" is there twice, first on line 3`},
		"wrong shape": {replace("package: echo", "package: {a: b}"),
			"echo.yaml:3: package must be a single value"},
		"no list": {small + "blocks: yes\n", "echo.yaml:11: blocks must be a list"},
		"other kind": {replace("CatalogLadder", "ClusterCatalog"),
			`echo.yaml:2: kind is "ClusterCatalog"; it must be CatalogLadder`},
		"other apiVersion": {replace("v1alpha1", "v2"), "echo.yaml:1: apiVersion is"},
		"bad package":      {replace("package: echo", "package: Echo_Op"), "echo.yaml:3: package is"},
		"version twice":    {replace("1.1.0\n", "1.0.0\n"), "echo.yaml:8: version 1.0.0 is there twice"},
		"a pre-release without a dot": {replace("version: 1.1.0", "version: 1.1-rc1"),
			`echo.yaml:8: version "1.1-rc1" is not of the form X.Y.Z`},
		"a v before the version": {replace("version: 1.1.0", "version: v1.1.0"), `is not plain X.Y.Z: write 1.1.0`},
		"no version": {replace("version: 1.1.0", "version: newest"),
			`echo.yaml:8: version "newest" is not of the form X.Y.Z`},
		"two parts": {replace("version: 1.1.0", "version: 1.1"), `is not plain X.Y.Z: write 1.1.0`},
		"no such channel": {replace("channel: candidate", "channel: canidate"),
			`echo.yaml:10: version 1.1.0 is in channel "canidate", which is no rung of the ladder: did you mean ` +
				`candidate?`},
		"no channel": {replace("  channel: candidate\n", ""),
			`echo.yaml:8: version 1.1.0 is in channel ""`},
		"no digest": {replace(digest, ":1.0.0"),
			"echo.yaml:6: version 1.0.0: image \"registry.example.com/echo:1.0.0\" has no digest"},
		"bad image": {replace("registry.example.com/echo", "Registry:x/"),
			"echo.yaml:6: version 1.0.0: image"},
		"neither image nor path": {replace("  path: bundles/1.1.0\n", ""),
			"echo.yaml:8: version 1.1.0 has neither an image nor a path"},
		"image and path": {replace("  path:", "  image: registry.example.com/echo"+digest+"\n  path:"),
			"echo.yaml:10: version 1.1.0 has an image and a path"},
		"path outside": {replace("bundles/1.1.0", "../1.1.0"),
			"echo.yaml:9: version 1.1.0: path \"../1.1.0\" must be below"},
		"absolute path": {replace("bundles/1.1.0", "/etc"), "must be below the folder"},
		"same bundle name": {replace("path: bundles/1.1.0", "path: bundles/1.1.0\n  name: echo.v1.0.0"),
			"versions 1.0.0 and 1.1.0 have the same bundle name"},
		"channel twice": {replace("bundles:", "channels: [a, b, a]\nbundles:"),
			`echo.yaml:4: channel "a" is there twice`},
		"no such default channel": {replace("bundles:", "defaultChannel: stabel\nbundles:"),
			`echo.yaml:4: the default channel "stabel" is no rung of the ladder: did you mean stable?`},
		"policy": {replace("bundles:", "policy: {upgrades: direct}\nbundles:"),
			`echo.yaml:4: policy.upgrades is "direct": did you mean Direct?`},
		"content": {replace("bundles:", "policy:\n  content: inlined\nbundles:"),
			`echo.yaml:5: policy.content is "inlined": did you mean Inline?`},
		"icon": {replace("bundles:", "icon: ../x.svg\nbundles:"), "echo.yaml:4: icon"},
		"block without reason": {small + "blocks:\n- version: 1.1.0\n",
			"echo.yaml:12: the block of version 1.1.0 has no reason"},
		"block of nothing": {small + "blocks:\n- {version: 1.2.0, reason: x}\n",
			`echo.yaml:12: block: no such version 1.2.0 of package "echo": it has 1.1.0, 1.0.0`},
		"block expires": {small + "blocks:\n- {version: 1.1.0, reason: x, expires: soon}\n",
			`expires on "soon": write a day, as in 2026-12-31`},
		"block to itself": {small + "blocks:\n- {version: 1.1.0, reason: x, instead: 1.1.0}\n",
			"sends clusters to that very version"},
		"block to nowhere": {small + "blocks:\n- {version: 1.1.0, reason: x, instead: 3.0.0}\n",
			"sends clusters elsewhere: no such version 3.0.0"},
		"block to a blocked one": {small +
			"blocks:\n- {version: 1.1.0, reason: x, instead: 1.0.0}\n- {version: 1.0.0, reason: x}\n",
			"sends clusters to 1.0.0, which is blocked too"},
		"blocked twice": {small + "blocks:\n- {version: 1.1.0, reason: x}\n- {version: 1.1.0, reason: y}\n",
			"echo.yaml:13: version 1.1.0 is blocked twice"},
		"deprecation": {small + "deprecations:\n- message: old\n",
			"echo.yaml:12: a deprecation is about exactly one of"},
		"deprecation, no text": {small + "deprecations:\n- version: 1.0.0\n",
			"the deprecation of version 1.0.0 has no message"},
		"deprecation elsewhere": {small + "deprecations:\n- {package: ecco, message: old}\n",
			`the deprecation is about package "ecco"`},
		"deprecated channel": {small + "deprecations:\n- {channel: beta, message: old}\n", "no such channel"},
		"deprecated twice": {small +
			"deprecations:\n- {channel: fast, message: old}\n- {channel: fast, message: old}\n",
			"channel fast is deprecated twice"},
		"retired and offered": {small + "retired:\n- version: 1.0.0\n", "echo.yaml:12: version 1.0.0 is there twice"},
		"retired from nowhere": {small + "retired:\n- {version: 0.9.0, channel: beta}\n",
			`echo.yaml:12: version 0.9.0 was in channel "beta"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ladder.Parse("echo.yaml", []byte(c.text))
			if !errors.Is(err, ladder.ErrInvalid) {
				t.Fatalf("got %v, want an invalid ladder", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got\n%v\nwant\n%s", err, c.want)
			}
		})
	}
}

func TestParseReportsAllProblemsByLine(t *testing.T) {
	text := strings.ReplaceAll(strings.ReplaceAll(small, digest, ":latest"), "channel: candidate", "channel: nightly")
	_, err := ladder.Parse("echo.yaml", []byte(text))
	if err == nil {
		t.Fatal("it was accepted")
	}
	first, second := strings.Index(err.Error(), "echo.yaml:6:"), strings.Index(err.Error(), "echo.yaml:10:")
	if first < 0 || second < first {
		t.Errorf("it reports\n%v\nwant lines 6 and 10, in this order", err)
	}
}

func TestReferenceExampleIsValid(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/ladder.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "```yaml\n")
	block, _, closed := strings.Cut(block, "```")
	if !ok || !closed {
		t.Fatal("the reference has no example")
	}
	f, err := ladder.Parse("echo-operator.yaml", []byte(block))
	if err != nil {
		t.Fatal(err)
	}
	if l := f.Ladder; len(l.Blocks) == 0 || len(l.Deprecations) == 0 || len(l.Retired) == 0 || l.Icon == "" ||
		l.Description == "" {
		t.Error("the example leaves something out")
	}
}

func TestExpired(t *testing.T) {
	l := parse(t, small+"blocks:\n- {version: 1.1.0, reason: x, expires: 2026-12-01}\n").Ladder
	for day, want := range map[string]int{"2026-11-30": 0, "2026-12-01": 1, "2027-01-01": 1} {
		now, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(l.Expired(now)); got != want {
			t.Errorf("on %s %d blocks have expired, want %d", day, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(commented))
	f.Add([]byte("a: &x [*x]"))
	f.Add([]byte("bundles:\n- version: 1.0.0 # c\n# foot\n"))
	f.Add([]byte(small + untrustedtest.AliasBomb("x")))
	f.Add([]byte("bundles: [" + strings.Repeat("{},", 999) + "{}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		untrustedtest.Bound(t, len(text), 8<<20, 8<<10, func() {
			file, err := ladder.Parse("fuzz.yaml", text)
			if err != nil {
				if !errors.Is(err, ladder.ErrInvalid) {
					t.Fatalf("got %v, want an invalid ladder", err)
				}
				return
			}
			formatted, err := file.Format()
			if err != nil {
				return // It refuses rather than to write something else, which it has checked by itself.
			}
			if _, err := ladder.Parse("formatted.yaml", formatted); err != nil {
				t.Fatalf("%v, in\n%s", err, formatted)
			}
		})
	})
}
