// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

var titles = map[string]string{
	Hub:        "the hub: decides what runs where in the fleet, and rolls it out",
	Agent:      "the agent: brings the operators of a cluster to what the hub admitted",
	Bellwether: "the command line",
}

// New builds the image of a program on a base.
func New(p Program, base v1.Image) (v1.Image, error) {
	content, err := os.ReadFile(p.File)
	if err != nil {
		return nil, fmt.Errorf("make image of %s: %w", p.Name, err)
	}
	at := getCreationTime(p)
	layer, err := newLayer(at, []file{{name: getProgramPath(p.Name), mode: 0o755, content: content}})
	if err != nil {
		return nil, fmt.Errorf("make image of %s: %w", p.Name, err)
	}
	img, err := mutate.Append(base, newAddendum(layer, at, "bellwether: "+p.Name))
	if err != nil {
		return nil, fmt.Errorf("make image of %s: %w", p.Name, err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("make image of %s: %w", p.Name, err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = p.Platform.OS, p.Platform.Architecture, ""
	config.Created, config.Author = v1.Time{Time: at}, ""
	c := &config.Config
	c.User, c.Entrypoint, c.Cmd, c.WorkingDir = nonroot, []string{getProgramPath(p.Name)}, nil, "/"
	if len(c.Env) == 0 {
		c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	}
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	maps.Copy(c.Labels, buildAnnotations(p))
	return mutate.ConfigFile(img, config)
}

// Source is the URL of Bellwether's source.
const Source = "https://github.com/bellwether-dev/bellwether"

// buildAnnotations returns the annotations of the OCI specification for a program.
func buildAnnotations(p Program) map[string]string {
	out := map[string]string{
		"org.opencontainers.image.title":       "Bellwether: " + cmp.Or(titles[p.Name], p.Name),
		"org.opencontainers.image.source":      Source,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     p.Version.Version,
		"org.opencontainers.image.created":     getCreationTime(p).Format(time.RFC3339),
		"org.opencontainers.image.description": "Bellwether manages the operators of a fleet of Kubernetes clusters",
	}
	if p.Version.Revision != "" {
		out["org.opencontainers.image.revision"] = p.Version.Revision
	}
	return out
}

// getCreationTime returns the time of the program's commit, or the epoch if it is unknown.
func getCreationTime(p Program) time.Time {
	if p.Version.Time == nil {
		return epoch
	}
	return *p.Version.Time
}

// Set is the image of one program for all platforms.
type Set struct {
	Name  string
	Index v1.ImageIndex
	// Images are the images in the index, by digest.
	Images map[string]v1.Image
	// Programs are the programs in the images, by the image's digest.
	Programs map[string]Program
}

// Tag returns the tag of the image's version; empty if the set has no programs.
func (s Set) Tag() string {
	for _, p := range s.Programs {
		return BuildTag(p.Version)
	}
	return ""
}

// NewSet builds the image of a program that was built for several platforms. It calls
// base once for each platform.
func NewSet(programs []Program, base func(v1.Platform) (v1.Image, error)) (Set, error) {
	s := Set{Index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex), Images: map[string]v1.Image{},
		Programs: map[string]Program{}}
	programs = slices.SortedFunc(slices.Values(programs), func(a, b Program) int {
		return cmp.Compare(a.Platform.String(), b.Platform.String())
	})
	for _, p := range programs {
		if first := programs[0]; p.Name != first.Name || p.Version.String() != first.Version.String() {
			return Set{}, fmt.Errorf("%w: %s %s and %s %s", ErrMixed, first.Name, first.Version, p.Name, p.Version)
		}
		s.Name = p.Name
		baseImage, err := base(p.Platform)
		if err != nil {
			return Set{}, err
		}
		img, err := New(p, baseImage)
		if err != nil {
			return Set{}, err
		}
		digest, err := img.Digest()
		if err != nil {
			return Set{}, fmt.Errorf("digest image of %s: %w", p.Name, err)
		}
		s.Images[digest.String()], s.Programs[digest.String()] = img, p
		s.Index = mutate.AppendManifests(s.Index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: p.Platform.OS, Architecture: p.Platform.Architecture}}})
	}
	if len(programs) > 0 {
		s.Index = mutate.Annotations(s.Index, buildAnnotations(programs[0])).(v1.ImageIndex)
	}
	return s, nil
}
