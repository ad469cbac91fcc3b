// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	emptyConfig types.MediaType = "application/vnd.oci.empty.v1+json"
	// maxReferrers bounds how many artifacts of one type are read. Every user who can write to the repository can add
	// artifacts, and each artifact costs two requests.
	maxReferrers = 32
	// maxArtifact bounds one artifact, in bytes: the SBOM of a large catalog has some ten megabytes.
	maxArtifact = 128 << 20
)

// Artifact is something that is attached to an image, such as a signature or an SBOM.
type Artifact struct {
	// Type is the artifact type, and the media type of the content.
	Type        string
	Annotations map[string]string
	Content     []byte
}

// Attach adds an artifact to an image as an OCI referrer and returns the digest of its manifest. image is a reference
// by digest. If the registry has no referrers API, the artifact is listed under the tag that the specification
// defines for this case. Attaching the same artifact again changes nothing.
func (c *Client) Attach(ctx context.Context, image string, artifact Artifact, a Access) (string, error) {
	subject, err := parseDigest(image, a)
	if err != nil {
		return "", err
	}
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return "", err
	}
	descriptor, err := remote.Head(subject, options...)
	if err != nil {
		return "", fmt.Errorf("attach to %s: %w", subject, classify(err))
	}
	config := static.NewLayer([]byte("{}"), emptyConfig)
	content := static.NewLayer(artifact.Content, types.MediaType(artifact.Type))
	manifest, err := newReferrer(descriptor, artifact, config, content)
	if err != nil {
		return "", fmt.Errorf("attach to %s: %w", subject, err)
	}
	for _, layer := range []v1.Layer{config, content} {
		if err := remote.WriteLayer(subject.Context(), layer, options...); err != nil {
			return "", fmt.Errorf("attach to %s: %w", subject, classify(err))
		}
	}
	target := subject.Context().Digest(manifest.digest)
	if err := remote.Put(target, manifest, options...); err != nil {
		return "", fmt.Errorf("attach to %s: %w", subject, classify(err))
	}
	return manifest.digest, nil
}

func parseDigest(image string, a Access) (name.Digest, error) {
	ref, err := parseReference(image, a)
	if err != nil {
		return name.Digest{}, err
	}
	digest, ok := ref.(name.Digest)
	if !ok {
		return name.Digest{}, fmt.Errorf("%w: %s has no digest", ErrBadSource, image)
	}
	return digest, nil
}

// rawManifest is a manifest that is written unchanged.
type rawManifest struct {
	raw    []byte
	media  types.MediaType
	digest string
}

// RawManifest implements remote.Taggable.
func (m rawManifest) RawManifest() ([]byte, error) { return m.raw, nil }

// MediaType implements remote.Taggable.
func (m rawManifest) MediaType() (types.MediaType, error) { return m.media, nil }

// newReferrer returns the manifest of an artifact that refers to subject.
func newReferrer(subject *v1.Descriptor, artifact Artifact, config, content v1.Layer) (rawManifest, error) {
	m := v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: artifact.Type,
		Annotations: artifact.Annotations,
		Subject:     &v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest},
	}
	var err error
	if m.Config, err = describe(config); err != nil {
		return rawManifest{}, err
	}
	layer, err := describe(content)
	if err != nil {
		return rawManifest{}, err
	}
	m.Layers = []v1.Descriptor{layer}
	raw, err := json.Marshal(m)
	if err != nil {
		return rawManifest{}, fmt.Errorf("encode manifest: %w", err)
	}
	digest, _, err := v1.SHA256(bytes.NewReader(raw))
	if err != nil {
		return rawManifest{}, fmt.Errorf("digest manifest: %w", err)
	}
	return rawManifest{raw: raw, media: m.MediaType, digest: digest.String()}, nil
}

func describe(l v1.Layer) (v1.Descriptor, error) {
	media, mediaErr := l.MediaType()
	size, sizeErr := l.Size()
	digest, digestErr := l.Digest()
	return v1.Descriptor{MediaType: media, Size: size, Digest: digest}, errors.Join(mediaErr, sizeErr, digestErr)
}

// ReadArtifacts returns the contents of an image's artifacts of one type, in the order in which the registry lists
// them. If the image has none, or does not exist, the result is empty. At most 32 artifacts are read.
func (c *Client) ReadArtifacts(ctx context.Context, image, artifactType string, a Access) ([][]byte, error) {
	var out [][]byte
	err := c.visitArtifacts(ctx, image, artifactType, a, func(content []byte) bool {
		out = append(out, content)
		return true
	})
	return out, err
}

// visitArtifacts visits the contents of an image's artifacts of one type until visit returns false.
func (c *Client) visitArtifacts(ctx context.Context, image, artifactType string, a Access,
	visit func([]byte) bool) error {
	subject, err := parseDigest(image, a)
	if err != nil {
		return err
	}
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return err
	}
	digests, err := listReferrers(subject, artifactType, options)
	if err != nil {
		return fmt.Errorf("list what is attached to %s: %w", subject, classify(err))
	}
	for _, digest := range digests {
		content, err := fetchArtifact(subject.Context(), digest, artifactType, options)
		if errors.Is(err, ErrNotFound) || errors.Is(err, errNoContent) {
			continue // it was removed, or is not a valid artifact
		}
		if err != nil {
			return fmt.Errorf("fetch what is attached to %s: %w", subject, err)
		}
		if !visit(content) {
			return nil
		}
	}
	return nil
}

// listReferrers returns the digests of the first maxReferrers manifests that a registry lists as artifacts of the type,
// or that could have the type according to canHaveType.
func listReferrers(subject name.Digest, artifactType string, options []remote.Option) ([]v1.Hash, error) {
	index, err := remote.Referrers(subject, options...)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var out []v1.Hash
	for _, d := range manifest.Manifests {
		if canHaveType(d.ArtifactType, artifactType) && len(out) < maxReferrers {
			out = append(out, d.Digest)
		}
	}
	return out, nil
}

// canHaveType reports whether an artifact that is listed as one type can have the wanted type. Some registries list
// the type of the configuration instead of the artifact type.
func canHaveType(listed, wanted string) bool {
	return listed == wanted || listed == "" || listed == string(emptyConfig)
}

var errNoContent = errors.New("no content of the announced type")

// fetchArtifact returns the first layer of an artifact that has the type. The error is errNoContent if it has no such
// layer or is not a manifest.
func fetchArtifact(repository name.Repository, digest v1.Hash, artifactType string, options []remote.Option) ([]byte,
	error) {
	got, err := remote.Get(repository.Digest(digest.String()), options...)
	if err != nil {
		return nil, classify(err)
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(got.Manifest))
	if err != nil {
		return nil, errNoContent
	}
	for _, l := range manifest.Layers {
		if string(l.MediaType) == artifactType {
			return fetchBlob(repository.Digest(l.Digest.String()), l.Size, options)
		}
	}
	return nil, errNoContent
}

// fetchBlob returns the content of a blob. size is the size according to the manifest, which can be wrong. The error
// wraps ErrTooLarge if the blob has more than maxArtifact bytes.
func fetchBlob(ref name.Digest, size int64, options []remote.Option) ([]byte, error) {
	if size > maxArtifact {
		return nil, fmt.Errorf("%w: %s has %d bytes", ErrTooLarge, ref, size)
	}
	layer, err := remote.Layer(ref, options...)
	if err != nil {
		return nil, classify(err)
	}
	blob, err := layer.Compressed()
	if err != nil {
		return nil, classify(err)
	}
	defer func() { _ = blob.Close() }()
	content, err := io.ReadAll(io.LimitReader(blob, maxArtifact+1))
	if err != nil {
		return nil, classify(err)
	}
	if len(content) > maxArtifact {
		return nil, fmt.Errorf("%w: %s", ErrTooLarge, ref)
	}
	return content, nil
}
