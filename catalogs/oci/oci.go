// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oci moves catalogs and bundles between directories and OCI registries.
//
// Pushed images are reproducible: the same files always give the same digest. Content that is read is verified
// against the requested digest, and bounded in size and time, because registries are not under our control.
package oci

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
)

// Errors of this package wrap one of these errors, or ErrNotCatalog of package catalogs.
var (
	// ErrUnreachable means that the registry did not respond, or broke off; a retry can help.
	ErrUnreachable = errors.New("registry unreachable")
	// ErrFailed means that the registry responded with an error; the text has the HTTP status. A later retry can help.
	ErrFailed = errors.New("registry failed")
	// ErrUntrusted means that the registry's certificate is not trusted, because of its issuer, its name or
	// its validity.
	ErrUntrusted = errors.New("certificate of the registry not trusted")
	// ErrNotFound means that the registry, or the file system, does not have the requested object.
	ErrNotFound = errors.New("not found")
	// ErrDenied means that the registry refuses the credentials, or that this package refuses the connection.
	ErrDenied = errors.New("access denied")
	// ErrDigestMismatch means that the content does not have the requested digest.
	ErrDigestMismatch = errors.New("digest mismatch")
	// ErrTooLarge means that the content exceeds the limit for reading.
	ErrTooLarge = errors.New("too large")
	// ErrBadSource means that a source or reference is malformed.
	ErrBadSource = errors.New("bad source")
	// ErrNotBundle means that a directory or an image is not a registry+v1 bundle.
	ErrNotBundle = bundles.ErrNotBundle
)

// Source is the place of a catalog. Exactly one of Image and Directory is set.
type Source struct {
	// Image is an image reference with a tag, a digest, or both.
	Image string
	// Directory contains the catalog's files.
	Directory string
	Access    Access
	// Verification requires a signature: catalogs without a valid signature are neither resolved nor opened.
	Verification Verification
}

// String returns the image or directory for messages.
func (s Source) String() string { return cmp.Or(s.Image, s.Directory) }

// Access defines how to connect to a registry. The zero value is right for most registries: TLS, and the credentials of
// the Docker configuration of the process's user, if there are any. Registries on the loopback interface are always
// used without TLS.
type Access struct {
	// Insecure allows plain HTTP and unknown certificates.
	Insecure bool
	// CABundle are PEM certificates to trust besides those of the system.
	CABundle []byte
	// Username and Password are credentials, if Username is set.
	Username, Password string
	// DockerConfig is the content of a Docker config.json, as in pull secrets. Its credential helpers are not run.
	DockerConfig []byte
}

// Key returns a key that is equal for equal logins, because content that was read with one login must not be given to
// users of another login. It is empty for the login of the process itself.
func (a Access) Key() string {
	if a.Username == "" && len(a.DockerConfig) == 0 {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q %q %q", a.Username, a.Password, a.DockerConfig)))
}

// Options configure a Client. The zero value has no cache and the default limits.
type Options struct {
	// CacheDir keeps catalogs that were read from registries, by digest; it is created if it does not exist. It also
	// records which digests are being read: if a process was killed while it read a digest, that digest is not read
	// again. Empty means no cache and no record.
	CacheDir string
	// CacheEntries is the number of catalogs that the cache keeps; zero means 8.
	CacheEntries int
	// Stall is how long a registry can send nothing before it counts as unreachable; zero means 30 seconds.
	Stall time.Duration
	// Backoff is the time before a failed request is repeated, unless the registry sends a time; it doubles each
	// time. Zero means 200 milliseconds.
	Backoff time.Duration
	// MaxBytes bounds the uncompressed bytes that are read of one catalog; zero means 1 GiB.
	MaxBytes int64
}

// Client reads and writes catalogs. Its methods can be called concurrently.
type Client struct {
	options Options

	mu         sync.Mutex
	transports map[string]http.RoundTripper
	verified   map[string]bool
	// reading are the digests that are being read; nil after Close.
	reading map[string]*activeRead
}

// NewClient returns a client. Zero fields of o get their defaults.
func NewClient(o Options) *Client {
	o.CacheEntries = cmp.Or(o.CacheEntries, 8)
	o.Stall = cmp.Or(o.Stall, 30*time.Second)
	o.Backoff = cmp.Or(o.Backoff, 200*time.Millisecond)
	o.MaxBytes = cmp.Or(o.MaxBytes, 1<<30)
	return &Client{options: o, transports: map[string]http.RoundTripper{}, verified: map[string]bool{},
		reading: map[string]*activeRead{}}
}

// Resolve returns the present digest of the source. If the source requires a signature, it is verified for
// that digest.
func (c *Client) Resolve(ctx context.Context, s Source) (string, error) {
	digest, err := c.resolve(ctx, s)
	if err != nil {
		return "", err
	}
	if err := c.Verify(ctx, s, digest); err != nil {
		return "", err
	}
	return digest, nil
}

// resolve returns the digest of the files in a directory, of a reference by digest, or of the image that a tag names.
func (c *Client) resolve(ctx context.Context, s Source) (string, error) {
	if s.Directory != "" {
		return digestDirectory(s.Directory)
	}
	ref, err := parseReference(s.Image, s.Access)
	if err != nil {
		return "", err
	}
	if d, ok := ref.(name.Digest); ok {
		return d.DigestStr(), nil
	}
	digest, err := c.resolveReference(ctx, ref, s.Access)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", ref, err)
	}
	return digest, nil
}

// Open returns the files of the catalog with that digest. They are read when they are walked, and can be walked more
// than once. A walk ends with ErrDigestMismatch if the content has another digest, even if all of it could be parsed.
// The context covers the walks too. If the source requires a signature and the digest has none, nothing is opened.
func (c *Client) Open(ctx context.Context, s Source, digest string) (catalogs.Files, error) {
	if err := c.Verify(ctx, s, digest); err != nil {
		return nil, err
	}
	if s.Directory != "" {
		return c.recordReads(digest, openDirectory(s.Directory, digest, c.options.MaxBytes)), nil
	}
	files, err := c.openImage(ctx, s, digest)
	if err != nil {
		return nil, err
	}
	return c.recordReads(digest, files), nil
}
