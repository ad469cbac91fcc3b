// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bellwether-dev/bellwether/catalogs/sign"
)

// Errors of verification.
var (
	// ErrUnsigned means that a signature is required, but there is none.
	ErrUnsigned = sign.ErrUnsigned
	// ErrBadSignature means that there are signatures, but none by a trusted key.
	ErrBadSignature = sign.ErrBadSignature
)

// Verification defines the signature that a catalog requires. The zero value requires none.
type Verification struct {
	// PublicKeys are PEM public keys, one per element; a signature by one of them is enough.
	PublicKeys [][]byte
}

// Required reports whether a signature is required.
func (v Verification) Required() bool { return len(v.PublicKeys) > 0 }

// Verify returns nil if the source requires no signature, or if the image with that digest has a signature by one of
// the keys. Errors wrap ErrUnsigned, ErrBadSignature, ErrBadSource if a key is invalid, or an error about the
// registry such as ErrUnreachable.
//
// A verified digest stays verified for the same keys, because the signature of a digest cannot become invalid. If
// there is a cache directory, the signature is kept there too, and verified again when it is read, so that a restart
// needs no registry.
func (c *Client) Verify(ctx context.Context, s Source, digest string) error {
	if !s.Verification.Required() {
		return nil
	}
	if s.Directory != "" {
		return fmt.Errorf("verify %s: %w: a directory has no signature, only an image can have one", s, ErrUnsigned)
	}
	key := s.Verification.cacheKey(digest)
	if c.isVerified(key) {
		return nil
	}
	keys, err := sign.ParseKeys(s.Verification.PublicKeys...)
	if err != nil {
		return fmt.Errorf("verify %s: %w: %w", s, ErrBadSource, err)
	}
	if cached, ok := c.readCachedSignature(digest); ok && keys.Verify([][]byte{cached}, digest) == nil {
		c.setVerified(key)
		return nil
	}
	if err := c.verifyRemote(ctx, s, keys, digest); err != nil {
		return fmt.Errorf("verify %s: %w", s, err)
	}
	c.setVerified(key)
	return nil
}

// verifyRemote verifies a digest with the signatures in the registry, and caches the valid signature.
func (c *Client) verifyRemote(ctx context.Context, s Source, keys sign.Keys, digest string) error {
	ref, err := parseReference(s.Image, s.Access)
	if err != nil {
		return err
	}
	var signatures [][]byte
	err = c.visitArtifacts(ctx, ref.Context().Digest(digest).String(), sign.BundleMediaType, s.Access,
		func(signature []byte) bool {
			if keys.Verify([][]byte{signature}, digest) == nil {
				c.cacheSignature(digest, signature)
				signatures = [][]byte{signature} // one valid signature is enough
				return false
			}
			signatures = append(signatures, signature)
			return true
		})
	if err != nil {
		return err
	}
	return keys.Verify(signatures, digest)
}

// SignatureArtifact returns a signature as an artifact. cosign finds the artifact by its annotations.
func SignatureArtifact(bundle []byte) Artifact { return StatementArtifact(bundle, sign.PredicateType) }

// StatementArtifact returns a statement of a Signer as an artifact.
func StatementArtifact(bundle []byte, predicateType string) Artifact {
	return Artifact{Type: sign.BundleMediaType, Content: bundle, Annotations: map[string]string{
		"dev.sigstore.bundle.content":       "dsse-envelope",
		"dev.sigstore.bundle.predicateType": predicateType,
	}}
}

// cacheKey returns a key for the digest and the public keys together.
func (v Verification) cacheKey(digest string) string {
	sum := sha256.Sum256(bytes.Join(v.PublicKeys, []byte{0}))
	return fmt.Sprintf("%s %x", digest, sum)
}

// maxVerified bounds the recorded verifications. If a record is dropped, the digest is only verified again.
const maxVerified = 1000

func (c *Client) isVerified(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.verified[key]
}

func (c *Client) setVerified(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.verified) >= maxVerified {
		clear(c.verified)
	}
	c.verified[key] = true
}

const signatureSuffix = ".sigstore.json"

func (c *Client) signaturePath(digest string) string {
	return filepath.Join(c.options.CacheDir, strings.ReplaceAll(digest, ":", "-")+signatureSuffix)
}

func (c *Client) readCachedSignature(digest string) ([]byte, bool) {
	if c.options.CacheDir == "" || strings.ContainsAny(digest, `/\`) {
		return nil, false
	}
	bundle, err := os.ReadFile(c.signaturePath(digest))
	return bundle, err == nil
}

// cacheSignature writes a signature to the cache directory. Errors of the cache are ignored.
func (c *Client) cacheSignature(digest string, bundle []byte) {
	if c.options.CacheDir == "" || os.MkdirAll(c.options.CacheDir, 0o750) != nil {
		return
	}
	_ = writeFile(c.signaturePath(digest), bundle)
}

// writeFile replaces a file completely, or leaves it unchanged if an error occurs.
func writeFile(path string, content []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".file-*")
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	_, err = temp.Write(content)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write file: %w", err), os.Remove(temp.Name()))
	}
	return nil
}
