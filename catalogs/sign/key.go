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

// Types of PEM blocks with private keys; GenerateKey and cosign write the first type.
const (
	encryptedSigstore = "ENCRYPTED SIGSTORE PRIVATE KEY"
	encryptedCosign   = "ENCRYPTED COSIGN PRIVATE KEY"
	plainPKCS8        = "PRIVATE KEY"
	plainEC           = "EC PRIVATE KEY"
)

// Algorithm is the algorithm of a key.
type Algorithm string

// The algorithms of generated keys. Keys of other algorithms can be read too: ECDSA on P-384 and P-521, and RSA.
const (
	ECDSA   Algorithm = "ecdsa-p256"
	Ed25519 Algorithm = "ed25519"
)

// KeyPair is a new key pair as PEM.
type KeyPair struct {
	Private []byte
	Public  []byte
}

// GenerateKey creates a key pair. The private key is encrypted with the password, which can be empty, in
// cosign's format.
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
	encryptedKey, err := encrypted.Encrypt(der, password)
	if err != nil {
		return KeyPair{}, fmt.Errorf("encrypt private key: %w", err)
	}
	public, err := cryptoutils.MarshalPublicKeyToPEM(key.Public())
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode public key: %w", err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: encryptedSigstore, Bytes: encryptedKey})
	return KeyPair{Private: private, Public: public}, nil
}

// parsePrivateKey parses a PEM file: a PKCS #8 or SEC 1 key, or a key that cosign encrypted.
func parsePrivateKey(text []byte, password func() ([]byte, error)) (crypto.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%w: it is no PEM file", ErrBadKey)
	}
	var key crypto.PrivateKey
	var err error
	switch block.Type {
	case encryptedSigstore, encryptedCosign:
		key, err = decryptPrivateKey(block.Bytes, password)
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

// decryptPrivateKey decrypts a key in cosign's format. If password is nil, it tries the empty password. The error wraps
// ErrPassword if password fails or the password is wrong.
func decryptPrivateKey(encryptedKey []byte, password func() ([]byte, error)) (crypto.PrivateKey, error) {
	var secret []byte
	if password != nil {
		var err error
		if secret, err = password(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPassword, err)
		}
	}
	der, err := encrypted.Decrypt(encryptedKey, secret)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPassword, err)
	}
	return x509.ParsePKCS8PrivateKey(der)
}

// Keys are public keys; a signature by any of them is accepted.
type Keys struct {
	keys []publicKey
}

type publicKey struct {
	hint string
	// verifiers are the signature schemes that the key could have used.
	verifiers []signature.Verifier
}

// ParseKeys parses public keys, one PEM block each. Errors wrap ErrBadKey and contain the number of the key, counting
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

// parsePublicKey parses one PEM block, and prepares the signature schemes that the key could have used.
func parsePublicKey(text []byte) (publicKey, error) {
	key, err := cryptoutils.UnmarshalPEMToPublicKey(text)
	if err != nil {
		return publicKey{}, fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	hint, err := computeHint(key)
	if err != nil {
		return publicKey{}, err
	}
	out := publicKey{hint: hint}
	standard, err := signature.LoadDefaultVerifier(key)
	if err != nil {
		return publicKey{}, fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	out.verifiers = append(out.verifiers, standard)
	// Other tools use SHA-256 for every curve, or the variant Ed25519ph.
	for _, option := range []signature.LoadOption{options.WithHash(crypto.SHA256), options.WithED25519ph()} {
		other, err := signature.LoadVerifierWithOpts(key, option)
		if err != nil {
			return publicKey{}, fmt.Errorf("%w: %w", ErrBadKey, err)
		}
		out.verifiers = append(out.verifiers, other)
	}
	return out, nil
}

// computeHint returns the identifier of a public key that cosign uses: the hash of its DER form.
func computeHint(key crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	sum := sha256.Sum256(der)
	return base64.StdEncoding.EncodeToString(sum[:]), nil
}
