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

	"github.com/bellwether-dev/bellwether/outbound"
	"github.com/bellwether-dev/bellwether/version"
)

func parse(image string, a Access) (name.Reference, error) {
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

func (c *Client) remoteOptions(ctx context.Context, a Access) ([]remote.Option, error) {
	t, err := c.transport(a)
	if err != nil {
		return nil, err
	}
	keychain, err := a.keychain()
	if err != nil {
		return nil, err
	}
	return []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(t), remote.WithAuthFromKeychain(keychain),
		remote.WithUserAgent(version.UserAgent("bellwether")),
		// Controllers come back by themselves, with a back-off of their own.
		remote.WithRetryBackoff(remote.Backoff{Duration: c.options.Backoff, Factor: 2, Jitter: 0.1, Steps: 2}),
		remote.WithRetryStatusCodes(), // patientTransport repeats these
	}, nil
}

func (a Access) keychain() (authn.Keychain, error) {
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
	// Helpers are programs that are run here, and others may have written this.
	file.CredentialsStore, file.CredentialHelpers = "", nil
	return keychainFunc(func(registry string) (authn.AuthConfig, error) {
		found, err := file.GetAuthConfig(registry)
		if err != nil {
			return authn.AuthConfig{}, failf(ErrBadSource, "get credentials of %s: %v", registry, err)
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

// transport returns the transport for a kind of access; connections are shared by all that need the same one.
func (c *Client) transport(a Access) (http.RoundTripper, error) {
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
	t := verifyingTransport{patientTransport{inner: credentialGuard{inner}, backoff: c.options.Backoff,
		sleep: outbound.Sleep, now: time.Now}}
	c.transports[key] = t
	return t, nil
}

// stallConn gives up on a peer that neither sends nor takes anything for a while, however long a transfer lasts.
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

// verifyingTransport checks what is fetched by digest. The library does so as well, but its error can be told from
// others by its text only.
type verifyingTransport struct {
	inner http.RoundTripper
}

func (t verifyingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.inner.RoundTrip(req)
	if err != nil || req.Method != http.MethodGet || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	digest, err := v1.NewHash(path.Base(req.URL.Path))
	// A list of referrers is named by the digest of what they refer to.
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

// verifier hashes what passes and turns the end of the wrong content into ErrDigestMismatch.
type verifier struct {
	want v1.Hash
	size int64
	read int64
	hash hash.Hash
}

func newVerifier(want v1.Hash, size int64) verifier {
	return verifier{want: want, size: size, hash: sha256.New()}
}

func (v *verifier) check(p []byte, err error) error {
	v.hash.Write(p)
	v.read += int64(len(p))
	// Some readers report an error of their own in place of the end of wrong content.
	if err == nil || (!errors.Is(err, io.EOF) && v.read != v.size) {
		return err
	}
	if got := hex.EncodeToString(v.hash.Sum(nil)); got != v.want.Hex {
		// The digest of what somebody else has tells what that is, where it is one of a few.
		return &registryError{kind: ErrDigestMismatch, text: fmt.Sprintf("expected %s", v.want),
			detail: fmt.Errorf("got sha256:%s", got)}
	}
	return err
}

func (c *Client) head(ctx context.Context, ref name.Reference, a Access) (string, error) {
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return "", err
	}
	d, err := remote.Head(ref, options...)
	if err == nil {
		return d.Digest.String(), nil
	}
	// Some registries answer HEAD poorly, and none says why it refuses one.
	got, err := remote.Get(ref, options...)
	if err != nil {
		return "", classify(err)
	}
	// Anything has a digest, also a page of a host that is no registry.
	if m, err := v1.ParseManifest(bytes.NewReader(got.Manifest)); err != nil || m.SchemaVersion != 2 {
		return "", failf(ErrFailed, "the answer is no manifest of an image")
	}
	return got.Digest.String(), nil
}

// image fetches the manifest of an image by digest; of several platforms it takes the library's default one. That is
// for catalogs and labels: what of a bundle matters is the same on all platforms, see unpack.
func (c *Client) image(ctx context.Context, image, digest string, a Access) (v1.Image, error) {
	found, err := c.descriptor(ctx, image, digest, a)
	if err != nil {
		return nil, err
	}
	img, err := found.Image()
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", image, classify(err))
	}
	return img, nil
}

// descriptor fetches what a reference names, which may be an index of images for several platforms.
func (c *Client) descriptor(ctx context.Context, image, digest string, a Access) (*remote.Descriptor, error) {
	ref, err := parse(image, a)
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
