// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	yamlv3 "go.yaml.in/yaml/v3"
)

// checkAliases refuses a document that is too large with its aliases expanded. A document that might have an anchor
// and cannot be parsed is also refused, because the parser that decodes the document can be another one.
func checkAliases(document []byte) error {
	total, err := measureExpanded(document)
	if err != nil {
		return err
	}
	if err := checkSize(total.bytes, maxYAML, total.values, maxYAMLValues); err != nil {
		return fmt.Errorf("%w, with its aliases expanded: write it with fewer aliases", err)
	}
	return nil
}

// extent is the size of a node with its aliases expanded.
type extent struct{ values, bytes int }

// tooLarge is larger than all limits, and the sum of two such values does not overflow.
const tooLarge = 1 << 30

// measureExpanded returns the extent of a document with its aliases expanded, without expanding them. It returns zero
// if the document has no anchors.
func measureExpanded(document []byte) (extent, error) {
	if !canHaveAnchor(document) {
		return extent{}, nil
	}
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(document, &root); err != nil {
		return extent{}, fmt.Errorf("%w: it may have aliases, and is not correct YAML: %w", ErrRefused, err)
	}
	return extents{}.measure(&root)
}

// extents has the extents of the nodes that were measured; nil for a node that is being measured.
type extents map[*yamlv3.Node]*extent

// measure returns the extent of a node with its aliases expanded. It is an error if a node contains itself.
func (e extents) measure(n *yamlv3.Node) (extent, error) {
	if measured, ok := e[n]; ok {
		if measured == nil {
			return extent{}, fmt.Errorf("%w: line %d: an anchor has an alias of itself", ErrRefused, n.Line)
		}
		return *measured, nil
	}
	e[n] = nil
	out := extent{values: 1, bytes: len(n.Value)}
	parts := n.Content
	if n.Kind == yamlv3.AliasNode {
		parts = []*yamlv3.Node{n.Alias}
	}
	for _, part := range parts {
		inner, err := e.measure(part)
		if err != nil {
			return extent{}, err
		}
		out.values, out.bytes = min(out.values+inner.values, tooLarge), min(out.bytes+inner.bytes, tooLarge)
	}
	e[n] = &out
	return out, nil
}

// canHaveAnchor reports whether an ampersand is in a position where an anchor can begin: not after a word or
// another ampersand, and not before white space. Without an anchor there is no alias, and the document need not be
// parsed twice.
func canHaveAnchor(document []byte) bool {
	for i := bytes.IndexByte(document, '&'); i >= 0 && i+1 < len(document); {
		canBegin := i == 0 || !isWordByte(document[i-1]) && document[i-1] != '&'
		if canBegin && bytes.IndexByte([]byte("& \t\r\n"), document[i+1]) < 0 {
			return true
		}
		next := bytes.IndexByte(document[i+1:], '&')
		if next < 0 {
			return false
		}
		i += 1 + next
	}
	return false
}

// isWordByte reports whether a byte is a letter, a digit or an underscore.
func isWordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
}

// checkSingle refuses a second document and other content after the first document, because some decoders read only
// the first. A document without content does not count.
func checkSingle(document []byte) error {
	if isSingle(document) {
		return nil
	}
	decoder := yamlv3.NewDecoder(bytes.NewReader(document))
	for hasDocument := false; ; {
		var next yamlv3.Node
		err := decoder.Decode(&next)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: it has several documents, or is not correct YAML: %w", ErrRefused, err)
		}
		if len(next.Content) == 0 || next.Content[0].Tag == "!!null" {
			continue
		}
		if hasDocument {
			return fmt.Errorf("%w: line %d: a second document begins: keep one in it", ErrRefused, next.Content[0].Line)
		}
		hasDocument = true
	}
}

// isSingle reports, without a parser, whether there is certainly only one document: its first line with content is not
// indented and has a plain field or an element of a list, which end with the document, and no other document begins.
// If it returns false, there can still be only one.
func isSingle(document []byte) bool {
	document = bytes.TrimLeft(document, "\n")
	for _, sign := range []string{"\r", "\u0085", "\u2028", "\u2029", "\n---", "\n..."} { // the first four break lines
		if bytes.Contains(document, []byte(sign)) {
			return false
		}
	}
	for line := range bytes.Lines(document) {
		content := bytes.TrimSpace(line)
		switch {
		case len(content) == 0, content[0] == '#', bytes.Equal(content, []byte("---")): // a line without content
		default:
			return isWordByte(line[0]) || bytes.HasPrefix(line, []byte("- "))
		}
	}
	return true
}

// checkRepeated refuses a field that occurs twice in a mapping. A field that overrides a merged field does not count.
func checkRepeated(document []byte) error {
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(document, &root); err != nil {
		return nil //nolint:nilerr // the caller decodes the document and reports the syntax error
	}
	return findRepeated(&root)
}

// findRepeated returns an error for the first repeated field in a node and below it. A key that is an alias counts as
// the key that it refers to.
func findRepeated(n *yamlv3.Node) error {
	if n.Kind == yamlv3.MappingNode {
		isUsed := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind == yamlv3.AliasNode {
				key = key.Alias
			}
			if isUsed[key.Value] {
				return fmt.Errorf("%w: line %d: the field %q is there twice: keep one, since readers disagree about "+
					"which counts", ErrRefused, key.Line, key.Value)
			}
			isUsed[key.Value] = true
		}
	}
	for _, part := range n.Content {
		if err := findRepeated(part); err != nil {
			return err
		}
	}
	return nil
}
