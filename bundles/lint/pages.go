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

// Markdown returns the page about a rule: the problem, its consequences, the fix, a bad example and a good example.
func (r Rule) Markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\n%s. Severity: **%s**.\n\n", r.ID, r.Title, r.Severity)
	fmt.Fprintf(&out, "## Why it hurts\n\n%s\n\n## How to fix it\n\n%s\n\n", r.Why, r.Fix)
	fmt.Fprintf(&out, "## Example\n\nThe files are put over [a bundle with nothing "+
		"wrong](%stree/main/bundles/lint/testdata/base).\n\n", Repository)
	fmt.Fprintf(&out, "### Reported\n\n%s\n### Not reported\n\n%s", formatExample(r.Bad), formatExample(r.Good))
	return out.String()
}

// formatExample returns an example in Markdown: its introduction, and each file as a code block below a description of
// the file.
func formatExample(text string) string {
	var out strings.Builder
	archive := txtar.Parse([]byte(text))
	fmt.Fprintf(&out, "%s\n", bytes.TrimSpace(archive.Comment))
	for _, f := range archive.Files {
		language := "yaml"
		if !bundles.IsManifest(strings.TrimSuffix(f.Name, ".patch")) {
			language = "text"
		}
		fmt.Fprintf(&out, "\n%s:\n\n```%s\n%s```\n", describeExampleFile(f.Name), language, f.Data)
	}
	return out.String()
}

// describeExampleFile returns a description of a file of an example. Files in history/VERSION/ belong to a published
// version, files ending in .patch are merged into the file of that name, and the files images and filler have no name.
func describeExampleFile(name string) string {
	ofVersion, merged := "", ""
	if versionPath, isHistory := strings.CutPrefix(name, "history/"); isHistory {
		var version string
		version, name, _ = strings.Cut(versionPath, "/")
		ofVersion = " of version " + version
	}
	if patched, isPatch := strings.CutSuffix(name, ".patch"); isPatch {
		name, merged = patched, ", merged into the file"
	}
	switch name {
	case "images":
		return "What the registry knows, as image and platforms"
	case "filler":
		return "A file that is filled up to so many KiB"
	}
	return fmt.Sprintf("`%s`%s%s", name, ofVersion, merged)
}

// Index returns the page about all rules, with a heading for each rule. pages is the folder of the rules' own pages,
// relative to the index; if it is empty, the index has no links to these pages.
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
