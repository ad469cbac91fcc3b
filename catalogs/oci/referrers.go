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
	// maxReferrers bounds how many artifacts of one type are looked at. Whoever may write to the repository can add
	// some, and each costs two requests.
	maxReferrers = 32
	// maxArtifact bounds one artifact: the SBOM of a large catalog has some ten megabytes.
	maxArtifact = 128 << 20
)

// Artifact is something that is attached to an image: a signature, or a list of what is in it.
type Artifact struct {
	// Type is the artifact type, and the media type of the content.
	Type        string
	Annotations map[string]string
	Content     []byte
}

// Attach adds an artifact to an image as an OCI referrer and returns the digest of its manifest. The image is a
// reference by digest. Where the registry has no referrers API the artifact is listed under the tag that the
// specification provides for that. Attaching the same artifact again changes nothing.
func (c *Client) Attach(ctx context.Context, image string, artifact Artifact, a Access) (string, error) {
	subject, err := parseDigest(image, a)
	if err != nil {
		return "", err
	}
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return "", err
	}
	described, err := remote.Head(subject, options...)
	if err != nil {
		return "", fmt.Errorf("attach to %s: %w", subject, classify(err))
	}
	config := static.NewLayer([]byte("{}"), emptyConfig)
	content := static.NewLayer(artifact.Content, types.MediaType(artifact.Type))
	manifest, err := newReferrer(described, artifact, config, content)
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
	ref, err := parse(image, a)
	if err != nil {
		return name.Digest{}, err
	}
	digest, ok := ref.(name.Digest)
	if !ok {
		return name.Digest{}, fmt.Errorf("%w: %s has no digest", ErrBadSource, image)
	}
	return digest, nil
}

// rawManifest is a manifest that is written as it is.
type rawManifest struct {
	raw    []byte
	media  types.MediaType
	digest string
}

// RawManifest implements remote.Taggable.
func (m rawManifest) RawManifest() ([]byte, error) { return m.raw, nil }

// MediaType tells the library what it writes.
func (m rawManifest) MediaType() (types.MediaType, error) { return m.media, nil }

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

// Attached returns the contents of an image's artifacts of one type, in the order in which the registry lists them. An
// image without any, and one that does not exist, give none. At most 32 are read.
func (c *Client) Attached(ctx context.Context, image, artifactType string, a Access) ([][]byte, error) {
	var out [][]byte
	err := c.attached(ctx, image, artifactType, a, func(content []byte) bool {
		out = append(out, content)
		return true
	})
	return out, err
}

// attached visits artifacts until visit returns false.
func (c *Client) attached(ctx context.Context, image, artifactType string, a Access, visit func([]byte) bool) error {
	subject, err := parseDigest(image, a)
	if err != nil {
		return err
	}
	options, err := c.remoteOptions(ctx, a)
	if err != nil {
		return err
	}
	digests, err := listed(subject, artifactType, options)
	if err != nil {
		return fmt.Errorf("list what is attached to %s: %w", subject, classify(err))
	}
	for _, digest := range digests {
		content, err := fetchArtifact(subject.Context(), digest, artifactType, options)
		if errors.Is(err, ErrNotFound) || errors.Is(err, errNoContent) {
			continue // It was removed, or is not a valid artifact; it is ignored.
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

// listed are the manifests that a registry lists as artifacts of that type, or of one that tells nothing.
func listed(subject name.Digest, artifactType string, options []remote.Option) ([]v1.Hash, error) {
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
		if mayBe(d.ArtifactType, artifactType) && len(out) < maxReferrers {
			out = append(out, d.Digest)
		}
	}
	return out, nil
}

// mayBe reports whether what is listed as one type can be of another: some registries list the type of the
// configuration where the manifest names one of its own.
func mayBe(listed, wanted string) bool {
	return listed == wanted || listed == "" || listed == string(emptyConfig)
}

var errNoContent = errors.New("no content of the announced type")

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
