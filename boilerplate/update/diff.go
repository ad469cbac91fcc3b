// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
)

// maxCompared bounds how many lines of files that change are compared, since the time for that grows with their square.
const maxCompared = 20_000

// Diff returns the differences between files before and after, as a unified diff.
func Diff(changes []Change) string {
	var out strings.Builder
	compared := 0
	for _, c := range changes {
		d := difflib.UnifiedDiff{A: diffLines(c.Before), FromFile: "a/" + c.Path, B: diffLines(c.After),
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
		_ = difflib.WriteUnifiedDiff(&out, d) // A builder takes everything.
	}
	return out.String()
}

func diffLines(f *File) []string {
	switch {
	case f == nil:
		return nil
	case strings.Contains(f.Text, "\x00"):
		return []string{"a binary file with digest " + Digest(f.Text) + "\n"}
	}
	text, _ := unixLines(f.Text)
	return slices.Collect(strings.Lines(convention.EndLine(text)))
}
