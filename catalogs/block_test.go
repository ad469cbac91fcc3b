// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
)

func readGraph(t *testing.T, notation string) *catalogs.Package {
	t.Helper()
	p, err := catalogs.ReadPackage(catalogs.SingleFile("graph", strings.NewReader(catalogtest.Graph("p", notation))),
		"p")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWithBlocked(t *testing.T) {
	const line = "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0\n1.3.0 replaces 1.2.0"
	tests := map[string]struct {
		graph   string
		block   []string
		entries []catalogs.Entry
		paths   map[string][]string // from a version to the head
	}{
		"in the middle": {
			graph: line, block: []string{"1.1.0"},
			entries: []catalogs.Entry{
				{Name: "p.v1.0.0"}, {Name: "p.v1.1.0"},
				{Name: "p.v1.2.0", Replaces: "p.v1.0.0", Skips: []string{"p.v1.1.0"}},
				{Name: "p.v1.3.0", Replaces: "p.v1.2.0"},
			},
			paths: map[string][]string{"1.0.0": {"p.v1.2.0", "p.v1.3.0"}, "1.1.0": {"p.v1.2.0", "p.v1.3.0"}},
		},
		"two in a row": {
			graph: line, block: []string{"1.1.0", "1.2.0"},
			entries: []catalogs.Entry{
				{Name: "p.v1.0.0"}, {Name: "p.v1.1.0"}, {Name: "p.v1.2.0"},
				{Name: "p.v1.3.0", Replaces: "p.v1.0.0", Skips: []string{"p.v1.2.0", "p.v1.1.0"}},
			},
			paths: map[string][]string{"1.0.0": {"p.v1.3.0"}, "1.1.0": {"p.v1.3.0"}, "1.2.0": {"p.v1.3.0"}},
		},
		"the head": {
			graph: line, block: []string{"1.3.0"},
			entries: []catalogs.Entry{
				{Name: "p.v1.0.0"}, {Name: "p.v1.1.0", Replaces: "p.v1.0.0"}, {Name: "p.v1.2.0", Replaces: "p.v1.1.0"},
			},
			paths: map[string][]string{"1.1.0": {"p.v1.2.0"}, "1.3.0": nil},
		},
		"the head and the one before": {
			graph: line, block: []string{"1.2.0", "1.3.0"},
			entries: []catalogs.Entry{{Name: "p.v1.0.0"}, {Name: "p.v1.1.0", Replaces: "p.v1.0.0"}},
			paths:   map[string][]string{"1.0.0": {"p.v1.1.0"}, "1.2.0": nil, "1.3.0": nil},
		},
		"the first": {
			graph: line, block: []string{"1.0.0"},
			entries: []catalogs.Entry{
				{Name: "p.v1.0.0"}, {Name: "p.v1.1.0", Skips: []string{"p.v1.0.0"}},
				{Name: "p.v1.2.0", Replaces: "p.v1.1.0"}, {Name: "p.v1.3.0", Replaces: "p.v1.2.0"},
			},
			paths: map[string][]string{"1.0.0": {"p.v1.1.0", "p.v1.2.0", "p.v1.3.0"}},
		},
		"one that skips others": {
			graph: "1.0.0\n1.1.0 replaces 1.0.0 skips 0.9.0 range <1.0.0\n1.2.0 replaces 1.1.0",
			block: []string{"1.1.0"},
			entries: []catalogs.Entry{
				{Name: "p.v1.0.0"}, {Name: "p.v1.1.0"},
				{Name: "p.v1.2.0", Replaces: "p.v1.0.0", Skips: []string{"p.v1.1.0", "p.v0.9.0"}, SkipRange: "<1.0.0"},
			},
			paths: map[string][]string{"0.9.0": {"p.v1.2.0"}, "0.1.0": {"p.v1.2.0"}},
		},
		"one that is only skipped, and skips another": {
			graph: "1.0.0\n1.0.1\n1.0.2 skips 1.0.1\n1.1.0 replaces 1.0.0 skips 1.0.2", block: []string{"1.0.2"},
			entries: []catalogs.Entry{
				{Name: "p.v1.0.0"}, {Name: "p.v1.0.1"}, {Name: "p.v1.0.2"},
				{Name: "p.v1.1.0", Replaces: "p.v1.0.0", Skips: []string{"p.v1.0.2", "p.v1.0.1"}},
			},
			paths: map[string][]string{"1.0.1": {"p.v1.1.0"}},
		},
		"a head that skips a side branch": {
			graph: "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.0.0 skips 1.1.0\n1.2.1 replaces 1.0.0\n1.3.0 " +
				"replaces 1.2.0 skips 1.2.1,1.1.0",
			block: []string{"1.3.0"},
			entries: []catalogs.Entry{
				{Name: "p.v1.0.0"}, {Name: "p.v1.1.0", Replaces: "p.v1.0.0"},
				{Name: "p.v1.2.0", Replaces: "p.v1.0.0", Skips: []string{"p.v1.1.0"}},
			},
			paths: map[string][]string{"1.0.0": {"p.v1.2.0"}, "1.1.0": {"p.v1.2.0"}, "1.2.1": nil, "1.3.0": nil},
		},
		"a head that skips a lower side branch": {
			graph: "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.0.0\n1.3.0 replaces 1.2.0 skips 1.1.0",
			block: []string{"1.3.0"},
			entries: []catalogs.Entry{
				{Name: "p.v1.0.0"}, {Name: "p.v1.1.0", Replaces: "p.v1.0.0"},
				{Name: "p.v1.2.0", Replaces: "p.v1.0.0", Skips: []string{"p.v1.1.0"}},
			},
			paths: map[string][]string{"1.1.0": {"p.v1.2.0"}},
		},
		"a head that skips what it does not replace": {
			graph:   "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0\n1.3.0 replaces 1.0.0 skips 1.1.0,1.2.0",
			block:   []string{"1.3.0"},
			entries: []catalogs.Entry{{Name: "p.v1.0.0"}},
			paths:   map[string][]string{"1.1.0": nil, "1.2.0": nil},
		},
		"a head that replaces nothing": {
			graph: "1.0.0\n1.1.0\n1.2.0 skips 1.0.0,1.1.0", block: []string{"1.2.0"},
			entries: []catalogs.Entry{{Name: "p.v1.0.0"}, {Name: "p.v1.1.0", Skips: []string{"p.v1.0.0"}}},
			paths:   map[string][]string{"1.0.0": {"p.v1.1.0"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := readGraph(t, test.graph)
			var blocks []catalogs.Block
			for _, v := range test.block {
				blocks = append(blocks, catalogs.Block{Version: v, Reason: "it is bad"})
			}
			p, err := before.WithBlocked(blocks...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.entries, p.Channels["stable"].Entries); diff != "" {
				t.Errorf("entries: -want +have\n%s", diff)
			}
			head, err := p.Head("")
			if err != nil {
				t.Fatal(err)
			}
			for from, want := range test.paths {
				path, err := p.Path("", "p.v"+from, head.Name)
				if (err != nil) != (want == nil) || !cmp.Equal(path, want) {
					t.Errorf("path from %s: want %q, have %q (%v)", from, want, path, err)
				}
			}
			for _, v := range test.block {
				if _, err := p.Target("", v); !errors.Is(err, catalogs.ErrBlocked) {
					t.Errorf("target %s: want ErrBlocked, have %v", v, err)
				}
				if _, err := p.Path("", "p.v1.0.0", "p.v"+v); !errors.Is(err, catalogs.ErrBlocked) && v != "1.0.0" {
					t.Errorf("path to %s: want ErrBlocked, have %v", v, err)
				}
			}
			again, err := p.WithBlocked(blocks...)
			if err != nil || !cmp.Equal(p, again) {
				t.Errorf("blocking twice differs (%v): %s", err, cmp.Diff(p, again))
			}
			if len(before.Blocks) != 0 || !cmp.Equal(before, readGraph(t, test.graph)) {
				t.Error("the package itself was changed")
			}
		})
	}
}

func TestBlocksAreRead(t *testing.T) {
	text := catalogtest.Graph("p", "1.0.0\n1.1.0 replaces 1.0.0") +
		`{"schema": "bellwether.dev/blocks", "package": "p", "blocks": [{"version": "1.1.0", "reason": "it is ` +
		`bad", "instead": "1.0.0"}]}`
	p, err := catalogs.ReadPackage(catalogs.SingleFile("graph", strings.NewReader(text)), "p")
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Target("", "1.1.0")
	if !errors.Is(err, catalogs.ErrBlocked) ||
		!strings.Contains(err.Error(), `version 1.1.0 of package "p": it is bad; use 1.0.0 instead`) {
		t.Error(err)
	}
	if block, ok := p.Blocked("p.v1.1.0"); !ok || block.Version != "1.1.0" {
		t.Errorf("block %+v, %t", block, ok)
	}
}

func TestAllVersionsBlocked(t *testing.T) {
	_, err := readGraph(t, "1.0.0").WithBlocked(catalogs.Block{Version: "1.0.0", Reason: "it is bad"})
	if !errors.Is(err, catalogs.ErrInvalidPackage) {
		t.Errorf("want ErrInvalidPackage, have %v", err)
	}
}
