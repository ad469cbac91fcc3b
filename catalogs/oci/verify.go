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
	// ErrUnsigned says that a signature is required and there is none.
	ErrUnsigned = sign.ErrUnsigned
	// ErrBadSignature says that there are signatures, and none of them is one by a key that is trusted.
	ErrBadSignature = sign.ErrBadSignature
)

// Verification says whose signature a catalog requires. The zero value requires none.
type Verification struct {
	// PublicKeys are PEM public keys, one in each element; a signature by any one of them will do.
	PublicKeys [][]byte
}

// Required reports whether a signature is required.
func (v Verification) Required() bool { return len(v.PublicKeys) > 0 }

// Verify returns nil if the source requires no signature, or the image with that digest has one by one of the keys.
// Errors wrap ErrUnsigned, ErrBadSignature, ErrBadSource where a key is none, or ErrUnreachable and its like.
//
// A digest that was found signed stays so for these keys: a digest's signature cannot become invalid. With a cache
// directory the signature is kept there too, and verified again when it is read, so that a restart needs no registry.
func (c *Client) Verify(ctx context.Context, s Source, digest string) error {
	if !s.Verification.Required() {
		return nil
	}
	if s.Directory != "" {
		return fmt.Errorf("verify %s: %w: a directory has no signature, only an image can have one", s, ErrUnsigned)
	}
	key := s.Verification.key(digest)
	if c.isVerified(key) {
		return nil
	}
	keys, err := sign.ParseKeys(s.Verification.PublicKeys...)
	if err != nil {
		return fmt.Errorf("verify %s: %w: %w", s, ErrBadSource, err)
	}
	if kept, ok := c.cachedSignature(digest); ok && keys.Verify([][]byte{kept}, digest) == nil {
		c.setVerified(key)
		return nil
	}
	if err := c.verifyRemote(ctx, s, keys, digest); err != nil {
		return fmt.Errorf("verify %s: %w", s, err)
	}
	c.setVerified(key)
	return nil
}

func (c *Client) verifyRemote(ctx context.Context, s Source, keys sign.Keys, digest string) error {
	ref, err := parse(s.Image, s.Access)
	if err != nil {
		return err
	}
	var bundles [][]byte
	err = c.attached(ctx, ref.Context().Digest(digest).String(), sign.BundleMediaType, s.Access,
		func(bundle []byte) bool {
			if keys.Verify([][]byte{bundle}, digest) == nil {
				c.cacheSignature(digest, bundle)
				bundles = [][]byte{bundle}
				return false
			}
			bundles = append(bundles, bundle)
			return true
		})
	if err != nil {
		return err
	}
	return keys.Verify(bundles, digest)
}

// SignatureArtifact is a signature as it is attached, with the annotations by which cosign finds it.
func SignatureArtifact(bundle []byte) Artifact { return StatementArtifact(bundle, sign.PredicateType) }

// StatementArtifact is a statement of a Signer as it is attached.
func StatementArtifact(bundle []byte, predicateType string) Artifact {
	return Artifact{Type: sign.BundleMediaType, Content: bundle, Annotations: map[string]string{
		"dev.sigstore.bundle.content":       "dsse-envelope",
		"dev.sigstore.bundle.predicateType": predicateType,
	}}
}

// key tells which digest was verified with which keys.
func (v Verification) key(digest string) string {
	sum := sha256.Sum256(bytes.Join(v.PublicKeys, []byte{0}))
	return fmt.Sprintf("%s %x", digest, sum)
}

// maxVerified bounds what is remembered. Forgetting costs a look at the registry.
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

func (c *Client) cachedSignature(digest string) ([]byte, bool) {
	if c.options.CacheDir == "" || strings.ContainsAny(digest, `/\`) {
		return nil, false
	}
	bundle, err := os.ReadFile(c.signaturePath(digest))
	return bundle, err == nil
}

// cacheSignature keeps a signature. Errors of the cache are ignored.
func (c *Client) cacheSignature(digest string, bundle []byte) {
	if c.options.CacheDir == "" || os.MkdirAll(c.options.CacheDir, 0o750) != nil {
		return
	}
	_ = writeFile(c.signaturePath(digest), bundle)
}

// writeFile replaces a file by a whole one or not at all.
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
