// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"slices"
	"sync"

	"github.com/bellwether-dev/bellwether/bundles"
)

// ReadWithImages is ReadGraphs, with the images of each bundle in its RelatedImages: those that the catalog lists, and
// where it has the manifests those that the ClusterServiceVersion runs or tells the operator to run. Each bundle is
// given to check, which may be called from several goroutines; its error ends the reading and is returned.
func ReadWithImages(files Files, check func(pkg string, b *Bundle) error) ([]*Package, error) {
	type key struct{ pkg, bundle string }
	var mu sync.Mutex
	images := map[key][]RelatedImage{}
	packages, err := ReadEach(files, func(pkg string, b *Bundle) error {
		if err := check(pkg, b); err != nil {
			return err
		}
		found := withManifests(b)
		mu.Lock()
		defer mu.Unlock()
		images[key{pkg, b.Name}] = found
		return nil
	})
	for _, p := range packages {
		for _, b := range p.Bundles {
			b.RelatedImages = images[key{p.Name, b.Name}]
		}
	}
	return packages, err
}

// withManifests returns the images that are listed and those that the manifests name. A ClusterServiceVersion that
// cannot be decoded names none: OLM cannot install it.
func withManifests(b *Bundle) []RelatedImage {
	out := slices.Clone(b.RelatedImages)
	for _, object := range b.Objects {
		if !bundles.IsCSV(object) {
			continue
		}
		read, err := bundles.FromManifests([][]byte{object}, nil)
		if err != nil {
			continue
		}
		for _, i := range read.Images() {
			isListed := slices.ContainsFunc(out, func(r RelatedImage) bool { return r.Image == i.Ref })
			if i.Use != bundles.AnnotationImage && !isListed {
				out = append(out, RelatedImage{Name: i.Name, Image: i.Ref})
			}
		}
	}
	return out
}
