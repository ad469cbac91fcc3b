// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package phrase writes the parts that messages have in common: a count with
// its noun, the first items of a list, a text of limited length, a time. Its functions
// are pure, and all packages but apis may import it.
package phrase

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Count returns a count with its noun, such as "1 cluster" or "3 clusters". The
// noun must form its plural with s.
func Count[N int | int32 | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Part returns a part of a count with its noun, such as "0 of 1 cluster" or "2 of 3 clusters".
func Part[N int | int32 | int64](n, of N, noun string) string {
	return fmt.Sprintf("%d of %s", n, Count(of, noun))
}

// Word returns the form of a word that goes with a count: one for 1, such as "is", and many for all others, such as
// "are".
func Word[N int | int32 | int64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// First joins at most so many items, and counts the others: "a, b and 3 more".
func First(items []string, most int) string {
	if more := len(items) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:most], ", "), more)
	}
	return strings.Join(items, ", ")
}

// Limit returns at most so many items, and one item more that counts the others:
// "and 3 more". The list that it is given is not changed.
func Limit(items []string, most int) []string {
	if more := len(items) - most; more > 0 {
		return append(slices.Clone(items[:most]), fmt.Sprintf("and %d more", more))
	}
	return items
}

// Truncate returns a text of at most so many characters. A text that is cut ends
// in "…".
func Truncate(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:max(most-1, 0)]) + "…"
}

// OneLine replaces every run of white space by one space.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Wrap breaks a text into lines of at most so many columns at spaces; 0 means
// one line. A command in backquotes is not broken if it fits on a line of its own.
// A single word that is longer makes a longer line.
func Wrap(text string, columns int) []string {
	words := strings.Fields(text)
	if columns <= 0 || len(words) == 0 {
		return []string{strings.Join(words, " ")}
	}
	return WrapWords(joinCode(words, columns), columns)
}

// WrapWords makes lines of at most so many columns of words, of which there is one or more. A word may have spaces,
// which stay.
func WrapWords(words []string, columns int) []string {
	lines := []string{words[0]}
	for _, word := range words[1:] {
		last := &lines[len(lines)-1]
		if runewidth.StringWidth(*last)+1+runewidth.StringWidth(word) > columns {
			lines = append(lines, word)
			continue
		}
		*last += " " + word
	}
	return lines
}

// joinCode makes one word of the words between two backquotes where that fits.
func joinCode(words []string, columns int) []string {
	var out []string
	for len(words) > 0 {
		n := codeLength(words)
		if joined := strings.Join(words[:n], " "); n > 1 && runewidth.StringWidth(joined) <= columns {
			out = append(out, joined)
			words = words[n:]
			continue
		}
		out = append(out, words[0])
		words = words[1:]
	}
	return out
}

// WrapMarkdown is Wrap for a paragraph of Markdown: no line but the first begins with what would make a list, a heading
// or a quotation of it.
func WrapMarkdown(text string, columns int) []string {
	words := strings.Fields(text)
	if columns <= 0 || len(words) == 0 {
		return []string{strings.Join(words, " ")}
	}
	var units []string
	for i, word := range joinCode(words, columns) {
		if i > 0 && blockStart.MatchString(word) {
			units[len(units)-1] += " " + word
			continue
		}
		units = append(units, word)
	}
	return WrapWords(units, columns)
}

// blockStart is a word that begins something else than a paragraph.
var blockStart = regexp.MustCompile("^([-+*>=|#]|~~~|```|[0-9]{1,9}[.)]$)")

// codeLength counts the words of the code that begins in the first word; 1 if none
// does, or it does not end.
func codeLength(words []string) int {
	quotes := 0
	for i, word := range words {
		if quotes += strings.Count(word, "`"); quotes%2 == 0 {
			return i + 1
		}
	}
	return 1
}

// ShortDigest returns the first 12 digits of a digest, which is as much as people
// compare. Any other text is returned as it is.
func ShortDigest(digest string) string {
	const length = len("sha256:") + 12
	if len(digest) <= length || !strings.HasPrefix(digest, "sha256:") {
		return digest
	}
	return digest[:length]
}
