// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Option("missingkey=error").Parse(pageText))

// Caveat is a text about the limits of a card.
const Caveat = "A bundle shows only what is written in it: in CRDs, permissions and manifests. An operator may do " +
	"more than its bundle shows, or do badly what it shows."

// CardHTML returns the card as one HTML page without external files.
func CardHTML(c Card) (string, error) {
	var out strings.Builder
	err := pageTemplate.Execute(&out, struct {
		Card    Card
		Title   string
		Picture template.HTML
		Caveat  string
	}{c, formatTitle(c), template.HTML(CardSVG(c)), Caveat}) //nolint:gosec // SVG escapes texts of the bundle
	if err != nil {
		return "", fmt.Errorf("render page: %w", err)
	}
	return out.String(), nil
}

// CardMarkdown returns the card in Markdown, for a pull request.
func CardMarkdown(c Card) string {
	var out strings.Builder
	fmt.Fprintf(&out, "## %s: capability level\n\n%s\n\n| level | shown | signals |\n|---|---|---|\n",
		escapeTableText(formatTitle(c)), escapeTableText(c.Verdict()))
	for _, l := range c.Levels {
		found, all := l.Count()
		fmt.Fprintf(&out, "| %d %s | %s | %d of %d |\n", l.Level, l.Level, formatYesNo(l.Level <= c.Shown), found, all)
	}
	for _, l := range c.Levels {
		fmt.Fprintf(&out, "\n### %d %s\n\n%s\n\n", l.Level, l.Level, l.Level.Means())
		for _, s := range l.Signals {
			fmt.Fprintf(&out, "- [%s] %s%s", map[bool]string{true: "x", false: " "}[s.Found()], s.Title,
				map[bool]string{true: " (required)"}[s.Required])
			if s.Found() {
				fmt.Fprintf(&out, ": %s\n", escapeTableText(strings.Join(s.Evidence, ", ")))
			} else {
				fmt.Fprintf(&out, ". %s\n", s.Advice)
			}
		}
	}
	fmt.Fprintf(&out, "\n%s\n", Caveat)
	return out.String()
}

func formatYesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// escapeTableText escapes a text of a bundle for Markdown, also within tables.
func escapeTableText(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "[", `\[`, "|", `\|`, "<", "&lt;", "`", "\\`", "\n",
		" ").Replace(text)
}
