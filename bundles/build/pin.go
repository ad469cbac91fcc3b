// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// Pin replaces the tag of every image in the ClusterServiceVersion by its digest. These are the images of containers,
// of variables that begin with RELATED_IMAGE_, of relatedImages, and of the annotation containerImage. Images in other
// variables or in arguments are not recognized and stay. digest is called once for each image. Pin returns the new
// reference for each changed reference. Errors are errors of digest, or match ErrInput.
func (r *Result) Pin(digest func(image string) (string, error)) (map[string]string, error) {
	file, csv, err := r.findCSV()
	if err != nil {
		return nil, err
	}
	p := &pinner{digest: digest, pinned: map[string]string{}}
	p.pinCSV(csv.Object)
	if p.err != nil {
		return nil, p.err
	}
	if len(p.pinned) == 0 {
		return nil, nil
	}
	if err := r.Files.put(file, csv.Object); err != nil {
		return nil, err
	}
	return p.pinned, r.validate()
}

// findCSV returns the file name and the content of the ClusterServiceVersion.
func (r *Result) findCSV() (string, *unstructured.Unstructured, error) {
	b, err := r.Files.Bundle()
	if err != nil {
		return "", nil, newInputError("%v", err)
	}
	for _, name := range r.Files.listManifests(b.Annotations) {
		o := &unstructured.Unstructured{}
		if err := untrusted.Unmarshal(r.Files[name], &o.Object); err != nil {
			continue // a file with several documents; tools write the ClusterServiceVersion into a separate file
		}
		if o.GetKind() == kindCSV {
			return name, o, nil
		}
	}
	return "", nil, newInputError("the %s must have a file of its own for its images to be pinned", kindCSV)
}

// pinner changes a ClusterServiceVersion in place. It does not decode it into a type, so that other fields stay
// the same.
type pinner struct {
	digest func(string) (string, error)
	pinned map[string]string
	err    error
}

// pinCSV replaces all images of a ClusterServiceVersion.
func (p *pinner) pinCSV(csv map[string]any) {
	deployments, _, _ := unstructured.NestedSlice(csv, "spec", "install", "spec", "deployments")
	for _, d := range deployments {
		d, _ := d.(map[string]any)
		for _, list := range []string{"containers", "initContainers"} {
			visitMaps(d, p.pinContainer, "spec", "template", "spec", list)
		}
	}
	if len(deployments) > 0 {
		p.recordError(unstructured.SetNestedSlice(csv, deployments, "spec", "install", "spec", "deployments"))
	}
	visitMaps(csv, func(r map[string]any) { p.pinField(r, "image") }, "spec", "relatedImages")
	if annotations, ok, _ := unstructured.NestedMap(csv, "metadata", "annotations"); ok {
		p.pinField(annotations, bundles.AnnotationContainerImage)
		p.recordError(unstructured.SetNestedMap(csv, annotations, "metadata", "annotations"))
	}
}

// visitMaps calls visit for each map in a list.
func visitMaps(in map[string]any, visit func(map[string]any), fields ...string) {
	list, _, _ := unstructured.NestedFieldNoCopy(in, fields...)
	items, _ := list.([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			visit(m)
		}
	}
}

// pinContainer replaces the images of a container and of its variables.
func (p *pinner) pinContainer(c map[string]any) {
	p.pinField(c, "image")
	visitMaps(c, func(e map[string]any) {
		if name, _ := e["name"].(string); strings.HasPrefix(name, bundles.RelatedImagePrefix) {
			p.pinField(e, "value")
		}
	}, "env")
}

// pinField replaces the image in a field, unless it has a digest or is empty.
func (p *pinner) pinField(in map[string]any, field string) {
	image, _ := in[field].(string)
	if image == "" || p.err != nil || strings.Contains(image, "@") {
		return
	}
	if p.pinned[image] == "" {
		digest, err := p.digest(image)
		if err != nil {
			p.err = fmt.Errorf("pin image %s: %w", image, err)
			return
		}
		p.pinned[image] = bundles.PinImage(image, digest)
	}
	in[field] = p.pinned[image]
}

// recordError stores the first error.
func (p *pinner) recordError(err error) {
	if p.err == nil && err != nil {
		p.err = newInputError("pin images: %v", err)
	}
}
