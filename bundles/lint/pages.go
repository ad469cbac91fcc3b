// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"
)

// Markdown is the page about a rule: what, why, an example each of how not to
// and how to, and the fix.
func (r Rule) Markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\n%s. Severity: **%s**.\n\n", r.ID, r.Title, r.Severity)
	fmt.Fprintf(&out, "## Why it hurts\n\n%s\n\n## How to fix it\n\n%s\n\n", r.Why, r.Fix)
	fmt.Fprintf(&out, "## Example\n\nThe files are put over a bundle that has nothing wrong with it; `.patch` ones are merged into a file.\n\n")
	fmt.Fprintf(&out, "Reported: %s\n\nNot reported: %s", fenced(r.Bad), fenced(r.Good))
	return out.String()
}

// fenced is an example with its introduction as text and its files as code.
func fenced(example string) string {
	intro, files := example, ""
	if i := strings.Index(example, "-- "); i >= 0 && (i == 0 || example[i-1] == '\n') {
		intro, files = example[:i], example[i:]
	}
	return fmt.Sprintf("%s\n\n```text\n%s```\n", strings.TrimSpace(intro), files)
}

// Index is the page that lists all rules.
func Index() string {
	var out strings.Builder
	out.WriteString("# Lint rules\n\nWhat `bellwether bundle lint` looks for. These pages are written by `make generate`, from the rules themselves.\n\n")
	out.WriteString("| rule | severity | what is wrong |\n|---|---|---|\n")
	for _, r := range Rules() {
		fmt.Fprintf(&out, "| [%s](%s.md) | %s | %s |\n", r.ID, r.ID, r.Severity, r.Title)
	}
	return out.String()
}
