// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/bellwether-dev/bellwether/phrase"
)

// TextStyle is how a report is shown to a person.
type TextStyle struct {
	// Colour allows ANSI colours.
	Colour bool
	// All shows every finding of a rule, and not only the first few.
	All bool
	// Program is how the user calls bellwether; empty means by that name.
	Program string
}

// fewFindings is how many of one rule are shown. They mostly have one cause.
const fewFindings = 5

const (
	ansiBad    = "\x1b[31m"
	ansiWarn   = "\x1b[33m"
	ansiGood   = "\x1b[32m"
	ansiStrong = "\x1b[1m"
	ansiDim    = "\x1b[2m"
	ansiReset  = "\x1b[0m"
)

func (s TextStyle) paint(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return code + text + ansiReset
}

// mark is the sign of a severity, with its name for those who see no colours.
func (s TextStyle) mark(severity Severity) string {
	switch severity {
	case Error:
		return s.paint(ansiBad, "✗ error  ")
	case Warning:
		return s.paint(ansiWarn, "! warning")
	default:
		return s.paint(ansiDim, "· info   ")
	}
}

// Text is the report for a person: a block for each rule, the worst first, and
// a line that sums up.
func (r *Report) Text(s TextStyle) string {
	var out strings.Builder
	fmt.Fprintln(&out, s.paint(ansiStrong, r.Bundle)+s.paint(ansiDim, r.comparedWith()))
	titles, fixes := map[string]string{}, map[string]string{}
	for _, rule := range r.Rules {
		titles[rule.ID], fixes[rule.ID] = rule.Title, rule.Fix
	}
	for start := 0; start < len(r.Findings); {
		end := start
		for end < len(r.Findings) && r.Findings[end].Rule == r.Findings[start].Rule &&
			r.Findings[end].Severity == r.Findings[start].Severity {
			end++
		}
		block := r.Findings[start:end]
		fmt.Fprintf(&out, "\n%s %s  %s\n", s.mark(block[0].Severity), s.paint(ansiStrong, block[0].Rule),
			titles[block[0].Rule])
		r.block(&out, s, block)
		fmt.Fprintf(&out, "    %s\n", s.paint(ansiDim, "fix: "+firstSentence(fixes[block[0].Rule])))
		start = end
	}
	fmt.Fprintf(&out, "\n%s\n", r.sum(s))
	return out.String()
}

func (r *Report) block(out *strings.Builder, s TextStyle, block []Finding) {
	shown := block
	if !s.All && len(shown) > fewFindings+1 { // "and 1 more" would take as much room
		shown = shown[:fewFindings]
	}
	for _, f := range shown {
		place := r.place(f)
		if place != "" {
			place += ": "
		}
		fmt.Fprintf(out, "    %s%s\n", place, f.Message)
		if f.Path != "" {
			fmt.Fprintf(out, "        %s\n", s.paint(ansiDim, f.Path))
		}
	}
	if more := len(block) - len(shown); more > 0 {
		fmt.Fprintf(out, "    and %d more; --all shows them\n", more)
	}
}

// place is where a finding is, in the form that editors and terminals take for
// a link.
func (r *Report) place(f Finding) string {
	if f.File == "" {
		return r.Directory
	}
	if f.Line == 0 {
		return r.file(f)
	}
	return fmt.Sprintf("%s:%d", r.file(f), f.Line)
}

// file is the file of a finding as the user would name it. A file of waivers
// is no part of the bundle.
func (r *Report) file(f Finding) string {
	if f.Rule == ruleWaiverExpired || f.Rule == ruleWaiverUnused {
		return f.File
	}
	return path.Join(r.Directory, f.File)
}

func (r *Report) comparedWith() string {
	switch n := len(r.History); n {
	case 0:
		return ", compared with no other version"
	case 1:
		return ", compared with " + r.History[0]
	default:
		return fmt.Sprintf(", compared with %d versions from %s to %s", n, r.History[0], r.History[n-1])
	}
}

// sum summarizes the report in one line.
func (r *Report) sum(s TextStyle) string {
	var parts []string
	for _, severity := range severities {
		if n := r.Count(severity); n > 0 {
			parts = append(parts, severityCount(n, severity))
		}
	}
	text := s.paint(ansiGood, "✓") + " no findings"
	if len(parts) > 0 {
		text = strings.Join(parts, ", ")
	}
	if n := len(r.Waived); n > 0 {
		text += fmt.Sprintf("; %d waived", n)
	}
	if n := len(r.Known); n > 0 {
		text += fmt.Sprintf("; %d in the baseline", n)
	}
	if n := len(r.Earlier); n > 0 {
		text += fmt.Sprintf("; %d about versions that do not upgrade to this one directly, which --all-history "+
			"shows", n)
	}
	if len(r.Findings) > 0 {
		text += s.paint(ansiDim, fmt.Sprintf("  (`%s bundle lint --explain RULE` says more)",
			cmp.Or(s.Program, "bellwether")))
	}
	return text
}

// severityCount returns a count of findings, such as "2 errors".
func severityCount(n int, severity Severity) string {
	if severity == Info {
		return fmt.Sprintf("%d %s", n, severity)
	}
	return phrase.Count(n, string(severity))
}

var markdownLink = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)

// firstSentence is what fits into a line of Markdown that may be long.
func firstSentence(text string) string {
	first, _, _ := strings.Cut(markdownLink.ReplaceAllString(text, "$1"), ". ")
	return strings.TrimSuffix(first, ".")
}
