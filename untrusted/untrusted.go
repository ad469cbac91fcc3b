// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package untrusted decodes YAML and JSON documents that others wrote: bundles, catalogs, SLO files, standard input.
// It is the one place that decides which of them are too dangerous to decode. A document that is refused was not
// decoded, so its size bounds the memory that it can take. It reads no files.
package untrusted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// ErrRefused is wrapped by the errors of documents that are not decoded, whether or not their syntax is correct.
var ErrRefused = errors.New("document refused")

const (
	// MaxBytes bounds the text of a document. The largest bundles in public catalogs are below 4 MiB.
	MaxBytes = 16 << 20
	// MaxValues bounds the keys and values of a document: one of two bytes takes more than a hundred bytes once it is
	// decoded. It is about twice as many as a CustomResourceDefinition has that etcd still takes.
	MaxValues = 400_000
	// maxYAML bounds a YAML document, whose conversion to JSON can multiply its size by six, and maxYAMLValues its keys
	// and values, which the parser keeps besides the result.
	maxYAML       = 8 << 20
	maxYAMLValues = 250_000
)

// CheckJSON returns an error that wraps ErrRefused if a document, which may be broken, has too many bytes or values to
// be decoded as JSON.
func CheckJSON(document []byte) error {
	return check(len(document), MaxBytes, jsonValues(document), MaxValues)
}

// CheckYAML is CheckJSON for YAML. It also refuses aliases: an alias stands for a copy of what it names, so aliases of
// aliases make gigabytes of a few KiB. Nothing that writes manifests writes them. It refuses whatever is not UTF-8,
// because the check for aliases would not find them there.
func CheckYAML(document []byte) error {
	if !utf8.Valid(document) || bytes.IndexByte(document, 0) >= 0 {
		return fmt.Errorf("%w: it is not UTF-8 text", ErrRefused)
	}
	if err := check(len(document), maxYAML, yamlValues(document), maxYAMLValues); err != nil {
		return err
	}
	return checkAliases(document)
}

func check(size, maxSize, values, maxValues int) error {
	if size > maxSize {
		return fmt.Errorf("%w: it is larger than %d MiB", ErrRefused, maxSize>>20)
	}
	if values > maxValues {
		return fmt.Errorf("%w: it has more than %d keys and values", ErrRefused, maxValues)
	}
	return nil
}

// ToJSON converts a YAML document. The error wraps ErrRefused, or says what is wrong with the syntax.
func ToJSON(document []byte) ([]byte, error) {
	if err := CheckYAML(document); err != nil {
		return nil, err
	}
	converted, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	if len(converted) > MaxBytes {
		return nil, fmt.Errorf("%w: it is larger than %d MiB as JSON", ErrRefused, MaxBytes>>20)
	}
	return converted, nil
}

// Unmarshal decodes a YAML or JSON document, as sigs.k8s.io/yaml does it. The error wraps ErrRefused, or says what is
// wrong with the content.
func Unmarshal(document []byte, into any) error {
	if err := CheckYAML(document); err != nil {
		return err
	}
	return yaml.Unmarshal(document, into)
}

// UnmarshalStrict is Unmarshal, and refuses unknown and repeated fields.
func UnmarshalStrict(document []byte, into any) error {
	if err := CheckYAML(document); err != nil {
		return err
	}
	return yaml.UnmarshalStrict(document, into)
}

// Values returns an upper bound of the number of keys and values of a document.
func Values(document []byte) int {
	if json.Valid(document) {
		return jsonValues(document)
	}
	return yamlValues(document)
}

// jsonValues counts what separates or opens values, outside strings.
func jsonValues(document []byte) int {
	n := 1
	for i := 0; i < len(document); i++ {
		switch document[i] {
		case ',', ':', '[', '{':
			n++
		case '"':
			i = stringEnd(document, i+1)
		}
	}
	return n
}

// stringEnd returns the position of the quote that ends the string that begins at i. Most of a catalog is strings, and
// bytes.IndexByte is much faster than a loop.
func stringEnd(document []byte, i int) int {
	for i < len(document) {
		quote := bytes.IndexByte(document[i:], '"')
		if quote < 0 {
			return len(document)
		}
		backslash := bytes.IndexByte(document[i:i+quote], '\\')
		if backslash < 0 {
			return i + quote
		}
		i += backslash + 2
	}
	return i
}

// yamlValues counts what separates or opens values, also in strings: where those end is known to a parser only.
func yamlValues(document []byte) int {
	n := 1
	for _, separator := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029", ",", "[", "{", ": ", "- ", "? "} {
		n += bytes.Count(document, []byte(separator))
	}
	return n
}

// checkAliases parses without expanding aliases. What looks like an anchor and cannot be parsed is refused as well: the
// parser that decodes the document may differ.
func checkAliases(document []byte) error {
	if !mayHaveAnchor(document) {
		return nil
	}
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(document, &root); err != nil {
		return fmt.Errorf("%w: it may have aliases, and is not correct YAML: %w", ErrRefused, err)
	}
	if alias := findAlias(&root); alias != nil {
		return fmt.Errorf("%w: line %d: the alias *%s is not allowed: write out what it stands for", ErrRefused,
			alias.Line, alias.Value)
	}
	return nil
}

// mayHaveAnchor looks for an ampersand where a value can begin. Without an anchor there is no alias, and parsing large
// definitions twice takes time.
func mayHaveAnchor(document []byte) bool {
	for i, c := range document {
		if c != '&' || i+1 == len(document) {
			continue
		}
		begins := i == 0 || !isWord(document[i-1]) && document[i-1] != '&'
		if begins && bytes.IndexByte([]byte("& \t\r\n"), document[i+1]) < 0 {
			return true
		}
	}
	return false
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
}

func findAlias(n *yamlv3.Node) *yamlv3.Node {
	if n.Kind == yamlv3.AliasNode {
		return n
	}
	for _, child := range n.Content {
		if found := findAlias(child); found != nil {
			return found
		}
	}
	return nil
}
