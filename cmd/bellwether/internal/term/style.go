// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"cmp"
	"strings"

	"github.com/mattn/go-runewidth"
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

// Style is how text is shown. The zero Style is plain text of any width.
type Style struct {
	// Colour allows ANSI colours.
	Colour bool
	// Width is the number of columns that a line may take; 0 means any number.
	Width int
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
