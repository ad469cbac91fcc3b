// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/bellwether-dev/bellwether/bundles"
)

// Markdown is the page about a rule: what, why, an example each of how not to
// and how to, and the fix.
func (r Rule) Markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\n%s. Severity: **%s**.\n\n", r.ID, r.Title, r.Severity)
	fmt.Fprintf(&out, "## Why it hurts\n\n%s\n\n## How to fix it\n\n%s\n\n", r.Why, r.Fix)
	fmt.Fprintf(&out, "## Example\n\nThe files are put over [a bundle with nothing "+
		"wrong](%stree/main/bundles/lint/testdata/base).\n\n", Repository)
	fmt.Fprintf(&out, "### Reported\n\n%s\n### Not reported\n\n%s", exampleMarkdown(r.Bad), exampleMarkdown(r.Good))
	return out.String()
}

// exampleMarkdown shows an example: its introduction, and each file as code
// under what is done with it.
func exampleMarkdown(text string) string {
	var out strings.Builder
	archive := txtar.Parse([]byte(text))
	fmt.Fprintf(&out, "%s\n", bytes.TrimSpace(archive.Comment))
	for _, f := range archive.Files {
		language := "yaml"
		if !bundles.IsManifest(strings.TrimSuffix(f.Name, ".patch")) {
			language = "text"
		}
		fmt.Fprintf(&out, "\n%s:\n\n```%s\n%s```\n", exampleFile(f.Name), language, f.Data)
	}
	return out.String()
}

// exampleFile says what a file of an example is.
func exampleFile(name string) string {
	when, merged := "", ""
	if rest, old := strings.CutPrefix(name, "history/"); old {
		var version string
		version, name, _ = strings.Cut(rest, "/")
		when = " of version " + version
	}
	if rest, patch := strings.CutSuffix(name, ".patch"); patch {
		name, merged = rest, ", merged into the file"
	}
	switch name {
	case "images":
		return "What the registry knows, as image and platforms"
	case "filler":
		return "A file that is filled up to so many KiB"
	}
	return fmt.Sprintf("`%s`%s%s", name, when, merged)
}

// Index is the page about all rules, with a heading for each. pages is the folder with their pages, relative to the
// index; without one, nothing links to pages.
func Index(pages string) string {
	var out strings.Builder
	out.WriteString("# Lint rules\n\nWhat `bellwether bundle lint` looks for, and " +
		"[how often it is right](rules-precision.md). `bellwether bundle lint --explain RULE` shows examples. This " +
		"page is written by `make generate`, from the rules themselves; the site has a page about each rule.\n")
	for _, r := range Rules() {
		fmt.Fprintf(&out, "\n## %s\n\n%s. Severity: **%s**.\n\n%s\n\nFix: %s\n", r.ID, r.Title, r.Severity, r.Why,
			r.Fix)
		if pages != "" {
			fmt.Fprintf(&out, "\n[Examples](%s/%s.md)\n", pages, r.ID)
		}
	}
	return out.String()
}
