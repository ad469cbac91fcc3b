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

	"sigs.k8s.io/yaml"
)

// maxDocument bounds one catalog document in memory. The largest bundles in public catalogs are below 4 MiB.
const maxDocument = 32 << 20

var errTooLarge = fmt.Errorf("%w: a document is larger than %d MiB", ErrNotCatalog, maxDocument>>20)

// splitter cuts a stream into its documents: JSON objects one after another, YAML documents between "---", or both.
//
// A decoder could do that, but it would have to parse every document of a catalog to find the few that are wanted;
// looking only for the matching brace is an order of magnitude faster.
type splitter struct {
	r   *bufio.Reader
	doc []byte
}

func newSplitter(r io.Reader) *splitter {
	return &splitter{r: bufio.NewReaderSize(r, 64<<10)}
}

// next returns the next document, which may be broken; it is valid until the following call. It ends with io.EOF.
func (s *splitter) next() ([]byte, error) {
	s.doc = s.doc[:0]
	for {
		first, err := s.r.ReadByte()
		if err != nil {
			return nil, err
		}
		switch first {
		case ' ', '\t', '\r', '\n':
			continue
		}
		if err := s.r.UnreadByte(); err != nil {
			return nil, err
		}
		if first == '{' {
			return s.object()
		}
		return s.yaml()
	}
}

func (s *splitter) object() ([]byte, error) {
	var at braces
	for {
		if _, err := s.r.Peek(1); err != nil {
			return nil, brokenOff(err)
		}
		chunk, err := s.r.Peek(s.r.Buffered())
		if err != nil {
			return nil, err
		}
		n, done := at.scan(chunk)
		s.doc = append(s.doc, chunk[:n]...)
		if _, err := s.r.Discard(n); err != nil {
			return nil, err
		}
		if done {
			return s.doc, nil
		}
		if len(s.doc) > maxDocument {
			return nil, errTooLarge
		}
	}
}

func brokenOff(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it ends in the middle of an object", ErrNotCatalog)
	}
	return err
}

// braces is the position in a JSON object: how deep, and whether in a string.
type braces struct {
	depth             int
	inString, escaped bool
}

// scan returns how much of the chunk belongs to the object and whether that is its end.
func (b *braces) scan(chunk []byte) (int, bool) {
	for i := 0; i < len(chunk); i++ {
		if b.inString {
			i = b.scanString(chunk, i)
			continue
		}
		switch chunk[i] {
		case '"':
			b.inString = true
		case '{', '[':
			b.depth++
		case '}', ']':
			b.depth--
			if b.depth <= 0 {
				return i + 1, true
			}
		}
	}
	return len(chunk), false
}

// scanString returns the position of the string's closing quote, or of the chunk's last byte. Strings are where most
// of a catalog is, so this jumps from one interesting byte to the next.
func (b *braces) scanString(chunk []byte, i int) int {
	for i < len(chunk) {
		if b.escaped {
			b.escaped = false
			i++
			continue
		}
		n := bytes.IndexByte(chunk[i:], '"')
		if n < 0 {
			n = len(chunk) - i
		}
		if escape := bytes.IndexByte(chunk[i:i+n], '\\'); escape >= 0 {
			b.escaped = true
			i += escape + 1
			continue
		}
		if i+n < len(chunk) {
			b.inString = false
		}
		i += n
		break
	}
	return i
}

// yaml reads up to the next separator. A separator at the start yields an empty document, which callers skip.
func (s *splitter) yaml() ([]byte, error) {
	for {
		line, err := s.r.ReadSlice('\n')
		s.doc = append(s.doc, line...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return s.doc, nil
		case err != nil:
			return nil, err
		case bytes.HasPrefix(line, []byte("---")):
			return s.doc[:len(s.doc)-len(line)], nil
		}
		if len(s.doc) > maxDocument {
			return nil, errTooLarge
		}
	}
}

// decode unmarshals a document, JSON or YAML.
func decode(doc []byte, into any) error {
	jsonErr := json.Unmarshal(doc, into)
	if jsonErr == nil {
		return nil
	}
	// A YAML mapping in flow style looks like JSON at first.
	converted, err := yaml.YAMLToJSON(doc)
	if err != nil {
		if doc[0] == '{' {
			err = jsonErr
		}
		return fmt.Errorf("%w: %w", ErrNotCatalog, err)
	}
	if err := json.Unmarshal(converted, into); err != nil {
		return fmt.Errorf("%w: %w", ErrNotCatalog, err)
	}
	return nil
}
