// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/explain"
)

// stateTones has the tone of each state.
var stateTones = map[explain.State]Tone{explain.Healthy: Good, explain.Progressing: Warn, explain.Waiting: Warn,
	explain.Degraded: Bad, explain.Failed: Bad, explain.Unknown: Bad, "": Plain}

// RenderExplanation returns a complete explanation as text: the state, the chain, and the sections.
func RenderExplanation(title string, e explain.Explanation, now time.Time, s Style) string {
	var out strings.Builder
	out.WriteString(s.Lines(stateTones[e.State], Mark(stateTones[e.State])+" "+title+": "+StateOf(e, now)))
	writeLinks(&out, e.Chain, "", s)
	out.WriteString(RenderVerdict(e, now, s))
	return out.String()
}

// StateOf returns the state with its reason and its age.
func StateOf(e explain.Explanation, now time.Time) string {
	text := string(e.State)
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	if e.Since != nil && e.State != explain.Healthy {
		text += " for " + Age(now, *e.Since)
	}
	return text
}

// RenderVerdict returns an explanation without its chain: the summary, the cause, what to do, what happens next,
// and which data is not current.
func RenderVerdict(e explain.Explanation, now time.Time, s Style) string {
	var out strings.Builder
	if e.State == explain.Healthy {
		writeSection(&out, s, "", []string{"Healthy: " + e.Summary, "Checked: " + strings.Join(e.Checked, "; ") + "."})
		return out.String()
	}
	writeSection(&out, s, "", []string{string(e.State) + ": " + strings.TrimSuffix(e.Summary, ".") + "."})
	if e.Cause != nil && e.Cause.Text != e.Summary {
		writeSection(&out, s, "Cause", []string{e.Cause.Text})
	}
	writeSection(&out, s, "What it means", []string{e.Means})
	var next, stale []string
	for _, n := range e.Next {
		text := n.Text
		if n.At != nil {
			text = "At " + Clock(now, n.At) + ": " + text
		}
		next = append(next, "- "+text)
	}
	for _, part := range e.Stale {
		text := part.What + ": " + part.Why
		if part.Since != nil && !part.Since.IsZero() {
			text += ", for " + Age(now, *part.Since)
		}
		stale = append(stale, "- "+text)
	}
	writeActions(&out, s, e.Remedies)
	writeSection(&out, s, "What happens next", next)
	writeSection(&out, s, "Not current", stale)
	return out.String()
}

// writeActions writes what to do. A command that does not fit on a line is written below its
// text, so that the user can copy it.
func writeActions(out *strings.Builder, s Style, actions []remedy.Action) {
	const item, margin = "- ", "  "
	for i, a := range actions {
		if i == 0 {
			out.WriteString("\n" + s.Paint(Strong, "What to do") + "\n")
		}
		isLong := s.Width > 0 && runewidth.StringWidth(margin+item+"`"+a.Command+"`.") > s.Width
		if a.Command == "" || !isLong {
			WriteText(out, s, margin, item+a.String())
			continue
		}
		WriteText(out, s, margin, item+strings.TrimSuffix(a.Text, ".")+":")
		out.WriteString(s.CommandLines(Plain, a.Command, margin+margin+margin))
	}
}

// writeSection writes texts below a title. It writes nothing if there are no texts.
func writeSection(out *strings.Builder, s Style, title string, texts []string) {
	if len(texts) == 0 {
		return
	}
	out.WriteByte('\n')
	margin := ""
	if title != "" {
		margin = "  "
		out.WriteString(s.Paint(Strong, title) + "\n")
	}
	for _, text := range texts {
		WriteText(out, s, margin, text)
	}
}

// WriteText escapes a text and breaks it into lines behind a margin. The later lines of a list item are indented.
func WriteText(out *strings.Builder, s Style, margin, text string) {
	hanging := "\n" + margin
	if strings.HasPrefix(text, "- ") {
		hanging += "  "
	}
	columns := 0
	if s.Width > 0 {
		columns = max(s.Width-len(hanging)+1, MinWrapped) // the line break in hanging needs no column
	}
	out.WriteString(margin + strings.Join(Wrap(Escape(text), columns), hanging) + "\n")
}

// writeLinks writes the branches of a tree, and then the branches below each. prefix is the text before each line,
// which continues the lines of the branches above.
func writeLinks(out *strings.Builder, links []explain.Link, prefix string, s Style) {
	for i, l := range links {
		fork, trunk := "├─ ", "│  "
		if i == len(links)-1 {
			fork, trunk = "└─ ", "   "
		}
		stem := "  "
		if len(l.Links) > 0 {
			stem = "│ "
		}
		lines := []string{l.Text}
		if columns := s.Width - runewidth.StringWidth(prefix+fork+stem); s.Width > 0 {
			lines = Wrap(l.Text, max(columns, MinWrapped))
		}
		tone := stateTones[l.State]
		for j, line := range lines {
			if j == 0 {
				fmt.Fprintf(out, "%s%s%s\n", prefix, fork, s.Paint(tone, Mark(tone)+" "+line))
				continue
			}
			fmt.Fprintf(out, "%s%s%s%s\n", prefix, trunk, stem, s.Paint(tone, line))
		}
		writeLinks(out, l.Links, prefix+trunk, s)
	}
}
