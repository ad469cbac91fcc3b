// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"slices"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// Contents is the known content of an image.
type Contents struct {
	// Inventories are its SBOMs.
	Inventories []Inventory
	// Problem is why there are no SBOMs; empty if the image simply has none.
	Problem string
}

// Document is an SBOM that a person gives for images, in addition to what is attached to the images.
type Document struct {
	// File is the name of its file, for messages.
	File string
	// Image is the reference of the image that it belongs to; empty if the SBOM itself names its images.
	Image     string
	Inventory Inventory
}

// isAbout reports whether the SBOM describes an image.
func (d Document) isAbout(image string) bool {
	if d.Image != "" {
		return d.Image == image
	}
	return d.Inventory.IsAbout(image)
}

// AssignDocuments returns the contents of the images that documents describe, by image reference, and the documents
// that describe none of the images. An image that no document describes has no entry.
func AssignDocuments(images []string, documents []Document) (assigned map[string]Contents, unused []Document) {
	assigned = map[string]Contents{}
	for _, d := range documents {
		isUsed := false
		for _, image := range images {
			if d.isAbout(image) {
				c := assigned[image]
				c.Inventories = append(c.Inventories, d.Inventory)
				assigned[image], isUsed = c, true
			}
		}
		if !isUsed {
			unused = append(unused, d)
		}
	}
	return assigned, unused
}

// ReadContents reads the SBOMs among the documents that are attached to an image. It skips documents that are not
// SBOMs.
func ReadContents(documents [][]byte) Contents {
	var out Contents
	for _, text := range documents {
		if inventory, err := ReadInventory(text); err == nil {
			out.Inventories = append(out.Inventories, inventory)
		}
	}
	return out
}

// ListImages returns the references of the images that the bundles of the packages run, sorted, without duplicates.
// Bundle images are not included, because they only have manifests.
func ListImages(packages []*catalogs.Package) []string {
	var out []string
	for _, p := range packages {
		for _, b := range p.Bundles {
			out = append(out, listBundleImages(b)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// listBundleImages returns the images that a bundle runs, sorted. The bundle image itself is not included.
func listBundleImages(b *catalogs.Bundle) []string {
	var out []string
	for _, r := range b.RelatedImages {
		if r.Image != "" && r.Image != b.Image {
			out = append(out, r.Image)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
