// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sign makes and checks signatures of images: sigstore bundles (v0.3) by a local key, in the form that `cosign
// sign --key` gives them. What is signed is an image's digest, as the subject of an in-toto statement in a DSSE
// envelope.
//
// Its inputs are keys, digests and bundles in memory. It opens no connection and no file, and asks no transparency log
// and no clock: the holder of the private key signs, and removing a public key from the list revokes it. Where bundles
// are kept is the business of package oci.
package sign

import "errors"

const (
	// BundleMediaType is the media type of a sigstore bundle, and the artifact type of the manifest that attaches one.
	BundleMediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// PredicateType says that a statement is a signature of an image, and not some other claim about it.
	PredicateType = "https://sigstore.dev/cosign/sign/v1"

	payloadType = "application/vnd.in-toto+json"
	// maxBundle bounds what is parsed; a bundle by a key is about 1 KiB, one with a certificate and a log entry 15 KiB.
	maxBundle = 1 << 20
)

var (
	// ErrUnsigned says that the image is not signed.
	ErrUnsigned = errors.New("not signed")
	// ErrBadSignature says that there are signatures, and none of them is one of this image by one of the keys.
	ErrBadSignature = errors.New("no valid signature")
	// ErrBadKey says that a key cannot be used.
	ErrBadKey = errors.New("bad key")
	// ErrPassword says that a private key needs a password, or another one.
	ErrPassword = errors.New("wrong password")
)
