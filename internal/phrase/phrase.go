// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package phrase formats the parts that many messages contain: a count with its noun, the first items of a list, a
// text of limited length, a time. Its functions are pure, and all packages except apis may import it.
package phrase

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Count returns a count with its noun, such as "1 cluster" or "3 clusters". The plural of the noun must end in s.
func Count[N int | int32 | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Part returns a part of a total with the noun, such as "0 of 1 cluster" or "2 of 3 clusters".
func Part[N int | int32 | int64](n, total N, noun string) string {
	return fmt.Sprintf("%d of %s", n, Count(total, noun))
}

// Word returns singular, such as "is", for 1, and plural, such as "are", for other counts.
func Word[N int | int32 | int64](n N, singular, plural string) string {
	if n == 1 {
		return singular
	}
	return plural
}

// First joins at most limit items, and counts the other items: "a, b and 3 more".
func First(items []string, limit int) string {
	if more := len(items) - limit; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:limit], ", "), more)
	}
	return strings.Join(items, ", ")
}

// Limit returns at most limit items, and one more item that counts the other items: "and 3 more". It does not change
// its argument.
func Limit(items []string, limit int) []string {
	if more := len(items) - limit; more > 0 {
		return append(slices.Clone(items[:limit]), fmt.Sprintf("and %d more", more))
	}
	return items
}

// Truncate returns a text of at most limit characters. A text that was cut ends in "…".
func Truncate(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:max(limit-1, 0)]) + "…"
}

// OneLine replaces every sequence of white space by one space.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Wrap breaks a text at spaces into lines with a maximum number of columns; 0 means one line. A command in backquotes
// is not broken if it fits on one line. A single word that is longer makes a longer line.
func Wrap(text string, columns int) []string {
	words := strings.Fields(text)
	if columns <= 0 || len(words) == 0 {
		return []string{strings.Join(words, " ")}
	}
	return WrapWords(joinCode(words, columns), columns)
}

// WrapWords joins words to lines with a maximum number of columns. There must be at least one word. Spaces inside a
// word stay.
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

// joinCode joins the words between two backquotes to one word if the result fits on a line.
func joinCode(words []string, columns int) []string {
	var out []string
	for len(words) > 0 {
		n := countCodeWords(words)
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

// WrapMarkdown wraps a paragraph of Markdown like Wrap. No line except the first begins with a word that would start a
// list, a heading or a quotation.
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

// blockStart matches a word that would start a block other than a paragraph.
var blockStart = regexp.MustCompile("^([-+*>=|#]|~~~|```|[0-9]{1,9}[.)]$)")

// countCodeWords counts the words of the code that begins in the first word. It returns 1 if no code begins there, or
// if the code does not end.
func countCodeWords(words []string) int {
	quotes := 0
	for i, word := range words {
		if quotes += strings.Count(word, "`"); quotes%2 == 0 {
			return i + 1
		}
	}
	return 1
}

// ShortDigest returns the first 12 digits of a digest, which are enough for people to compare. Any other text is
// returned unchanged.
func ShortDigest(digest string) string {
	const length = len("sha256:") + 12
	if len(digest) <= length || !strings.HasPrefix(digest, "sha256:") {
		return digest
	}
	return digest[:length]
}
