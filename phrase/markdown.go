// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package phrase

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Markdown returns a text, made one line, such that CommonMark and GitHub show it as it is. It writes a backslash
// before what they would take for markup, and changes nothing else: the text can also be read where nothing renders it,
// such as in a chat. Source: CommonMark 0.31, section 2.4; GitHub's strikethrough.
func Markdown(text string) string {
	text = OneLine(text)
	var out strings.Builder
	strikes := strings.Count(text, "~") > 1
	before := ' '
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		after := text[size:]
		if isMarkup(r, before, after) || r == '~' && strikes {
			out.WriteByte('\\')
		}
		out.WriteString(text[:size])
		before, text = r, after
	}
	return out.String()
}

var (
	// tagStart is what makes a tag, a comment or a link of the "<" before it.
	tagStart = regexp.MustCompile(`^[A-Za-z/!?]`)
	// entityEnd is what makes a character of the "&" before it.
	entityEnd = regexp.MustCompile(`^(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]*);`)
)

// isMarkup tells whether a character between two others does more than show itself.
func isMarkup(r, before rune, after string) bool {
	next, _ := utf8.DecodeRuneInString(after)
	switch r {
	case '`', '*', '[':
		return true
	case '_': // inside of a word it is one of its letters
		return !isWord(before) || !isWord(next)
	case '\\': // before anything else it shows itself; what follows the text is not known
		return after == "" || next < utf8.RuneSelf && (unicode.IsPunct(next) || unicode.IsSymbol(next))
	case '<':
		return tagStart.MatchString(after)
	case '&':
		return entityEnd.MatchString(after)
	}
	return false
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
