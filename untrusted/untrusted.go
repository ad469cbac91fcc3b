// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package untrusted decodes YAML and JSON documents that others wrote: bundles, catalogs, SLO files, standard input.
// It is the one place that decides which of them are too dangerous to decode, or mean different things to different
// decoders. A document that is refused was not decoded, so its size bounds the memory that it can take. It reads no
// files.
package untrusted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

var (
	// ErrRefused is wrapped by the errors of documents that are not decoded, whether or not their syntax is correct.
	ErrRefused = errors.New("document refused")
	// ErrSyntax is wrapped by the errors of Object about documents that are neither JSON nor YAML.
	ErrSyntax = errors.New("broken YAML")
)

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

// CheckYAML is CheckJSON for YAML. Aliases count as what they stand for: aliases of aliases make gigabytes of a few
// KiB. It refuses whatever is not UTF-8, because the check for aliases would not find them there.
func CheckYAML(document []byte) error {
	if err := checkText(document); err != nil {
		return err
	}
	if err := check(len(document), maxYAML, yamlValues(document), maxYAMLValues); err != nil {
		return err
	}
	return checkAliases(document)
}

func checkText(document []byte) error {
	if !utf8.Valid(document) || bytes.IndexByte(document, 0) >= 0 {
		return fmt.Errorf("%w: it is not UTF-8 text", ErrRefused)
	}
	return nil
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

// Object decodes a document, YAML or JSON, that is one object, as Kubernetes does it: whole numbers stay whole. Nil
// stands for a document without content. It refuses what other decoders take for something else: a field that is there
// twice, of which some take the first, some the last, and some merge both, and text that follows the document. The
// error wraps ErrRefused or ErrSyntax, or says that the document is no object.
//
// JSON is not decoded as the YAML that it also is: a YAML parser takes five times as long.
func Object(document []byte) (map[string]any, error) {
	if err := CheckJSON(document); err != nil {
		return nil, err
	}
	if err := checkText(document); err != nil {
		return nil, err
	}
	var content map[string]any
	repeated, err := kjson.UnmarshalStrict(document, &content, kjson.DisallowDuplicateFields)
	if err == nil {
		return content, refuseRepeated(repeated)
	}
	if json.Valid(document) {
		return nil, err
	}
	converted, err := ToJSON(document)
	if errors.Is(err, ErrRefused) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	content = nil
	return content, kjson.UnmarshalCaseSensitivePreserveInts(converted, &content)
}

func refuseRepeated(fields []error) error {
	if len(fields) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w: keep one, since readers disagree about which counts", ErrRefused, fields[0])
}

// ToJSON converts a YAML document. It refuses what Object refuses. The error wraps ErrRefused, or says what is wrong
// with the syntax.
func ToJSON(document []byte) ([]byte, error) {
	if err := CheckYAML(document); err != nil {
		return nil, err
	}
	if err := checkSingle(document); err != nil {
		return nil, err
	}
	converted, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		// It may be about a field that overrides a merged one, which is correct.
		if err := checkRepeated(document); err != nil {
			return nil, err
		}
		if converted, err = yaml.YAMLToJSON(document); err != nil {
			return nil, err
		}
	}
	if len(converted) > MaxBytes {
		return nil, fmt.Errorf("%w: it is larger than %d MiB as JSON", ErrRefused, MaxBytes>>20)
	}
	return converted, nil
}

// Unmarshal decodes a YAML or JSON document, as sigs.k8s.io/yaml does it. It refuses what Object refuses. The error
// wraps ErrRefused, or says what is wrong with the content.
func Unmarshal(document []byte, into any) error { return unmarshal(document, into) }

// UnmarshalStrict is Unmarshal, and refuses unknown fields.
func UnmarshalStrict(document []byte, into any) error {
	return unmarshal(document, into, yaml.DisallowUnknownFields)
}

// unmarshal parses YAML once where the converted document has the types of into. Else the parser has to know those: a
// number can be meant as text.
func unmarshal(document []byte, into any, options ...yaml.JSONOpt) error {
	converted, err := ToJSON(document)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(converted))
	for _, set := range options {
		decoder = set(decoder)
	}
	if decoder.Decode(into) == nil {
		return nil
	}
	return yaml.Unmarshal(document, into, options...)
}

// Values returns an upper bound of the number of keys and values of a document, with what its aliases stand for.
func Values(document []byte) int {
	if json.Valid(document) {
		return jsonValues(document)
	}
	values := yamlValues(document)
	if whole, err := expanded(document); err == nil {
		values = max(values, whole.values)
	}
	return values
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

// AtLine calls decode with a document that begins on a line of a file, from 1. Lines in its error, which is that of
// decode, count from the beginning of the file.
func AtLine(line int, document []byte, decode func(document []byte) error) error {
	err := decode(document)
	if err == nil || line <= 1 {
		return err
	}
	// Parsers tell lines in their own words only. Above a document empty lines mean nothing.
	again := decode(append(bytes.Repeat([]byte("\n"), line-1), document...))
	if again == nil || errors.Is(again, ErrRefused) != errors.Is(err, ErrRefused) {
		return err
	}
	return again
}
