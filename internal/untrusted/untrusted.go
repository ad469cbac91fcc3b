// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package untrusted decodes YAML and JSON documents from untrusted sources: bundles, catalogs, SLO files, standard
// input. No other package decides which documents are too dangerous to decode, or have different meanings for
// different decoders. A refused document is not decoded, so its size limits the memory that it can take. The package
// reads no files.
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
	// ErrRefused is wrapped by the errors for documents that are not decoded, even if their syntax is correct.
	ErrRefused = errors.New("document refused")
	// ErrSyntax is wrapped by the errors of Object for documents that are neither JSON nor YAML.
	ErrSyntax = errors.New("broken YAML")
)

const (
	// MaxBytes is the maximum size of a document. The largest bundles in public catalogs are below 4 MiB.
	MaxBytes = 16 << 20
	// MaxValues is the maximum number of keys and values of a document: a value of two bytes can take more than a
	// hundred bytes after decoding. It is about twice the number in the largest CustomResourceDefinition that
	// etcd accepts.
	MaxValues = 400_000
	// maxYAML is the maximum size of a YAML document, because its conversion to JSON can multiply the size by six.
	// maxYAMLValues is the maximum number of its keys and values, which the parser keeps in addition to the result.
	maxYAML       = 8 << 20
	maxYAMLValues = 250_000
)

// CheckJSON returns an error that wraps ErrRefused if a document, which can have syntax errors, has too many bytes or
// values to be decoded as JSON.
func CheckJSON(document []byte) error {
	return checkSize(len(document), MaxBytes, countJSONValues(document), MaxValues)
}

// CheckYAML does the same as CheckJSON for a YAML document. Aliases count with their expanded size, because aliases of
// aliases can expand a few KiB to gigabytes. It refuses documents that are not UTF-8, because the check for aliases
// would not find their aliases.
func CheckYAML(document []byte) error {
	if err := checkText(document); err != nil {
		return err
	}
	if err := checkSize(len(document), maxYAML, countYAMLValues(document), maxYAMLValues); err != nil {
		return err
	}
	return checkAliases(document)
}

// checkText refuses a document that is not UTF-8 text.
func checkText(document []byte) error {
	if !utf8.Valid(document) || bytes.IndexByte(document, 0) >= 0 {
		return fmt.Errorf("%w: it is not UTF-8 text", ErrRefused)
	}
	return nil
}

// checkSize refuses a document with too many bytes or too many keys and values.
func checkSize(size, maxSize, values, maxValues int) error {
	if size > maxSize {
		return fmt.Errorf("%w: it is larger than %d MiB", ErrRefused, maxSize>>20)
	}
	if values > maxValues {
		return fmt.Errorf("%w: it has more than %d keys and values", ErrRefused, maxValues)
	}
	return nil
}

// Object decodes a YAML or JSON document that is one object, as Kubernetes does: whole numbers stay whole. It returns
// nil for a document without content. It refuses documents that other decoders decode differently: documents with a
// repeated field, of which some decoders use the first, some the last, and some merge both, and documents that are
// followed by more text. The error wraps ErrRefused or ErrSyntax, or says that the document is not an object.
//
// JSON is not decoded as YAML, although it is also YAML, because a YAML parser takes five times as long.
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
	if json.Valid(document) { // correct JSON that is not an object
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

// refuseRepeated returns an error if there are repeated fields.
func refuseRepeated(fields []error) error {
	if len(fields) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w: keep one, since readers disagree about which counts", ErrRefused, fields[0])
}

// ToJSON converts a YAML document to JSON. It refuses the same documents as Object. The error wraps ErrRefused, or
// describes the syntax error.
func ToJSON(document []byte) ([]byte, error) {
	if err := CheckYAML(document); err != nil {
		return nil, err
	}
	if err := checkSingle(document); err != nil {
		return nil, err
	}
	converted, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		// The error might be about a field that overrides a merged field, which is correct YAML. So repeated fields are
		// searched again, and the document is converted without this check.
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

// Unmarshal decodes a YAML or JSON document as sigs.k8s.io/yaml does. It refuses the same documents as Object. The
// error wraps ErrRefused, or describes the error in the content.
func Unmarshal(document []byte, into any) error { return unmarshal(document, into) }

// UnmarshalStrict does the same as Unmarshal, and refuses unknown fields.
func UnmarshalStrict(document []byte, into any) error {
	return unmarshal(document, into, yaml.DisallowUnknownFields)
}

// unmarshal decodes the converted document if it has the types of into. Otherwise it parses the YAML again with these
// types, because a number can be meant as text.
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

// Values returns an upper bound of the number of keys and values of a document with its aliases expanded. The aliases
// of a document that cannot be parsed do not count.
func Values(document []byte) int {
	if json.Valid(document) {
		return countJSONValues(document)
	}
	values := countYAMLValues(document)
	if total, err := measureExpanded(document); err == nil {
		values = max(values, total.values)
	}
	return values
}

// countJSONValues counts the characters outside strings that separate or open values.
func countJSONValues(document []byte) int {
	n := 1
	for i := 0; i < len(document); i++ {
		switch document[i] {
		case ',', ':', '[', '{':
			n++
		case '"':
			i = findStringEnd(document, i+1)
		}
	}
	return n
}

// findStringEnd returns the position of the quote that ends the string whose first character is at i, or at least the
// length of the document if the string does not end. Most of a catalog is strings, and bytes.IndexByte is much faster
// than a loop.
func findStringEnd(document []byte, i int) int {
	for i < len(document) {
		quote := bytes.IndexByte(document[i:], '"')
		if quote < 0 {
			return len(document)
		}
		backslash := bytes.IndexByte(document[i:i+quote], '\\')
		if backslash < 0 {
			return i + quote
		}
		i += backslash + 2 // skips the escaped character
	}
	return i
}

// countYAMLValues counts the characters that separate or open values, also in strings, because only a parser can find
// the end of strings.
func countYAMLValues(document []byte) int {
	n := 1
	for _, separator := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029", ",", "[", "{", ": ", "- ", "? "} {
		n += bytes.Count(document, []byte(separator))
	}
	return n
}

// AtLine calls decode with a document that begins on a line of a file, counted from 1, and returns its error. In the
// error, lines count from the beginning of the file. After an error, AtLine calls decode a second time, so decode must
// give the same result for the same content.
func AtLine(line int, document []byte, decode func(document []byte) error) error {
	err := decode(document)
	if err == nil || line <= 1 {
		return err
	}
	// The format of lines in errors depends on the parser, so the document is decoded again after empty lines, which
	// do not change its content.
	shiftedErr := decode(append(bytes.Repeat([]byte("\n"), line-1), document...))
	// The empty lines can make the document too large. Then the first error is the right one.
	if shiftedErr == nil || errors.Is(shiftedErr, ErrRefused) != errors.Is(err, ErrRefused) {
		return err
	}
	return shiftedErr
}
