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

// maxFile bounds a ladder file. One of ten thousand versions is below.
const maxFile = 4 << 20

// File is a ladder file with the comments of the people who wrote it.
type File struct {
	// Name is what error messages call the file.
	Name string
	// Ladder is the content. Change it with the methods of Ladder, and write it with Format.
	Ladder *Ladder

	document *yaml.Node
}

// Parse reads a ladder file and reports everything that is wrong with it, each problem with its line. It is strict:
// what it does not know is an error, because a typing error in a block would otherwise unblock a version. The error
// wraps ErrInvalid.
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
		for _, p := range l.check() {
			found.add(lineOf(root, p.path), "%s", p.text)
		}
		if len(found) == 0 {
			return &File{Name: name, Ladder: l, document: document}, nil
		}
	}
	return nil, found.errorOf(name)
}

func parseDocument(text []byte) (*yaml.Node, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("it is larger than %d MiB", maxFile>>20)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	switch {
	case errors.Is(err, io.EOF) || (err == nil && len(document.Content) == 0):
		return nil, errors.New("it is empty; `bellwether catalog init` writes one")
	case err != nil:
		return nil, err
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
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

// errorOf lists the problems by line, as compilers do.
func (p problems) errorOf(file string) error {
	slices.SortStableFunc(p, func(a, b problem) int { return a.line - b.line })
	lines := make([]string, 0, len(p))
	for _, one := range p {
		lines = append(lines, fmt.Sprintf("%s:%d: %s", file, one.line, one.text))
	}
	return fmt.Errorf("%w: %s", ErrInvalid, strings.Join(lines, "\n"))
}

// checkNode compares the shape of a node with that of a Go type: structs, slices, and strings.
func (p *problems) checkNode(n *yaml.Node, want reflect.Type, field string) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		p.add(n.Line, "anchors and aliases are not understood here: write %s out", orFile(field))
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null" && field != "":
		// A field without a value is one that is left out.
	case want.Kind() == reflect.Struct:
		p.checkMapping(n, want, field)
	case want.Kind() == reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			p.add(n.Line, "%s must be a list", field)
			return
		}
		for _, item := range n.Content {
			p.checkNode(item, want.Elem(), "an item of "+field)
		}
	case n.Kind != yaml.ScalarNode:
		p.add(n.Line, "%s must be a single value", field)
	case n.Tag == "!!binary":
		p.add(n.Line, "%s must be plain text", field)
	}
}

func (p *problems) checkMapping(n *yaml.Node, want reflect.Type, field string) {
	if n.Kind != yaml.MappingNode {
		p.add(n.Line, "%s must have fields, as in %s: ...", orFile(field), fieldNames(want)[0])
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if first, ok := seen[key.Value]; ok {
			p.add(key.Line, "field %q is there twice, first on line %d", key.Value, first)
			continue
		}
		seen[key.Value] = key.Line
		known, ok := fieldOf(want, key.Value)
		if !ok || key.Kind != yaml.ScalarNode || key.Tag != "!!str" {
			p.add(key.Line, "unknown field %q: %s", key.Value, nearest(key.Value, fieldNames(want)))
			continue
		}
		p.checkNode(value, known.Type, key.Value)
	}
}

func orFile(field string) string {
	if field == "" {
		return "the file"
	}
	return field
}

func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); tag == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		names = append(names, tag)
	}
	return names
}

// lineOf returns the line of a field, or of the nearest parent that exists.
func lineOf(n *yaml.Node, path []any) int {
	line := n.Line
	for _, step := range path {
		n = child(n, step)
		if n == nil {
			break
		}
		line = n.Line
	}
	return line
}

func child(n *yaml.Node, step any) *yaml.Node {
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
