// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image makes the container images of Bellwether's programs, without a container engine: each has a base, and
// one layer with one program. An image is called after its program.
//
// The same programs on the same base give the same digest, whoever makes the image and when: every time in it is that
// of the commit that the programs were built from.
package image

import (
	"errors"

	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/version"
)

// Names of the programs that images are made of, which are those of the folders below cmd.
const (
	Hub        = "hub"
	Agent      = "agent"
	Bellwether = "bellwether"
)

// Names are all of them.
var Names = []string{Hub, Agent, Bellwether}

// Platforms are those that images are made for.
var Platforms = []string{"linux/amd64", "linux/arm64"}

// DefaultRegistry is where the chart expects the images.
const DefaultRegistry = charts.Registry

// ErrMixed says that programs are of different commits or releases.
var ErrMixed = errors.New("the programs are of different versions")

// nonroot is the user and the group that programs run as, as in distroless images. It is a number because Kubernetes
// cannot tell otherwise that it is not root.
const nonroot = "65532:65532"

// path is where a program is in its image.
func path(program string) string { return "/usr/bin/" + program }

// Tag is the tag of images of a version: tags have no "+".
func Tag(info version.Info) string {
	out := []byte(info.Version)
	for i, c := range out {
		if c == '+' {
			out[i] = '-'
		}
	}
	return string(out)
}
