// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	containerv1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/bellwether-dev/bellwether/catalogs/registry"
)

// answer is what a registry answered.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request to the registry at an address.
func ask(t *testing.T, method, addr, path, body string, header ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

// check fails the test unless the status is the expected one, and the body contains a text.
func (a answer) check(t *testing.T, status int, want string) {
	t.Helper()
	if a.status != status || !strings.Contains(a.body, want) {
		t.Fatalf("status %d, body %s; want %d and %s", a.status, a.body, status, want)
	}
}

func digestOf(t *testing.T, text string) string {
	t.Helper()
	id, _, err := containerv1.SHA256(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

// TestUploadInChunks uploads a blob in three requests; between two of them the registry starts anew.
func TestUploadInChunks(t *testing.T) {
	root := filepath.Join(t.TempDir(), "registry")
	addr, stop := start(t, registry.Options{Root: root})
	began := ask(t, http.MethodPost, addr, "/v2/some/image/blobs/uploads/", "")
	began.check(t, http.StatusAccepted, "")
	upload, _, _ := strings.Cut(began.header.Get("Location"), "?")
	part := ask(t, http.MethodPatch, addr, upload, "hello, ", "Content-Range", "0-6")
	part.check(t, http.StatusAccepted, "")
	if got := part.header.Get("Range"); got != "0-6" {
		t.Errorf("range %q", got)
	}
	stop()
	addr, _ = start(t, registry.Options{Root: root})
	if got := ask(t, http.MethodGet, addr, upload, ""); got.header.Get("Range") != "0-6" {
		t.Errorf("the upload after the new start: %+v", got)
	}
	ask(t, http.MethodPatch, addr, upload, "x", "Content-Range", "3-3").check(t,
		http.StatusRequestedRangeNotSatisfiable, "7 bytes are there")
	ask(t, http.MethodPatch, addr, began.header.Get("Location"), "hello, ").check(t,
		http.StatusRequestedRangeNotSatisfiable, "7 bytes are there")
	ask(t, http.MethodPatch, addr, upload, "wor", "Content-Range", "7-9").check(t, http.StatusAccepted, "")
	id := digestOf(t, "hello, world")
	ended := ask(t, http.MethodPut, addr, upload+"?digest="+id, "ld")
	ended.check(t, http.StatusCreated, "")
	ask(t, http.MethodGet, addr, ended.header.Get("Location"), "").check(t, http.StatusOK, "hello, world")
	ask(t, http.MethodGet, addr, ended.header.Get("Location"), "", "Range", "bytes=7-8").check(t,
		http.StatusPartialContent, "wo")
	ask(t, http.MethodGet, addr, upload, "").check(t, http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN")

	mounted := ask(t, http.MethodPost, addr, "/v2/other/blobs/uploads/?mount="+id+"&from=some/image", "")
	mounted.check(t, http.StatusCreated, "")
	ask(t, http.MethodGet, addr, mounted.header.Get("Location"), "").check(t, http.StatusOK, "hello, world")
	ask(t, http.MethodDelete, addr, mounted.header.Get("Location"), "").check(t, http.StatusAccepted, "")
	ask(t, http.MethodGet, addr, mounted.header.Get("Location"), "").check(t, http.StatusNotFound, "BLOB_UNKNOWN")
	ask(t, http.MethodGet, addr, ended.header.Get("Location"), "").check(t, http.StatusOK, "hello, world")
}

// TestRefused sends requests that the registry refuses with an error of the specification.
func TestRefused(t *testing.T) {
	addr, _ := start(t, registry.Options{})
	upload := ask(t, http.MethodPost, addr, "/v2/a/blobs/uploads/", "").header.Get("Location")
	other := ask(t, http.MethodPost, addr, "/v2/a/blobs/uploads/", "").header.Get("Location")
	const image = "application/vnd.oci.image.manifest.v1+json"
	missing := `{"schemaVersion": 2, "mediaType": "` + image + `", "layers": [], "config": {"size": 1, "digest": "` +
		digestOf(t, "c") + `", "mediaType": "application/vnd.oci.image.config.v1+json"}}`
	for name, test := range map[string]struct {
		method, path, body string
		status             int
		code               string
	}{
		"unknown tag":      {http.MethodGet, "/v2/a/manifests/latest", "", http.StatusNotFound, "MANIFEST_UNKNOWN"},
		"unknown manifest": {http.MethodHead, "/v2/a/manifests/" + digestOf(t, "a"), "", http.StatusNotFound, ""},
		"unknown blob": {http.MethodGet, "/v2/a/blobs/" + digestOf(t, "a"), "", http.StatusNotFound,
			"BLOB_UNKNOWN"},
		"unknown name": {http.MethodGet, "/v2/b/tags/list", "", http.StatusNotFound, "NAME_UNKNOWN"},
		"no digest":    {http.MethodPut, upload, "", http.StatusBadRequest, "DIGEST_INVALID"},
		"another digest": {http.MethodPut, other + "&digest=" + digestOf(t, "a"), "b", http.StatusBadRequest,
			"DIGEST_INVALID"},
		"no manifest to delete": {http.MethodDelete, "/v2/a/manifests/" + digestOf(t, "a"), "", http.StatusNotFound,
			"MANIFEST_UNKNOWN"},
		"no manifest": {http.MethodPut, "/v2/a/manifests/latest", "{", http.StatusBadRequest, "MANIFEST_INVALID"},
		"missing blob": {http.MethodPut, "/v2/a/manifests/latest", missing, http.StatusBadRequest,
			"MANIFEST_BLOB_UNKNOWN"},
		"digest of another manifest": {http.MethodPut, "/v2/a/manifests/" + digestOf(t, "a"), missing,
			http.StatusBadRequest, "DIGEST_INVALID"},
		"large manifest": {http.MethodPut, "/v2/a/manifests/latest", strings.Repeat(" ", 5<<20), http.StatusBadRequest,
			"MANIFEST_INVALID"},
		"number":  {http.MethodGet, "/v2/_catalog?n=-1", "", http.StatusBadRequest, "PAGINATION_NUMBER_INVALID"},
		"method":  {http.MethodPost, "/v2/_catalog", "", http.StatusMethodNotAllowed, "UNSUPPORTED"},
		"no path": {http.MethodGet, "/v2/a/referers", "", http.StatusNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ask(t, test.method, addr, test.path, test.body, "Content-Type", image).check(t, test.status, test.code)
		})
	}
}

// TestLists pushes five images, and reads the names and tags in pages.
func TestLists(t *testing.T) {
	addr, _ := start(t, registry.Options{})
	ask(t, http.MethodGet, addr, "/v2/", "").check(t, http.StatusOK, "{}")
	ask(t, http.MethodHead, addr, "/v2/", "").check(t, http.StatusOK, "")
	if got := ask(t, http.MethodPost, addr, "/v2/_catalog", ""); got.header.Get("Allow") != http.MethodGet {
		t.Errorf("the permitted methods are not told: %v", got.header)
	}
	ask(t, http.MethodGet, addr, "/v2/_catalog", "").check(t, http.StatusOK, `{"repositories":[]}`)
	for i := range 5 {
		push(t, addr, "some/image:v"+string(rune('0'+i)), empty.Image)
		push(t, addr, "other"+string(rune('0'+i))+":latest", empty.Image)
	}
	for path, want := range map[string][]string{
		"/v2/some/image/tags/list?n=2": {"v0", "v1", "v2", "v3", "v4"},
		"/v2/some/image/tags/list":     {"v0", "v1", "v2", "v3", "v4"},
		"/v2/_catalog?n=4":             {"other0", "other1", "other2", "other3", "other4", "some/image"},
		"/v2/_catalog?n=0":             nil,
	} {
		var got []string
		for next := path; next != ""; {
			one := ask(t, http.MethodGet, addr, next, "")
			one.check(t, http.StatusOK, "")
			var list struct{ Repositories, Tags []string }
			if err := json.Unmarshal([]byte(one.body), &list); err != nil {
				t.Fatal(err)
			}
			got = append(got, append(list.Repositories, list.Tags...)...)
			next, _, _ = strings.Cut(strings.TrimPrefix(one.header.Get("Link"), "<"), ">")
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

func push(t *testing.T, addr, tag string, image containerv1.Image) {
	t.Helper()
	reference, err := name.ParseReference(addr + "/" + tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, image); err != nil {
		t.Fatal(err)
	}
}

// TestDeleted deletes a tag, then the manifest that two other tags name.
func TestDeleted(t *testing.T) {
	addr, _ := start(t, registry.Options{})
	for _, tag := range []string{"a", "b", "c"} {
		push(t, addr, "some/image:"+tag, empty.Image)
	}
	id, err := empty.Image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	const manifests = "/v2/some/image/manifests/"
	ask(t, http.MethodDelete, addr, manifests+"a", "").check(t, http.StatusAccepted, "")
	ask(t, http.MethodGet, addr, "/v2/some/image/tags/list", "").check(t, http.StatusOK, `"tags":["b","c"]`)
	got := ask(t, http.MethodGet, addr, manifests+id.String(), "")
	got.check(t, http.StatusOK, "layers")
	ask(t, http.MethodGet, addr, manifests+"b", "", "If-None-Match", got.header.Get("ETag")).check(t,
		http.StatusNotModified, "")
	ask(t, http.MethodDelete, addr, manifests+id.String(), "").check(t, http.StatusAccepted, "")
	ask(t, http.MethodGet, addr, manifests+"b", "").check(t, http.StatusNotFound, "MANIFEST_UNKNOWN")
	ask(t, http.MethodGet, addr, manifests+id.String(), "").check(t, http.StatusNotFound, "MANIFEST_UNKNOWN")
}

// TestIndexOfImages pushes an index with two images, and pulls one of them through it.
func TestIndexOfImages(t *testing.T) {
	addr, _ := start(t, registry.Options{})
	index, err := random.Index(1000, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	image, err := random.Image(2000, 1)
	if err != nil {
		t.Fatal(err)
	}
	index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: containerv1.Descriptor{
		Platform: &containerv1.Platform{OS: "linux", Architecture: "arm64"}}})
	if err := remote.WriteIndex(ref(t, addr), index); err != nil {
		t.Fatal(err)
	}
	platform := containerv1.Platform{OS: "linux", Architecture: "arm64"}
	got, err := remote.Image(ref(t, addr), remote.WithPlatform(platform))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(got); err != nil {
		t.Error(err)
	}
	a, err := got.Digest()
	if b, _ := image.Digest(); err != nil || a != b {
		t.Errorf("digest %v (%v), want %v", a, err, b)
	}
}
