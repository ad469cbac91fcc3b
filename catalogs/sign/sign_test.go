// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package sign_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	intoto "github.com/in-toto/attestation/go/v1"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/bellwether-dev/bellwether/catalogs/sign"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

const (
	digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	other  = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
)

func password(text string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte(text), nil }
}

func newKey(t *testing.T, algorithm sign.Algorithm) (*sign.Signer, []byte) {
	t.Helper()
	pair, err := sign.GenerateKey(algorithm, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := sign.NewSigner(pair.Private, password("secret"))
	if err != nil {
		t.Fatal(err)
	}
	return signer, pair.Public
}

func mustSign(t *testing.T, s *sign.Signer, digest string) []byte {
	t.Helper()
	bundle, err := s.Sign(digest)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

func mustKeys(t *testing.T, texts ...[]byte) sign.Keys {
	t.Helper()
	keys, err := sign.ParseKeys(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// edit changes a bundle after it was signed.
func edit(t *testing.T, text []byte, change func(*protobundle.Bundle)) []byte {
	t.Helper()
	bundle := &protobundle.Bundle{}
	if err := protojson.Unmarshal(text, bundle); err != nil {
		t.Fatal(err)
	}
	change(bundle)
	out, err := protojson.Marshal(bundle)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestVerify(t *testing.T) {
	signer, public := newKey(t, sign.ECDSA)
	second, secondPublic := newKey(t, sign.Ed25519)
	good := mustSign(t, signer, digest)
	tests := map[string]struct {
		bundles [][]byte
		keys    [][]byte
		want    error
		says    string
	}{
		"one signature":      {bundles: [][]byte{good}, keys: [][]byte{public}},
		"by one of two keys": {bundles: [][]byte{good}, keys: [][]byte{secondPublic, public}},
		"Ed25519":            {bundles: [][]byte{mustSign(t, second, digest)}, keys: [][]byte{secondPublic}},
		"a bad one before a good": {bundles: [][]byte{[]byte("{"), mustSign(t, second, digest), good},
			keys: [][]byte{public}},
		"none": {keys: [][]byte{public}, want: sign.ErrUnsigned},
		"by another key": {bundles: [][]byte{mustSign(t, second, digest)}, keys: [][]byte{public},
			want: sign.ErrBadSignature, says: "another key"},
		"of another image": {bundles: [][]byte{mustSign(t, signer, other)}, keys: [][]byte{public},
			want: sign.ErrBadSignature, says: "another image"},
		"not JSON": {bundles: [][]byte{[]byte("rubbish")}, keys: [][]byte{public},
			want: sign.ErrBadSignature, says: "decode"},
		"too large": {bundles: [][]byte{make([]byte, 2<<20)}, keys: [][]byte{public},
			want: sign.ErrBadSignature, says: "larger"},
		"another claim altogether": {bundles: [][]byte{[]byte("{}")}, keys: [][]byte{public}, want: sign.ErrUnsigned},
		"another predicate": {
			bundles: [][]byte{edit(t, good, func(b *protobundle.Bundle) {
				swap(b, sign.PredicateType,
					"https://slsa.dev/provenance/v1")
			})},
			keys: [][]byte{public}, want: sign.ErrUnsigned,
		},
		"the digest was changed": {
			bundles: [][]byte{edit(t, mustSign(t, signer, other),
				func(b *protobundle.Bundle) { swap(b, other[7:], digest[7:]) })},
			keys: [][]byte{public}, want: sign.ErrBadSignature, says: "does not match",
		},
		"no signature within": {
			bundles: [][]byte{edit(t, good, func(b *protobundle.Bundle) { b.GetDsseEnvelope().Signatures = nil })},
			keys:    [][]byte{public}, want: sign.ErrBadSignature, says: "0 signatures",
		},
		"many signatures within": {
			bundles: [][]byte{edit(t, good, func(b *protobundle.Bundle) {
				b.GetDsseEnvelope().Signatures = append(b.GetDsseEnvelope().Signatures,
					&protodsse.Signature{Sig: []byte("x")})
			})},
			keys: [][]byte{public}, want: sign.ErrBadSignature, says: "2 signatures",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := mustKeys(t, tc.keys...).Verify(tc.bundles, digest)
			if !errors.Is(err, tc.want) || (tc.want == nil && err != nil) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%q does not say %q", err, tc.says)
			}
		})
	}
	if err := mustKeys(t, public).Verify([][]byte{good}, "latest"); !errors.Is(err, sign.ErrBadSignature) {
		t.Errorf("what is no digest was verified: %v", err)
	}
	if _, err := signer.Sign("latest"); err == nil {
		t.Error("what is no digest was signed")
	}
}

func swap(b *protobundle.Bundle, from, to string) {
	e := b.GetDsseEnvelope()
	e.Payload = []byte(strings.ReplaceAll(string(e.GetPayload()), from, to))
}

func TestStatementEqualsCosigns(t *testing.T) {
	signer, _ := newKey(t, sign.ECDSA)
	bundle := &protobundle.Bundle{}
	if err := protojson.Unmarshal(mustSign(t, signer, digest), bundle); err != nil {
		t.Fatal(err)
	}
	statement := &intoto.Statement{}
	if err := protojson.Unmarshal(bundle.GetDsseEnvelope().GetPayload(), statement); err != nil {
		t.Fatal(err)
	}
	if err := statement.Validate(); err != nil {
		t.Error(err)
	}
	if got := statement.GetSubject()[0].GetDigest()["sha256"]; "sha256:"+got != digest {
		t.Errorf("the subject is %s", got)
	}
	if bundle.GetVerificationMaterial().GetPublicKey().GetHint() == "" {
		t.Error("no hint at the key, which cosign requires")
	}
}

func TestPrivateKeys(t *testing.T) {
	encode := func(kind string, der []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	ec, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8 := func(key crypto.Signer) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		return encode("PRIVATE KEY", der, err)
	}
	sec1, err := x509.MarshalECPrivateKey(ec)
	plainEC := encode("EC PRIVATE KEY", sec1, err)
	pair, err := sign.GenerateKey(sign.ECDSA, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		text     []byte
		password func() ([]byte, error)
		want     error
	}{
		"PKCS #8, P-384":   {text: pkcs8(ec)},
		"PKCS #8, Ed25519": {text: pkcs8(ed)},
		"PKCS #8, RSA":     {text: pkcs8(rs)},
		"SEC 1":            {text: plainEC},
		"encrypted":        {text: pair.Private, password: password("secret")},
		"encrypted, by old cosign": {text: []byte(strings.ReplaceAll(string(pair.Private), "SIGSTORE", "COSIGN")),
			password: password("secret")},
		"encrypted, wrong password": {text: pair.Private, password: password("guess"), want: sign.ErrPassword},
		"encrypted, no password":    {text: pair.Private, want: sign.ErrPassword},
		"encrypted, nobody to ask": {text: pair.Private,
			password: func() ([]byte, error) { return nil, errors.New("no terminal") }, want: sign.ErrPassword},
		"the public half": {text: pair.Public, want: sign.ErrBadKey},
		"rubbish in PEM":  {text: encode("PRIVATE KEY", []byte("rubbish"), nil), want: sign.ErrBadKey},
		"rubbish":         {text: []byte("rubbish"), want: sign.ErrBadKey},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			signer, err := sign.NewSigner(tc.text, tc.password)
			if !errors.Is(err, tc.want) || (tc.want == nil && err != nil) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if err != nil {
				return
			}
			if err := mustKeys(t, signer.PublicKey()).Verify([][]byte{mustSign(t, signer, digest)},
				digest); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestInvalidKeys(t *testing.T) {
	_, public := newKey(t, sign.ECDSA)
	for name, texts := range map[string][][]byte{
		"none": nil, "rubbish": {[]byte("rubbish")}, "a good and a bad one": {public, []byte("")},
	} {
		if _, err := sign.ParseKeys(texts...); !errors.Is(err, sign.ErrBadKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sign.GenerateKey("rot13", nil); !errors.Is(err, sign.ErrBadKey) {
		t.Errorf("unknown algorithm: %v", err)
	}
}

func FuzzVerify(f *testing.F) {
	pair, err := sign.GenerateKey(sign.ECDSA, nil)
	if err != nil {
		f.Fatal(err)
	}
	signer, err := sign.NewSigner(pair.Private, nil)
	if err != nil {
		f.Fatal(err)
	}
	bundle, err := signer.Sign(other)
	if err != nil {
		f.Fatal(err)
	}
	keys, err := sign.ParseKeys(pair.Public)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bundle)
	f.Add([]byte(`{"dsseEnvelope":{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{}]}}`))
	f.Add([]byte(`{"dsseEnvelope":{"signatures":[` + strings.Repeat("{},", 9_999) + "{}]}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		untrustedtest.Bound(t, len(text), 4<<20, 1000, func() {
			// Only the private key can sign another digest.
			err := keys.Verify([][]byte{text}, digest)
			if !errors.Is(err, sign.ErrUnsigned) && !errors.Is(err, sign.ErrBadSignature) {
				t.Fatalf("%q verified as a signature: %v", text, err)
			}
		})
	})
}
