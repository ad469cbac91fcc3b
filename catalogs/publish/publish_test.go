// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/publish"
	"github.com/bellwether-dev/bellwether/catalogs/registry"
	"github.com/bellwether-dev/bellwether/catalogs/sbom"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
)

// flaky is a proxy in front of the embedded registry that breaks selected requests.
type flaky struct {
	host string

	mu sync.Mutex
	// space separates the repositories of the tests.
	space    string
	requests []string
	// breaks decides by the number of a request, from 1, whether the request fails, and writes the failure.
	breaks func(n int, w http.ResponseWriter, r *http.Request) bool
}

func newFlaky(t *testing.T) *flaky {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- registry.Serve(ctx, registry.Options{Ready: func(addr string) { ready <- addr }})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the registry ended with %v", err)
		}
	})
	var backend string
	select {
	case backend = <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatalf("the registry did not start: %v", err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: backend})
		r.Out.Host = r.In.Host // The registry answers with locations of its own.
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
	f := &flaky{space: "main"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.requests = append(f.requests, r.Method+" "+r.URL.Path)
		n, breaks := len(f.requests), f.breaks
		f.mu.Unlock()
		if breaks == nil || !breaks(n, w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	f.host = strings.TrimPrefix(server.URL, "http://")
	return f
}

// reset restarts the count of requests.
func (f *flaky) reset(breaks func(n int, w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests, f.breaks = nil, breaks
}

func (f *flaky) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

func (f *flaky) tag() string { return f.host + "/catalogs/" + f.space + ":latest" }

// newClient returns a client that gives up fast, because the tests only check the state after a failure.
func newClient() *oci.Client {
	return oci.NewClient(oci.Options{Stall: 10 * time.Second, Backoff: time.Millisecond})
}

const annotations = `annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: echo
  operators.operatorframework.io.bundle.channels.v1: stable
`

// release is a compiled catalog of one package, with a folder for each bundle.
type release struct {
	dir     string
	bundles map[string]string
}

// newRelease returns a catalog that offers the versions, the lowest first, with their bundles in the registry.
func newRelease(t *testing.T, f *flaky, versions ...string) release {
	t.Helper()
	r := release{dir: t.TempDir(), bundles: map[string]string{}}
	var catalog bytes.Buffer
	fmt.Fprintln(&catalog, `{"schema":"olm.package","name":"echo","defaultChannel":"stable"}`)
	var entries []string
	for i, v := range versions {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "metadata/annotations.yaml"), annotations)
		write(t, filepath.Join(dir, "manifests/csv.yaml"),
			"kind: ClusterServiceVersion\nmetadata:\n  name: echo.v"+v+"\n")
		img, err := oci.BundleImage(dir)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := img.Digest()
		if err != nil {
			t.Fatal(err)
		}
		image := f.host + "/bundles/" + f.space + "@" + digest.String()
		r.bundles[image] = dir
		fmt.Fprintf(
			&catalog,
			`{"schema":"olm.bundle","package":"echo","name":"echo.v%s","image":%q,`+
				`"properties":[{"type":"olm.package","value":{"packageName":"echo","version":%q}}],`+
				`"relatedImages":[{"name":"","image":%q}]}`+"\n",
			v,
			image,
			v,
			image,
		)
		entry := fmt.Sprintf(`{"name":"echo.v%s"`, v)
		if i > 0 {
			entry += fmt.Sprintf(`,"replaces":"echo.v%s"`, versions[i-1])
		}
		entries = append(entries, entry+"}")
	}
	fmt.Fprintf(&catalog, `{"schema":"olm.channel","package":"echo","name":"stable","entries":[%s]}`+"\n",
		strings.Join(entries, ","))
	write(t, filepath.Join(r.dir, "echo/catalog.json"), catalog.String())
	return r
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// aSigner is shared by all tests, because encrypting a key is slow by design.
var aSigner = sync.OnceValues(func() (*sign.Signer, error) {
	pair, err := sign.GenerateKey(sign.ECDSA, nil)
	if err != nil {
		return nil, err
	}
	return sign.NewSigner(pair.Private, nil)
})

func newSigner(t *testing.T) *sign.Signer {
	t.Helper()
	signer, err := aSigner()
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func (r release) input(f *flaky, s *sign.Signer) publish.Input {
	return publish.Input{Dir: r.dir, Ref: f.tag(), Bundles: r.bundles, Signer: s}
}

func mustPublish(t *testing.T, in publish.Input) publish.Result {
	t.Helper()
	result, err := publish.Publish(t.Context(), newClient(), in)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// offered returns what a user of the tag sees who requires a signature.
func offered(ctx context.Context, f *flaky, s *sign.Signer) ([]string, error) {
	c := newClient()
	source := oci.Source{Image: f.tag(), Verification: oci.Verification{PublicKeys: [][]byte{s.PublicKey()}}}
	digest, err := c.Resolve(ctx, source)
	if err != nil {
		return nil, err
	}
	files, err := c.Open(ctx, source, digest)
	if err != nil {
		return nil, err
	}
	p, err := catalogs.ReadPackage(files, "echo")
	if err != nil {
		return nil, err
	}
	for _, b := range p.Bundles {
		if _, err := c.BundleObjects(ctx, b.Image, oci.Access{}); err != nil {
			return nil, err
		}
	}
	return p.Summary().Versions, nil
}

func checkOffered(t *testing.T, f *flaky, s *sign.Signer, want ...string) {
	t.Helper()
	got, err := offered(t.Context(), f, s)
	if err != nil {
		t.Fatalf("what the tag holds cannot be used: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestPublish(t *testing.T) {
	f, signer := newFlaky(t), newSigner(t)
	first := newRelease(t, f, "1.0.0")
	one := mustPublish(t, first.input(f, signer))
	checkOffered(t, f, signer, "1.0.0")
	if one.Previous != "" || !one.Changed || one.Pushed != 1 || !one.Signed {
		t.Errorf("first: %+v", one)
	}

	f.reset(nil)
	if again := mustPublish(t, first.input(f, signer)); again.Changed || again.Digest != one.Digest {
		t.Errorf("the same again: %+v", again)
	}
	for _, r := range f.seen() {
		if strings.HasPrefix(r, "POST") || strings.HasPrefix(r, "PATCH") || strings.Contains(r, "manifests/latest") &&
			strings.HasPrefix(r, "PUT") {
			t.Errorf("the same again sent %s", r)
		}
	}

	f.reset(nil)
	second := newRelease(t, f, "1.0.0", "1.1.0")
	two := mustPublish(t, second.input(f, signer))
	checkOffered(t, f, signer, "1.1.0", "1.0.0")
	if two.Previous != one.Digest || !two.Changed {
		t.Errorf("second: %+v", two)
	}
	var writes []string
	for _, r := range f.seen() {
		if strings.HasPrefix(r, "PUT") {
			writes = append(writes, r)
		}
	}
	if last := writes[len(writes)-1]; last != "PUT /v2/catalogs/main/manifests/latest" {
		t.Errorf("the last write is %s", last)
	}
	report, err := publish.Verify(t.Context(), newClient(), publish.VerifyInput{Source: oci.Source{
		Image: f.tag(), Verification: oci.Verification{PublicKeys: [][]byte{signer.PublicKey()}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Checks {
		if c.Verdict != publish.Passed {
			t.Errorf("%+v", c)
		}
	}
}

// TestPublishedSBOMListsImages reads the attached SBOM to find the versions that run an image.
func TestPublishedSBOMListsImages(t *testing.T) {
	f, signer := newFlaky(t), newSigner(t)
	r := newRelease(t, f, "1.0.0")
	file := filepath.Join(r.dir, "echo/catalog.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const operator = "registry.example.com/echo-operator:v1"
	write(t, file, strings.Replace(string(text), `"relatedImages":[`,
		`"relatedImages":[{"name":"manager","image":"`+operator+`"},`, 1))
	result, source := mustPublish(t, r.input(f, signer)), oci.Source{Image: f.tag()}
	image := f.host + "/catalogs/main@" + result.Digest
	lists, err := newClient().ReadArtifacts(t.Context(), image, sbom.MediaType, source.Access)
	if err != nil || len(lists) != 1 {
		t.Fatalf("%d lists: %v", len(lists), err)
	}
	if !strings.Contains(string(lists[0]), `"name": "registry.example.com/echo-operator"`) {
		t.Errorf("the operator's image is not listed:\n%s", lists[0])
	}
	if _, err := publish.Verify(t.Context(), newClient(), publish.VerifyInput{Source: source}); err != nil {
		t.Error(err)
	}
}

// A bundle exists only if its layers exist: the manifest alone installs nothing.
func TestVerifyLayers(t *testing.T) {
	f := newFlaky(t)
	release := newRelease(t, f, "1.0.0", "1.1.0")
	mustPublish(t, release.input(f, newSigner(t)))
	var layer v1.Descriptor
	for _, dir := range release.bundles {
		img, err := oci.BundleImage(dir)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := img.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		layer = manifest.Layers[0]
	}
	answer := func(status int, size int64) func(int, http.ResponseWriter, *http.Request) bool {
		return func(_ int, w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/blobs/"+layer.Digest.String()) {
				return false
			}
			w.Header().Set("Content-Length", fmt.Sprint(size))
			w.WriteHeader(status)
			if r.Method == http.MethodGet {
				_, _ = w.Write(make([]byte, size))
			}
			return true
		}
	}
	for name, test := range map[string]struct {
		breaks func(int, http.ResponseWriter, *http.Request) bool
		deep   bool
		want   publish.Verdict
		text   string
	}{
		"all there":         {nil, false, publish.Passed, "all 2 are there, with layers of the right size"},
		"all there, deep":   {nil, true, publish.Passed, "all 2 are there, with the content of their digests"},
		"one is gone":       {answer(http.StatusNotFound, 0), false, publish.Failed, "1 of 2 are missing"},
		"one is truncated":  {answer(http.StatusOK, layer.Size-1), false, publish.Failed, "1 of 2 are missing"},
		"one is other":      {answer(http.StatusOK, layer.Size), true, publish.Failed, "1 of 2 are missing"},
		"one is other, but": {answer(http.StatusOK, layer.Size), false, publish.Passed, "all 2 are there"},
	} {
		t.Run(name, func(t *testing.T) {
			f.reset(test.breaks)
			report, err := publish.Verify(t.Context(), newClient(), publish.VerifyInput{
				Source: oci.Source{Image: f.tag()}, Deep: test.deep})
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(report.Checks, func(c publish.Check) bool { return c.Name == "bundles" })
			if c := report.Checks[i]; c.Verdict != test.want || !strings.Contains(c.Text, test.text) {
				t.Errorf("%s: %s %q, want %s: %s", c.Verdict, c.Text, c.Details, test.want, test.text)
			}
		})
	}
}

// kinds are the ways in which a registry can fail. Each answers a request with a different error.
var kinds = map[string]func(w http.ResponseWriter, r *http.Request){
	"answers 500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	"breaks off": func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler) // The connection ends without an answer.
	},
	"breaks off half-way": func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
		panic(http.ErrAbortHandler)
	},
	"answers half": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "{")
		panic(http.ErrAbortHandler)
	},
	"hangs": func(_ http.ResponseWriter, r *http.Request) {
		// A server detects that its client has gone after it has read the request.
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	},
}

// every is off by default because it takes minutes.
var every = flag.Bool("every", false, "let every single request fail in every way, and not each tenth of them")

// TestFailureKeepsOldCatalog lets one request of a publish fail, and all later requests. In all cases the tag must
// have the complete old or new catalog, and publishing again must complete the new catalog.
func TestFailureKeepsOldCatalog(t *testing.T) {
	for i, kind := range slices.Sorted(maps.Keys(kinds)) {
		fail := kinds[kind]
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			client, step := newClient(), 1
			if kind == "hangs" {
				// Long enough for a busy machine to answer requests that do not hang.
				client = oci.NewClient(oci.Options{Stall: 2 * time.Second, Backoff: time.Millisecond})
			}
			if !*every {
				step = 2 * len(kinds)
			}
			f, failed := newFlaky(t), 0
			for n := 1 + i%step; failAt(t, f, n, client, fail); n += step {
				failed++
			}
			if failed*step < 30 {
				t.Errorf("only %d requests failed; was that all of them?", failed)
			}
			t.Logf("%d requests failed, one after the other", failed)
		})
	}
}

// failAt publishes a catalog, and then another catalog whose publishing fails from request n on. It returns false if
// that publish needs fewer requests.
func failAt(t *testing.T, f *flaky, n int, client *oci.Client, fail func(http.ResponseWriter, *http.Request)) bool {
	t.Helper()
	signer := newSigner(t)
	f.reset(nil)
	f.space = fmt.Sprintf("number-%d", n)
	mustPublish(t, newRelease(t, f, "1.0.0").input(f, signer))
	f.reset(func(i int, w http.ResponseWriter, r *http.Request) bool {
		if i < n {
			return false
		}
		fail(w, r)
		return true
	})
	next := newRelease(t, f, "1.0.0", "1.1.0")
	_, err := publish.Publish(t.Context(), client, next.input(f, signer))
	reached := len(f.seen()) >= n
	f.reset(nil)
	if !reached {
		if err != nil {
			t.Fatalf("nothing failed, and yet: %v", err)
		}
		return false
	}
	if err == nil {
		t.Fatalf("request %d and all later ones failed, and it says that it succeeded", n)
	}
	versions, err := offered(t.Context(), f, signer)
	if err != nil {
		t.Fatalf("after request %d failed, what the tag holds cannot be used: %v", n, err)
	}
	if len(versions) != 1 && len(versions) != 2 {
		t.Fatalf("after request %d failed, it offers %v", n, versions)
	}
	mustPublish(t, next.input(f, signer))
	checkOffered(t, f, signer, "1.1.0", "1.0.0")
	return true
}

// TestSingleFailureIsRetried lets one request fail and the next requests succeed.
func TestSingleFailureIsRetried(t *testing.T) {
	f, signer := newFlaky(t), newSigner(t)
	step := 1
	if !*every {
		step = 7
	}
	for n := 1; ; n += step {
		f.reset(nil)
		f.space = fmt.Sprintf("number-%d", n)
		mustPublish(t, newRelease(t, f, "1.0.0").input(f, signer))
		next := newRelease(t, f, "1.0.0", "1.1.0")
		f.reset(func(i int, w http.ResponseWriter, _ *http.Request) bool {
			if i != n {
				return false
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		})
		_, err := publish.Publish(t.Context(), newClient(), next.input(f, signer))
		reached := len(f.seen()) >= n
		f.reset(nil)
		if err != nil {
			t.Errorf("request %d was refused once, and that was the end: %v", n, err)
		}
		checkOffered(t, f, signer, "1.1.0", "1.0.0")
		if !reached {
			return
		}
	}
}

func TestPublishRefuses(t *testing.T) {
	f, signer := newFlaky(t), newSigner(t)
	held := mustPublish(t, newRelease(t, f, "1.0.0", "1.1.0").input(f, signer))
	elsewhere := newRelease(t, f, "1.0.0", "1.1.0", "1.2.0")
	empty := release{dir: t.TempDir()}
	tagged := release{dir: t.TempDir()}
	write(t, tagged.dir+"/c.json", `{"schema":"olm.package","name":"echo","defaultChannel":"stable"}
{"schema":"olm.bundle","package":"echo","name":"echo.v1.1.0","image":"example.com/b:1.1.0",`+
		`"properties":[{"type":"olm.package","value":{"packageName":"echo","version":"1.1.0"}}]}
{"schema":"olm.channel","package":"echo","name":"stable","entries":[{"name":"echo.v1.1.0","skips":["echo.v1.0.0"]}]}`)
	refused := release{dir: t.TempDir()}
	write(t, refused.dir+"/c.json", `{"schema":"olm.package","name":"echo","defaultChannel":"stable"}
{"schema":"olm.bundle","package":"echo","name":"echo.v1.1.0","image":"example.com/b@`+held.Digest+`",`+
		`"relatedImages":[{"name":"chart","image":"oci://example.com/chart"}],`+
		`"properties":[{"type":"olm.package","value":{"packageName":"echo","version":"1.1.0"}}]}
{"schema":"olm.channel","package":"echo","name":"stable","entries":[{"name":"echo.v1.1.0"}]}`)
	report, err := publish.Verify(t.Context(), newClient(),
		publish.VerifyInput{Source: oci.Source{Directory: refused.dir}, SkipBundleCheck: true})
	if err != nil || report.OK() || !strings.Contains(fmt.Sprint(report), "oci://example.com/chart") {
		t.Errorf("verified: %+v (%v)", report, err)
	}
	tests := map[string]struct {
		release release
		change  func(*publish.Input)
		want    error
		says    string
	}{
		"a version that is gone": {release: newRelease(t, f, "1.1.0"), want: publish.ErrContinuity,
			says: "no upgrade path from 1.0.0"},
		"a lower head": {release: newRelease(t, f, "1.0.0"), want: publish.ErrContinuity,
			says: "no upgrade path from 1.1.0"},
		"what is no catalog": {release: empty, want: catalogs.ErrNotCatalog},
		"what opm refuses":   {release: refused, want: catalogs.ErrInvalidPackage, says: `"oci://example.com/chart"`},
		"another digest expected": {release: elsewhere,
			change: func(in *publish.Input) { in.Expect = "sha256:" + strings.Repeat("0", 64) }, want: oci.ErrMoved},
		"nothing expected": {release: elsewhere,
			change: func(in *publish.Input) { in.Expect = publish.Nothing }, want: oci.ErrMoved},
		"bundles that are nowhere": {release: elsewhere, change: func(in *publish.Input) { in.Bundles = nil },
			want: publish.ErrMissingBundles},
		"bundles without a digest": {release: tagged, change: func(in *publish.Input) { in.Force = "test" },
			want: publish.ErrNoDigest},
		"a digest to publish to": {release: elsewhere,
			change: func(in *publish.Input) { in.Ref = f.host + "/catalogs/main@" + held.Digest },
			want:   oci.ErrBadSource},
		"a bundle folder that moved": {release: elsewhere,
			change: func(in *publish.Input) { in.Bundles = mixedUp(in.Bundles) }, want: oci.ErrDigestMismatch},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := tc.release.input(f, signer)
			if tc.change != nil {
				tc.change(&in)
			}
			_, err := publish.Publish(t.Context(), newClient(), in)
			if !errors.Is(err, tc.want) || !strings.Contains(fmt.Sprint(err), tc.says) {
				t.Errorf("got %v, want %v that says %q", err, tc.want, tc.says)
			}
			checkOffered(t, f, signer, "1.1.0", "1.0.0")
		})
	}
	in := newRelease(t, f, "1.1.0").input(f, signer)
	in.Force = "1.0.0 ran nowhere"
	if r := mustPublish(t, in); len(r.Losses) != 1 || !r.Changed {
		t.Errorf("forced: %+v", r)
	}
	checkOffered(t, f, signer, "1.1.0")
}

// mixedUp gives each image the folder of another image.
func mixedUp(bundles map[string]string) map[string]string {
	out := map[string]string{}
	last := ""
	for image, dir := range bundles {
		if last != "" {
			out[image] = last
		}
		last = dir
	}
	for image := range bundles {
		if out[image] == "" {
			out[image] = last
		}
	}
	return out
}

// TestTwoPublishers publishes another catalog between comparing and moving the tag.
func TestTwoPublishers(t *testing.T) {
	f, signer := newFlaky(t), newSigner(t)
	mustPublish(t, newRelease(t, f, "1.0.0").input(f, signer))
	slow := newRelease(t, f, "1.0.0", "1.1.0").input(f, signer)
	fast := newRelease(t, f, "1.0.0", "1.2.0").input(f, signer)
	slow.Report = func(p publish.Progress) {
		if p.Stage == publish.StageCatalog {
			mustPublish(t, fast)
		}
	}
	if _, err := publish.Publish(t.Context(), newClient(), slow); !errors.Is(err, oci.ErrMoved) {
		t.Errorf("got %v", err)
	}
	checkOffered(t, f, signer, "1.2.0", "1.0.0")
}

func TestMirror(t *testing.T) {
	f, signer := newFlaky(t), newSigner(t)
	first := newRelease(t, f, "1.0.0", "1.1.0")
	mustPublish(t, first.input(f, signer))
	mirror := func() (string, map[string]string) {
		out := t.TempDir()
		c := newClient()
		source := oci.Source{Directory: first.dir}
		digest, err := c.Resolve(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		files, err := c.Open(t.Context(), source, digest)
		if err != nil {
			t.Fatal(err)
		}
		from, err := publish.Mirror(files, out, f.host+"/mirror/bundles")
		if err != nil {
			t.Fatal(err)
		}
		return out, from
	}
	dir, from := mirror()
	in := publish.Input{Dir: dir, Ref: f.host + "/mirror/main:latest", Mirrored: from}
	result := mustPublish(t, in)
	if result.Copied != 2 {
		t.Errorf("%+v", result)
	}
	other, otherFrom := mirror()
	in.Dir, in.Mirrored = other, otherFrom
	if again := mustPublish(t, in); again.Changed {
		t.Errorf("mirrored again it is another catalog: %+v", again)
	}
	content, err := os.ReadFile(dir + "/echo/catalog.json")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(content, []byte("/bundles/main@")) || bytes.Count(content, []byte("/mirror/bundles@")) != 4 {
		t.Errorf("the mirrored catalog is\n%s", content)
	}
}
