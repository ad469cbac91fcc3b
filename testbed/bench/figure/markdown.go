// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Machine is what a measurement was made on.
type Machine struct {
	Cores       int
	MemoryBytes int64
	// Go is the version of Go and the system, as in "go1.26.3 linux/amd64".
	Go string
	// Load is the system's load average when the measurement began; negative if it is not known.
	Load float64
}

// Origin says where figures come from.
type Origin struct {
	Machine Machine
	Command string
	At      time.Time
}

func (o Origin) String() string {
	text := fmt.Sprintf("Measured on %s with `%s` on %d cores", o.At.UTC().Format(time.DateOnly), o.Command,
		o.Machine.Cores)
	if o.Machine.MemoryBytes > 0 {
		text += fmt.Sprintf(" and %.0f GiB of memory", float64(o.Machine.MemoryBytes)/(1<<30))
	}
	text += ", " + o.Machine.Go
	if o.Machine.Load >= 0 {
		text += fmt.Sprintf(", load average %.1f at the start", o.Machine.Load)
	}
	return text + "."
}

// Table writes rows as a Markdown table.
func Table(rows []Row) string {
	cells := [][]string{{"figure", "ours", "peer", "ratio", "promise", "verdict", "runs"}}
	for _, r := range rows {
		ratio := ""
		if r.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", r.Ratio)
		}
		cells = append(cells, []string{
			r.Name, r.Ours.String(), r.Peer.String(), ratio, r.Promise.String(), r.verdict(), fmt.Sprint(r.Runs),
		})
	}
	return Grid(cells)
}

// Grid writes cells as a Markdown table; the first row is its head. The first column is text, the others are values.
func Grid(cells [][]string) string {
	var b strings.Builder
	for i, row := range cells {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|---|" + strings.Repeat("---:|", len(row)-1) + "\n")
		}
	}
	return b.String()
}

// Markdown writes a section with its origin.
func (s Section) Markdown(o Origin) string {
	text := "## " + s.Title + "\n\n" + Table(s.Rows) + "\n" + o.String() + "\n"
	if s.Detail != "" {
		text += "\n" + strings.TrimSpace(s.Detail) + "\n"
	}
	return text
}

// ErrNoPlace says that a document has no place for a section.
var ErrNoPlace = errors.New("no place in the document")

// Replace puts a section's text into its place in a document, which is between the lines
//
//	<!-- bench:KEY -->
//	<!-- /bench:KEY -->
//
// and leaves everything else alone.
func Replace(document, key, text string) (string, error) {
	open, end := "<!-- bench:"+key+" -->\n", "<!-- /bench:"+key+" -->"
	before, rest, ok := strings.Cut(document, open)
	if !ok {
		return "", fmt.Errorf("find %q: %w", strings.TrimSpace(open), ErrNoPlace)
	}
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("find %q: %w", end, ErrNoPlace)
	}
	return before + open + "\n" + strings.TrimSpace(text) + "\n\n" + end + after, nil
}
