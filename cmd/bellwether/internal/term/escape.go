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

// Escape replaces the characters with which a text could control a terminal or change the order of the text: control
// characters, except newline and tab, and Unicode direction marks. Most shown texts come from clusters, catalogs and
// registries. Escape does not change its own results.
func Escape(text string) string {
	if !strings.ContainsFunc(text, needsEscape) && utf8.ValidString(text) {
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

// needsEscape reports whether a character is a control character or a direction mark.
func needsEscape(r rune) bool {
	if r < utf8.RuneSelf {
		isControl := r < ' ' && r != '\n' && r != '\t'
		return isControl || r == '\x7f'
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// writeRune writes a character, and escapes it as Go and JSON do in a string if this is necessary. original
// are the bytes of the character.
func writeRune(out io.Writer, r rune, original string) {
	switch {
	case r == utf8.RuneError && len(original) == 1:
		fmt.Fprintf(out, `\x%02x`, original[0])
	case !needsEscape(r):
		fmt.Fprint(out, original)
	default:
		fmt.Fprintf(out, `\u%04x`, r)
	}
}

// EscapeText escapes a text, except for the colours of Paint.
func EscapeText(text string) string {
	var out bytes.Buffer
	_, _ = (&Writer{Writer: &out}).Write([]byte(text)) // a buffer returns no error
	return out.String()
}

// Writer escapes all output for a terminal, except for the colours of Paint.
type Writer struct {
	io.Writer
	// tail is the beginning of a character or a colour code, until the next Write.
	tail []byte
}

// Write implements io.Writer. It writes an incomplete character or colour code at the end of p with the next call.
func (w *Writer) Write(p []byte) (int, error) {
	if len(w.tail) == 0 && utf8.Valid(p) && !bytes.ContainsFunc(p, needsEscape) { // nothing to escape, which is usual
		return w.Writer.Write(p) //nolint:wrapcheck // an io.Writer returns the errors of the underlying writer
	}
	text := append(w.tail, p...)
	var out bytes.Buffer
	for len(text) > 0 {
		code, isPart := findColourPrefix(text)
		switch {
		case code != "":
			out.WriteString(code)
			text = text[len(code):]
			continue
		case isPart || !utf8.FullRune(text): // the next Write has the rest
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
	return len(p), err //nolint:wrapcheck // an io.Writer returns the errors of the underlying writer
}

// findColourPrefix returns the colour code at the beginning of a text; empty if there is none. It also reports
// whether the text could be the first part of a colour code.
func findColourPrefix(text []byte) (string, bool) {
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
