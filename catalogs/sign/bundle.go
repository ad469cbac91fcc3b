// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"strings"

	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// Signer signs digests with a private key.
type Signer struct {
	signer signature.Signer
	hint   string
	public []byte
}

// NewSigner reads a private key: PKCS #8 or SEC 1 as PEM, or a key that cosign encrypted. It calls password for an
// encrypted key only. Errors wrap ErrBadKey or ErrPassword.
func NewSigner(text []byte, password func() ([]byte, error)) (*Signer, error) {
	key, err := parsePrivateKey(text, password)
	if err != nil {
		return nil, fmt.Errorf("read private key: %w", err)
	}
	signer, err := signature.LoadDefaultSigner(key)
	if err != nil {
		return nil, fmt.Errorf("read private key: %w: %w", ErrBadKey, err)
	}
	public, err := signer.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("derive public key: %w: %w", ErrBadKey, err)
	}
	hint, err := computeHint(public)
	if err != nil {
		return nil, err
	}
	text, err = cryptoutils.MarshalPublicKeyToPEM(public)
	if err != nil {
		return nil, fmt.Errorf("encode public key: %w: %w", ErrBadKey, err)
	}
	return &Signer{signer: signer, hint: hint, public: text}, nil
}

// PublicKey returns the public key as PEM.
func (s *Signer) PublicKey() []byte { return s.public }

// Sign returns a sigstore bundle that signs an image digest, as JSON.
func (s *Signer) Sign(digest string) ([]byte, error) {
	hex, err := parseDigest(digest)
	if err != nil {
		return nil, err
	}
	return s.Attest(PredicateType, &structpb.Struct{},
		&intoto.ResourceDescriptor{Digest: map[string]string{"sha256": hex}})
}

// Attest returns a sigstore bundle that signs a statement about subjects, as JSON. Keys.Verify does not accept it as
// a signature of an image, unless its predicate type is PredicateType.
func (s *Signer) Attest(predicateType string, predicate *structpb.Struct, subjects ...*intoto.ResourceDescriptor) (
	[]byte, error) {
	payload, err := protojson.Marshal(&intoto.Statement{Type: intoto.StatementTypeUri, Subject: subjects,
		PredicateType: predicateType, Predicate: predicate})
	if err != nil {
		return nil, fmt.Errorf("encode statement: %w", err)
	}
	sig, err := s.signer.SignMessage(bytes.NewReader(dsse.PAE(payloadType, payload)))
	if err != nil {
		return nil, fmt.Errorf("sign statement: %w", err)
	}
	bundle, err := protojson.Marshal(&protobundle.Bundle{
		MediaType: BundleMediaType,
		VerificationMaterial: &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_PublicKey{
			PublicKey: &protocommon.PublicKeyIdentifier{Hint: s.hint},
		}},
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: payload, PayloadType: payloadType, Signatures: []*protodsse.Signature{{Sig: sig}},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode signature: %w", err)
	}
	return bundle, nil
}

// parseDigest returns the hexadecimal part of a sha256 digest.
func parseDigest(digest string) (string, error) {
	hex, ok := strings.CutPrefix(digest, "sha256:")
	if !ok || len(hex) != 2*crypto.SHA256.Size() || strings.Trim(hex, "0123456789abcdef") != "" {
		return "", fmt.Errorf("%q is no sha256 digest", digest)
	}
	return hex, nil
}

// Verify returns nil if one of the bundles is a signature of the digest by one of the keys. The error wraps
// ErrUnsigned if none of the bundles is a signature of an image, or else ErrBadSignature, with the problem of the
// first signature.
func (k Keys) Verify(bundles [][]byte, digest string) error {
	hex, err := parseDigest(digest)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadSignature, err)
	}
	var problems []error
	for _, b := range bundles {
		err := k.verifyBundle(b, hex)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errAnotherClaim) {
			problems = append(problems, err)
		}
	}
	if len(problems) == 0 {
		return fmt.Errorf("%w: %s", ErrUnsigned, digest)
	}
	if more := len(problems) - 1; more > 0 {
		return fmt.Errorf("%w of %s: %w (and %d more)", ErrBadSignature, digest, problems[0], more)
	}
	return fmt.Errorf("%w of %s: %w", ErrBadSignature, digest, problems[0])
}

// errAnotherClaim means that a bundle is not a signature of an image, but for instance a statement about how the image
// was built.
var errAnotherClaim = errors.New("another kind of claim")

// verifyBundle returns nil if a bundle is a signature, by one of the keys, of the digest with this hexadecimal part.
func (k Keys) verifyBundle(text []byte, hex string) error {
	statement, err := k.Statement(text, PredicateType)
	if err != nil {
		return err
	}
	for _, subject := range statement.GetSubject() {
		if subject.GetDigest()["sha256"] == hex {
			return nil
		}
	}
	return errors.New("the signature is one of another image")
}

// Statement returns the statement in a bundle, if one of the keys signed it and it has the predicate type.
func (k Keys) Statement(text []byte, predicateType string) (*intoto.Statement, error) {
	if len(text) > maxBundle {
		return nil, fmt.Errorf("a signature of %d bytes is larger than any", len(text))
	}
	bundle := &protobundle.Bundle{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, bundle); err != nil {
		return nil, fmt.Errorf("decode signature: %w", err)
	}
	envelope := bundle.GetDsseEnvelope()
	if envelope.GetPayloadType() != payloadType {
		return nil, errAnotherClaim
	}
	statement := &intoto.Statement{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(envelope.GetPayload(),
		statement); err != nil {
		return nil, fmt.Errorf("decode statement: %w", err)
	}
	if statement.GetPredicateType() != predicateType {
		return nil, errAnotherClaim
	}
	// The signature is checked before the content, which matters only if a known key signed it.
	if err := k.verifyEnvelope(envelope, bundle.GetVerificationMaterial().GetPublicKey().GetHint()); err != nil {
		return nil, err
	}
	if err := statement.Validate(); err != nil {
		return nil, fmt.Errorf("read statement: %w", err)
	}
	return statement, nil
}

// verifyEnvelope returns nil if the envelope has exactly one signature and one of the keys made it. hint identifies the
// key according to the bundle, and is used only for the error.
func (k Keys) verifyEnvelope(envelope *protodsse.Envelope, hint string) error {
	if n := len(envelope.GetSignatures()); n != 1 {
		return fmt.Errorf("the envelope has %d signatures, a sigstore bundle has one", n)
	}
	sig, message := envelope.GetSignatures()[0].GetSig(), dsse.PAE(envelope.GetPayloadType(), envelope.GetPayload())
	for _, key := range k.keys {
		for _, v := range key.verifiers {
			if v.VerifySignature(bytes.NewReader(sig), bytes.NewReader(message)) == nil {
				return nil
			}
		}
	}
	if hint != "" && !k.hasHint(hint) {
		return fmt.Errorf("it was signed by another key (hint %s)", hint)
	}
	return errors.New("the signature does not match")
}

func (k Keys) hasHint(hint string) bool {
	for _, key := range k.keys {
		if key.hint == hint {
			return true
		}
	}
	return false
}
