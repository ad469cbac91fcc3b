// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

// What is in this file exists for speed alone; libraries do the same, but slower. docs/benchmarks.md promises that a
// view is served within a fifth of the time that opm takes to serve the catalog, and an agent reads a whole catalog to
// find one package in it. With json.Decoder in place of objectReader, reading one package of a catalog of 300 packages
// (BenchmarkReadPackage) takes 7 times as long.

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// objectReader reads JSON objects that follow each other. It looks for the closing brace of an object and parses
// nothing: whoever needs the object decodes it, and most objects of a catalog are not needed.
type objectReader struct {
	content *bufio.Reader
	object  []byte
}

// read returns the next object, which may be broken; it is valid until the following call. The content must begin with
// an opening brace.
func (r *objectReader) read() ([]byte, error) {
	r.object = r.object[:0]
	var end objectEnd
	for {
		if _, err := r.content.Peek(1); errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%w: it ends in the middle of an object", ErrNotCatalog)
		} else if err != nil {
			return nil, err
		}
		chunk, err := r.content.Peek(r.content.Buffered())
		if err != nil {
			return nil, err
		}
		n, found := end.find(chunk)
		r.object = append(r.object, chunk[:n]...)
		if _, err := r.content.Discard(n); err != nil {
			return nil, err
		}
		if found {
			return r.object, nil
		}
	}
}

// objectEnd searches an object, chunk by chunk, for its end.
type objectEnd struct {
	depth int
	// inString is true between quotes; escaped is true after a backslash there.
	inString, escaped bool
}

// find returns how much of the chunk belongs to the object, and whether the object ends there.
func (e *objectEnd) find(chunk []byte) (int, bool) {
	for i := 0; i < len(chunk); i++ {
		if e.inString {
			i = e.skipString(chunk, i)
			continue
		}
		switch chunk[i] {
		case '"':
			e.inString = true
		case '{', '[':
			e.depth++
		case '}', ']':
			e.depth--
			if e.depth <= 0 {
				return i + 1, true
			}
		}
	}
	return len(chunk), false
}

// skipString returns the position of the string's closing quote, or len(chunk) if it is not in the chunk. Most of a
// catalog is strings, and bytes.IndexByte is much faster than a loop over the bytes.
func (e *objectEnd) skipString(chunk []byte, i int) int {
	for i < len(chunk) {
		if e.escaped {
			e.escaped = false
			i++
			continue
		}
		n := bytes.IndexByte(chunk[i:], '"')
		if n < 0 {
			n = len(chunk) - i
		}
		if backslash := bytes.IndexByte(chunk[i:i+n], '\\'); backslash >= 0 {
			e.escaped = true
			i += backslash + 1
			continue
		}
		e.inString = i+n == len(chunk)
		return i + n
	}
	return i
}

// isBundleOfOthers returns a function that recognizes, without decoding it, a JSON document that is a bundle of none of
// the named packages. It returns false where it is not certain. Package names are DNS labels, which no encoder writes
// with escapes.
func isBundleOfOthers(names []string) func(doc []byte) bool {
	quoted := make([][]byte, 0, len(names))
	for _, n := range names {
		quoted = append(quoted, []byte(`"`+n+`"`))
	}
	bundle := []byte(`"` + schemaBundle + `"`)
	return func(doc []byte) bool {
		if doc[0] != '{' || !bytes.Contains(doc, bundle) {
			return false
		}
		return !slices.ContainsFunc(quoted, func(name []byte) bool { return bytes.Contains(doc, name) })
	}
}

// objectData returns what a property with a manifest holds. Nearly all are written in one way. With encoding/json
// alone, `bellwether catalog verify` of large bundles takes 1.4 times the processor time.
func objectData(value []byte) ([]byte, error) {
	text, ok := bytes.CutPrefix(value, []byte(`{"data":"`))
	// JSON refuses line breaks, and base64 ignores them.
	if ok && bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		data, err := base64.StdEncoding.AppendDecode(nil, bytes.TrimSuffix(text, []byte(`"}`)))
		if err == nil {
			return data, nil
		}
	}
	var in struct {
		Data []byte `json:"data"`
	}
	err := json.Unmarshal(value, &in)
	return in.Data, err
}
