// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// maxDocument bounds one catalog document in memory.
const maxDocument = untrusted.MaxBytes

// Limits of a catalog, which is kept without its manifests while it is read. Public catalogs have some hundred
// packages and some thousand documents.
const (
	maxDocuments = 200_000
	maxPackages  = 10_000
)

var errTooLarge = fmt.Errorf("%w: a document is larger than %d MiB", ErrNotCatalog, maxDocument>>20)

// documentReader returns the documents of a file one after another: JSON objects, or YAML documents between lines of
// "---", or JSON objects first and YAML documents after them. opm accepts the same files.
type documentReader struct {
	bounded  *boundedReader
	buffered *bufio.Reader
	// jsonReader is used while the file is JSON, yamlReader from the first byte that does not begin a JSON object.
	jsonReader *objectReader
	yamlReader *utilyaml.YAMLReader
	// line is the first line of the document that was returned last, nextLine the first line of the rest.
	line, nextLine int
}

func newDocumentReader(content io.Reader) *documentReader {
	bounded := &boundedReader{content: content}
	buffered := bufio.NewReaderSize(bounded, 64<<10)
	return &documentReader{bounded: bounded, buffered: buffered, jsonReader: &objectReader{content: buffered},
		nextLine: 1}
}

// next returns the next document without decoding it; it can be broken. It is valid until the following call. After
// the last document the error is io.EOF.
func (r *documentReader) next() ([]byte, error) {
	for {
		r.bounded.remaining = maxDocument
		doc, err := r.read()
		if syntax := (utilyaml.YAMLSyntaxError{}); errors.As(err, &syntax) {
			err = fmt.Errorf("%w: %w", ErrNotCatalog, err)
		}
		if err != nil || len(bytes.TrimSpace(doc)) > 0 {
			return doc, err
		}
	}
}

// read returns the next document, which can be empty.
func (r *documentReader) read() ([]byte, error) {
	if r.yamlReader == nil {
		firstByte, err := r.skipSpace()
		if err != nil {
			return nil, err
		}
		if firstByte == '{' {
			doc, err := r.jsonReader.read()
			r.line, r.nextLine = r.nextLine, r.nextLine+bytes.Count(doc, []byte("\n"))
			return doc, err
		}
		r.yamlReader = utilyaml.NewYAMLReader(r.buffered)
	}
	doc, err := r.yamlReader.Read()
	const separator = 1 // the separator line that ends a document
	r.line, r.nextLine = r.nextLine, r.nextLine+bytes.Count(doc, []byte("\n"))+separator
	// The YAML reader does not remove a separator in front of the first document.
	if bytes.HasPrefix(doc, []byte("---")) {
		_, doc, _ = bytes.Cut(doc, []byte("\n"))
		r.line++
	}
	return doc, err
}

// skipSpace returns the next byte that is not white space, without consuming it.
func (r *documentReader) skipSpace() (byte, error) {
	for {
		b, err := r.buffered.ReadByte()
		if err != nil {
			return 0, err
		}
		if !unicode.IsSpace(rune(b)) {
			return b, r.buffered.UnreadByte()
		}
		if b == '\n' {
			r.nextLine++
		}
	}
}

// EachDocument calls visit for each document of a catalog, as JSON that is safe to decode, and returns the first
// error. The document is valid during the call only. Errors of the content wrap ErrNotCatalog.
func EachDocument(content io.Reader, visit func(document []byte) error) error {
	documents := newDocumentReader(content)
	for n := 1; ; n++ {
		doc, err := documents.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var plain json.RawMessage
		if err == nil {
			err = decode(doc, documents.line, &plain)
		}
		if err == nil {
			err = visit(plain)
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
	}
}

// boundedReader fails with errTooLarge after remaining bytes were read.
type boundedReader struct {
	content   io.Reader
	remaining int
}

func (r *boundedReader) Read(p []byte) (int, error) {
	if r.remaining <= 0 {
		return 0, errTooLarge
	}
	n, err := r.content.Read(p)
	r.remaining -= n
	return n, err
}

// decode unmarshals a document, JSON or YAML, into a value. line is the first line of the document in its file,
// for messages.
func decode(doc []byte, line int, into any) error {
	if err := untrusted.CheckJSON(doc); err != nil {
		return fmt.Errorf("%w: %w", ErrNotCatalog, err)
	}
	jsonErr := json.Unmarshal(doc, into)
	if jsonErr == nil {
		return nil
	}
	// A YAML mapping in flow style also begins with a brace.
	var converted []byte
	err := untrusted.AtLine(line, doc, func(text []byte) error {
		var err error
		converted, err = untrusted.ToJSON(text)
		return err
	})
	if err != nil {
		// The error of the JSON decoder is clearer for a document that was meant as JSON.
		if doc[0] == '{' && !errors.Is(err, untrusted.ErrRefused) {
			err = jsonErr
		}
		return fmt.Errorf("%w: %w", ErrNotCatalog, err)
	}
	if err := json.Unmarshal(converted, into); err != nil {
		return fmt.Errorf("%w: %w", ErrNotCatalog, err)
	}
	return nil
}
