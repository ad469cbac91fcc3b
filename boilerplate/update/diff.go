// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
)

// Diff returns the differences between files before and after, as a unified diff.
func Diff(changes []Change) string {
	out, context := "", 3
	for _, c := range changes {
		d := difflib.UnifiedDiff{A: diffLines(c.Before), FromFile: "a/" + c.Path, B: diffLines(c.After),
			ToFile: "b/" + c.Path, Context: context}
		if c.Before == nil {
			d.FromFile = "/dev/null"
		}
		if c.After == nil {
			d.ToFile = "/dev/null"
		}
		text, _ := difflib.GetUnifiedDiffString(d) // A buffer takes everything.
		out += text
	}
	return out
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
