// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/view"
)

// operator returns a package with four bundles of about size bytes each; images adds a bundle image to every bundle.
func operator(t *testing.T, size int, images bool) *catalogs.Package {
	t.Helper()
	var content bytes.Buffer
	if err := catalogtest.Write(&content, catalogtest.Options{Versions: 4, SchemaBytes: size}); err != nil {
		t.Fatal(err)
	}
	p, err := catalogs.ReadPackage(catalogs.SingleFile("f", &content), catalogtest.PackageName(0))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range p.Bundles {
		if images {
			b.Image = "registry.example.com/bundles:" + name
		}
	}
	return p
}

func name(j int) string { return catalogtest.BundleName(0, j) }

// shape returns the content of a view, in one line per entry.
func shape(v view.View) []string {
	var out []string
	for _, p := range v.Packages {
		for _, c := range p.Channels {
			for _, e := range c.Entries {
				b := p.Bundles[e.Name]
				out = append(out, fmt.Sprintf("%s/%s %s<%s objects=%d image=%t", p.Name, c.Name, e.Name, e.Replaces,
					len(b.Objects), b.Image != ""))
			}
		}
	}
	return out
}

func TestBuild(t *testing.T) {
	const kib = 1 << 10
	pkg := "operator-000/stable "
	tests := map[string]struct {
		size     int
		images   bool
		in       view.Input
		want     []string
		admitted []string
		wantErr  error
	}{
		"first install": {
			in:       view.Input{Next: name(1)},
			want:     []string{pkg + name(1) + "< objects=2 image=false"},
			admitted: []string{name(1)},
		},
		"next hop replaces what is installed, which is only a stub": {
			in: view.Input{Installed: catalogs.Installed{Name: name(0)}, Next: name(3)},
			want: []string{pkg + name(3) + "<" + name(0) + " objects=2 image=false", pkg + name(0) +
				"< objects=0 image=false"},
			admitted: []string{name(3)},
		},
		"the next hop is served in full while it is being installed": {
			in: view.Input{Installed: catalogs.Installed{Name: name(0)}, Next: name(3),
				Present: []string{name(0), name(3)}},
			want: []string{pkg + name(3) + "<" + name(0) + " objects=2 image=false", pkg + name(0) +
				"< objects=0 image=false"},
			admitted: []string{name(3)},
		},
		"at rest the installed bundle can be put back": {
			in:       view.Input{Installed: catalogs.Installed{Name: name(2)}},
			want:     []string{pkg + name(2) + "< objects=2 image=false"},
			admitted: []string{name(2)},
		},
		"admitted to what is installed is at rest": {
			in:       view.Input{Installed: catalogs.Installed{Name: name(2)}, Next: name(2)},
			want:     []string{pkg + name(2) + "< objects=2 image=false"},
			admitted: []string{name(2)},
		},
		"the older one may be next": {
			in: view.Input{Installed: catalogs.Installed{Name: name(2)}, Next: name(1)},
			want: []string{pkg + name(1) + "<" + name(2) + " objects=2 image=false", pkg + name(2) +
				"< objects=0 image=false"},
			admitted: []string{name(1)},
		},
		"installed bundle has left the catalog": {
			in:       view.Input{Installed: catalogs.Installed{Name: "gone", Version: "0.1.0"}, Next: name(0)},
			want:     []string{pkg + name(0) + "<gone objects=2 image=false", pkg + "gone< objects=0 image=false"},
			admitted: []string{name(0)},
		},
		"installed bundle has left the catalog, at rest": {
			in:   view.Input{Installed: catalogs.Installed{Name: "gone.v0.1.0"}},
			want: []string{pkg + "gone.v0.1.0< objects=0 image=false"},
		},
		"too large to inline, but there is an image": {
			size: 1200 * kib, images: true,
			in: view.Input{Installed: catalogs.Installed{Name: name(0)}, Next: name(1)},
			want: []string{pkg + name(1) + "<" + name(0) + " objects=1 image=true", pkg + name(0) +
				"< objects=0 image=true"},
			admitted: []string{name(1)},
		},
		"small with an image is inlined": {
			images:   true,
			in:       view.Input{Next: name(1)},
			want:     []string{pkg + name(1) + "< objects=2 image=false"},
			admitted: []string{name(1)},
		},
		"too large and no image": {size: 1200 * kib, in: view.Input{Next: name(1)},
			wantErr: view.ErrBundleTooLarge},
		"a lower limit": {size: 50 * kib, in: view.Input{Next: name(1), MaxInline: 30 * kib},
			wantErr: view.ErrBundleTooLarge},
		"a higher limit is none": {size: 1200 * kib, in: view.Input{Next: name(1), MaxInline: 100 << 20},
			wantErr: view.ErrBundleTooLarge},
		"unknown bundle": {in: view.Input{Next: "ghost"}, wantErr: catalogs.ErrNoVersion},
		"unknown channel": {in: view.Input{Next: name(0), Channel: "fast"},
			wantErr: catalogs.ErrNoChannel},
		"nothing installed, nothing next": {in: view.Input{}, wantErr: catalogs.ErrNoVersion},
		"installed and gone, no version": {in: view.Input{Installed: catalogs.Installed{Name: "gone"}},
			wantErr: catalogs.ErrNoVersion},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.in.Package = operator(t, tc.size, tc.images)
			v, err := view.Build(tc.in)
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("error %v, want %v", err, tc.wantErr)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, shape(v)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.admitted, v.Admitted); diff != "" {
				t.Errorf("admitted: %s", diff)
			}
		})
	}
}

func TestTooLargeNamesSizes(t *testing.T) {
	_, err := view.Build(view.Input{Package: operator(t, 1200<<10, false), Next: name(1)})
	if err == nil || !strings.Contains(err.Error(), "at most 1024 KiB fit: publish it with a bundle image") {
		t.Errorf("got %v", err)
	}
}

func TestHashFollowsContent(t *testing.T) {
	in := view.Input{Package: operator(t, 0, false), Next: name(1)}
	build := func() string {
		v, err := view.Build(in)
		if err != nil {
			t.Fatal(err)
		}
		return v.Hash
	}
	first := build()
	if again := build(); again != first {
		t.Error("the hash of the same content differs")
	}
	in.Package.Bundles[name(3)].Deprecation = "no longer maintained"
	if other := build(); other != first {
		t.Error("the hash follows what is not served")
	}
	in.Package.Bundles[name(1)].Objects[1] = []byte(`{"apiVersion":"v1","kind":"ConfigMap"}`)
	if other := build(); other == first {
		t.Error("the hash does not follow a manifest")
	}
}

func TestForeignCSVIsRefused(t *testing.T) {
	p := operator(t, 0, false)
	p.Bundles[name(1)].Objects = p.Bundles[name(2)].Objects
	if _, err := view.Build(view.Input{Package: p, Next: name(1)}); !errors.Is(err, view.ErrWrongCSV) {
		t.Errorf("got %v", err)
	}
}

// needs adds further properties to the operator's bundle.
func needs(t *testing.T, b *catalogs.Bundle, kind, value string) {
	t.Helper()
	if !json.Valid([]byte(value)) {
		t.Fatalf("not JSON: %s", value)
	}
	b.Properties = append(b.Properties, bundles.Property{Type: kind, Value: json.RawMessage(value)})
}

// library returns a package with an image per version; the last version is the head.
func library(pkg string, gvk string, versions ...string) *catalogs.Package {
	p := &catalogs.Package{Name: pkg, DefaultChannel: "stable", Bundles: map[string]*catalogs.Bundle{}}
	c := &catalogs.Channel{Name: "stable"}
	previous := ""
	for _, v := range versions {
		b := &catalogs.Bundle{Name: pkg + ".v" + v, Version: semver.MustParse(v), Image: "registry.example.com/" + pkg +
			":" + v}
		b.Properties = []bundles.Property{
			{
				Type: bundles.PropertyPackage,
				Value: json.RawMessage(fmt.Sprintf(`{"packageName":%q,"version":%q}`, pkg,
					v)),
			},
			{Type: bundles.PropertyGVK, Value: json.RawMessage(fmt.Sprintf(`{"group":%q,"version":"v1","kind":"K"}`,
				gvk))},
		}
		p.Bundles[b.Name] = b
		c.Entries = append(c.Entries, catalogs.Entry{Name: b.Name, Replaces: previous})
		previous = b.Name
	}
	p.Channels = map[string]*catalogs.Channel{"stable": c}
	return p
}

func TestDependencies(t *testing.T) {
	cert := func() *catalogs.Package { return library("cert", "cert.example.com", "1.0.0", "1.1.0", "2.0.0") }
	store := func() *catalogs.Package { return library("store", "store.example.com", "3.0.0", "3.1.0") }
	tests := map[string]struct {
		kinds, values []string
		others        []*catalogs.Package
		present       []string
		want          []string
		unresolved    []string
		admitted      []string
	}{
		"a package in a range: the highest that fits": {
			kinds:  []string{bundles.PropertyPackageRequired},
			values: []string{`{"packageName":"cert","versionRange":"<2.0.0"}`},
			others: []*catalogs.Package{store(), cert()}, want: []string{"cert.v1.1.0"},
			admitted: []string{"cert.v1.1.0", name(1)},
		},
		"an API: the head of its provider": {
			kinds:  []string{bundles.PropertyGVKRequired},
			values: []string{`{"group":"store.example.com","version":"v1","kind":"K"}`},
			others: []*catalogs.Package{store(), cert()}, want: []string{"store.v3.1.0"},
			admitted: []string{name(1), "store.v3.1.0"},
		},
		"what is present is kept": {
			kinds:  []string{bundles.PropertyPackageRequired},
			values: []string{`{"packageName":"cert","versionRange":">=1.0.0"}`},
			others: []*catalogs.Package{cert()}, present: []string{"cert.v1.0.0"}, want: []string{"cert.v1.0.0"},
			admitted: []string{name(1)},
		},
		"what is present but does not fit is replaced": {
			kinds:  []string{bundles.PropertyPackageRequired},
			values: []string{`{"packageName":"cert","versionRange":">=1.1.0 <2.0.0"}`},
			others: []*catalogs.Package{cert()}, present: []string{"cert.v1.0.0"},
			want:     []string{"cert.v1.1.0<cert.v1.0.0", "cert.v1.0.0"},
			admitted: []string{"cert.v1.1.0", name(1)},
		},
		"two needs of one package": {
			kinds: []string{bundles.PropertyGVKRequired, bundles.PropertyPackageRequired},
			values: []string{
				`{"group":"cert.example.com","version":"v1","kind":"K"}`,
				`{"packageName":"cert","versionRange":"<1.1.0"}`,
			},
			others: []*catalogs.Package{cert()}, want: []string{"cert.v1.0.0"},
			admitted: []string{"cert.v1.0.0", name(1)},
		},
		"a constraint with alternatives": {
			kinds: []string{bundles.PropertyConstraint},
			values: []string{
				`{"failureMessage":"m","any":{"constraints":[{"package":{"packageName":"ghost",` +
					`"versionRange":">=0.0.0"}},{"package":{"packageName":"store","versionRange":"<3.1.0"}}]}}`,
			},
			others:   []*catalogs.Package{cert(), store()},
			want:     []string{"store.v3.0.0"},
			admitted: []string{name(1), "store.v3.0.0"},
		},
		"a need of its own": {
			kinds:    []string{bundles.PropertyGVKRequired},
			values:   []string{`{"group":"operator-000.example.com","version":"v1","kind":"Thing"}`},
			admitted: []string{name(1)},
		},
		"nothing satisfies it": {
			kinds:  []string{bundles.PropertyPackageRequired},
			values: []string{`{"packageName":"cert","versionRange":">=9.0.0"}`},
			others: []*catalogs.Package{cert()}, unresolved: []string{"package cert in >=9.0.0"},
			admitted: []string{name(1)},
		},
	}
	for label, tc := range tests {
		t.Run(label, func(t *testing.T) {
			p := operator(t, 0, false)
			for i := range tc.kinds {
				needs(t, p.Bundles[name(1)], tc.kinds[i], tc.values[i])
			}
			in := view.Input{Package: p, Next: name(1), Others: tc.others, Present: tc.present}
			v, err := view.Build(in)
			if err != nil {
				t.Fatal(err)
			}
			pulled, err := view.Dependencies(in)
			if err != nil {
				t.Fatal(err)
			}
			// A bundle that is already on the cluster is served by its name only, so its manifests are not needed.
			var admitted []string
			for _, names := range pulled {
				admitted = append(admitted, names...)
			}
			admitted = slices.Sorted(slices.Values(append(admitted, name(1))))
			if diff := cmp.Diff(tc.admitted, admitted); diff != "" {
				t.Errorf("bundles whose manifests are asked for: %s", diff)
			}
			var got []string
			for _, served := range v.Packages {
				if served.Name == p.Name {
					continue
				}
				for _, e := range served.Channels[served.DefaultChannel].Entries {
					got = append(got, strings.TrimSuffix(e.Name+"<"+e.Replaces, "<"))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.unresolved, v.Unresolved); diff != "" {
				t.Errorf("unresolved: %s", diff)
			}
			if diff := cmp.Diff(tc.admitted, v.Admitted); diff != "" {
				t.Errorf("admitted: %s", diff)
			}
		})
	}
}

func TestDependenciesOfDependencies(t *testing.T) {
	p := operator(t, 0, false)
	cert, store := library("cert", "cert.example.com", "1.0.0"), library("store", "store.example.com", "3.0.0")
	needs(t, p.Bundles[name(1)], bundles.PropertyPackageRequired, `{"packageName":"cert","versionRange":">=1.0.0"}`)
	needs(t, cert.Bundles["cert.v1.0.0"], bundles.PropertyGVKRequired,
		`{"group":"store.example.com","version":"v1","kind":"K"}`)
	// Circular dependencies must not cause an endless loop.
	needs(t, store.Bundles["store.v3.0.0"], bundles.PropertyPackageRequired,
		`{"packageName":"cert","versionRange":">=1.0.0"}`)
	v, err := view.Build(view.Input{Package: p, Next: name(1), Others: []*catalogs.Package{cert, store}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cert.v1.0.0", name(1), "store.v3.0.0"}, v.Admitted); diff != "" {
		t.Error(diff)
	}
}
