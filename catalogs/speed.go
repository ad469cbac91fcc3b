// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

// The functions in this file exist for speed only; libraries do the same more slowly. docs/benchmarks.md promises
// that a view is served within a fifth of the time that opm takes to serve the catalog, and an agent reads a whole
// catalog to find one package. Reading one package of a catalog of 300 packages (BenchmarkReadPackage) takes 7 times
// as long with json.Decoder instead of objectReader.

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

// objectReader reads JSON objects that follow each other. It only finds the closing brace of an object and does not
// parse the object: most objects of a catalog are not needed, and callers decode the others.
type objectReader struct {
	content *bufio.Reader
	object  []byte
}

// read returns the next object, which can be broken; it is valid until the following call. The content must begin
// with an opening brace.
func (r *objectReader) read() ([]byte, error) {
	r.object = r.object[:0]
	var end endFinder
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
		n, found := end.findEnd(chunk)
		r.object = append(r.object, chunk[:n]...)
		if _, err := r.content.Discard(n); err != nil {
			return nil, err
		}
		if found {
			return r.object, nil
		}
	}
}

// endFinder finds the end of an object in its chunks.
type endFinder struct {
	depth int
	// inString is true between quotes; escaped is true after a backslash there.
	inString, escaped bool
}

// findEnd returns how many bytes of the chunk belong to the object, and whether the object ends there.
func (e *endFinder) findEnd(chunk []byte) (int, bool) {
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

// skipString returns the position of the closing quote of the string that continues at position i, or len(chunk) if the
// quote is not in the chunk. It updates inString and escaped. Most of a catalog is strings, and bytes.IndexByte is much
// faster than a loop over the bytes.
func (e *endFinder) skipString(chunk []byte, i int) int {
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

// newUnneededBundleFilter returns a function that reports whether a JSON document is a bundle that belongs to none of
// the named packages. The function does not decode the document, and returns false if it is not certain. Package
// names are DNS labels, which no encoder writes with escapes.
func newUnneededBundleFilter(names []string) func(doc []byte) bool {
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

// decodeObjectData returns the manifest in the value of an olm.bundle.object property. Nearly all values have the
// same form, which it decodes fast. `bellwether catalog verify` of large bundles takes 1.4 times the processor time
// with encoding/json alone.
func decodeObjectData(value []byte) ([]byte, error) {
	text, ok := bytes.CutPrefix(value, []byte(`{"data":"`))
	// JSON refuses line breaks in strings, but the base64 decoder ignores them.
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
