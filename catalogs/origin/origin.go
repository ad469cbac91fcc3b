// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package origin says where content comes from, for policies: which registry an image
// is in, and whether two public keys are the same. It is pure.
package origin

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
	// ErrNoKey says that a text is not one public key in PEM.
	ErrNoKey = errors.New("it is no public key in PEM")
	// ErrNoImage says that a text is no reference of an image.
	ErrNoImage = errors.New("it is no reference of an image")
)

// Repository is the registry and repository of an image, in full: team/app is
// docker.io/team/app.
func Repository(image string) (string, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoImage, err)
	}
	return named.Name(), nil
}

// IsIn tells whether a Repository is in a registry, such as registry.example.com, or
// below the beginning of a repository's name, such as registry.example.com/team.
func IsIn(repository, registry string) bool {
	registry = strings.TrimSuffix(registry, "/")
	return registry != "" && (repository == registry || strings.HasPrefix(repository, registry+"/"))
}

// Fingerprint is equal for equal public keys, however their PEM is written. More than
// one key in a text is an error: who reads only the first would trust others.
func Fingerprint(key string) (string, error) {
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

// Trusted are those of the keys that are among the trusted ones.
func Trusted(keys, trusted []string) []string {
	known := map[string]bool{}
	for _, key := range trusted {
		if sum, err := Fingerprint(key); err == nil {
			known[sum] = true
		}
	}
	var both []string
	for _, key := range keys {
		if sum, err := Fingerprint(key); err == nil && known[sum] {
			both = append(both, key)
		}
	}
	return both
}
