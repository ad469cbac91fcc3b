// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/untrusted"
)

// Pin replaces the tag of every image in the ClusterServiceVersion by the digest that it stands for: those of
// containers, of variables that begin with RELATED_IMAGE_, of relatedImages, and the annotation containerImage. Images
// elsewhere, in other variables or in arguments, are not known to be images and stay. Each image is asked for once. It
// returns the references that changed and what they are now. An error is the one of digest, or ErrInput.
func (r *Result) Pin(digest func(image string) (string, error)) (map[string]string, error) {
	file, csv, err := r.csv()
	if err != nil {
		return nil, err
	}
	p := &pinner{digest: digest, pinned: map[string]string{}}
	p.csv(csv.Object)
	if p.err != nil {
		return nil, p.err
	}
	if len(p.pinned) == 0 {
		return nil, nil
	}
	if err := r.Files.put(file, csv.Object); err != nil {
		return nil, err
	}
	return p.pinned, r.check()
}

// csv finds the file of the ClusterServiceVersion.
func (r *Result) csv() (string, *unstructured.Unstructured, error) {
	b, err := r.Files.Bundle()
	if err != nil {
		return "", nil, input("%v", err)
	}
	for _, name := range r.Files.manifests(b.Annotations) {
		o := &unstructured.Unstructured{}
		if err := untrusted.Unmarshal(r.Files[name], &o.Object); err != nil {
			continue // more than one document: not where tools put a ClusterServiceVersion
		}
		if o.GetKind() == kindCSV {
			return name, o, nil
		}
	}
	return "", nil, input("the %s must have a file of its own for its images to be pinned", kindCSV)
}

// pinner changes a ClusterServiceVersion in place, untyped, so that nothing else of it changes.
type pinner struct {
	digest func(string) (string, error)
	pinned map[string]string
	err    error
}

func (p *pinner) csv(csv map[string]any) {
	deployments, _, _ := unstructured.NestedSlice(csv, "spec", "install", "spec", "deployments")
	for _, d := range deployments {
		d, _ := d.(map[string]any)
		for _, list := range []string{"containers", "initContainers"} {
			each(d, p.container, "spec", "template", "spec", list)
		}
	}
	if len(deployments) > 0 {
		p.note(unstructured.SetNestedSlice(csv, deployments, "spec", "install", "spec", "deployments"))
	}
	each(csv, func(r map[string]any) { p.field(r, "image") }, "spec", "relatedImages")
	if annotations, ok, _ := unstructured.NestedMap(csv, "metadata", "annotations"); ok {
		p.field(annotations, registryv1.AnnotationContainerImage)
		p.note(unstructured.SetNestedMap(csv, annotations, "metadata", "annotations"))
	}
}

// each visits the maps in a list, in place.
func each(in map[string]any, visit func(map[string]any), fields ...string) {
	list, _, _ := unstructured.NestedFieldNoCopy(in, fields...)
	items, _ := list.([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			visit(m)
		}
	}
}

func (p *pinner) container(c map[string]any) {
	p.field(c, "image")
	each(c, func(e map[string]any) {
		if name, _ := e["name"].(string); strings.HasPrefix(name, registryv1.RelatedImagePrefix) {
			p.field(e, "value")
		}
	}, "env")
}

func (p *pinner) field(in map[string]any, field string) {
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
		p.pinned[image] = withoutTag(image) + "@" + digest
	}
	in[field] = p.pinned[image]
}

func (p *pinner) note(err error) {
	if p.err == nil && err != nil {
		p.err = input("pin images: %v", err)
	}
}

// withoutTag cuts the tag: what follows a colon behind the last slash. A colon before is that of a port.
func withoutTag(image string) string {
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		return image[:at]
	}
	return image
}
