// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"slices"
	"sync"

	"github.com/bellwether-dev/bellwether/bundles"
)

// ReadWithImages is like ReadGraphs, but sets the RelatedImages of each bundle: the images that the catalog lists
// and, if the catalog has the manifests, the images that the ClusterServiceVersion runs or passes to the operator. It
// passes each bundle to check, from several goroutines at a time. An error of check ends the reading and is returned.
func ReadWithImages(files Files, check func(pkg string, b *Bundle) error) ([]*Package, error) {
	type key struct{ pkg, bundle string }
	var mu sync.Mutex
	images := map[key][]RelatedImage{}
	packages, err := ReadEach(files, func(pkg string, b *Bundle) error {
		if err := check(pkg, b); err != nil {
			return err
		}
		found := listImages(b)
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

// listImages returns the listed images of a bundle and the images that its manifests name. A ClusterServiceVersion
// that cannot be decoded names none, because OLM cannot install it.
func listImages(b *Bundle) []RelatedImage {
	out := slices.Clone(b.RelatedImages)
	for _, object := range b.Objects {
		if !bundles.IsCSV(object) {
			continue
		}
		content, err := bundles.FromManifests([][]byte{object}, nil)
		if err != nil {
			continue
		}
		for _, i := range content.Images() {
			isListed := slices.ContainsFunc(out, func(r RelatedImage) bool { return r.Image == i.Ref })
			if i.Use != bundles.AnnotationImage && !isListed {
				out = append(out, RelatedImage{Name: i.Name, Image: i.Ref})
			}
		}
	}
	return out
}
