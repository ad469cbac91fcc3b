// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
)

// maxCompared is the maximum number of lines that are compared, because the time grows with their square.
const maxCompared = 20_000

// Diff returns the changes as a unified diff. Files beyond maxCompared are not compared line by line.
func Diff(changes []Change) string {
	var out strings.Builder
	compared := 0
	for _, c := range changes {
		d := difflib.UnifiedDiff{A: splitLines(c.Before), FromFile: "a/" + c.Path, B: splitLines(c.After),
			ToFile: "b/" + c.Path, Context: 3}
		switch {
		case c.Before == nil:
			d.FromFile = "/dev/null"
		case c.After == nil:
			d.ToFile = "/dev/null"
		default:
			if compared += len(d.A) + len(d.B); compared > maxCompared {
				d.A, d.B = []string{"too long to be shown: " + Digest(c.Before.Text) + "\n"},
					[]string{"too long to be shown: " + Digest(c.After.Text) + "\n"}
			}
		}
		_ = difflib.WriteUnifiedDiff(&out, d) // a builder returns no error
	}
	return out.String()
}

// splitLines returns the lines of a file for the diff; nil if there is no file.
func splitLines(f *File) []string {
	switch {
	case f == nil:
		return nil
	case strings.Contains(f.Text, "\x00"):
		return []string{"a binary file with digest " + Digest(f.Text) + "\n"}
	}
	text, _ := toUnixLines(f.Text)
	return slices.Collect(strings.Lines(convention.EndLine(text)))
}
