// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/bellwether-dev/bellwether/phrase"
)

// maxValue is how many characters of a value are shown to people.
const maxValue = 100

// Summary is a sentence on how much there is to look at.
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

var digest = regexp.MustCompile(`(sha256:[0-9a-f]{12})[0-9a-f]{52}`)

// Short is a value in one line of bounded length. Digests are cut to what people compare.
func Short(value string) string {
	return phrase.Truncate(digest.ReplaceAllString(phrase.OneLine(value), "$1…"), maxValue)
}

// Folded is a change and how many more there are of its like.
type Folded struct {
	Change
	More int
}

// fewAlike is how many changes of one kind are still shown one by one.
const fewAlike = 3

// folded marks those that were counted for the first of them.
const folded = -1

// Fold takes changes of one subject together that say the same of fields with the same name, as a new version of a type
// that a schema holds many times makes them by the dozen.
func Fold(changes []Change) []Folded {
	type like struct {
		subject, leaf, from, to, note string
		kind                          Kind
		weight                        Weight
	}
	key := func(c Change) like {
		parts := strings.Split(c.Path, ".")
		return like{c.Subject, parts[len(parts)-1], c.From, c.To, c.Note, c.Kind, c.Weight}
	}
	count := map[like]int{}
	for _, c := range changes {
		count[key(c)]++
	}
	var out []Folded
	for _, c := range changes {
		switch n := count[key(c)]; {
		case n == folded:
		case n <= fewAlike || c.Path == "":
			out = append(out, Folded{Change: c})
		default:
			out = append(out, Folded{Change: c, More: n - 1})
			count[key(c)] = folded
		}
	}
	return out
}

// Sign is the sign that people know for the kind of a change.
func (c Change) Sign() string {
	return map[Kind]string{Added: "+", Removed: "-", Changed: "~"}[c.Kind]
}

// Values are what the change is from and to, for people.
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

// Markdown renders the report for a pull request.
func Markdown(r Report) string {
	var out strings.Builder
	fmt.Fprintf(&out, "## %s → %s\n\n%s\n", escape(r.From.Name), escape(r.To.Name), r.Summary())
	for _, area := range Areas() {
		changes := r.In(area)
		if len(changes) == 0 {
			continue
		}
		fmt.Fprintf(&out, "\n### %s\n", area.Title())
		subject := "\x00"
		for _, c := range Fold(changes) {
			if c.Subject != subject {
				subject = c.Subject
				fmt.Fprintf(&out, "\n**%s**\n\n", escape(subject))
			}
			out.WriteString(item(c))
		}
	}
	return out.String()
}

func item(c Folded) string {
	line := "- " + string(c.Kind)
	if c.Weight == Breaking {
		line = "- **breaking**: " + string(c.Kind)
	}
	if c.Path != "" {
		line += " " + code(c.Path)
	}
	switch from, to := Short(c.From), Short(c.To); {
	case from != "" && to != "":
		line += ": " + code(from) + " → " + code(to)
	case from+to != "":
		line += ": " + code(from+to)
	}
	if c.Note != "" {
		line += " (" + escape(c.Note) + ")"
	}
	if c.More > 0 {
		line += fmt.Sprintf(", and %d more like it", c.More)
	}
	return line + "\n"
}

// code quotes a text so that nothing in it is markup.
func code(text string) string {
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// escape keeps texts of a bundle from being markup.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "[", `\[`, "<", "&lt;", "`", "\\`", "\n",
		" ").Replace(text)
}
