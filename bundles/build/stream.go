// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/bundles"
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
			out = append(out, a.document(fmt.Sprintf("%s, line %d", s.Name, line), document)...)
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

func (a *assembly) document(where string, text []byte) []object {
	var content any
	if err := yaml.UnmarshalStrict(text, &content); err != nil {
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
