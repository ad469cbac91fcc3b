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

	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// Object is one manifest of a bundle.
type Object struct {
	*unstructured.Unstructured
	// File is the path within the bundle, such as "manifests/thing.yaml".
	File string
	// Line is the line of File on which the object's document begins, from 1.
	Line int

	text []byte
	root func() *yamlv3.Node
	// sum is the hash of the original text; set only for reduced objects, which have no text.
	sum *[sha256.Size]byte
}

// Reduced returns an object with the given content that replaces the object in comparisons of versions. The new object
// has no text and therefore no positions, but SameText still compares the original text.
func (o *Object) Reduced(content map[string]any) *Object {
	sum := o.Sum()
	return &Object{Unstructured: &unstructured.Unstructured{Object: content}, File: o.File, Line: o.Line, sum: &sum,
		root: func() *yamlv3.Node { return nil }}
}

// Sum returns the SHA-256 hash of the text that the object was read from.
func (o *Object) Sum() [sha256.Size]byte {
	if o.sum != nil {
		return *o.sum
	}
	return sha256.Sum256(o.text)
}

// IsRBAC reports whether OLM treats the object as a role or a binding: OLM uses the kind and ignores the apiVersion.
// Other objects of the API group of RBAC count too.
func (o *Object) IsRBAC() bool {
	switch o.GetKind() {
	case "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding":
		return true
	}
	return o.GroupVersionKind().Group == rbacv1.GroupName
}

// linePattern matches errors that contain the line number within the file.
var linePattern = regexp.MustCompile(`\bline [0-9]+:`)

// parseObject parses one document in YAML or JSON, which begins on a line of a file. It returns nil if the document is
// empty. Errors wrap ErrNotBundle.
func parseObject(file string, line int, text []byte) (*Object, error) {
	var content map[string]any
	err := untrusted.AtLine(line, text, func(text []byte) error {
		var err error
		content, err = untrusted.Object(text)
		return err
	})
	place := file
	// An error that already contains the line in the file does not need the line of the document.
	if line > 1 && (err == nil || !linePattern.MatchString(err.Error())) {
		place = fmt.Sprintf("%s: the document at line %d", file, line)
	}
	if errors.Is(err, ErrSyntax) || errors.Is(err, untrusted.ErrRefused) {
		return nil, fmt.Errorf("%w: %s: %w", ErrNotBundle, place, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: it is not an object: %w", ErrNotBundle, place, err)
	}
	if len(content) == 0 {
		return nil, nil
	}
	o := &Object{Unstructured: &unstructured.Unstructured{Object: content}, File: file, Line: line, text: text}
	if o.GetKind() == "" || o.GetAPIVersion() == "" {
		return nil, fmt.Errorf("%w: %s: it has no kind or no apiVersion: manifests are Kubernetes objects",
			ErrNotBundle, place)
	}
	if field := findOLMOnlyField(content); field != "" {
		return nil, fmt.Errorf("%w: %s: Kubernetes ignores the field %q, but OLM uses it: remove it, or correct "+
			"its spelling", ErrNotBundle, place, field)
	}
	o.root = sync.OnceValue(o.parsePositions)
	return o, nil
}

// findOLMOnlyField returns a field that makes OLM treat an object as a different object than Kubernetes does;
// empty if there is none. This is a field of the header in another letter case, or a field catalogSourceName: OLM
// then treats the object as a reference and installs the content of a ConfigMap of the cluster instead (refForStep
// in pkg/controller/operators/catalog/manifests.go).
func findOLMOnlyField(content map[string]any) string {
	for field := range content {
		if strings.EqualFold(field, "catalogSourceName") {
			return field
		}
	}
	return findMisspeltField(content, headerType)
}

// SameText reports whether two objects were read from the same text, byte by byte. Objects with different texts can
// still have the same content.
func (o *Object) SameText(other *Object) bool {
	if o.sum == nil && other.sum == nil {
		return bytes.Equal(o.text, other.text)
	}
	return o.Sum() == other.Sum()
}

// parsePositions parses the text into YAML nodes, which have line numbers. It runs on demand, because positions of few
// objects are needed. It returns nil if the text cannot be parsed.
func (o *Object) parsePositions() *yamlv3.Node {
	var document yamlv3.Node
	if err := yamlv3.NewDecoder(bytes.NewReader(o.text)).Decode(&document); err != nil || len(document.Content) == 0 {
		return nil
	}
	return document.Content[0]
}

// Position returns the line of File that contains a field, from 1. The path holds strings for fields and ints for list
// elements. If the field does not exist, Position returns the line of the nearest parent that exists.
func (o *Object) Position(path ...any) int {
	node := o.root()
	if node == nil {
		return o.Line
	}
	line := node.Line
	for _, step := range path {
		var next *yamlv3.Node
		if next, line = findChild(node, fmt.Sprint(step), line); next == nil {
			break
		}
		node = next
	}
	return o.Line + line - 1
}

// findChild returns the child of a node and the line on which the child begins; for a field, this is the line of its
// key. If there is no such child, it returns nil and the given line.
func findChild(node *yamlv3.Node, step string, line int) (*yamlv3.Node, int) {
	if node.Kind == yamlv3.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i].Line
		}
	}
	return nil, line
}
