// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/view"
)

// fake serves one catalog from memory and counts how often it is opened.
type fake struct {
	content string
	opened  atomic.Int32
	// wait, if set, blocks every read.
	wait    chan struct{}
	fail    error
	objects [][]byte
	decoded []string
}

func (f *fake) Resolve(context.Context, oci.Source) (string, error) { return "sha256:1", nil }

func (f *fake) Open(context.Context, oci.Source, string) (catalogs.Files, error) {
	f.opened.Add(1)
	if f.wait != nil {
		<-f.wait
	}
	return catalogs.SingleFile("f", strings.NewReader(f.content)), f.fail
}

func (f *fake) Decode(digest string, decode func() error) error {
	f.decoded = append(f.decoded, digest)
	return decode()
}

func (f *fake) BundleObjects(context.Context, string, oci.Access) ([][]byte, error) {
	if f.objects == nil {
		return nil, oci.ErrUnreachable
	}
	return f.objects, nil
}

func catalog(t *testing.T, o catalogtest.Options) string {
	t.Helper()
	var content strings.Builder
	if err := catalogtest.Write(&content, o); err != nil {
		t.Fatal(err)
	}
	return content.String()
}

func TestOnlyWantedManifestsAreKept(t *testing.T) {
	f := &fake{content: catalog(t, catalogtest.Options{Packages: 2, Versions: 3})}
	l := load.New(f, load.Options{})
	p, err := l.Package(t.Context(), oci.Source{}, "sha256:1", catalogtest.PackageName(1), catalogtest.BundleName(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for name, b := range p.Bundles {
		got[name] = len(b.Objects)
	}
	want := map[string]int{catalogtest.BundleName(1, 0): 0, catalogtest.BundleName(1, 1): 2,
		catalogtest.BundleName(1, 2): 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	path, err := p.Path("", catalogtest.BundleName(1, 0), catalogtest.BundleName(1, 2))
	if err != nil || len(path) != 1 {
		t.Errorf("path %v, %v", path, err)
	}
}

func TestConcurrentCallersShareOneRead(t *testing.T) {
	f := &fake{content: catalogtest.Graph("p", "1.0.0"), wait: make(chan struct{})}
	l := load.New(f, load.Options{})
	// One caller gives up immediately, which must not affect the other callers.
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Package(impatient, oci.Source{}, "sha256:1", "p"); !errors.Is(err, context.Canceled) {
		t.Errorf("impatient: %v", err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := l.Package(t.Context(), oci.Source{}, "sha256:1", "p"); err != nil {
				t.Error(err)
			}
		})
	}
	close(f.wait)
	all.Wait()
	if n := f.opened.Load(); n != 1 {
		t.Errorf("opened %d times", n)
	}
}

// TestFailedReadsBackOffPerDigest lets many operators request a digest that cannot be read, again and again.
func TestFailedReadsBackOffPerDigest(t *testing.T) {
	f := &fake{content: catalogtest.Graph("p", "1.0.0"), fail: oci.ErrUnreachable}
	now := time.Now()
	l := load.New(f, load.Options{Now: func() time.Time { return now }})
	ask := func() {
		t.Helper()
		for i := range 30 {
			_, err := l.Package(t.Context(), oci.Source{}, "sha256:1", fmt.Sprintf("p%d", i))
			if !errors.Is(err, oci.ErrUnreachable) {
				t.Errorf("got %v", err)
			}
		}
	}
	// It is read at 0, 1, 3, 7, 15, 31 and 63 seconds.
	for range 100 {
		ask()
		now = now.Add(time.Second)
	}
	if n := f.opened.Load(); n != 7 {
		t.Errorf("read %d times in 100 seconds, want 7", n)
	}
	if _, err := l.Package(t.Context(), oci.Source{}, "sha256:2", "p"); !errors.Is(err, oci.ErrUnreachable) ||
		f.opened.Load() != 8 {
		t.Errorf("another digest was not read: %v", err)
	}
	f.fail = nil
	now = now.Add(2 * time.Minute)
	if s, err := l.Summary(t.Context(), oci.Source{}, "sha256:1"); err != nil || len(s.Packages) != 1 {
		t.Errorf("got %+v, %v", s, err)
	}
}

// A missing package must not prevent reading other packages.
func TestMissingPackageBacksOffAlone(t *testing.T) {
	f := &fake{content: catalogtest.Graph("p", "1.0.0")}
	l := load.New(f, load.Options{})
	for range 3 {
		if _, err := l.Package(t.Context(), oci.Source{}, "sha256:1", "q"); !errors.Is(err, catalogs.ErrNoPackage) {
			t.Errorf("got %v", err)
		}
	}
	if n := f.opened.Load(); n != 1 {
		t.Errorf("read %d times, want once", n)
	}
	if _, err := l.Package(t.Context(), oci.Source{}, "sha256:1", "p"); err != nil {
		t.Error(err)
	}
}

func TestTimeout(t *testing.T) {
	l := load.New(&stuck{}, load.Options{Timeout: time.Millisecond})
	if _, err := l.Summary(t.Context(), oci.Source{}, "sha256:1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

type stuck struct{ fake }

func (*stuck) Open(ctx context.Context, _ oci.Source, _ string) (catalogs.Files, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestMemoryIsBounded(t *testing.T) {
	f := &fake{content: catalog(t, catalogtest.Options{Packages: 3, Versions: 2, SchemaBytes: 10 << 10})}
	get := func(l *load.Loader, i int) {
		t.Helper()
		if _, err := l.Package(t.Context(), oci.Source{}, "sha256:1", catalogtest.PackageName(i),
			catalogtest.BundleName(i, 1)); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		max  int
		ask  []int
		want int32
	}{
		"all fit":              {max: 1 << 20, ask: []int{0, 1, 2, 0, 1, 2}, want: 3},
		"the oldest goes":      {max: 28 << 10, ask: []int{0, 1, 0, 2, 0, 1}, want: 4},
		"nothing fits, ever":   {max: 1 << 10, ask: []int{0, 0, 0}, want: 3},
		"one is asked for all": {max: 40 << 10, ask: []int{0, 0, 0}, want: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f.opened.Store(0)
			l := load.New(f, load.Options{MaxBytes: tc.max})
			for _, i := range tc.ask {
				get(l, i)
			}
			if n := f.opened.Load(); n != tc.want {
				t.Errorf("opened %d times, want %d", n, tc.want)
			}
		})
	}
}

func TestView(t *testing.T) {
	needy := func(properties string) string {
		return `{"schema":"olm.package","name":"needy","defaultChannel":"stable"}
{"schema":"olm.channel","package":"needy","name":"stable","entries":[{"name":"needy.v1.0.0"}]}
{"schema":"olm.bundle","package":"needy","name":"needy.v1.0.0","image":"registry.example.com/needy@sha256:00",` +
			`"properties":[
{"type":"olm.package","value":{"packageName":"needy","version":"1.0.0"}}` + properties + `]}` + "\n"
	}
	inlined := catalog(t, catalogtest.Options{Packages: 2, Versions: 2})
	const own = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion",` +
		`"metadata":{"name":"needy.v1.0.0"}}`
	tests := map[string]struct {
		content string
		objects [][]byte
		request load.Request
		want    []view.Bundle
		wantErr error
	}{
		"first install": {
			content: inlined, request: load.Request{Package: "operator-001", Next: "operator-001.v1.0.1"},
			want: []view.Bundle{{Name: "operator-001.v1.0.1", Route: view.Inline}},
		},
		"an upgrade": {
			content: inlined, request: load.Request{Package: "operator-001", Next: "operator-001.v1.0.1",
				Installed: catalogs.Installed{Name: "operator-001.v1.0.0"}},
			want: []view.Bundle{{Name: "operator-001.v1.0.1", Route: view.Inline},
				{Name: "operator-001.v1.0.0", Route: view.Stub}},
		},
		"at rest": {
			content: inlined, request: load.Request{Package: "operator-001",
				Installed: catalogs.Installed{Name: "operator-001.v1.0.0"}},
			want: []view.Bundle{{Name: "operator-001.v1.0.0", Route: view.Inline}},
		},
		"an image that is not pulled": {
			content: needy(""), request: load.Request{Package: "needy", Next: "needy.v1.0.0"},
			objects: [][]byte{[]byte(own)},
			want:    []view.Bundle{{Name: "needy.v1.0.0", Route: view.Unpack}},
		},
		"an image that is pulled": {
			content: needy(""), request: load.Request{Package: "needy", Next: "needy.v1.0.0", PullBundles: true},
			objects: [][]byte{[]byte(own)},
			want:    []view.Bundle{{Name: "needy.v1.0.0", Route: view.Inline}},
		},
		"an image that cannot be pulled": {
			content: needy(""), request: load.Request{Package: "needy", Next: "needy.v1.0.0", PullBundles: true},
			want: []view.Bundle{{Name: "needy.v1.0.0", Route: view.Unpack}},
		},
		"a dependency by API": {
			content: inlined + needy(
				`,{"type":"olm.gvk.required","value":{"group":"operator-001.example.com","version":"v1",`+
					`"kind":"Thing"}}`,
			),
			request: load.Request{Package: "needy", Next: "needy.v1.0.0"},
			want: []view.Bundle{{Name: "needy.v1.0.0", Route: view.Unpack},
				{Name: "operator-001.v1.0.1", Route: view.Inline}},
		},
		"unknown package": {content: inlined, request: load.Request{Package: "operator-01"},
			wantErr: catalogs.ErrNoPackage},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.request.Digest = "sha256:1"
			v, err := load.New(&fake{content: tc.content, objects: tc.objects}, load.Options{}).View(t.Context(),
				tc.request)
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("error %v, want %v", err, tc.wantErr)
			}
			var got []view.Bundle
			for _, b := range v.Bundles {
				got = append(got, view.Bundle{Name: b.Name, Route: b.Route})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDependenciesKeepServedManifests checks the served bundle of a dependency, whose manifests are read after its
// version was chosen. The digest is marked while the view is built and while each bundle is decoded.
func TestDependenciesKeepServedManifests(t *testing.T) {
	_, p, _ := strings.Cut(needy(), "\n{\"schema\":\"olm.package\",\"name\":\"p\"")
	f := &fake{content: catalog(t, catalogtest.Options{Packages: 1, Versions: 20}) +
		`{"schema":"olm.package","name":"p"` + strings.ReplaceAll(p, `"other"`, `"`+catalogtest.PackageName(0)+`"`),
		objects: [][]byte{[]byte("{}")}}
	l := load.New(f, load.Options{})
	judged := map[string]int{}
	_, err := l.View(t.Context(), load.Request{Digest: "sha256:1", Package: "p", Next: "p.v1.0.0",
		Permit: func(bundle, _ string, objects [][]byte) error {
			judged[bundle] = len(objects)
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"p.v1.0.0": 0, catalogtest.BundleName(0, 19): 2}
	if diff := cmp.Diff(want, judged); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"sha256:1", "sha256:1", "sha256:1"}, f.decoded); diff != "" {
		t.Error(diff)
	}
}

// needy is a package whose bundles need the other package.
func needy() string {
	return catalogtest.Graph("other", "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0") + `
{"schema":"olm.package","name":"p","defaultChannel":"stable"}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v1.0.0"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1.0.0","image":"registry.example.com/p:1.0.0","properties":[
 {"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}},
 {"type":"olm.package.required","value":{"packageName":"other","versionRange":">=1.0.0"}}]}`
}

// TestDependenciesAreReadToBeJudged reads the image of a dependency, because Permit must check the manifests that OLM
// would unpack itself.
func TestDependenciesAreReadToBeJudged(t *testing.T) {
	f := &fake{content: needy(), objects: [][]byte{[]byte(`{"apiVersion":"operators.coreos.com/v1alpha1",` +
		`"kind":"ClusterServiceVersion","metadata":{"name":"other.v1.2.0"},"spec":{"version":"1.2.0"}}`)}}
	request := load.Request{Digest: "sha256:1", Package: "p", Next: "p.v1.0.0"}
	routes := func() map[string]view.Route {
		v, err := load.New(f, load.Options{}).View(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]view.Route{}
		for _, b := range v.Bundles {
			out[b.Name] = b.Route
		}
		return out
	}
	want := map[string]view.Route{"p.v1.0.0": view.Unpack, "other.v1.2.0": view.Unpack}
	if diff := cmp.Diff(want, routes()); diff != "" {
		t.Errorf("where nobody judges (-want +got):\n%s", diff)
	}
	request.Permit = func(string, string, [][]byte) error { return nil }
	want["other.v1.2.0"] = view.Inline
	if diff := cmp.Diff(want, routes()); diff != "" {
		t.Errorf("where somebody judges (-want +got):\n%s", diff)
	}
}

func TestNoDependencyIsBlocked(t *testing.T) {
	tests := map[string]struct {
		content string
		blocks  []string
		present []string
		want    []string
	}{
		"none blocked": {content: needy(), want: []string{"other.v1.2.0", "p.v1.0.0"}},
		"the newest": {content: needy(), blocks: []string{"1.2.0"},
			want: []string{"other.v1.1.0", "p.v1.0.0"}},
		"the newest two": {content: needy(), blocks: []string{"1.2.0", "1.1.0"},
			want: []string{"other.v1.0.0", "p.v1.0.0"}},
		"all of them": {content: needy(), blocks: []string{"1.2.0", "1.1.0", "1.0.0"},
			want: []string{"p.v1.0.0"}},
		"what is there is kept": {content: needy(), blocks: []string{"1.2.0"}, present: []string{"other.v1.2.0"},
			want: []string{"other.v1.2.0", "p.v1.0.0"}},
		"blocked by the catalog": {
			content: needy() + `{"schema":"bellwether.dev/blocks","package":"other","blocks":[{"version":"1.2.0",` +
				`"reason":"bad"}]}`,
			want: []string{"other.v1.1.0", "p.v1.0.0"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			blocks := map[string][]catalogs.Block{}
			for _, v := range test.blocks {
				blocks["other"] = append(blocks["other"], catalogs.Block{Version: v, Reason: "bad"})
			}
			v, err := load.New(&fake{content: test.content}, load.Options{}).View(t.Context(), load.Request{
				Digest: "sha256:1", Package: "p", Next: "p.v1.0.0", Present: test.present, Blocks: blocks,
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range v.Bundles {
				got = append(got, b.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A result that was read without a signature must not be used for a request that requires a signature.
func TestSignaturesAreVerifiedAgain(t *testing.T) {
	f := &fake{content: catalogtest.Graph("p", "1.0.0")}
	l := load.New(f, load.Options{})
	trusting := oci.Source{Image: "registry.example.com/c:1"}
	strict := trusting
	strict.Verification.PublicKeys = [][]byte{[]byte("a key")}
	for range 2 {
		for _, s := range []oci.Source{trusting, strict} {
			if _, err := l.Package(t.Context(), s, "sha256:1", "p"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := f.opened.Load(); n != 2 {
		t.Errorf("opened %d times, want once for each", n)
	}
}

// A signature of the catalog does not cover the content of a tag.
func TestSignatureCoversDigestsOnly(t *testing.T) {
	signed := oci.Source{Image: "registry.example.com/c:1",
		Verification: oci.Verification{PublicKeys: [][]byte{[]byte("a key")}}}
	digest := "@sha256:" + strings.Repeat("0", 64)
	byDigest := func(text, tag string) string { return strings.ReplaceAll(text, tag, digest) }
	inlined := catalog(t, catalogtest.Options{Packages: 1, Versions: 1})
	tests := map[string]struct {
		content, pkg, next string
		source             oci.Source
		want               []string
		err                error
	}{
		"no signature asked for": {content: needy(), pkg: "p", next: "p.v1.0.0",
			want: []string{"other.v1.2.0", "p.v1.0.0"}},
		"by a tag": {content: needy(), pkg: "p", next: "p.v1.0.0", source: signed,
			err: oci.ErrUnsigned},
		"by digest": {content: byDigest(byDigest(needy(), ":1.0.0"), ":1.2.0"), pkg: "p",
			next: "p.v1.0.0", source: signed, want: []string{"other.v1.2.0", "p.v1.0.0"}},
		"a dependency by a tag": {content: byDigest(needy(), "/p:1.0.0"), pkg: "p", next: "p.v1.0.0",
			source: signed, want: []string{"p.v1.0.0"}},
		"inlined, without an image": {content: inlined, pkg: catalogtest.PackageName(0),
			next: catalogtest.BundleName(0, 0), source: signed, want: []string{catalogtest.BundleName(0, 0)}},
		"inlined, and a tag besides": {
			content: strings.ReplaceAll(inlined, `"image":"","name"`, `"image":"registry.example.com/x:1","name"`),
			pkg:     catalogtest.PackageName(0), next: catalogtest.BundleName(0, 0), source: signed,
			want: []string{catalogtest.BundleName(0, 0)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v, err := load.New(&fake{content: test.content}, load.Options{}).View(t.Context(), load.Request{
				Source: test.source, Digest: "sha256:1", Package: test.pkg, Next: test.next,
			})
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			var got []string
			for _, b := range v.Bundles {
				got = append(got, b.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, p := range v.Packages {
				for _, b := range p.Bundles {
					if test.source.Verification.Required() && b.Image != "" && !strings.Contains(b.Image, digest) {
						t.Errorf("bundle %s is served with image %s", b.Name, b.Image)
					}
				}
			}
		})
	}
}

// TestDetailsAreLoggedOnly checks that the response of a host is in the log at the debug level, and in no error.
func TestDetailsAreLoggedOnly(t *testing.T) {
	const page = "the page of an internal host"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, page, http.StatusForbidden)
	}))
	defer server.Close()
	l := load.New(oci.NewClient(oci.Options{}), load.Options{})
	source := oci.Source{Image: strings.TrimPrefix(server.URL, "http://") + "/team/catalog:v1"}
	for verbosity, logged := range []bool{false, true} {
		var text strings.Builder
		write := func(_, args string) { text.WriteString(args) }
		ctx := logr.NewContext(t.Context(), funcr.New(write, funcr.Options{Verbosity: verbosity}))
		_, err := l.Resolve(ctx, source)
		if !errors.Is(err, oci.ErrDenied) || strings.Contains(err.Error(), page) {
			t.Errorf("resolve: %v", err)
		}
		_, err = l.Summary(ctx, source, fmt.Sprintf("sha256:%064d", verbosity))
		if !errors.Is(err, oci.ErrDenied) || strings.Contains(err.Error(), page) {
			t.Errorf("read: %v", err)
		}
		if got := strings.Count(text.String(), page); (got == 2) != logged || (got == 0) == logged {
			t.Errorf("at verbosity %d it is logged %d times: %s", verbosity, got, &text)
		}
	}
}
