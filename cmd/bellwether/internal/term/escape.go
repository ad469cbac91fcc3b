// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape shows the characters by which a text could have a terminal do something, or show the text in another order:
// control characters but for newline and tab, and marks of direction. Most texts that are shown come
// from clusters, catalogs and registries. What it returns it leaves as it is.
func Escape(text string) string {
	if !strings.ContainsFunc(text, acts) && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		writeRune(&out, r, text[:size])
		text = text[size:]
	}
	return out.String()
}

// acts tells whether a character does more than to show itself.
func acts(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' && r != '\n' && r != '\t' || r == '\x7f'
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// writeRune writes a character as Go and JSON write it in a string.
func writeRune(out io.Writer, r rune, as string) {
	switch {
	case r == utf8.RuneError && len(as) == 1:
		fmt.Fprintf(out, `\x%02x`, as[0])
	case !acts(r):
		fmt.Fprint(out, as)
	default:
		fmt.Fprintf(out, `\u%04x`, r)
	}
}

// Shown escapes a text, except for the colours of Paint.
func Shown(text string) string {
	var out bytes.Buffer
	_, _ = (&Writer{Writer: &out}).Write([]byte(text)) // a buffer takes all
	return out.String()
}

// Writer is where everything goes that a terminal may show. It escapes what is written, except for the colours of
// Paint.
type Writer struct {
	io.Writer
	// tail is the beginning of a character or of a colour.
	tail []byte
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	if len(w.tail) == 0 && utf8.Valid(p) && !bytes.ContainsFunc(p, acts) {
		return w.Writer.Write(p) //nolint:wrapcheck // as below
	}
	text := append(w.tail, p...)
	var out bytes.Buffer
	for len(text) > 0 {
		code, isPart := colour(text)
		switch {
		case code != "":
			out.WriteString(code)
			text = text[len(code):]
			continue
		case isPart || !utf8.FullRune(text):
			w.tail = bytes.Clone(text)
			_, err := w.Writer.Write(out.Bytes())
			return len(p), err
		}
		r, size := utf8.DecodeRune(text)
		writeRune(&out, r, string(text[:size]))
		text = text[size:]
	}
	w.tail = nil
	_, err := w.Writer.Write(out.Bytes())
	return len(p), err //nolint:wrapcheck // an io.Writer passes on the errors of the one that it writes to
}

// colour returns the code of a colour that a text begins with, and whether it could be the first part of one.
func colour(text []byte) (string, bool) {
	if text[0] != '\x1b' {
		return "", false
	}
	isPart := false
	for _, code := range append(slices.Collect(maps.Values(ansiCodes)), ansiReset) {
		if bytes.HasPrefix(text, []byte(code)) {
			return code, false
		}
		isPart = isPart || strings.HasPrefix(code, string(text))
	}
	return "", isPart
}
