// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image builds the container images of Bellwether's programs without a container engine.
// Each image has a base and one layer with one program, and has the name of its program.
//
// The same programs on the same base give the same digest on every machine and at every time:
// all times in an image are the time of the commit that the programs were built from.
package image

import (
	"errors"

	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/internal/version"
)

// Names of the programs. They are the folders below cmd.
const (
	Hub        = "hub"
	Agent      = "agent"
	Bellwether = "bellwether"
)

// Names are the names of all programs.
var Names = []string{Hub, Agent, Bellwether}

// Platforms are the platforms that images are built for.
var Platforms = []string{"linux/amd64", "linux/arm64"}

// DefaultRegistry is the registry where the chart expects the images.
const DefaultRegistry = charts.Registry

// ErrMixed means that programs are of different commits or releases.
var ErrMixed = errors.New("the programs are of different versions")

// nonroot is the user and the group that programs run as, as in distroless images. It is a
// number, because Kubernetes cannot determine whether a user with a name is root.
const nonroot = "65532:65532"

// getProgramPath returns the path of a program in its image.
func getProgramPath(program string) string { return "/usr/bin/" + program }

// BuildTag returns the tag for images of a version. A "+" is replaced, because
// a tag must not contain it.
func BuildTag(info version.Info) string {
	out := []byte(info.Version)
	for i, c := range out {
		if c == '+' {
			out[i] = '-'
		}
	}
	return string(out)
}
