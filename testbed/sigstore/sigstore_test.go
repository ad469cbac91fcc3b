// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sigstore holds what Bellwether signs, and what it accepts, against sigstore's own implementation. It is a
// module of its own, so that sigstore's dependencies become neither the product's nor the testbed's.
package sigstore

import (
	"crypto"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	sigstoresign "github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/bellwether-dev/bellwether/catalogs/sign"
)

const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func newSigner(t *testing.T, algorithm sign.Algorithm) *sign.Signer {
	t.Helper()
	pair, err := sign.GenerateKey(algorithm, nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := sign.NewSigner(pair.Private, nil)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// bySigstore verifies a bundle in the way of `cosign verify --key --private-infrastructure`.
func bySigstore(t *testing.T, text, publicKey []byte, digest string) error {
	t.Helper()
	key, err := cryptoutils.UnmarshalPEMToPublicKey(publicKey)
	if err != nil {
		t.Fatal(err)
	}
	keyVerifier, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	trusted := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(keyVerifier, time.Time{}, time.Time{}), nil
	})
	verifier, err := verify.NewVerifier(trusted, verify.WithNoObserverTimestamps())
	if err != nil {
		t.Fatal(err)
	}
	var b bundle.Bundle
	if err := b.UnmarshalJSON(text); err != nil {
		return err
	}
	raw, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
	if err != nil {
		t.Fatal(err)
	}
	result, err := verifier.Verify(&b, verify.NewPolicy(verify.WithArtifactDigest("sha256", raw), verify.WithKey()))
	if err != nil {
		return err
	}
	if result.Statement.GetPredicateType() != sign.PredicateType {
		return errors.New("the predicate is " + result.Statement.GetPredicateType())
	}
	return nil
}

func TestSigstoreAcceptsOurs(t *testing.T) {
	for _, algorithm := range []sign.Algorithm{sign.ECDSA, sign.Ed25519} {
		t.Run(string(algorithm), func(t *testing.T) {
			signer := newSigner(t, algorithm)
			text, err := signer.Sign(digest)
			if err != nil {
				t.Fatal(err)
			}
			if err := bySigstore(t, text, signer.PublicKey(), digest); err != nil {
				t.Errorf("sigstore refuses it: %v", err)
			}
			if bySigstore(t, text, newSigner(t, algorithm).PublicKey(), digest) == nil {
				t.Error("sigstore takes it for another key's; this test shows nothing")
			}
			if bySigstore(t, text, signer.PublicKey(), "sha256:"+strings.Repeat("0", 64)) == nil {
				t.Error("sigstore takes it for another image's; this test shows nothing")
			}
		})
	}
}

func TestWeAcceptSigstores(t *testing.T) {
	keypair, err := sigstoresign.NewEphemeralKeypair(nil)
	if err != nil {
		t.Fatal(err)
	}
	statement := `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"` + strings.TrimPrefix(
		digest,
		"sha256:",
	) +
		`"}}],"predicateType":"` + sign.PredicateType + `","predicate":{}}`
	content := &sigstoresign.DSSEData{Data: []byte(statement), PayloadType: "application/vnd.in-toto+json"}
	b, err := sigstoresign.Bundle(content, keypair, sigstoresign.BundleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	public, err := keypair.GetPublicKeyPem()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := sign.ParseKeys([]byte(public))
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Verify([][]byte{text}, digest); err != nil {
		t.Errorf("we refuse what sigstore signed: %v", err)
	}
	if err := keys.Verify([][]byte{text}, "sha256:"+strings.Repeat("0", 64)); !errors.Is(err, sign.ErrBadSignature) {
		t.Errorf("it is taken for the signature of another image: %v", err)
	}
}
