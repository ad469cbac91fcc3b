// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv1_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree/olmv1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
)

func read(t *testing.T, notation string) *catalogs.Package {
	t.Helper()
	p, err := catalogs.ReadPackage(catalogs.SingleFile("graph", strings.NewReader(catalogtest.Graph("p", notation))),
		"p")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The cases are those of operator-controller's tests of its resolver and of its successors.
func TestNext(t *testing.T) {
	const chain = "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0"
	for name, tc := range map[string]struct {
		graph      string
		deprecated []string
		installed  catalogs.Installed
		want, held string
		err        error
	}{
		"fresh":                       {graph: chain, want: "p.v1.2.0"},
		"fresh, the highest, no head": {graph: "1.2.0\n1.1.0 skips 1.2.0", want: "p.v1.2.0"},
		"fresh, deprecated last":      {graph: chain, deprecated: []string{"p.v1.2.0"}, want: "p.v1.1.0"},
		"fresh, only deprecated": {graph: chain, deprecated: []string{"p.v1.0.0", "p.v1.1.0", "p.v1.2.0"},
			want: "p.v1.2.0"},
		"replaces": {graph: chain, installed: catalogs.Installed{Name: "p.v1.0.0"},
			want: "p.v1.1.0"},
		"skips": {graph: "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0 skips 1.0.0",
			installed: catalogs.Installed{Name: "p.v1.0.0"}, want: "p.v1.2.0"},
		"skipRange": {graph: chain + " range >=1.0.0_<1.1.0",
			installed: catalogs.Installed{Name: "p.v1.0.0"}, want: "p.v1.2.0"},
		"to what another one skips": {graph: "1.0.0\n1.1.0 skips 1.0.0\n1.2.0 skips 1.1.0",
			installed: catalogs.Installed{Name: "p.v1.0.0"}, want: "p.v1.1.0"},
		"at the head": {graph: chain, installed: catalogs.Installed{Name: "p.v1.2.0"}},
		"no successor": {graph: chain, installed: catalogs.Installed{Name: "p.v0.9.0"},
			err: olmv1.ErrNothing},
		"left the catalog": {graph: chain + " range <1.0.0",
			installed: catalogs.Installed{Name: "other", Version: "0.9.0"}, want: "p.v1.2.0"},
		"the same version, another name": {graph: chain, installed: catalogs.Installed{Name: "other", Version: "1.1.0"},
			want: "p.v1.1.0"},
		"another release of the version": {graph: "1.0.0+1\n1.0.0+2 replaces 1.0.0+1",
			installed: catalogs.Installed{Name: "p.v1.0.0+1"}, want: "p.v1.0.0+2"},
		"releases order": {graph: "1.0.0+9\n1.0.0+10 replaces 1.0.0+9", want: "p.v1.0.0+10"},
		"stays before a deprecated one": {graph: chain, deprecated: []string{"p.v1.1.0"},
			installed: catalogs.Installed{Name: "p.v1.0.0"}, held: "p.v1.1.0"},
		"goes past a deprecated one": {graph: chain + " range <1.1.0", deprecated: []string{"p.v1.1.0"},
			installed: catalogs.Installed{Name: "p.v1.0.0"}, want: "p.v1.2.0", held: "p.v1.1.0"},
		"from deprecated to deprecated": {graph: chain, deprecated: []string{"p.v1.0.0", "p.v1.1.0"},
			installed: catalogs.Installed{Name: "p.v1.0.0"}, want: "p.v1.1.0"},
		"never down without an edge": {graph: chain, deprecated: []string{"p.v1.2.0"},
			installed: catalogs.Installed{Name: "p.v1.2.0"}},
		"stays above a lower successor": {graph: "1.2.0\n1.1.0 replaces 1.2.0",
			installed: catalogs.Installed{Name: "p.v1.2.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := read(t, tc.graph)
			for _, name := range tc.deprecated {
				p.Bundles[name].Deprecation = "old"
			}
			s, err := olmv1.New(p, "stable")
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Next(tc.installed)
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %q (%v), want %q (%v)", got, err, tc.want, tc.err)
			}
			if got := s.FindDeprecatedStop(tc.installed); tc.installed.Name != "" && got != tc.held {
				t.Errorf("held by %q, want %q", got, tc.held)
			}
		})
	}
}

func TestChannels(t *testing.T) {
	p := read(t, "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0")
	p.Channels["fast"] = &catalogs.Channel{Name: "fast", Entries: []catalogs.Entry{
		{Name: "p.v1.0.0"}, {Name: "p.v1.2.0", Replaces: "p.v1.0.0"},
	}}
	got := map[string]string{}
	for name, channels := range map[string][]string{"stable": {"stable"}, "fast": {"fast"}, "both": {"stable", "fast"},
		"none": nil} {
		s, err := olmv1.New(p, channels...)
		if err != nil {
			t.Fatal(err)
		}
		if got[name], err = s.Next(catalogs.Installed{Name: "p.v1.0.0"}); err != nil {
			t.Error(err)
		}
	}
	want := map[string]string{"stable": "p.v1.1.0", "fast": "p.v1.2.0", "both": "p.v1.2.0", "none": "p.v1.2.0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("next of 1.0.0 (-want +got):\n%s", diff)
	}
	s, err := olmv1.New(p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"p.v1.2.0", "p.v1.1.0"},
		s.Successors(catalogs.Installed{Name: "p.v1.0.0"})); diff != "" {
		t.Errorf("successors (-want +got):\n%s", diff)
	}
	if _, err := olmv1.New(p, "none"); !errors.Is(err, catalogs.ErrNoChannel) {
		t.Errorf("no such channel: got %v", err)
	}
}
