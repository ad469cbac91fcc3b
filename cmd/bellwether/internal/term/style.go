// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/bellwether-dev/bellwether/phrase"
)

// Lines counts the lines that a text takes on a terminal of that width.
func Lines(text string, width int) int {
	n := 0
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		n++
		if columns := runewidth.StringWidth(stripColour(line)); width > 0 && columns > width {
			n += (columns - 1) / width
		}
	}
	return n
}

func stripColour(line string) string {
	for _, code := range ansiCodes {
		line = strings.ReplaceAll(line, code, "")
	}
	return strings.ReplaceAll(line, ansiReset, "")
}

// Tone is what a text means for whoever reads it.
type Tone int

const (
	// Plain has no meaning of its own.
	Plain Tone = iota
	// Good is as it should be.
	Good
	// Warn waits for something, or deserves a look.
	Warn
	// Bad needs a person.
	Bad
	// Dim is of secondary interest.
	Dim
	// Strong stands out.
	Strong
)

// DefaultWidth is how many columns a line takes at most, also where the output is not a terminal, unless all columns
// are asked for (-o wide).
const DefaultWidth = 120

// Style is how text is shown. The zero Style is plain text of any width.
type Style struct {
	// Colour allows ANSI colours.
	Colour bool
	// Width is the number of columns that a line may take; 0 means any number.
	Width int
	// Wide adds columns to the tables of one object, as -o wide does.
	Wide bool
	// Program is how the user calls bellwether; empty means by that name.
	Program string
}

// ProgramName is the start of a command line that is shown to the user.
func (s Style) ProgramName() string { return cmp.Or(s.Program, "bellwether") }

const ansiReset = "\x1b[0m"

var ansiCodes = map[Tone]string{Good: "\x1b[32m", Warn: "\x1b[33m", Bad: "\x1b[31m", Dim: "\x1b[2m", Strong: "\x1b[1m"}

// Paint puts a text in the colour of its tone, and escapes it.
func (s Style) Paint(t Tone, text string) string {
	text = Escape(text)
	code, ok := ansiCodes[t]
	if !s.Colour || !ok || text == "" {
		return text
	}
	return code + text + ansiReset
}

// digest is one that can be shortened to as much as people compare.
var digest = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// Wrap breaks a text into lines of so many columns at spaces; 0 means one line. The digest of a reference that alone is
// wider than a line is shortened.
func Wrap(text string, columns int) []string {
	words := strings.Fields(text)
	for i, word := range words {
		if columns > 0 && runewidth.StringWidth(word) > columns {
			words[i] = digest.ReplaceAllStringFunc(word, phrase.ShortDigest)
		}
	}
	return phrase.Wrap(strings.Join(words, " "), columns)
}

// Lines breaks a text into lines of the style's width, each ended by a newline. The lines after the first are indented.
func (s Style) Lines(t Tone, text string) string {
	lines := Wrap(text, s.Width)
	if len(lines) > 1 {
		rest := strings.Join(lines[1:], " ")
		lines = append(lines[:1], Wrap(rest, max(s.Width-len(belowMargin), MinWrapped))...)
	}
	for i := range lines {
		lines[i] = s.Paint(t, lines[i])
	}
	return strings.Join(lines, "\n"+belowMargin) + "\n"
}

// Command is a command line behind the text that says what it is for, ended by a newline. Where it does not fit there,
// it has lines of its own, which can be copied as they are: a shell joins those that end in a backslash.
func (s Style) Command(t Tone, text, command string) string {
	if line := text + " " + command; s.Width == 0 || runewidth.StringWidth(line) <= s.Width {
		return s.Paint(t, line) + "\n"
	}
	return s.Lines(t, text) + s.CommandLines(t, command, belowMargin)
}

// CommandLines is a command line on lines of its own behind a margin, each ended by a newline. A narrow terminal breaks
// it in its own way, and still copies one line.
func (s Style) CommandLines(t Tone, command, margin string) string {
	const more = " \\"
	room := 0
	if s.Width > 0 && runewidth.StringWidth(margin+command) > DefaultWidth {
		room = DefaultWidth - len(margin) - len(more)
	}
	lines := phrase.Wrap(command, room)
	for i := range lines {
		if i < len(lines)-1 {
			lines[i] += more
		}
		lines[i] = margin + s.Paint(t, lines[i]) + "\n"
	}
	return strings.Join(lines, "")
}

// Mark is the sign for a tone in a tree.
func Mark(t Tone) string {
	switch t {
	case Good:
		return "✓"
	case Bad:
		return "✗"
	case Warn:
		return "…"
	default:
		return "·"
	}
}

// Fit cuts a text to so many columns; 0 or less means no limit.
func Fit(text string, columns int) string {
	if columns <= 0 {
		return text
	}
	return runewidth.Truncate(text, columns, "…")
}
