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
	"github.com/bellwether-dev/bellwether/release/provenance"
)

// Target is where images are published.
type Target struct {
	Client *oci.Client
	// Registry is the repository that the images are below, as in registry.example.com/bellwether.
	Registry string
	Access   oci.Access
	// Signer signs the images; nil leaves them unsigned.
	Signer *sign.Signer
	// Provenance is attached to what is signed, as SLSA has it; nil: none is.
	Provenance *structpb.Struct
}

// Published is an image in a registry.
type Published struct {
	Name string `json:"name"`
	// Repository of the image, without tag and digest.
	Repository string `json:"repository"`
	Tag        string `json:"tag"`
	Digest     string `json:"digest"`
}

// Publish pushes the image of a program with all of its platforms, attaches to each platform's image what it was built
// of, signs, and moves the tag last: who pulls by it gets the whole image. What the registry has is not sent again.
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
	for _, one := range slices.Sorted(maps.Keys(s.Images)) {
		if err := t.attach(ctx, repository, one, s.Programs[one]); err != nil {
			return Published{}, err
		}
	}
	if err := t.sign(ctx, ref, digest.String()); err != nil {
		return Published{}, err
	}
	tag := repository + ":" + s.Tag()
	held, err := t.Client.Held(ctx, tag, t.Access)
	if err != nil {
		return Published{}, err
	}
	if err := t.Client.MoveTag(ctx, tag, digest.String(), held, t.Access); err != nil {
		return Published{}, err
	}
	return Published{Name: s.Name, Repository: repository, Tag: s.Tag(), Digest: digest.String()}, nil
}

// attach adds the list of what is in one platform's image, and signs that image.
func (t Target) attach(ctx context.Context, repository, digest string, p Program) error {
	content, err := sbom.OfProgram(repository, digest, p.Build, p.Version)
	if err != nil {
		return fmt.Errorf("list what is in %s: %w", p.Name, err)
	}
	ref := repository + "@" + digest
	if _, err := t.Client.Attach(ctx, ref, oci.Artifact{Type: sbom.MediaType, Content: content}, t.Access); err != nil {
		return fmt.Errorf("attach SBOM: %w", err)
	}
	return t.sign(ctx, ref, digest)
}

func (t Target) sign(ctx context.Context, ref, digest string) error {
	if t.Signer == nil {
		return nil
	}
	is := oci.Source{Image: ref, Access: t.Access, Verification: oci.Verification{
		PublicKeys: [][]byte{t.Signer.PublicKey()}}}
	if t.Client.Verify(ctx, is, digest) == nil {
		return nil // another signature by the same key would tell nothing more
	}
	if err := t.attest(ctx, ref, digest); err != nil {
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

// attest attaches how an image was built, before it is signed: what is signed has its provenance.
func (t Target) attest(ctx context.Context, ref, digest string) error {
	if t.Provenance == nil {
		return nil
	}
	statement, err := t.Signer.Attest(provenance.Type, t.Provenance, &intoto.ResourceDescriptor{
		Name: ref, Digest: map[string]string{"sha256": strings.TrimPrefix(digest, "sha256:")}})
	if err != nil {
		return fmt.Errorf("attest %s: %w", ref, err)
	}
	if _, err := t.Client.Attach(ctx, ref, oci.StatementArtifact(statement, provenance.Type), t.Access); err != nil {
		return fmt.Errorf("attach provenance: %w", err)
	}
	return nil
}
