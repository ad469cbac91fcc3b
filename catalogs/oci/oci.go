// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oci moves catalogs and bundles between directories and OCI registries.
//
// What is pushed is reproducible: the same files give the same digest, whoever pushes them and when. What is read is
// verified against the digest that was asked for, and bounded in size and in time: registries are other people's
// machines.
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

// Errors of this package wrap one of these, or ErrNotCatalog of package catalogs.
var (
	// ErrUnreachable says that the registry gave no answer, or broke off; trying again may help.
	ErrUnreachable = errors.New("registry unreachable")
	// ErrFailed says that the registry answered with an error of its own; the text has the HTTP status. Trying again
	// later may help.
	ErrFailed = errors.New("registry failed")
	// ErrUntrusted says that the registry's certificate is not trusted: by whom it is signed, for which name, or when.
	ErrUntrusted = errors.New("certificate of the registry not trusted")
	// ErrNotFound says that the registry, or the file system, has no such thing.
	ErrNotFound = errors.New("not found")
	// ErrDenied says that the registry wants other credentials.
	ErrDenied = errors.New("access denied")
	// ErrDigestMismatch says that the content does not have the requested digest.
	ErrDigestMismatch = errors.New("digest mismatch")
	// ErrTooLarge says that the content exceeds the limit for what is read.
	ErrTooLarge = errors.New("too large")
	// ErrBadSource says that a source or reference is not written as it must be.
	ErrBadSource = errors.New("bad source")
	// ErrNotBundle says that a directory or an image is no registry+v1 bundle.
	ErrNotBundle = bundles.ErrNotBundle
)

// Source says where a catalog is: exactly one of Image and Directory is set.
type Source struct {
	// Image is an image reference with a tag, a digest, or both.
	Image string
	// Directory holds the catalog's files.
	Directory string
	Access    Access
	// Verification requires a signature: catalogs without one are neither resolved nor opened.
	Verification Verification
}

// String names the source for people.
func (s Source) String() string { return cmp.Or(s.Image, s.Directory) }

// Access says how to talk to a registry. The zero value is what most registries want: TLS, and the credentials of the
// Docker configuration of the process's user, if there is any. Registries on the loopback interface are always spoken
// to without TLS.
type Access struct {
	// Insecure allows plain HTTP and unknown certificates.
	Insecure bool
	// CABundle are PEM certificates to trust besides those of the system.
	CABundle []byte
	// Username and Password are credentials, if Username is set.
	Username, Password string
	// DockerConfig is the content of a Docker config.json, as pull secrets have it. Its credential helpers are not run.
	DockerConfig []byte
}

// Key is equal for equal logins: what was read with one login is not handed out to who has another one. It is empty for
// the login of the process itself.
func (a Access) Key() string {
	if a.Username == "" && len(a.DockerConfig) == 0 {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q %q %q", a.Username, a.Password, a.DockerConfig)))
}

// Options configure a Client. The zero value has no cache and the default limits.
type Options struct {
	// CacheDir keeps catalogs that were read from registries, by digest; it is made when it does not exist. It also
	// records what is being read: a digest is not read again if a process was killed while it read it. Empty means no
	// cache and no record.
	CacheDir string
	// CacheEntries is how many catalogs the cache keeps; zero means 8.
	CacheEntries int
	// Stall is how long a registry may send nothing before it counts as unreachable; zero means 30 seconds.
	Stall time.Duration
	// Backoff is how long to wait before a failed request is repeated, unless the registry says it; it doubles each
	// time. Zero means 200 milliseconds.
	Backoff time.Duration
	// MaxBytes bounds what is read of one catalog, uncompressed; zero means 1 GiB.
	MaxBytes int64
}

// Client reads and writes catalogs. Its methods may be called at the same time.
type Client struct {
	options Options

	mu         sync.Mutex
	transports map[string]http.RoundTripper
	verified   map[string]bool
	// reading are the digests that are being read.
	reading map[string]*reading
}

// NewClient returns a client.
func NewClient(o Options) *Client {
	o.CacheEntries = cmp.Or(o.CacheEntries, 8)
	o.Stall = cmp.Or(o.Stall, 30*time.Second)
	o.Backoff = cmp.Or(o.Backoff, 200*time.Millisecond)
	o.MaxBytes = cmp.Or(o.MaxBytes, 1<<30)
	return &Client{options: o, transports: map[string]http.RoundTripper{}, verified: map[string]bool{},
		reading: map[string]*reading{}}
}

// Resolve returns the digest of what the source holds now. If the source requires a signature, it is verified for that
// digest.
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

func (c *Client) resolve(ctx context.Context, s Source) (string, error) {
	if s.Directory != "" {
		return directoryDigest(s.Directory)
	}
	ref, err := parse(s.Image, s.Access)
	if err != nil {
		return "", err
	}
	if d, ok := ref.(name.Digest); ok {
		return d.DigestStr(), nil
	}
	digest, err := c.head(ctx, ref, s.Access)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", ref, err)
	}
	return digest, nil
}

// Open returns the files of a catalog with that digest. They are read when they are walked, which can be done more than
// once; a walk ends with ErrDigestMismatch if the content turns out to be another one, even if everything in it could
// be parsed. The context covers the walks as well. Where the source asks for a signature and the digest has none,
// nothing is opened.
func (c *Client) Open(ctx context.Context, s Source, digest string) (catalogs.Files, error) {
	if err := c.Verify(ctx, s, digest); err != nil {
		return nil, err
	}
	if s.Directory != "" {
		return c.guard(digest, openDirectory(s.Directory, digest, c.options.MaxBytes)), nil
	}
	files, err := c.openImage(ctx, s, digest)
	if err != nil {
		return nil, err
	}
	return c.guard(digest, files), nil
}
