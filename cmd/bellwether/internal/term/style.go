// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Lines returns the number of lines that a text needs on a terminal with this width.
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

// Tone is the meaning of a text for the reader.
type Tone int

const (
	// Plain has no special meaning.
	Plain Tone = iota
	// Good is a correct state.
	Good
	// Warn is a state that waits for something, or that the user should look at.
	Warn
	// Bad is a state in which a person must act.
	Bad
	// Dim is less important text.
	Dim
	// Strong is emphasized text.
	Strong
)

// DefaultWidth is the maximum number of columns of a line, also if the output is not a terminal. Only output with all
// columns (-o wide) can be wider.
const DefaultWidth = 120

// Style is how text is shown. The zero Style is plain text without a limit of the width.
type Style struct {
	// Colour allows ANSI colours.
	Colour bool
	// Width is the maximum number of columns of a line; 0 means no limit.
	Width int
	// Wide adds columns to the tables of one object, as -o wide does.
	Wide bool
	// Program is the command with which the user calls bellwether; empty means bellwether.
	Program string
}

// ProgramName returns the command with which the user calls bellwether.
func (s Style) ProgramName() string { return cmp.Or(s.Program, "bellwether") }

const ansiReset = "\x1b[0m"

var ansiCodes = map[Tone]string{Good: "\x1b[32m", Warn: "\x1b[33m", Bad: "\x1b[31m", Dim: "\x1b[2m", Strong: "\x1b[1m"}

// Paint escapes a text and adds the colour of its tone.
func (s Style) Paint(t Tone, text string) string {
	text = Escape(text)
	code, ok := ansiCodes[t]
	if !s.Colour || !ok || text == "" {
		return text
	}
	return code + text + ansiReset
}

// digestPattern matches a full digest.
var digestPattern = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// Wrap breaks a text at spaces into lines with at most this number of columns; 0 means one line. If a reference is
// wider than a line, its digest is shortened.
func Wrap(text string, columns int) []string {
	words := strings.Fields(text)
	for i, word := range words {
		if columns > 0 && runewidth.StringWidth(word) > columns {
			words[i] = digestPattern.ReplaceAllStringFunc(word, phrase.ShortDigest)
		}
	}
	return phrase.Wrap(strings.Join(words, " "), columns)
}

// Lines breaks a text into lines of the style's width, each with a newline at the end. The
// lines after the first are indented.
func (s Style) Lines(t Tone, text string) string {
	lines := Wrap(text, s.Width)
	if len(lines) > 1 {
		laterText := strings.Join(lines[1:], " ")
		lines = append(lines[:1], Wrap(laterText, max(s.Width-len(belowMargin), MinWrapped))...)
	}
	for i := range lines {
		lines[i] = s.Paint(t, lines[i])
	}
	return strings.Join(lines, "\n"+belowMargin) + "\n"
}

// Command returns a text and its command on one line, with a newline at the end. If they do not fit, the command is
// on separate lines below the text. The user can copy these lines, because each ends in a backslash except the last.
func (s Style) Command(t Tone, text, command string) string {
	if line := text + " " + command; s.Width == 0 || runewidth.StringWidth(line) <= s.Width {
		return s.Paint(t, line) + "\n"
	}
	return s.Lines(t, text) + s.CommandLines(t, command, belowMargin)
}

// CommandLines returns a command on separate lines behind a margin, each with a newline at the end. Only a command
// that is wider than DefaultWidth is broken, so that on a narrower terminal the user still copies one line.
func (s Style) CommandLines(t Tone, command, margin string) string {
	const continuation = " \\"
	columns := 0
	if s.Width > 0 && runewidth.StringWidth(margin+command) > DefaultWidth {
		columns = DefaultWidth - len(margin) - len(continuation)
	}
	lines := phrase.Wrap(command, columns)
	for i := range lines {
		if i < len(lines)-1 {
			lines[i] += continuation
		}
		lines[i] = margin + s.Paint(t, lines[i]) + "\n"
	}
	return strings.Join(lines, "")
}

// Mark returns the symbol for a tone in a tree.
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

// Fit cuts a text to this number of columns; 0 or less means no limit.
func Fit(text string, columns int) string {
	if columns <= 0 {
		return text
	}
	return runewidth.Truncate(text, columns, "…")
}
