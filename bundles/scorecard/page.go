// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scorecard

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Option("missingkey=error").Parse(pageText))

// Caveat is what a card cannot know.
const Caveat = "A bundle shows only what is written in it: in CRDs, permissions and manifests. An operator may do " +
	"more than its bundle shows, or do badly what it shows."

// HTML renders the card as one page that needs nothing else.
func HTML(c Card) (string, error) {
	var out strings.Builder
	err := page.Execute(&out, struct {
		Card    Card
		Title   string
		Picture template.HTML
		Caveat  string
	}{c, title(c), template.HTML(SVG(c)), Caveat}) //nolint:gosec // SVG escapes all that comes from the bundle
	if err != nil {
		return "", fmt.Errorf("render page: %w", err)
	}
	return out.String(), nil
}

// Markdown renders the card for a pull request.
func Markdown(c Card) string {
	var out strings.Builder
	fmt.Fprintf(&out, "## %s: capability level\n\n%s\n\n| level | shown | signals |\n|---|---|---|\n", plain(title(c)),
		plain(c.Verdict()))
	for _, l := range c.Levels {
		found, all := l.Count()
		fmt.Fprintf(&out, "| %d %s | %s | %d of %d |\n", l.Level, l.Level, yesNo(l.Level <= c.Shown), found, all)
	}
	for _, l := range c.Levels {
		fmt.Fprintf(&out, "\n### %d %s\n\n%s\n\n", l.Level, l.Level, l.Level.Means())
		for _, s := range l.Signals {
			fmt.Fprintf(&out, "- [%s] %s%s", map[bool]string{true: "x", false: " "}[s.Found()], s.Title,
				map[bool]string{true: " (required)"}[s.Required])
			if s.Found() {
				fmt.Fprintf(&out, ": %s\n", plain(strings.Join(s.Evidence, ", ")))
			} else {
				fmt.Fprintf(&out, ". %s\n", s.Advice)
			}
		}
	}
	fmt.Fprintf(&out, "\n%s\n", Caveat)
	return out.String()
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// plain keeps texts of a bundle from being markup.
func plain(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "[", `\[`, "|", `\|`, "<", "&lt;", "`", "\\`", "\n",
		" ").Replace(text)
}
