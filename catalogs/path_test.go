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

func load(t *testing.T, notation string) *catalogs.Package {
	t.Helper()
	p, err := catalogs.ReadPackage(catalogs.SingleFile("test", strings.NewReader(catalogtest.Graph("p", notation))),
		"p")
	if err != nil {
		t.Fatalf("read package: %v", err)
	}
	return p
}

const ladder = `
	1.0.0
	1.1.0 replaces 1.0.0
	1.2.0 replaces 1.1.0
	1.3.0 replaces 1.2.0`

func TestPath(t *testing.T) {
	tests := map[string]struct {
		graph    string
		from, to string
		want     []string
		wantErr  error
	}{
		"fresh install": {graph: ladder, to: "p.v1.1.0", want: []string{"p.v1.1.0"}},
		"already there": {graph: ladder, from: "p.v1.1.0", to: "p.v1.1.0"},
		"one replacement at a time": {graph: ladder, from: "p.v1.0.0", to: "p.v1.3.0",
			want: []string{"p.v1.1.0", "p.v1.2.0", "p.v1.3.0"}},
		"no rollback":    {graph: ladder, from: "p.v1.3.0", to: "p.v1.0.0", wantErr: catalogs.ErrNoPath},
		"unknown target": {graph: ladder, from: "p.v1.0.0", to: "p.v9.0.0", wantErr: catalogs.ErrNoVersion},
		"skips is a direct edge": {graph: `
			1.0.0
			1.1.0 replaces 1.0.0
			1.2.0 replaces 1.0.0 skips 1.1.0`,
			from: "p.v1.1.0", to: "p.v1.2.0", want: []string{"p.v1.2.0"}},
		"a skipped bundle is not passed through": {graph: `
			1.0.0
			1.0.5 replaces 1.0.0
			1.0.9 replaces 1.0.5
			1.1.0 range <1.1.0
			1.2.0 replaces 1.0.9 skips 1.1.0`,
			from: "p.v1.0.0", to: "p.v1.2.0", want: []string{"p.v1.0.5", "p.v1.0.9", "p.v1.2.0"}},
		"a skipped bundle may be asked for": {graph: `
			1.0.0
			1.1.0 replaces 1.0.0
			1.2.0 replaces 1.0.0 skips 1.1.0`,
			from: "p.v1.0.0", to: "p.v1.1.0", want: []string{"p.v1.1.0"}},
		"skipRange jumps": {graph: `
			1.0.0
			1.1.0 replaces 1.0.0
			1.2.0 replaces 1.1.0 range >=1.0.0_<1.2.0`,
			from: "p.v1.0.0", to: "p.v1.2.0", want: []string{"p.v1.2.0"}},
		"of two ways the higher version first": {graph: `
			1.0.0
			1.1.0 replaces 1.0.0
			1.2.0 replaces 1.1.0 range <1.2.0
			1.3.0 replaces 1.2.0 range >=1.1.0_<1.3.0`,
			from: "p.v1.0.0", to: "p.v1.3.0", want: []string{"p.v1.2.0", "p.v1.3.0"}},
		"installed bundle left the catalog, skipRange covers it": {graph: `
			1.2.0 range <1.2.0`,
			from: "p.v0.9.0", to: "p.v1.2.0", want: []string{"p.v1.2.0"}},
		"installed bundle left the catalog, the tail replaces it": {graph: `
			1.1.0 replaces 1.0.0
			1.2.0 replaces 1.1.0`,
			from: "p.v1.0.0", to: "p.v1.2.0", want: []string{"p.v1.1.0", "p.v1.2.0"}},
		"installed bundle left the catalog, nothing covers it": {graph: ladder,
			from: "p.v0.1.0", to: "p.v1.3.0", wantErr: catalogs.ErrNoPath},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := load(t, tc.graph).Path("", tc.from, tc.to)
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("error %v, want %v", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPathFromUsesTheVersionOfTheCluster(t *testing.T) {
	p := load(t, `
		1.2.0 range <1.2.0`)
	from := catalogs.Installed{Name: "renamed", Version: "1.0.0"}
	got, err := p.PathFrom("stable", from, "p.v1.2.0")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"p.v1.2.0"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMessagesNameWhatExists(t *testing.T) {
	p := load(t, ladder)
	tests := map[string]struct {
		call func() error
		want string
	}{
		"channel": {
			call: func() error { _, err := p.Target("fast", ""); return err },
			want: `no such channel "fast" in package "p": it offers stable (1.3.0)`,
		},
		"version": {
			call: func() error { _, err := p.Target("", "1.4.0"); return err },
			want: `no such version "1.4.0" in channel "stable" of package "p": it offers 1.3.0, 1.2.0, 1.1.0, 1.0.0`,
		},
		"path": {
			call: func() error { _, err := p.Path("", "p.v0.1.0", "p.v1.3.0"); return err },
			want: `no upgrade path in channel "stable" of package "p" from p.v0.1.0 to 1.3.0: ` +
				`no version in the channel replaces p.v0.1.0; 1.3.0 can be reached from 1.2.0`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := tc.call()
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTarget(t *testing.T) {
	p := load(t, ladder)
	tests := map[string]struct {
		channel, version, want string
		wantErr                error
	}{
		"head of the default channel": {want: "p.v1.3.0"},
		"exact":                       {channel: "stable", version: "1.1.0", want: "p.v1.1.0"},
		"written with a v":            {version: "v1.1.0", want: "p.v1.1.0"},
		"unknown version":             {version: "2.0.0", wantErr: catalogs.ErrNoVersion},
		"not a version":               {version: "latest", wantErr: catalogs.ErrNoVersion},
		"unknown channel":             {channel: "beta", wantErr: catalogs.ErrNoChannel},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := p.Target(tc.channel, tc.version)
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("error %v, want %v", err, tc.wantErr)
			}
			if err == nil && got.Name != tc.want {
				t.Errorf("got %s, want %s", got.Name, tc.want)
			}
		})
	}
}
