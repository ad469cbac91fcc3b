// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/sbom"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
)

// Target is where images are published.
type Target struct {
	Client *oci.Client
	// Registry is the prefix of the images' repositories, as in registry.example.com/bellwether.
	Registry string
	Access   oci.Access
	// Signer signs the images; nil leaves them unsigned.
	Signer *sign.Signer
	// Provenance is the SLSA provenance that is attached to each signed image; nil:
	// no provenance is attached.
	Provenance *structpb.Struct
}

// Published is a published image.
type Published struct {
	Name string `json:"name"`
	// Repository is the repository of the image, without tag and digest.
	Repository string `json:"repository"`
	Tag        string `json:"tag"`
	Digest     string `json:"digest"`
}

// Publish pushes the image of a program with all of its platforms, attaches an SBOM to the image
// of each platform, and signs the images. It moves the tag last, so that a pull by tag gets the
// whole image. Content that the registry already has is not sent again.
func (t Target) Publish(ctx context.Context, s Set) (Published, error) {
	repository := t.Registry + "/" + s.Name
	ref, err := t.Client.PushIndex(ctx, s.Index, repository, t.Access)
	if err != nil {
		return Published{}, fmt.Errorf("publish image of %s: %w", s.Name, err)
	}
	digest, err := s.Index.Digest()
	if err != nil {
		return Published{}, fmt.Errorf("digest image of %s: %w", s.Name, err)
	}
	for _, imageDigest := range slices.Sorted(maps.Keys(s.Images)) {
		if err := t.attachSBOM(ctx, repository, imageDigest, s.Programs[imageDigest]); err != nil {
			return Published{}, err
		}
	}
	if err := t.sign(ctx, ref, digest.String()); err != nil {
		return Published{}, err
	}
	tag := repository + ":" + s.Tag()
	currentDigest, err := t.Client.TagDigest(ctx, tag, t.Access)
	if err != nil {
		return Published{}, err
	}
	if err := t.Client.MoveTag(ctx, tag, digest.String(), currentDigest, t.Access); err != nil {
		return Published{}, err
	}
	return Published{Name: s.Name, Repository: repository, Tag: s.Tag(), Digest: digest.String()}, nil
}

// attachSBOM attaches the list of a program's modules to the image of one
// platform, and signs that image.
func (t Target) attachSBOM(ctx context.Context, repository, digest string, p Program) error {
	content, err := sbom.NewProgramSBOM(repository, digest, p.Build, p.Version)
	if err != nil {
		return fmt.Errorf("list what is in %s: %w", p.Name, err)
	}
	ref := repository + "@" + digest
	if _, err := t.Client.Attach(ctx, ref, oci.Artifact{Type: sbom.MediaType, Content: content}, t.Access); err != nil {
		return fmt.Errorf("attach SBOM: %w", err)
	}
	return t.sign(ctx, ref, digest)
}

// sign attaches the provenance and a signature to an image. It does nothing without a signer, or
// if the image already has a valid signature.
func (t Target) sign(ctx context.Context, ref, digest string) error {
	if t.Signer == nil {
		return nil
	}
	source := oci.Source{Image: ref, Access: t.Access, Verification: oci.Verification{
		PublicKeys: [][]byte{t.Signer.PublicKey()}}}
	if t.Client.Verify(ctx, source, digest) == nil {
		return nil // another signature by the same key would be useless
	}
	if err := t.attachProvenance(ctx, ref, digest); err != nil {
		return err
	}
	signature, err := t.Signer.Sign(digest)
	if err != nil {
		return fmt.Errorf("sign %s: %w", ref, err)
	}
	if _, err := t.Client.Attach(ctx, ref, oci.SignatureArtifact(signature), t.Access); err != nil {
		return fmt.Errorf("attach signature: %w", err)
	}
	return nil
}

// attachProvenance attaches the provenance of an image. It runs before the image is signed, so
// that each signed image has its provenance.
func (t Target) attachProvenance(ctx context.Context, ref, digest string) error {
	if t.Provenance == nil {
		return nil
	}
	statement, err := t.Signer.Attest(Type, t.Provenance, &intoto.ResourceDescriptor{
		Name: ref, Digest: map[string]string{"sha256": strings.TrimPrefix(digest, "sha256:")}})
	if err != nil {
		return fmt.Errorf("attest %s: %w", ref, err)
	}
	if _, err := t.Client.Attach(ctx, ref, oci.StatementArtifact(statement, Type), t.Access); err != nil {
		return fmt.Errorf("attach provenance: %w", err)
	}
	return nil
}
