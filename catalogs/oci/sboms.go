// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// sbomTypes are the media types that can contain an SBOM: the two formats, in-toto statements, and their envelopes.
var sbomTypes = []string{
	"application/spdx+json", "text/spdx+json", "application/vnd.cyclonedx+json", "application/vnd.in-toto+json",
	"application/vnd.dsse.envelope.v1+json", "application/vnd.dev.sigstore.bundle.v0.3+json",
}

// SBOMs returns the contents that are attached to an image and can contain an SBOM: its OCI referrers and, if it is
// an index, the referrers of its images and the attestations that build tools add to the index. The contents can
// include statements about other subjects. If nothing is attached, the result is empty; if the image does not exist,
// the error wraps ErrNotFound. At most 32 artifacts are read for each manifest.
func (c *Client) SBOMs(ctx context.Context, image string, a Access) ([][]byte, error) {
	ref, err := parseReference(image, a)
	if err != nil {
		return nil, err
	}
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return nil, err
	}
	found, err := remote.Get(ref, options...)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", image, classify(err))
	}
	s := &sbomReader{repository: ref.Context(), options: options}
	if err := s.readReferrers(found.Digest); err != nil {
		return nil, fmt.Errorf("read what is attached to %s: %w", image, err)
	}
	if !found.MediaType.IsIndex() {
		return s.contents, nil
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(found.Manifest))
	if err != nil {
		return nil, fmt.Errorf("read the index of %s: %w", image, err)
	}
	for _, child := range index.Manifests[:min(len(index.Manifests), maxReferrers)] {
		if err := s.readChild(child); err != nil {
			return nil, fmt.Errorf("read what is attached to %s: %w", image, err)
		}
	}
	return s.contents, nil
}

type sbomReader struct {
	repository name.Repository
	options    []remote.Option
	contents   [][]byte
}

// readReferrers reads the artifacts that refer to a manifest.
func (s *sbomReader) readReferrers(subject v1.Hash) error {
	index, err := remote.Referrers(s.repository.Digest(subject.String()), s.options...)
	if err != nil {
		return classify(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return classify(err)
	}
	count := 0
	for _, d := range manifest.Manifests {
		canHoldSBOM := slices.ContainsFunc(sbomTypes, func(t string) bool { return canHaveType(d.ArtifactType, t) })
		if !canHoldSBOM || count == maxReferrers {
			continue
		}
		count++
		if err := s.readArtifact(d.Digest); err != nil {
			return err
		}
	}
	return nil
}

// readChild reads an entry of an index: an attestation, or the referrers of an image.
func (s *sbomReader) readChild(d v1.Descriptor) error {
	if d.Annotations["vnd.docker.reference.type"] == "attestation-manifest" {
		return s.readArtifact(d.Digest)
	}
	return s.readReferrers(d.Digest)
}

// readArtifact reads the layers of a manifest that can contain an SBOM. A removed manifest or layer is left out.
func (s *sbomReader) readArtifact(digest v1.Hash) error {
	got, err := remote.Get(s.repository.Digest(digest.String()), s.options...)
	if err != nil {
		return ignoreNotFound(classify(err))
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(got.Manifest))
	if err != nil {
		return nil //nolint:nilerr // it is not an artifact
	}
	for _, l := range manifest.Layers {
		if !slices.Contains(sbomTypes, string(l.MediaType)) {
			continue
		}
		content, err := fetchBlob(s.repository.Digest(l.Digest.String()), l.Size, s.options)
		if err := ignoreNotFound(err); err != nil {
			return err
		}
		if content != nil {
			s.contents = append(s.contents, content)
		}
	}
	return nil
}

func ignoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
