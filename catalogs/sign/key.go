// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/options"
)

// Types of PEM blocks with private keys; the first is what GenerateKey and cosign write.
const (
	encryptedSigstore = "ENCRYPTED SIGSTORE PRIVATE KEY"
	encryptedCosign   = "ENCRYPTED COSIGN PRIVATE KEY"
	plainPKCS8        = "PRIVATE KEY"
	plainEC           = "EC PRIVATE KEY"
)

// Algorithm is the kind of a key.
type Algorithm string

// The algorithms that keys are generated for; others are read as well: ECDSA on P-384 and P-521, and RSA.
const (
	ECDSA   Algorithm = "ecdsa-p256"
	Ed25519 Algorithm = "ed25519"
)

// KeyPair is a new key: both halves as PEM.
type KeyPair struct {
	Private []byte
	Public  []byte
}

// GenerateKey makes a key. The private half is encrypted with the password, which may be empty, in cosign's format.
func GenerateKey(algorithm Algorithm, password []byte) (KeyPair, error) {
	var key crypto.Signer
	var err error
	switch algorithm {
	case ECDSA:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case Ed25519:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		return KeyPair{}, fmt.Errorf("%w: %q is no algorithm, choose %s or %s", ErrBadKey, algorithm, ECDSA, Ed25519)
	}
	if err != nil {
		return KeyPair{}, fmt.Errorf("generate key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode private key: %w", err)
	}
	sealed, err := encrypted.Encrypt(der, password)
	if err != nil {
		return KeyPair{}, fmt.Errorf("encrypt private key: %w", err)
	}
	public, err := cryptoutils.MarshalPublicKeyToPEM(key.Public())
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode public key: %w", err)
	}
	return KeyPair{Private: pem.EncodeToMemory(&pem.Block{Type: encryptedSigstore, Bytes: sealed}), Public: public}, nil
}

// parsePrivateKey reads a PEM file: a PKCS #8 or SEC 1 key, or one that cosign encrypted.
func parsePrivateKey(text []byte, password func() ([]byte, error)) (crypto.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%w: it is no PEM file", ErrBadKey)
	}
	var key crypto.PrivateKey
	var err error
	switch block.Type {
	case encryptedSigstore, encryptedCosign:
		key, err = openPrivateKey(block.Bytes, password)
	case plainPKCS8:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case plainEC:
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("%w: it holds a %q, a private key is needed", ErrBadKey, block.Type)
	}
	if err != nil && !errors.Is(err, ErrPassword) {
		return nil, fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	return key, err
}

func openPrivateKey(sealed []byte, password func() ([]byte, error)) (crypto.PrivateKey, error) {
	var secret []byte
	if password != nil {
		var err error
		if secret, err = password(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPassword, err)
		}
	}
	der, err := encrypted.Decrypt(sealed, secret)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPassword, err)
	}
	return x509.ParsePKCS8PrivateKey(der)
}

// Keys are public keys, any one of which is good for a signature.
type Keys struct {
	keys []publicKey
}

type publicKey struct {
	hint string
	// verifiers are the ways in which the key may have signed.
	verifiers []signature.Verifier
}

// ParseKeys reads public keys, one PEM block each. Errors wrap ErrBadKey and say which of them it is about, counting
// from one.
func ParseKeys(texts ...[]byte) (Keys, error) {
	var out Keys
	for i, text := range texts {
		key, err := parsePublicKey(text)
		if err != nil {
			return Keys{}, fmt.Errorf("public key %d: %w", i+1, err)
		}
		out.keys = append(out.keys, key)
	}
	if len(out.keys) == 0 {
		return Keys{}, fmt.Errorf("%w: there is no public key", ErrBadKey)
	}
	return out, nil
}

func parsePublicKey(text []byte) (publicKey, error) {
	key, err := cryptoutils.UnmarshalPEMToPublicKey(text)
	if err != nil {
		return publicKey{}, fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	hint, err := keyHint(key)
	if err != nil {
		return publicKey{}, err
	}
	out := publicKey{hint: hint}
	standard, err := signature.LoadDefaultVerifier(key)
	if err != nil {
		return publicKey{}, fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	out.verifiers = append(out.verifiers, standard)
	// Other tools hash with SHA-256 for every curve, or hash first with
	// Ed25519.
	for _, option := range []signature.LoadOption{options.WithHash(crypto.SHA256), options.WithED25519ph()} {
		other, err := signature.LoadVerifierWithOpts(key, option)
		if err != nil {
			return publicKey{}, fmt.Errorf("%w: %w", ErrBadKey, err)
		}
		out.verifiers = append(out.verifiers, other)
	}
	return out, nil
}

// keyHint names a public key in the way of cosign: the hash of its DER form.
func keyHint(key crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	sum := sha256.Sum256(der)
	return base64.StdEncoding.EncodeToString(sum[:]), nil
}
