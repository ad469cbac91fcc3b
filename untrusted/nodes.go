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

// checkAliases refuses a document that is too large with what its aliases stand for. What looks like an anchor and
// cannot be parsed is refused as well: the parser that decodes the document may differ.
func checkAliases(document []byte) error {
	whole, err := expanded(document)
	if err != nil {
		return err
	}
	if err := check(whole.bytes, maxYAML, whole.values, maxYAMLValues); err != nil {
		return fmt.Errorf("%w, with what its aliases stand for: write it with fewer aliases", err)
	}
	return nil
}

// extent is how large something is that aliases stand for.
type extent struct{ values, bytes int }

// tooLarge is above all bounds, and can be added to itself.
const tooLarge = 1 << 30

// expanded returns the extent of a document with its aliases expanded, without expanding them; zero where it has none.
func expanded(document []byte) (extent, error) {
	if !mayHaveAnchor(document) {
		return extent{}, nil
	}
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(document, &root); err != nil {
		return extent{}, fmt.Errorf("%w: it may have aliases, and is not correct YAML: %w", ErrRefused, err)
	}
	return expansion{}.of(&root)
}

// expansion has the extents of the nodes that have been seen; nil while one is being measured.
type expansion map[*yamlv3.Node]*extent

// of returns the extent of a node with its aliases expanded. A node that contains itself has none.
func (e expansion) of(n *yamlv3.Node) (extent, error) {
	if known, ok := e[n]; ok {
		if known == nil {
			return extent{}, fmt.Errorf("%w: line %d: an anchor has an alias of itself", ErrRefused, n.Line)
		}
		return *known, nil
	}
	e[n] = nil
	out := extent{values: 1, bytes: len(n.Value)}
	parts := n.Content
	if n.Kind == yamlv3.AliasNode {
		parts = []*yamlv3.Node{n.Alias}
	}
	for _, part := range parts {
		inner, err := e.of(part)
		if err != nil {
			return extent{}, err
		}
		out.values, out.bytes = min(out.values+inner.values, tooLarge), min(out.bytes+inner.bytes, tooLarge)
	}
	e[n] = &out
	return out, nil
}

// mayHaveAnchor looks for an ampersand where a value can begin. Without an anchor there is no alias, and parsing large
// definitions twice takes time.
func mayHaveAnchor(document []byte) bool {
	for i := bytes.IndexByte(document, '&'); i >= 0 && i+1 < len(document); {
		begins := i == 0 || !isWord(document[i-1]) && document[i-1] != '&'
		if begins && bytes.IndexByte([]byte("& \t\r\n"), document[i+1]) < 0 {
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

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
}

// checkSingle refuses a second document, and whatever else follows the first one: some readers take that alone. A
// document without content is none.
func checkSingle(document []byte) error {
	if isSingle(document) {
		return nil
	}
	decoder := yamlv3.NewDecoder(bytes.NewReader(document))
	for seen := false; ; {
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
		if seen {
			return fmt.Errorf("%w: line %d: a second document begins: keep one in it", ErrRefused, next.Content[0].Line)
		}
		seen = true
	}
}

// isSingle finds out without a parser, for nearly all documents, that there is one only: its first line with content is
// not indented and has a plain field or an element of a list, which end with the document, and no other one begins.
func isSingle(document []byte) bool {
	document = bytes.TrimLeft(document, "\n")
	for _, sign := range []string{"\r", "\u0085", "\u2028", "\u2029", "\n---", "\n..."} { // four also break lines
		if bytes.Contains(document, []byte(sign)) {
			return false
		}
	}
	for line := range bytes.Lines(document) {
		content := bytes.TrimSpace(line)
		switch {
		case len(content) == 0, content[0] == '#', bytes.Equal(content, []byte("---")):
		default:
			return isWord(line[0]) || bytes.HasPrefix(line, []byte("- "))
		}
	}
	return true
}

// checkRepeated refuses a field that is there twice in one mapping. One that overrides a merged field is not.
func checkRepeated(document []byte) error {
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(document, &root); err != nil {
		return nil //nolint:nilerr // whoever decodes the document says what is wrong with its syntax
	}
	return findRepeated(&root)
}

func findRepeated(n *yamlv3.Node) error {
	if n.Kind == yamlv3.MappingNode {
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind == yamlv3.AliasNode {
				key = key.Alias
			}
			if seen[key.Value] {
				return fmt.Errorf("%w: line %d: the field %q is there twice: keep one, since readers disagree about "+
					"which counts", ErrRefused, key.Line, key.Value)
			}
			seen[key.Value] = true
		}
	}
	for _, part := range n.Content {
		if err := findRepeated(part); err != nil {
			return err
		}
	}
	return nil
}
