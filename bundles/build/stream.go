// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// object is a manifest and the place where it was read.
type object struct {
	*unstructured.Unstructured
	place string
}

// String returns the kind, name and place of the object, for messages.
func (o object) String() string { return fmt.Sprintf("%s %s (%s)", o.GetKind(), o.GetName(), o.place) }

// typedObject is an object together with its decoded Go value.
type typedObject[T any] struct {
	object
	value *T
}

// decode decodes an object into its Go type. A value of the wrong type is recorded as a problem, and the result is
// false. An unknown field is a warning, because the API server would drop it too.
func decode[T any](a *assembler, o object) (typedObject[T], bool) {
	raw, err := json.Marshal(o.Object)
	if err != nil {
		a.addProblem("%v: %v", o, err)
		return typedObject[T]{}, false
	}
	value := new(T)
	unknown, err := kjson.UnmarshalStrict(raw, value)
	if err != nil {
		a.addProblem("%v: %v", o, err)
		return typedObject[T]{}, false
	}
	for _, e := range unknown {
		a.warn("%v: %v: Kubernetes would drop it, and so does the bundle", o, e)
	}
	return typedObject[T]{o, value}, true
}

// parseSources parses all documents of all sources. A Kubernetes List is replaced by its items. It reports problems to
// the assembler; if the sources are too large together, the result is nil.
func (a *assembler) parseSources(sources []Source) []object {
	var out []object
	total := 0
	for _, s := range sources {
		if total += len(s.Text); total > bundles.MaxBytes {
			a.addProblem("%s: the manifests have more than %d MiB; OLM installs bundles of about 1 MiB, compressed",
				s.Name, bundles.MaxBytes>>20)
			return nil
		}
		line := 1
		for _, document := range splitDocuments(s.Text) {
			out = append(out, a.parseDocument(cmp.Or(s.Where, fmt.Sprintf("%s, line %d", s.Name, line)), line,
				document)...)
			line += bytes.Count(document, []byte("\n"))
		}
	}
	a.refuseDuplicates(out)
	return out
}

// splitDocuments splits a stream before its separator lines. The parts contain all lines of the stream.
func splitDocuments(text []byte) [][]byte {
	var out [][]byte
	start, position := 0, 0
	for line := range bytes.Lines(text) {
		content := strings.TrimRight(string(line), " \t\r\n")
		isSeparator := content == "---" || strings.HasPrefix(content, "--- ")
		if position > start && isSeparator {
			out = append(out, text[start:position])
			start = position
		}
		position += len(line)
	}
	return append(out, text[start:])
}

// Document is one object of a file.
type Document struct {
	// Line is the line on which the document begins, from 1.
	Line       int
	Kind, Name string
}

// Documents returns the objects of a file. It skips documents that it cannot read, and does not split lists.
func Documents(text []byte) []Document {
	var out []Document
	line := 1
	for _, document := range splitDocuments(text) {
		var head struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if untrusted.Unmarshal(document, &head) == nil && head.Kind != "" {
			out = append(out, Document{Line: line, Kind: head.Kind, Name: head.Metadata.Name})
		}
		line += bytes.Count(document, []byte("\n"))
	}
	return out
}

// Locate returns the line of the document that an object was generated from. The object's name can have an additional
// prefix and suffix. If several names match, the longest counts if it contains the others. The result is 0 if no
// document matches, or if it is ambiguous.
func Locate(all []Document, kind, name string) int {
	line, found := 0, ""
	for _, d := range all {
		switch {
		case d.Kind != kind || d.Name == "" || !strings.Contains(name, d.Name): // another object
		case d.Name == name:
			return d.Line
		case len(d.Name) < len(found) && strings.Contains(found, d.Name): // a part of a longer matching name
		case len(d.Name) > len(found) && strings.Contains(d.Name, found):
			line, found = d.Line, d.Name
		default: // two names match, and neither contains the other
			return 0
		}
	}
	return line
}

// parseDocument returns the objects of a document that begins on the given line. Errors are reported as problems.
func (a *assembler) parseDocument(place string, line int, text []byte) []object {
	var content any
	err := untrusted.AtLine(line, text, func(text []byte) error { return untrusted.UnmarshalStrict(text, &content) })
	if err != nil {
		a.addProblem("%s: broken YAML: %s", place, strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
		return nil
	}
	switch content := content.(type) {
	case nil:
		return nil
	case map[string]any:
		return a.parseObject(place, content)
	default:
		a.addProblem("%s: the document is not an object but %T: manifests are Kubernetes objects", place, content)
		return nil
	}
}

// parseObject checks an object and returns it, or the items of a list; nil for an empty document and after a problem.
func (a *assembler) parseObject(place string, content map[string]any) []object {
	if len(content) == 0 {
		return nil
	}
	o := object{&unstructured.Unstructured{Object: content}, place}
	for _, field := range []string{"apiVersion", "kind"} {
		if text, _ := content[field].(string); text == "" {
			a.addProblem("%s: the document has no %s: manifests are Kubernetes objects", place, field)
			return nil
		}
	}
	if o.IsList() {
		return a.parseList(o)
	}
	if o.GetName() == "" {
		a.addProblem("%s: the %s has no metadata.name", place, o.GetKind())
		return nil
	}
	return []object{o}
}

// parseList returns the items of a list.
func (a *assembler) parseList(o object) []object {
	var out []object
	items, _ := o.Object["items"].([]any)
	for i, item := range items {
		place := fmt.Sprintf("%s, item %d", o.place, i+1)
		content, ok := item.(map[string]any)
		if !ok {
			a.addProblem("%s: the item is not an object", place)
			continue
		}
		out = append(out, a.parseObject(place, content)...)
	}
	return out
}

// refuseDuplicates reports objects with the same kind and name, because all objects of a bundle are in the same
// namespace. Custom resources of the operator become examples; examples of different API versions can have the
// same name.
func (a *assembler) refuseDuplicates(objects []object) {
	own, firstObjects := listDefinedKinds(objects), map[string]object{}
	for _, o := range objects {
		if o.GetKind() == kindCSV {
			continue // startCSV reports a second one
		}
		gvk := o.GroupVersionKind()
		key := gvk.Group + "/" + gvk.Kind + "/" + o.GetName()
		if own[gvk.GroupKind()] {
			key += "/" + gvk.Version
		}
		if first, ok := firstObjects[key]; ok {
			a.addProblem("%v is there twice, also at %s: in a bundle all objects are in one namespace", o, first.place)
			continue
		}
		firstObjects[key] = o
	}
}

// listDefinedKinds returns the kinds that the CustomResourceDefinitions among the objects define.
func listDefinedKinds(objects []object) map[schema.GroupKind]bool {
	out := map[schema.GroupKind]bool{}
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		out[schema.GroupKind{Group: group, Kind: kind}] = true
	}
	return out
}
