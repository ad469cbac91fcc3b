// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/docker/cli/cli/config"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/bellwether-dev/bellwether/internal/outbound"
	"github.com/bellwether-dev/bellwether/internal/version"
)

func parseReference(image string, a Access) (name.Reference, error) {
	var options []name.Option
	if a.Insecure {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(image, options...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadSource, err)
	}
	return ref, nil
}

// remoteOptions returns the options of the library for requests with a kind of access.
func (c *Client) remoteOptions(ctx context.Context, a Access) ([]remote.Option, error) {
	t, err := c.ensureTransport(a)
	if err != nil {
		return nil, err
	}
	keychain, err := a.newKeychain()
	if err != nil {
		return nil, err
	}
	return []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(t), remote.WithAuthFromKeychain(keychain),
		remote.WithUserAgent(version.UserAgent("bellwether")),
		// Controllers repeat their work by themselves, with their own back-off.
		remote.WithRetryBackoff(remote.Backoff{Duration: c.options.Backoff, Factor: 2, Jitter: 0.1, Steps: 2}),
		remote.WithRetryStatusCodes(), // retryTransport repeats requests by their status
	}, nil
}

// newKeychain returns the credentials for requests.
func (a Access) newKeychain() (authn.Keychain, error) {
	switch {
	case a.Username != "":
		return fixedKeychain{authn.AuthConfig{Username: a.Username, Password: a.Password}}, nil
	case len(a.DockerConfig) == 0:
		return authn.DefaultKeychain, nil
	}
	file, err := config.LoadFromReader(bytes.NewReader(a.DockerConfig))
	if err != nil {
		return nil, fmt.Errorf("%w: read Docker configuration: %w", ErrBadSource, err)
	}
	// Helpers are programs that would run here, and another user might have written this configuration.
	file.CredentialsStore, file.CredentialHelpers = "", nil
	return keychainFunc(func(registry string) (authn.AuthConfig, error) {
		found, err := file.GetAuthConfig(registry)
		if err != nil {
			return authn.AuthConfig{}, errorf(ErrBadSource, "get credentials of %s: %v", registry, err)
		}
		return authn.AuthConfig{
			Username: found.Username, Password: found.Password, Auth: found.Auth,
			IdentityToken: found.IdentityToken, RegistryToken: found.RegistryToken,
		}, nil
	}), nil
}

type fixedKeychain struct{ auth authn.AuthConfig }

func (k fixedKeychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	return authn.FromConfig(k.auth), nil
}

type keychainFunc func(registry string) (authn.AuthConfig, error)

// Resolve returns the credentials for a registry, or anonymous access if there are none. Docker's own registry has
// another key in the configuration.
func (f keychainFunc) Resolve(r authn.Resource) (authn.Authenticator, error) {
	key := r.RegistryStr()
	if key == name.DefaultRegistry {
		key = authn.DefaultAuthKey
	}
	auth, err := f(key)
	if err != nil {
		return nil, err
	}
	if auth == (authn.AuthConfig{}) {
		return authn.Anonymous, nil
	}
	return authn.FromConfig(auth), nil
}

// ensureTransport returns the transport for a kind of access, and creates it if necessary. All requests with the same
// kind of access share connections.
func (c *Client) ensureTransport(a Access) (http.RoundTripper, error) {
	key := fmt.Sprintf("%t %x", a.Insecure, sha256.Sum256(a.CABundle))
	c.mu.Lock()
	defer c.mu.Unlock()
	if t, ok := c.transports[key]; ok {
		return t, nil
	}
	//nolint:gosec // Insecure asks for it.
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: a.Insecure}
	if len(a.CABundle) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(a.CABundle) {
			return nil, fmt.Errorf("%w: the CA bundle holds no PEM certificate", ErrBadSource)
		}
		tlsConfig.RootCAs = pool
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: refuseMetadata}
	inner := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: tlsConfig,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return stallConn{conn, c.options.Stall}, nil
		},
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: c.options.Stall,
		IdleConnTimeout:       c.options.Stall,
		MaxIdleConnsPerHost:   4,
		ForceAttemptHTTP2:     true,
	}
	t := verifyingTransport{retryTransport{inner: credentialGuard{inner}, backoff: c.options.Backoff,
		sleep: outbound.Sleep, now: time.Now}}
	c.transports[key] = t
	return t, nil
}

// stallConn fails if the peer neither sends nor receives anything for the duration stall. A transfer can last longer.
type stallConn struct {
	net.Conn
	stall time.Duration
}

func (c stallConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c stallConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// verifyingTransport verifies content that is fetched by digest. The library verifies it too, but its error can be
// distinguished from other errors by its text only.
type verifyingTransport struct {
	inner http.RoundTripper
}

// RoundTrip makes the body of a response fail if its content does not have the digest in the path.
func (t verifyingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.inner.RoundTrip(req)
	if err != nil || req.Method != http.MethodGet || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	digest, err := v1.NewHash(path.Base(req.URL.Path))
	// The path of a list of referrers ends with the digest of their subject, not of the list.
	if err == nil && digest.Algorithm == "sha256" && path.Base(path.Dir(req.URL.Path)) != "referrers" {
		resp.Body = &verifiedBody{ReadCloser: resp.Body, verifier: newVerifier(digest, resp.ContentLength)}
	}
	return resp, nil
}

type verifiedBody struct {
	io.ReadCloser
	verifier verifier
}

func (b *verifiedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	return n, b.verifier.check(p[:n], err)
}

// verifier hashes the content that is read. At the end of wrong content it returns ErrDigestMismatch.
type verifier struct {
	expected v1.Hash
	size     int64
	read     int64
	hash     hash.Hash
}

func newVerifier(want v1.Hash, size int64) verifier {
	return verifier{expected: want, size: size, hash: sha256.New()}
}

// check hashes p, the bytes that were just read, and returns the error for the caller of Read: err, the error of the
// inner reader, or ErrDigestMismatch at the end of wrong content.
func (v *verifier) check(p []byte, err error) error {
	v.hash.Write(p)
	v.read += int64(len(p))
	// Some readers return another error instead of io.EOF at the end of wrong content.
	isAtEnd := errors.Is(err, io.EOF) || v.read == v.size
	if err == nil || !isAtEnd {
		return err
	}
	if got := hex.EncodeToString(v.hash.Sum(nil)); got != v.expected.Hex {
		// The digest of the content of another host is a detail, because it could identify the content.
		return &registryError{kind: ErrDigestMismatch, text: fmt.Sprintf("expected %s", v.expected),
			detail: fmt.Errorf("got sha256:%s", got)}
	}
	return err
}

// resolveReference returns the digest of a reference.
func (c *Client) resolveReference(ctx context.Context, ref name.Reference, a Access) (string, error) {
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return "", err
	}
	d, err := remote.Head(ref, options...)
	if err == nil {
		return d.Digest.String(), nil
	}
	// Some registries answer HEAD badly, and no registry reports why it refuses a HEAD request.
	got, err := remote.Get(ref, options...)
	if err != nil {
		return "", classify(err)
	}
	// Any response has a digest, even a page of a host that is not a registry.
	if m, err := v1.ParseManifest(bytes.NewReader(got.Manifest)); err != nil || m.SchemaVersion != 2 {
		return "", errorf(ErrFailed, "the answer is no manifest of an image")
	}
	return got.Digest.String(), nil
}

// fetchImage fetches the manifest of an image by digest. If the image has several platforms, it returns the library's
// default platform. This is enough for catalogs and labels. For bundles, unpack checks that the content is the same
// on all platforms.
func (c *Client) fetchImage(ctx context.Context, image, digest string, a Access) (v1.Image, error) {
	found, err := c.fetchDescriptor(ctx, image, digest, a)
	if err != nil {
		return nil, err
	}
	img, err := found.Image()
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", image, classify(err))
	}
	return img, nil
}

// fetchDescriptor fetches the manifest of a reference, which can be an index of images for several platforms. If
// digest is not empty, it must be the digest of the manifest.
func (c *Client) fetchDescriptor(ctx context.Context, image, digest string, a Access) (*remote.Descriptor, error) {
	ref, err := parseReference(image, a)
	if err != nil {
		return nil, err
	}
	if d, ok := ref.(name.Digest); ok && digest != "" && d.DigestStr() != digest {
		return nil, fmt.Errorf("%w: the source names %s, but %s was expected", ErrDigestMismatch, d.DigestStr(),
			digest)
	}
	if digest != "" {
		if _, err := v1.NewHash(digest); err != nil || !strings.HasPrefix(digest, "sha256:") {
			return nil, fmt.Errorf("%w: %q is no sha256 digest", ErrBadSource, digest)
		}
		ref = ref.Context().Digest(digest)
	}
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return nil, err
	}
	found, err := remote.Get(ref, options...)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", ref, classify(err))
	}
	return found, nil
}
