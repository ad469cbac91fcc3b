// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// Errors of this package wrap one of these.
var (
	// ErrNoKey means that a text is not exactly one public key in PEM.
	ErrNoKey = errors.New("it is no public key in PEM")
	// ErrNoImage means that a text is not an image reference.
	ErrNoImage = errors.New("it is no reference of an image")
)

// Repository returns the registry and repository of an image in full, such as docker.io/team/app for team/app. The
// error wraps ErrNoImage.
func Repository(image string) (string, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoImage, err)
	}
	return named.Name(), nil
}

// IsInRegistry reports whether a repository (a result of Repository) is in a registry, such as registry.example.com,
// or below a prefix of a repository's name, such as registry.example.com/team.
func IsInRegistry(repository, registry string) bool {
	registry = strings.TrimSuffix(registry, "/")
	return registry != "" && (repository == registry || strings.HasPrefix(repository, registry+"/"))
}

// KeyFingerprint returns a fingerprint that is equal for equal public keys, even if their PEM texts differ. A
// text with several keys is an error: a reader that uses only the first key would not see the others. Errors
// wrap ErrNoKey.
func KeyFingerprint(key string) (string, error) {
	block, rest := pem.Decode([]byte(key))
	if block == nil || strings.TrimSpace(string(rest)) != "" {
		return "", ErrNoKey
	}
	if _, err := x509.ParsePKIXPublicKey(block.Bytes); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoKey, err)
	}
	sum := sha256.Sum256(block.Bytes)
	return hex.EncodeToString(sum[:]), nil
}

// TrustedKeys returns the keys that are also in trusted. It ignores invalid keys.
func TrustedKeys(keys, trusted []string) []string {
	isTrusted := map[string]bool{}
	for _, key := range trusted {
		if sum, err := KeyFingerprint(key); err == nil {
			isTrusted[sum] = true
		}
	}
	var found []string
	for _, key := range keys {
		if sum, err := KeyFingerprint(key); err == nil && isTrusted[sum] {
			found = append(found, key)
		}
	}
	return found
}
