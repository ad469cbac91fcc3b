// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/api/errcode"
	v2 "github.com/distribution/distribution/v3/registry/api/v2"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/reference"
	"github.com/gorilla/mux"
	"github.com/opencontainers/go-digest"
	imagev1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sirupsen/logrus"
)

// maxManifest is how many bytes a manifest may have; OCI asks for 4 MiB at least.
const maxManifest = 4 << 20

// handler serves the API of the OCI distribution specification 1.1:
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md. It has no API for referrers, so that clients
// fall back to tags. distribution's own handlers would link a client of Redis, notifications and authentication into
// the program.
type handler struct{ store distribution.Namespace }

// serve answers one method of a route. repository is nil for routes that have no name of one.
type serve func(h handler, repository distribution.Repository, w http.ResponseWriter, r *http.Request) error

// routes are the methods of each route.
var routes = map[string]map[string]serve{
	v2.RouteNameBase:       {http.MethodGet: serveBase, http.MethodHead: serveBase},
	v2.RouteNameCatalog:    {http.MethodGet: handler.listRepositories},
	v2.RouteNameTags:       {http.MethodGet: handler.listTags},
	v2.RouteNameBlobUpload: {http.MethodPost: handler.startUpload},
	v2.RouteNameManifest: {http.MethodGet: handler.getManifest, http.MethodHead: handler.getManifest,
		http.MethodPut: handler.putManifest, http.MethodDelete: handler.deleteManifest},
	v2.RouteNameBlob: {http.MethodGet: handler.getBlob, http.MethodHead: handler.getBlob,
		http.MethodDelete: handler.deleteBlob},
	v2.RouteNameBlobUploadChunk: {http.MethodGet: handler.describeUpload, http.MethodHead: handler.describeUpload,
		http.MethodPatch: handler.continueUpload, http.MethodPut: handler.endUpload,
		http.MethodDelete: handler.cancelUpload},
}

func (h handler) router() http.Handler {
	router := v2.RouterWithPrefix("")
	for route, methods := range routes {
		router.GetRoute(route).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Docker-Distribution-API-Version", "registry/2.0")
			if err := h.serve(methods, w, r); err != nil {
				err = explain(err)
				if isOwnFault(err) && r.Context().Err() == nil {
					logrus.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
				}
				_ = errcode.ServeJSON(w, err) // the client has gone
			}
		})
	}
	return router
}

func (h handler) serve(methods map[string]serve, w http.ResponseWriter, r *http.Request) error {
	method, ok := methods[r.Method]
	if !ok {
		w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(methods)), ", "))
		return errcode.ErrorCodeUnsupported.WithMessage("there is no method " + r.Method)
	}
	var repository distribution.Repository
	if text := mux.Vars(r)["name"]; text != "" {
		name, err := reference.WithName(text)
		if err != nil {
			return errcode.ErrorCodeNameInvalid.WithDetail(err.Error())
		}
		if repository, err = h.store.Repository(r.Context(), name); err != nil {
			return err
		}
	}
	return method(h, repository, w, r)
}

// isOwnFault reports whether an error is none of those that a client can cause.
func isOwnFault(err error) bool {
	var coder errcode.ErrorCoder
	return errors.As(err, &coder) && coder.ErrorCode() == errcode.ErrorCodeUnknown
}

// explain returns an error of the API for an error of the store.
func explain(err error) error {
	var (
		coder       errcode.ErrorCoder
		badDigest   distribution.ErrBlobInvalidDigest
		noTag       distribution.ErrTagUnknown
		noRevision  distribution.ErrManifestUnknownRevision
		noManifest  distribution.ErrManifestUnknown
		noName      distribution.ErrRepositoryUnknown
		badManifest distribution.ErrManifestVerification
	)
	switch {
	case errors.As(err, &coder):
		return err
	case errors.Is(err, distribution.ErrBlobUnknown):
		return errcode.ErrorCodeBlobUnknown
	case errors.Is(err, distribution.ErrBlobUploadUnknown):
		return errcode.ErrorCodeBlobUploadUnknown
	case errors.Is(err, distribution.ErrBlobInvalidLength), errors.Is(err, distribution.ErrBlobDigestUnsupported):
		return errcode.ErrorCodeBlobUploadInvalid.WithDetail(err.Error())
	case errors.As(err, &badDigest):
		return errcode.ErrorCodeDigestInvalid.WithDetail(err.Error())
	case errors.As(err, &noTag), errors.As(err, &noRevision), errors.As(err, &noManifest):
		return errcode.ErrorCodeManifestUnknown.WithDetail(err.Error())
	case errors.As(err, &noName):
		return errcode.ErrorCodeNameUnknown.WithDetail(err.Error())
	case errors.As(err, &badManifest):
		return explainManifest(badManifest)
	}
	return errcode.ErrorCodeUnknown.WithDetail(err.Error())
}

func explainManifest(problems distribution.ErrManifestVerification) error {
	var all errcode.Errors
	for _, problem := range problems {
		if missing, ok := errors.AsType[distribution.ErrManifestBlobUnknown](problem); ok {
			all = append(all, errcode.ErrorCodeManifestBlobUnknown.WithDetail(missing.Digest))
		} else {
			all = append(all, errcode.ErrorCodeManifestInvalid.WithDetail(problem.Error()))
		}
	}
	return all
}

func serveBase(_ handler, _ distribution.Repository, w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, struct{}{})
}

func writeJSON(w http.ResponseWriter, value any) error {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the client has gone
	return nil
}

// page reads which part of a list the client wants: up to n entries after last. n is -1 for all of them.
func page(r *http.Request) (n int, last string, err error) {
	n, last = -1, r.URL.Query().Get("last")
	if text := r.URL.Query().Get("n"); text != "" {
		if n, err = strconv.Atoi(text); err != nil || n < 0 {
			return 0, "", errcode.ErrorCodePaginationNumberInvalid.WithDetail(map[string]string{"n": text})
		}
	}
	return n, last, nil
}

// linkNext tells the client where the list goes on.
func linkNext(w http.ResponseWriter, r *http.Request, n int, last string) {
	next := url.URL{Path: r.URL.Path, RawQuery: url.Values{"n": {strconv.Itoa(n)}, "last": {last}}.Encode()}
	w.Header().Set("Link", fmt.Sprintf(`<%s>; rel="next"`, next.String()))
}

func (h handler) listRepositories(_ distribution.Repository, w http.ResponseWriter, r *http.Request) error {
	n, last, err := page(r)
	if err != nil {
		return err
	}
	repositories := []string{}
	if n != 0 {
		const most = 1000
		if n < 0 || n > most {
			n = most
		}
		buffer := make([]string, n)
		found, err := h.store.Repositories(r.Context(), buffer, last)
		var empty driver.PathNotFoundError
		if err != nil && !errors.Is(err, io.EOF) && !errors.As(err, &empty) {
			return err
		}
		repositories = buffer[:found]
		if err == nil && found > 0 {
			linkNext(w, r, n, repositories[found-1])
		}
	}
	return writeJSON(w, map[string][]string{"repositories": repositories})
}

func (handler) listTags(repository distribution.Repository, w http.ResponseWriter, r *http.Request) error {
	n, last, err := page(r)
	if err != nil {
		return err
	}
	tags := []string{}
	if n != 0 {
		found, err := repository.Tags(r.Context()).List(r.Context(), n, last)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		tags = append(tags, found...)
		if err == nil && len(tags) > 0 {
			linkNext(w, r, n, tags[len(tags)-1])
		}
	}
	return writeJSON(w, struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}{repository.Named().Name(), tags})
}

// find returns the digest of the manifest that a request names. The second result is the tag, or empty if the request
// names the digest.
func find(r *http.Request, repository distribution.Repository) (digest.Digest, string, error) {
	text := mux.Vars(r)["reference"]
	if found, err := digest.Parse(text); err == nil {
		return found, "", nil
	}
	found, err := repository.Tags(r.Context()).Get(r.Context(), text)
	return found.Digest, text, err
}

func (handler) getManifest(repository distribution.Repository, w http.ResponseWriter, r *http.Request) error {
	id, _, err := find(r, repository)
	if err != nil {
		return err
	}
	manifests, err := repository.Manifests(r.Context())
	if err != nil {
		return err
	}
	manifest, err := manifests.Get(r.Context(), id)
	if err != nil {
		return err
	}
	mediaType, text, err := manifest.Payload()
	if err != nil {
		return err
	}
	etag := strconv.Quote(id.String())
	w.Header().Set("Docker-Content-Digest", id.String())
	w.Header().Set("ETag", etag)
	if strings.Contains(strings.Join(r.Header.Values("If-None-Match"), ","), id.String()) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(text) //nolint:gosec // no browser runs what has the media type of a manifest
	}
	return nil
}

func (handler) putManifest(repository distribution.Repository, w http.ResponseWriter, r *http.Request) error {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
	if err != nil {
		return errcode.ErrorCodeManifestInvalid.WithDetail(err.Error())
	}
	manifest, descriptor, err := distribution.UnmarshalManifest(r.Header.Get("Content-Type"), text)
	if err != nil {
		return errcode.ErrorCodeManifestInvalid.WithDetail(err.Error())
	}
	tag := mux.Vars(r)["reference"]
	if id, err := digest.Parse(tag); err == nil {
		if tag = ""; id != descriptor.Digest {
			return errcode.ErrorCodeDigestInvalid.WithDetail("the content has the digest " + descriptor.Digest.String())
		}
	}
	manifests, err := repository.Manifests(r.Context())
	if err != nil {
		return err
	}
	if _, err := manifests.Put(r.Context(), manifest); err != nil {
		return err
	}
	if tag != "" {
		if err := repository.Tags(r.Context()).Tag(r.Context(), tag, descriptor); err != nil {
			return err
		}
	}
	writeCreated(w, repository, "manifests", descriptor.Digest)
	return nil
}

func writeCreated(w http.ResponseWriter, repository distribution.Repository, kind string, id digest.Digest) {
	w.Header().Set("Location", fmt.Sprintf("/v2/%s/%s/%s", repository.Named().Name(), kind, id))
	w.Header().Set("Docker-Content-Digest", id.String())
	w.WriteHeader(http.StatusCreated)
}

// deleteManifest removes a tag, or a manifest with all tags that name it.
func (handler) deleteManifest(repository distribution.Repository, w http.ResponseWriter, r *http.Request) error {
	id, tag, err := find(r, repository)
	if err != nil {
		return err
	}
	tags := repository.Tags(r.Context())
	names := []string{tag}
	if tag == "" {
		manifests, err := repository.Manifests(r.Context())
		if err != nil {
			return err
		}
		err = manifests.Delete(r.Context(), id)
		if errors.Is(err, distribution.ErrBlobUnknown) {
			return errcode.ErrorCodeManifestUnknown
		}
		if err != nil {
			return err
		}
		if names, err = tags.Lookup(r.Context(), imagev1.Descriptor{Digest: id}); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := tags.Untag(r.Context(), name); err != nil {
			return err
		}
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func readDigest(text string) (digest.Digest, error) {
	id, err := digest.Parse(text)
	if err != nil {
		return "", errcode.ErrorCodeDigestInvalid.WithDetail(err.Error())
	}
	return id, nil
}

func (handler) getBlob(repository distribution.Repository, w http.ResponseWriter, r *http.Request) error {
	id, err := readDigest(mux.Vars(r)["digest"])
	if err != nil {
		return err
	}
	return repository.Blobs(r.Context()).ServeBlob(r.Context(), w, r, id)
}

func (handler) deleteBlob(repository distribution.Repository, w http.ResponseWriter, r *http.Request) error {
	id, err := readDigest(mux.Vars(r)["digest"])
	if err != nil {
		return err
	}
	if err := repository.Blobs(r.Context()).Delete(r.Context(), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// startUpload starts the upload of a blob, unless it can be mounted from the repository that the client names.
func (handler) startUpload(repository distribution.Repository, w http.ResponseWriter, r *http.Request) error {
	var options []distribution.BlobCreateOption
	from, fromErr := reference.WithName(r.URL.Query().Get("from"))
	id, idErr := digest.Parse(r.URL.Query().Get("mount"))
	if fromErr == nil && idErr == nil {
		blob, err := reference.WithDigest(from, id)
		if err != nil {
			return err
		}
		options = append(options, storage.WithMountFrom(blob))
	}
	upload, err := repository.Blobs(r.Context()).Create(r.Context(), options...)
	if mounted, ok := errors.AsType[distribution.ErrBlobMounted](err); ok {
		writeCreated(w, repository, "blobs", mounted.Descriptor.Digest)
		return nil
	}
	if err != nil {
		return err
	}
	return leaveUpload(upload, repository, w, http.StatusAccepted)
}

// leaveUpload keeps what was uploaded for the next request, and tells the client where to go on.
func leaveUpload(upload distribution.BlobWriter, repository distribution.Repository, w http.ResponseWriter,
	status int) error {
	if err := upload.Close(); err != nil {
		return err
	}
	w.Header().Set("Location", fmt.Sprintf("/v2/%s/blobs/uploads/%s?offset=%d", repository.Named().Name(), upload.ID(),
		upload.Size()))
	w.Header().Set("Docker-Upload-UUID", upload.ID())
	w.Header().Set("Range", fmt.Sprintf("0-%d", max(0, upload.Size()-1)))
	w.WriteHeader(status)
	return nil
}

func resume(r *http.Request, repository distribution.Repository) (distribution.BlobWriter, error) {
	return repository.Blobs(r.Context()).Resume(r.Context(), mux.Vars(r)["uuid"])
}

func (handler) describeUpload(repository distribution.Repository, w http.ResponseWriter, r *http.Request) error {
	upload, err := resume(r, repository)
	if err != nil {
		return err
	}
	return leaveUpload(upload, repository, w, http.StatusNoContent)
}

func (handler) continueUpload(repository distribution.Repository, w http.ResponseWriter, r *http.Request) error {
	upload, err := resume(r, repository)
	if err != nil {
		return err
	}
	if err := write(upload, r); err != nil {
		_ = upload.Close() // the client hears of the first error
		return err
	}
	return leaveUpload(upload, repository, w, http.StatusAccepted)
}

// write adds the body of a request to an upload, unless the client takes the upload for shorter or longer than it is:
// a request that was sent again would be added twice.
func write(upload distribution.BlobWriter, r *http.Request) error {
	if text := r.URL.Query().Get("offset"); text != "" && text != strconv.FormatInt(upload.Size(), 10) {
		return errcode.ErrorCodeRangeInvalid.WithDetail(fmt.Sprintf("%d bytes are there", upload.Size()))
	}
	if text := r.Header.Get("Content-Range"); text != "" {
		first, _, _ := strings.Cut(text, "-")
		if start, err := strconv.ParseInt(first, 10, 64); err != nil || start != upload.Size() {
			return errcode.ErrorCodeRangeInvalid.WithDetail(fmt.Sprintf("%d bytes are there", upload.Size()))
		}
	}
	if _, err := io.Copy(upload, r.Body); err != nil {
		return errcode.ErrorCodeBlobUploadInvalid.WithDetail(err.Error())
	}
	return nil
}

func (handler) endUpload(repository distribution.Repository, w http.ResponseWriter, r *http.Request) error {
	id, err := readDigest(r.URL.Query().Get("digest"))
	if err != nil {
		return err
	}
	upload, err := resume(r, repository)
	if err != nil {
		return err
	}
	if err := write(upload, r); err != nil {
		_ = upload.Close() // the client hears of the first error
		return err
	}
	blob, err := upload.Commit(r.Context(), imagev1.Descriptor{Digest: id})
	if err != nil {
		if failed, resumeErr := resume(r, repository); resumeErr == nil {
			_ = failed.Cancel(r.Context()) // the client hears of the first error
		}
		return err
	}
	writeCreated(w, repository, "blobs", blob.Digest)
	return nil
}

func (handler) cancelUpload(repository distribution.Repository, w http.ResponseWriter, r *http.Request) error {
	upload, err := resume(r, repository)
	if err != nil {
		return err
	}
	if err := upload.Cancel(r.Context()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
