// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
	embedded "github.com/bellwether-dev/bellwether/catalogs/registry"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
)

func newSigner(t *testing.T) *sign.Signer {
	t.Helper()
	pair, err := sign.GenerateKey(sign.ECDSA, nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := sign.NewSigner(pair.Private, nil)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func attachSignature(t *testing.T, image string, s *sign.Signer, digest string) {
	t.Helper()
	bundle, err := s.Sign(digest)
	if err != nil {
		t.Fatal(err)
	}
	attach(t, image, oci.Artifact{Type: sign.BundleMediaType, Content: bundle})
}

func attach(t *testing.T, image string, artifact oci.Artifact) string {
	t.Helper()
	digest, err := oci.NewClient(oci.Options{}).Attach(t.Context(), image, artifact, oci.Access{})
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// registries returns a registry with a referrers API and a registry without it.
func registries(t *testing.T) map[string]string {
	t.Helper()
	with := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)),
		registry.WithReferrersSupport(true)))
	t.Cleanup(with.Close)
	return map[string]string{
		"referrers API": strings.TrimPrefix(with.URL, "http://"),
		"fallback tag":  newRegistry(t).host,
		"distribution":  embeddedRegistry(t),
	}
}

func embeddedRegistry(t *testing.T) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- embedded.Serve(ctx, embedded.Options{Ready: func(addr string) { ready <- addr }}) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the registry ended with %v", err)
		}
	})
	select {
	case addr := <-ready:
		return addr
	case err := <-ended:
		ended <- nil
		t.Fatalf("the registry did not start: %v", err)
		return ""
	}
}

func TestAttach(t *testing.T) {
	for name, host := range registries(t) {
		t.Run(name, func(t *testing.T) {
			image := host + "/team/catalog"
			image += "@" + push(t, catalogDir(t), image+":v1")
			c := oci.NewClient(oci.Options{})
			none, err := c.ReadArtifacts(t.Context(), image, "application/x", oci.Access{})
			if err != nil || len(none) > 0 {
				t.Fatalf("at first there is %q, %v", none, err)
			}
			one := attach(t, image, oci.Artifact{Type: "application/x", Content: []byte("one")})
			if again := attach(t, image, oci.Artifact{Type: "application/x", Content: []byte("one")}); again != one {
				t.Errorf("the same artifact got the digests %s and %s", one, again)
			}
			attach(t, image, oci.Artifact{Type: "application/y", Content: []byte("other")})
			got, err := c.ReadArtifacts(t.Context(), image, "application/x", oci.Access{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]byte{[]byte("one")}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	c := oci.NewClient(oci.Options{})
	if _, err := c.Attach(t.Context(), newRegistry(t).image("v1"), oci.Artifact{}, oci.Access{}); !errors.Is(err,
		oci.ErrBadSource) {
		t.Errorf("attached to a tag: %v", err)
	}
	nothing := newRegistry(t).host + "/team/none@sha256:" + strings.Repeat("0", 64)
	if _, err := c.Attach(t.Context(), nothing, oci.Artifact{}, oci.Access{}); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("attached to nothing: %v", err)
	}
}

func TestVerification(t *testing.T) {
	for name, host := range registries(t) {
		t.Run(name, func(t *testing.T) {
			ours, theirs := newSigner(t), newSigner(t)
			tag := host + "/team/catalog:v1"
			digest := push(t, catalogDir(t), tag)
			image := host + "/team/catalog@" + digest
			source := oci.Source{Image: tag,
				Verification: oci.Verification{PublicKeys: [][]byte{newSigner(t).PublicKey(), ours.PublicKey()}}}
			check := func(want error) {
				t.Helper()
				c := oci.NewClient(oci.Options{})
				got, err := c.Resolve(t.Context(), source)
				if !errors.Is(err, want) || (want == nil) != (err == nil) || (err == nil) != (got == digest) {
					t.Errorf("resolve: %q, %v, want %v", got, err, want)
				}
				if _, err := c.Open(t.Context(), source, digest); !errors.Is(err, want) ||
					(want == nil) != (err == nil) {
					t.Errorf("open: %v, want %v", err, want)
				}
			}
			check(oci.ErrUnsigned)
			attach(t, image, oci.Artifact{Type: "application/vnd.cyclonedx+json", Content: []byte("{}")})
			check(oci.ErrUnsigned)
			attachSignature(t, image, theirs, digest)
			check(oci.ErrBadSignature)
			attachSignature(t, image, ours, "sha256:"+strings.Repeat("0", 64))
			check(oci.ErrBadSignature)
			attachSignature(t, image, ours, digest)
			check(nil)
			source.Verification.PublicKeys[1] = []byte("rubbish")
			check(oci.ErrBadSource)
		})
	}
}

func TestDirectoryHasNoSignature(t *testing.T) {
	source := oci.Source{Directory: catalogDir(t),
		Verification: oci.Verification{PublicKeys: [][]byte{newSigner(t).PublicKey()}}}
	if _, err := oci.NewClient(oci.Options{}).Resolve(t.Context(), source); !errors.Is(err, oci.ErrUnsigned) {
		t.Errorf("got %v", err)
	}
}

func TestSignatureIsCached(t *testing.T) {
	r, cache, signer := newRegistry(t), t.TempDir(), newSigner(t)
	digest := push(t, catalogDir(t), r.image("v1"))
	attachSignature(t, r.host+"/team/catalog@"+digest, signer, digest)
	source := oci.Source{Image: r.image("v1"), Verification: oci.Verification{PublicKeys: [][]byte{signer.PublicKey()}}}
	read := func(s oci.Source) error {
		_, err := summary(t.Context(), oci.NewClient(oci.Options{CacheDir: cache, Backoff: time.Millisecond}), s,
			digest)
		return err
	}
	if err := read(source); err != nil {
		t.Fatal(err)
	}
	r.onRequest(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true })
	if err := read(source); err != nil {
		t.Errorf("the registry is away, the signature was read before: %v", err)
	}
	other := source
	other.Verification.PublicKeys = [][]byte{newSigner(t).PublicKey()}
	if err := read(other); !errors.Is(err, oci.ErrFailed) {
		t.Errorf("a kept signature served for another key: %v", err)
	}
	kept, err := filepath.Glob(cache + "/*.sigstore.json")
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	if err := os.WriteFile(kept[0], []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := read(source); !errors.Is(err, oci.ErrFailed) {
		t.Errorf("a kept signature was believed unseen: %v", err)
	}
}

func TestVerificationNeedsTheRegistry(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	source := oci.Source{
		Image:        closed.Addr().String() + "/c@sha256:" + strings.Repeat("0", 64),
		Verification: oci.Verification{PublicKeys: [][]byte{newSigner(t).PublicKey()}},
	}
	if _, err := oci.NewClient(oci.Options{}).Resolve(t.Context(), source); !errors.Is(err, oci.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}
