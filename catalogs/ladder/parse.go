// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ladder

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds a ladder file, in bytes. A file with ten thousand versions is smaller.
const maxFile = 4 << 20

// File is a ladder file with the comments of its authors.
type File struct {
	// Name is the name of the file in error messages.
	Name string
	// Ladder is the content. Change it with the methods of Ladder, and write it with Format.
	Ladder *Ladder

	document *yaml.Node
}

// Parse parses a ladder file and reports all its problems, each with its line. Unknown fields are errors, because
// otherwise a typing error in a block would unblock a version. The error wraps ErrInvalid.
func Parse(name string, text []byte) (*File, error) {
	document, err := parseDocument(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, name, err)
	}
	root := document.Content[0]
	var found problems
	found.checkNode(root, reflect.TypeFor[Ladder](), "")
	if len(found) == 0 {
		l := &Ladder{}
		if err := root.Decode(l); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, name, err)
		}
		for _, p := range l.listFaults() {
			found.add(findLine(root, p.path), "%s", p.text)
		}
		if len(found) == 0 {
			return &File{Name: name, Ladder: l, document: document}, nil
		}
	}
	return nil, found.toError(name)
}

// parseDocument returns the only YAML document of a text. Its content has at least one node.
func parseDocument(text []byte) (*yaml.Node, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("it is larger than %d MiB", maxFile>>20)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, secondDocument yaml.Node
	err := decoder.Decode(&document)
	switch {
	case errors.Is(err, io.EOF) || (err == nil && len(document.Content) == 0):
		return nil, errors.New("it is empty; `bellwether catalog init` writes one")
	case err != nil:
		return nil, err
	}
	if err := decoder.Decode(&secondDocument); !errors.Is(err, io.EOF) {
		return nil, errors.New("it holds more than one YAML document; a ladder file is about one package")
	}
	return &document, nil
}

type problem struct {
	line int
	text string
}

type problems []problem

func (p *problems) add(line int, format string, args ...any) {
	*p = append(*p, problem{line: line, text: fmt.Sprintf(format, args...)})
}

// toError lists the problems by line, as compilers do.
func (p problems) toError(file string) error {
	slices.SortStableFunc(p, func(a, b problem) int { return a.line - b.line })
	lines := make([]string, 0, len(p))
	for _, problem := range p {
		lines = append(lines, fmt.Sprintf("%s:%d: %s", file, problem.line, problem.text))
	}
	return fmt.Errorf("%w: %s", ErrInvalid, strings.Join(lines, "\n"))
}

// checkNode compares the structure of a node with a Go type (structs, slices and strings), and adds a problem for each
// difference. field is the name of the node in messages; empty for the whole file.
func (p *problems) checkNode(n *yaml.Node, wantType reflect.Type, field string) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		p.add(n.Line, "anchors and aliases are not supported here: write %s out", nameField(field))
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null" && field != "":
		// A field without a value counts as missing.
	case wantType.Kind() == reflect.Struct:
		p.checkMapping(n, wantType, field)
	case wantType.Kind() == reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			p.add(n.Line, "%s must be a list", field)
			return
		}
		for _, item := range n.Content {
			p.checkNode(item, wantType.Elem(), "an item of "+field)
		}
	case n.Kind != yaml.ScalarNode:
		p.add(n.Line, "%s must be a single value", field)
	case n.Tag == "!!binary":
		p.add(n.Line, "%s must be plain text", field)
	}
}

// checkMapping checks that a node has only the fields of a struct type, each once.
func (p *problems) checkMapping(n *yaml.Node, wantType reflect.Type, field string) {
	if n.Kind != yaml.MappingNode {
		p.add(n.Line, "%s must have fields, as in %s: ...", nameField(field), listFieldNames(wantType)[0])
		return
	}
	firstLines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if firstLine, ok := firstLines[key.Value]; ok {
			p.add(key.Line, "field %q is there twice, first on line %d", key.Value, firstLine)
			continue
		}
		firstLines[key.Value] = key.Line
		structField, ok := findField(wantType, key.Value)
		if !ok || key.Kind != yaml.ScalarNode || key.Tag != "!!str" {
			p.add(key.Line, "unknown field %q: %s", key.Value, suggestName(key.Value, listFieldNames(wantType)))
			continue
		}
		p.checkNode(value, structField.Type, key.Value)
	}
}

func nameField(field string) string {
	if field == "" {
		return "the file"
	}
	return field
}

func findField(t reflect.Type, name string) (reflect.StructField, bool) {
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); tag == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func listFieldNames(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		names = append(names, tag)
	}
	return names
}

// findLine returns the line of a field, or of the nearest parent that exists.
func findLine(n *yaml.Node, path []any) int {
	line := n.Line
	for _, step := range path {
		n = findChild(n, step)
		if n == nil {
			break
		}
		line = n.Line
	}
	return line
}

// findChild returns a field of a mapping, or an item of a list; nil if it does not exist.
func findChild(n *yaml.Node, step any) *yaml.Node {
	if index, ok := step.(int); ok {
		if n.Kind != yaml.SequenceNode || index >= len(n.Content) {
			return nil
		}
		return n.Content[index]
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == step {
			return n.Content[i+1]
		}
	}
	return nil
}
