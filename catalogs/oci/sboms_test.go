// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

// withLayer returns an image with one layer.
func withLayer(t *testing.T, content string, media types.MediaType) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		static.NewLayer([]byte(content), media))
	if err != nil {
		t.Fatalf("make image: %v", err)
	}
	return img
}

// TestSBOMs reads the SBOMs of an index: attached to it, attached to an image in it, and listed in it as build
// tools do.
func TestSBOMs(t *testing.T) {
	reg := newRegistry(t)
	img := withLayer(t, "program", types.OCILayer)
	attestation := withLayer(t, "a statement", "application/vnd.in-toto+json")
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}},
		mutate.IndexAddendum{Add: attestation, Descriptor: v1.Descriptor{
			Platform:    &v1.Platform{OS: "unknown", Architecture: "unknown"},
			Annotations: map[string]string{"vnd.docker.reference.type": "attestation-manifest"}}})
	tag, err := name.NewTag(reg.image("index"))
	if err != nil {
		t.Fatalf("parse tag: %v", err)
	}
	if err := remote.WriteIndex(tag, index); err != nil {
		t.Fatalf("push index: %v", err)
	}
	digest := func(d interface{ Digest() (v1.Hash, error) }) string {
		hash, err := d.Digest()
		if err != nil {
			t.Fatalf("digest: %v", err)
		}
		return tag.Context().Digest(hash.String()).String()
	}
	client := oci.NewClient(oci.Options{})
	for _, attached := range []struct{ to, kind, content string }{
		{digest(index), "application/spdx+json", "SPDX of the index"},
		{digest(img), "application/vnd.cyclonedx+json", "CycloneDX of the image"},
		{digest(img), "application/vnd.example.signature", "a signature"},
	} {
		if _, err := client.Attach(t.Context(), attached.to, oci.Artifact{Type: attached.kind,
			Content: []byte(attached.content)}, oci.Access{}); err != nil {
			t.Fatalf("attach: %v", err)
		}
	}
	for image, want := range map[string][]string{
		tag.String():  {"CycloneDX of the image", "SPDX of the index", "a statement"},
		digest(index): {"CycloneDX of the image", "SPDX of the index", "a statement"},
		digest(img):   {"CycloneDX of the image"},
	} {
		contents, err := client.SBOMs(t.Context(), image, oci.Access{})
		var got []string
		for _, c := range contents {
			got = append(got, string(c))
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has %q (%v), want %q", image, got, err, want)
		}
	}
	if _, err := client.SBOMs(t.Context(), reg.image("gone"), oci.Access{}); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("an image that does not exist: %v", err)
	}
}
