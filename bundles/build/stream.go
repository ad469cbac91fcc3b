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
	"github.com/bellwether-dev/bellwether/untrusted"
)

// object is a manifest and where it was read.
type object struct {
	*unstructured.Unstructured
	where string
}

// String names the object for people.
func (o object) String() string { return fmt.Sprintf("%s %s (%s)", o.GetKind(), o.GetName(), o.where) }

// typed is an object with its Go type.
type typed[T any] struct {
	object
	value *T
}

// decode turns an object into its Go type. A value of the wrong kind is a problem, a field that the type does not know
// is a warning: the API server would drop it too.
func decode[T any](a *assembly, o object) (typed[T], bool) {
	raw, err := json.Marshal(o.Object)
	if err != nil {
		a.problem("%v: %v", o, err)
		return typed[T]{}, false
	}
	value := new(T)
	unknown, err := kjson.UnmarshalStrict(raw, value)
	if err != nil {
		a.problem("%v: %v", o, err)
		return typed[T]{}, false
	}
	for _, e := range unknown {
		a.warn("%v: %v: Kubernetes would drop it, and so does the bundle", o, e)
	}
	return typed[T]{o, value}, true
}

// parse reads all documents of all sources. Lists are taken apart.
func (a *assembly) parse(sources []Source) []object {
	var out []object
	total := 0
	for _, s := range sources {
		if total += len(s.Text); total > bundles.MaxBytes {
			a.problem("%s: the manifests have more than %d MiB; OLM installs bundles of about 1 MiB, compressed",
				s.Name, bundles.MaxBytes>>20)
			return nil
		}
		line := 1
		for _, document := range documents(s.Text) {
			out = append(out, a.document(cmp.Or(s.Where, fmt.Sprintf("%s, line %d", s.Name, line)), line, document)...)
			line += bytes.Count(document, []byte("\n"))
		}
	}
	a.refuseDuplicates(out)
	return out
}

// documents cuts a stream in front of its separator lines, so that the parts still have all lines.
func documents(text []byte) [][]byte {
	var out [][]byte
	start, at := 0, 0
	for line := range bytes.Lines(text) {
		content := strings.TrimRight(string(line), " \t\r\n")
		if at > start && (content == "---" || strings.HasPrefix(content, "--- ")) {
			out = append(out, text[start:at])
			start = at
		}
		at += len(line)
	}
	return append(out, text[start:])
}

// Document is one object of a file, as its author wrote it.
type Document struct {
	// Line is that on which the document begins, from 1.
	Line       int
	Kind, Name string
}

// Documents lists the objects of a file. It leaves out what it cannot read, and does not take lists apart.
func Documents(text []byte) []Document {
	var out []Document
	line := 1
	for _, document := range documents(text) {
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

// Locate returns the line of the document that an object was made of, whose name may have got a prefix and a suffix
// since. It returns 0 if none can be it, or several.
func Locate(all []Document, kind, name string) int {
	line, found := 0, ""
	for _, d := range all {
		switch {
		case d.Kind != kind || d.Name == "" || !strings.Contains(name, d.Name):
		case d.Name == name:
			return d.Line
		case len(d.Name) < len(found) && strings.Contains(found, d.Name): // a part of a name that fits better
		case len(d.Name) > len(found) && strings.Contains(d.Name, found):
			line, found = d.Line, d.Name
		default:
			return 0
		}
	}
	return line
}

// document returns the objects of a document that begins on a line.
func (a *assembly) document(where string, line int, text []byte) []object {
	var content any
	err := untrusted.AtLine(line, text, func(text []byte) error { return untrusted.UnmarshalStrict(text, &content) })
	if err != nil {
		a.problem("%s: broken YAML: %s", where, strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
		return nil
	}
	switch content := content.(type) {
	case nil:
		return nil
	case map[string]any:
		return a.object(where, content)
	default:
		a.problem("%s: the document is not an object but %T: manifests are Kubernetes objects", where, content)
		return nil
	}
}

func (a *assembly) object(where string, content map[string]any) []object {
	if len(content) == 0 {
		return nil
	}
	o := object{&unstructured.Unstructured{Object: content}, where}
	for _, field := range []string{"apiVersion", "kind"} {
		if text, _ := content[field].(string); text == "" {
			a.problem("%s: the document has no %s: manifests are Kubernetes objects", where, field)
			return nil
		}
	}
	if o.IsList() {
		return a.list(o)
	}
	if o.GetName() == "" {
		a.problem("%s: the %s has no metadata.name", where, o.GetKind())
		return nil
	}
	return []object{o}
}

func (a *assembly) list(o object) []object {
	var out []object
	items, _ := o.Object["items"].([]any)
	for i, item := range items {
		where := fmt.Sprintf("%s, item %d", o.where, i+1)
		content, ok := item.(map[string]any)
		if !ok {
			a.problem("%s: the item is not an object", where)
			continue
		}
		out = append(out, a.object(where, content)...)
	}
	return out
}

// refuseDuplicates finds objects that would overwrite each other, as namespaces do not tell them apart in a bundle.
// Custom resources of the operator become examples, of which each version of an API may have one of the same name.
func (a *assembly) refuseDuplicates(objects []object) {
	own, seen := definedKinds(objects), map[string]object{}
	for _, o := range objects {
		if o.GetKind() == kindCSV {
			continue // two of them have a message of their own
		}
		gvk := o.GroupVersionKind()
		key := gvk.Group + "/" + gvk.Kind + "/" + o.GetName()
		if own[gvk.GroupKind()] {
			key += "/" + gvk.Version
		}
		if first, ok := seen[key]; ok {
			a.problem("%v is there twice, also at %s: in a bundle all objects are in one namespace", o, first.where)
			continue
		}
		seen[key] = o
	}
}

// definedKinds are those of the CustomResourceDefinitions among the objects.
func definedKinds(objects []object) map[schema.GroupKind]bool {
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
