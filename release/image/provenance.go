// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"

	predicate "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// Type is the type of the predicate.
	Type = "https://slsa.dev/provenance/v1"
	// BuildType is the URL of the page that documents the parameters.
	BuildType = repository + "/blob/main/docs/guides/releases.md#provenance"
	// Local is the builder if no other builder is known.
	Local = "urn:bellwether:builder:local"

	repository = "https://github.com/bellwether-dev/bellwether"
)

// Build has the inputs of a release.
type Build struct {
	// Version and Registry are the version and the registry of the release. Base is the base
	// image; empty if there is none.
	Version, Registry, Base string
	// Platforms are the platforms of the images.
	Platforms []string
	// Commit is the commit of the repository, and Go is the version of Go.
	Commit, Go string
	// Builder is a URI. Default: Local.
	Builder string
}

// Predicate returns the provenance as a SLSA predicate.
func (b Build) Predicate() (*structpb.Struct, error) {
	platforms := make([]any, len(b.Platforms))
	for i, p := range b.Platforms {
		platforms[i] = p
	}
	external, err := structpb.NewStruct(map[string]any{"version": b.Version, "registry": b.Registry, "base": b.Base,
		"platforms": platforms})
	if err != nil {
		return nil, fmt.Errorf("encode provenance: %w", err)
	}
	internal, err := structpb.NewStruct(map[string]any{"go": b.Go})
	if err != nil {
		return nil, fmt.Errorf("encode provenance: %w", err)
	}
	p := &predicate.Provenance{
		BuildDefinition: &predicate.BuildDefinition{BuildType: BuildType, ExternalParameters: external,
			InternalParameters: internal, ResolvedDependencies: []*intoto.ResourceDescriptor{{
				Uri: "git+" + repository, Digest: map[string]string{"gitCommit": b.Commit}}}},
		RunDetails: &predicate.RunDetails{Builder: &predicate.Builder{Id: b.Builder}},
	}
	if b.Builder == "" {
		p.RunDetails.Builder.Id = Local
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("make provenance: %w", err)
	}
	text, err := protojson.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode provenance: %w", err)
	}
	out := &structpb.Struct{}
	if err := protojson.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("encode provenance: %w", err)
	}
	return out, nil
}

// ReadBuilder returns the URL of the running workflow, from the variables that GitHub sets;
// empty outside GitHub Actions.
func ReadBuilder(getenv func(string) string) string {
	if getenv("GITHUB_ACTIONS") != "true" {
		return ""
	}
	return getenv("GITHUB_SERVER_URL") + "/" + getenv("GITHUB_WORKFLOW_REF")
}
