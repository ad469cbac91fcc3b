// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sign creates and checks signatures of images: sigstore bundles (v0.3) by a local key, in the form
// of `cosign sign --key`. A signature signs an image's digest, as the subject of an in-toto statement in a
// DSSE envelope.
//
// Its inputs are keys, digests and bundles in memory. It opens no connection and no file, and uses no transparency
// log and no clock: the holder of the private key signs, and removing a public key from the list revokes it. Package
// oci stores the bundles.
package sign

import "errors"

const (
	// BundleMediaType is the media type of a sigstore bundle, and the artifact type of the manifest that attaches
	// a bundle.
	BundleMediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// PredicateType is the type of a statement that is a signature of an image, and not another claim about it.
	PredicateType = "https://sigstore.dev/cosign/sign/v1"

	payloadType = "application/vnd.in-toto+json"
	// maxBundle bounds what is parsed, in bytes. A bundle by a key has about 1 KiB, a bundle with a certificate and a
	// log entry 15 KiB.
	maxBundle = 1 << 20
)

var (
	// ErrUnsigned means that the image is not signed.
	ErrUnsigned = errors.New("not signed")
	// ErrBadSignature means that there are signatures, but none of this image by one of the keys.
	ErrBadSignature = errors.New("no valid signature")
	// ErrBadKey means that a key cannot be used.
	ErrBadKey = errors.New("bad key")
	// ErrPassword means that a private key needs a password, or another password.
	ErrPassword = errors.New("wrong password")
)
