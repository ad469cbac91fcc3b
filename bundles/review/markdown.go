// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// maxValue is the maximum number of characters of a value in a report.
const maxValue = 100

// Summary returns a sentence with the numbers of changes.
func (r Report) Summary() string {
	if len(r.Changes) == 0 {
		return "Nothing changes."
	}
	text := phrase.Count(len(r.Changes), "change")
	if n := r.Count(Breaking); n > 0 {
		text += fmt.Sprintf(", %d breaking", n)
	}
	if n := r.Count(Attention); n > 0 {
		text += fmt.Sprintf(", %d to look at", n)
	}
	return text + "."
}

var digestPattern = regexp.MustCompile(`(sha256:[0-9a-f]{12})[0-9a-f]{52}`)

// Short returns a value in one line of limited length. Digests are shortened.
func Short(value string) string {
	return phrase.Truncate(digestPattern.ReplaceAllString(phrase.OneLine(value), "$1…"), maxValue)
}

// Folded is a change and the number of similar changes that it represents.
type Folded struct {
	Change
	More int
}

// maxSeparate is the maximum number of similar changes that are shown separately.
const maxSeparate = 3

// alreadyFolded marks changes that are already counted in an earlier change.
const alreadyFolded = -1

// Fold combines more than maxSeparate similar changes into the first of them: changes of one subject with equal
// values, in fields with the same name. A new version of a type that a schema contains many times causes dozens of
// such changes.
func Fold(changes []Change) []Folded {
	type similarity struct {
		subject, leaf, from, to, note string
		kind                          Kind
		weight                        Weight
	}
	key := func(c Change) similarity {
		parts := strings.Split(c.Path, ".")
		return similarity{subject: c.Subject, leaf: parts[len(parts)-1], from: c.From, to: c.To, note: c.Note,
			kind: c.Kind, weight: c.Weight}
	}
	count := map[similarity]int{}
	for _, c := range changes {
		count[key(c)]++
	}
	var out []Folded
	for _, c := range changes {
		switch n := count[key(c)]; {
		case n == alreadyFolded: // an earlier change represents it
		case n <= maxSeparate || c.Path == "":
			out = append(out, Folded{Change: c})
		default:
			out = append(out, Folded{Change: c, More: n - 1})
			count[key(c)] = alreadyFolded
		}
	}
	return out
}

// Sign returns the usual sign for the kind of a change.
func (c Change) Sign() string {
	return map[Kind]string{Added: "+", Removed: "-", Changed: "~"}[c.Kind]
}

// Values returns the old and the new value for people.
func (c Change) Values() string {
	switch from, to := Short(c.From), Short(c.To); {
	case from != "" && to != "":
		return from + " → " + to
	case c.Kind == Changed && from == "":
		return `"" → ` + to
	case c.Kind == Changed:
		return from + ` → ""`
	default:
		return from + to
	}
}

// DiffMarkdown returns the report in Markdown, for a pull request.
func DiffMarkdown(r Report) string {
	var out strings.Builder
	fmt.Fprintf(&out, "## %s → %s\n\n%s\n", escapeMarkdown(r.From.Name), escapeMarkdown(r.To.Name), r.Summary())
	for _, area := range Areas() {
		changes := r.ListChanges(area)
		if len(changes) == 0 {
			continue
		}
		fmt.Fprintf(&out, "\n### %s\n", area.Title())
		subject := "\x00"
		for _, c := range Fold(changes) {
			if c.Subject != subject {
				subject = c.Subject
				fmt.Fprintf(&out, "\n**%s**\n\n", escapeMarkdown(subject))
			}
			out.WriteString(formatItem(c))
		}
	}
	return out.String()
}

// formatItem returns the list item of a change.
func formatItem(c Folded) string {
	line := "- " + string(c.Kind)
	if c.Weight == Breaking {
		line = "- **breaking**: " + string(c.Kind)
	}
	if c.Path != "" {
		line += " " + quoteCode(c.Path)
	}
	switch from, to := Short(c.From), Short(c.To); {
	case from != "" && to != "":
		line += ": " + quoteCode(from) + " → " + quoteCode(to)
	case from+to != "":
		line += ": " + quoteCode(from+to)
	}
	if c.Note != "" {
		line += " (" + escapeMarkdown(c.Note) + ")"
	}
	if c.More > 0 {
		line += fmt.Sprintf(", and %d more like it", c.More)
	}
	return line + "\n"
}

// quoteCode returns a text as inline code, so that no part of the text is markup.
func quoteCode(text string) string {
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// escapeMarkdown escapes a text of a bundle, so that no part of the text is markup.
func escapeMarkdown(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "[", `\[`, "<", "&lt;", "`", "\\`", "\n",
		" ").Replace(text)
}
