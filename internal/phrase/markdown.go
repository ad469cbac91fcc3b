// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package phrase

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Markdown returns a text as one line that CommonMark and GitHub show unchanged. It writes a backslash before
// characters that would be markup, and changes nothing else, so the text can also be read where Markdown is not
// rendered, such as in a chat. Source: CommonMark 0.31, section 2.4; GitHub's strikethrough.
func Markdown(text string) string {
	text = OneLine(text)
	var out strings.Builder
	// Only a pair of tildes makes a strikethrough.
	canStrike := strings.Count(text, "~") > 1
	previous := ' '
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		after := text[size:]
		if isMarkup(r, previous, after) || r == '~' && canStrike {
			out.WriteByte('\\')
		}
		out.WriteString(text[:size])
		previous, text = r, after
	}
	return out.String()
}

var (
	// tagStart matches the text that makes a tag, a comment or a link of the "<" before it.
	tagStart = regexp.MustCompile(`^[A-Za-z/!?]`)
	// entityEnd matches the text that makes a character reference of the "&" before it.
	entityEnd = regexp.MustCompile(`^(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]*);`)
)

// isMarkup reports whether a character is markup. previous is the character before it, and after is the text after it.
func isMarkup(r, previous rune, after string) bool {
	next, _ := utf8.DecodeRuneInString(after)
	switch r {
	case '`', '*', '[':
		return true
	case '_': // inside a word it is not markup
		return !isWord(previous) || !isWord(next)
	case '\\': // it is markup only before punctuation and symbols; the text after the end is not known
		return after == "" || next < utf8.RuneSelf && (unicode.IsPunct(next) || unicode.IsSymbol(next))
	case '<':
		return tagStart.MatchString(after)
	case '&':
		return entityEnd.MatchString(after)
	}
	return false
}

// isWord reports whether a character is a letter or a digit.
func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
