// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/bundles/build"
)

// packaged is the package p: 1.2.0 replaces 1.1.0 in stable and skips 1.0.0, beta is at 1.1.0, and 0.9.0 is in no
// channel.
func packaged() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o644} }
	version := func(version, upgrades string) *fstest.MapFile {
		return file(fmt.Sprintf(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: p.v%[1]s}
spec:
  version: %[1]s
  displayName: P
  installModes: [{type: AllNamespaces, supported: true}]
  install: {strategy: deployment, spec: {deployments: []}}
%[2]s`, version, upgrades))
	}
	return fstest.MapFS{
		"p.package.yaml": file("packageName: p\ndefaultChannel: stable\nchannels:\n" +
			"- {name: stable, currentCSV: p.v1.2.0}\n- {name: beta, currentCSV: p.v1.1.0}\n"),
		"0.9.0/csv.yaml":         version("0.9.0", ""),
		"1.0.0/csv.yaml":         version("1.0.0", ""),
		"1.1.0/csv.yaml":         version("1.1.0", ""),
		"1.2.0/csv.yaml":         version("1.2.0", "  replaces: p.v1.1.0\n  skips: [p.v1.0.0]\n"),
		"1.2.0/notes.md":         file("notes"),
		"1.2.0/settings.yaml":    file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"),
		"broken/csv.yaml":        file("a: ["),
		"broken/more/other.yaml": file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"),
	}
}

func TestPackageManifests(t *testing.T) {
	p, err := build.ReadPackageManifests(packaged())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0.9.0", "1.0.0", "1.1.0", "1.2.0"}, p.Versions()); diff != "" {
		t.Error(diff)
	}
	r, err := p.Convert(build.Options{Version: "1.2.0"})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(r.Files["manifests/settings.yaml"]); got != string(packaged()["1.2.0/settings.yaml"].Data) {
		t.Errorf("a manifest was changed: %s", got)
	}
	if diff := cmp.Diff([]string{"1.2.0/notes.md is left out: only .yaml, .yml and .json files that are directly in " +
		"the folder of a version are manifests"}, r.Warnings); diff != "" {
		t.Error(diff)
	}
	if r.Placements[1].Object != "ConfigMap settings (1.2.0/settings.yaml, line 1)" {
		t.Errorf("the account names no file of the user: %+v", r.Placements)
	}
	for version, want := range map[string][]string{"1.2.0": {"stable"}, "1.1.0": {"stable", "beta"},
		"1.0.0": {"stable"}} {
		r, err := p.Convert(build.Options{Version: version})
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Files.Bundle()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.Channels); diff != "" || b.DefaultChannel != "stable" || b.Package != "p" {
			t.Errorf("%s is in the channels %v of %s, default %s: %s", version, b.Channels, b.Package, b.DefaultChannel,
				diff)
		}
	}
}

func TestPackageManifestsThatCannotBeConverted(t *testing.T) {
	for name, test := range map[string]struct {
		change func(fstest.MapFS)
		o      build.Options
		want   string
	}{
		"several versions": {want: "several versions of p (0.9.0, 1.0.0, 1.1.0, 1.2.0): give --version"},
		"no such version": {o: build.Options{Version: "3.0.0"},
			want: "the package p has no version 3.0.0; it has 0.9.0, 1.0.0, 1.1.0, 1.2.0"},
		"in no channel": {o: build.Options{Version: "0.9.0"},
			want: "no channel of the package p leads to version 0.9.0 (p.v0.9.0): give --channels"},
		"a broken one": {o: build.Options{Version: "broken"}, want: "broken/csv.yaml"},
		"two in one folder": {func(f fstest.MapFS) { f["1.0.0/other.yaml"] = f["1.1.0/csv.yaml"] },
			build.Options{Version: "1.0.0"}, "it has two of kind ClusterServiceVersion, p.v1.0.0 in 1.0.0/csv.yaml " +
				"and p.v1.1.0 in 1.0.0/other.yaml"},
		"all in one folder": {func(f fstest.MapFS) {
			head := f["p.package.yaml"]
			clear(f)
			f["p.package.yaml"] = head
		}, build.Options{}, "put the manifests of each version into a folder of its own"},
		"the same version twice": {func(f fstest.MapFS) {
			f["again/csv.yaml"], f["more/csv.yaml"] = f["1.1.0/csv.yaml"], f["1.1.0/csv.yaml"]
			delete(f, "1.1.0/csv.yaml")
		}, build.Options{Version: "1.1.0"}, "several folders have version 1.1.0 of the package p: again, more"},
	} {
		t.Run(name, func(t *testing.T) {
			files := packaged()
			if test.change != nil {
				test.change(files)
			}
			p, err := build.ReadPackageManifests(files)
			if err == nil {
				_, err = p.Convert(test.o)
			}
			if !errors.Is(err, build.ErrInput) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	// The size of each bundle is limited, but not the total size of all versions.
	large := packaged()
	for _, version := range []string{"0.9.0", "1.0.0", "1.1.0"} {
		large[version+"/large.yaml"] = &fstest.MapFile{Data: bytes.Repeat([]byte("# large\n"), 2<<20)}
	}
	if p, err := build.ReadPackageManifests(large); err != nil || len(p.Versions()) != 4 {
		t.Errorf("many versions: %v", err)
	}
	if _, err := build.ReadPackageManifests(fstest.MapFS{"package.yaml": {Data: []byte("kind: ConfigMap\n")},
		"one/a.yaml": {Data: []byte("x")}}); !errors.Is(err, build.ErrNotPackageManifests) {
		t.Errorf("other manifests are taken for a package: %v", err)
	}
	p, err := build.ReadPackageManifests(packaged())
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Convert(build.Options{Version: "0.9.0", Channels: []string{"old"}}); err != nil ||
		!strings.Contains(string(r.Files["metadata/annotations.yaml"]), "channels.v1: old") {
		t.Errorf("the channels of the options are not used: %v", err)
	}
}
