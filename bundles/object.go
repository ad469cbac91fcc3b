// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	yamlv3 "go.yaml.in/yaml/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/untrusted"
)

// Object is one manifest of a bundle.
type Object struct {
	*unstructured.Unstructured
	// File is the path within the bundle, such as "manifests/thing.yaml".
	File string
	// Line of File on which the object's document begins, from 1.
	Line int

	text []byte
	root func() *yamlv3.Node
	// sum is that of the text that a reduced object no longer has.
	sum *[sha256.Size]byte
}

// Reduced returns an object that stands for this one where versions are compared. It has other content and no text, so
// that nothing knows positions in it; SameText still compares what this one was read from.
func (o *Object) Reduced(content map[string]any) *Object {
	sum := o.Sum()
	return &Object{Unstructured: &unstructured.Unstructured{Object: content}, File: o.File, Line: o.Line, sum: &sum,
		root: func() *yamlv3.Node { return nil }}
}

// Sum returns the hash of the text that the object was read from.
func (o *Object) Sum() [sha256.Size]byte {
	if o.sum != nil {
		return *o.sum
	}
	return sha256.Sum256(o.text)
}

// IsRBAC tells whether OLM takes the object for a role or a binding: by its kind, whatever its apiVersion is.
func (o *Object) IsRBAC() bool {
	switch o.GetKind() {
	case "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding":
		return true
	}
	return o.GroupVersionKind().Group == rbacv1.GroupName
}

// namesLine finds the errors that say on which line of the file something is.
var namesLine = regexp.MustCompile(`\bline [0-9]+:`)

// parseObject reads one document, YAML or JSON; nil if there is nothing in it.
func parseObject(file string, line int, text []byte) (*Object, error) {
	var content map[string]any
	err := untrusted.AtLine(line, text, func(text []byte) error {
		var err error
		content, err = untrusted.Object(text)
		return err
	})
	at := file
	if line > 1 && (err == nil || !namesLine.MatchString(err.Error())) {
		at = fmt.Sprintf("%s: the document at line %d", file, line)
	}
	if errors.Is(err, ErrSyntax) || errors.Is(err, untrusted.ErrRefused) {
		return nil, fmt.Errorf("%w: %s: %w", ErrNotBundle, at, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: it is not an object: %w", ErrNotBundle, at, err)
	}
	if len(content) == 0 {
		return nil, nil
	}
	o := &Object{Unstructured: &unstructured.Unstructured{Object: content}, File: file, Line: line, text: text}
	if o.GetKind() == "" || o.GetAPIVersion() == "" {
		return nil, fmt.Errorf("%w: %s: it has no kind or no apiVersion: manifests are Kubernetes objects",
			ErrNotBundle, at)
	}
	if field := onlyForOLM(content); field != "" {
		return nil, fmt.Errorf("%w: %s: Kubernetes does not know the field %q, which OLM takes for another one: "+
			"remove it, or write it as Kubernetes does", ErrNotBundle, at, field)
	}
	o.root = sync.OnceValue(o.parse)
	return o, nil
}

// onlyForOLM returns a field that makes OLM take an object for another one; empty where there is none. Besides those
// that are spelt in another case it is that of a reference: OLM installs what a ConfigMap of the cluster has instead
// (refForStep in pkg/controller/operators/catalog/manifests.go).
func onlyForOLM(content map[string]any) string {
	for field := range content {
		if strings.EqualFold(field, "catalogSourceName") {
			return field
		}
	}
	return misspeltIn(content, header)
}

// SameText reports whether two objects were written alike, to the byte. Objects of different text may still mean the
// same.
func (o *Object) SameText(other *Object) bool {
	if o.sum == nil && other.sum == nil {
		return bytes.Equal(o.text, other.text)
	}
	return o.Sum() == other.Sum()
}

// parse keeps the positions of everything. Few objects are ever asked for one, so it is done on demand.
func (o *Object) parse() *yamlv3.Node {
	var document yamlv3.Node
	if err := yamlv3.NewDecoder(bytes.NewReader(o.text)).Decode(&document); err != nil || len(document.Content) == 0 {
		return nil
	}
	return document.Content[0]
}

// Position returns the line of File on which a field stands, from 1. The path holds strings for fields and ints for
// list elements. Where there is no such field it is the line of the nearest parent that exists.
func (o *Object) Position(path ...any) int {
	at := o.root()
	if at == nil {
		return o.Line
	}
	line := at.Line
	for _, step := range path {
		var next *yamlv3.Node
		if next, line = descend(at, fmt.Sprint(step), line); next == nil {
			break
		}
		at = next
	}
	return o.Line + line - 1
}

// descend returns the child and the line it begins on: that of its key, for a field.
func descend(at *yamlv3.Node, step string, line int) (*yamlv3.Node, int) {
	if at.Kind == yamlv3.AliasNode {
		at = at.Alias
	}
	switch at.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(at.Content); i += 2 {
			if at.Content[i].Value == step {
				return at.Content[i+1], at.Content[i].Line
			}
		}
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(at.Content) {
			return at.Content[i], at.Content[i].Line
		}
	}
	return nil, line
}
