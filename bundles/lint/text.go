// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// TextStyle is the style of a report for people.
type TextStyle struct {
	// Colour allows ANSI colours.
	Colour bool
	// All shows all findings of a rule, and not only the first findings.
	All bool
	// Program is the command by which the user runs bellwether; empty means "bellwether".
	Program string
}

// maxShownFindings is the number of findings of one rule that are shown. Findings of a rule mostly have the same cause.
const maxShownFindings = 5

const (
	ansiBad    = "\x1b[31m"
	ansiWarn   = "\x1b[33m"
	ansiGood   = "\x1b[32m"
	ansiStrong = "\x1b[1m"
	ansiDim    = "\x1b[2m"
	ansiReset  = "\x1b[0m"
)

// paint returns the text in a colour, or unchanged if colours are off.
func (s TextStyle) paint(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return code + text + ansiReset
}

// formatSeverity returns the sign and the name of a severity. The name helps users who cannot see colours.
func (s TextStyle) formatSeverity(severity Severity) string {
	switch severity {
	case Error:
		return s.paint(ansiBad, "✗ error  ")
	case Warning:
		return s.paint(ansiWarn, "! warning")
	default:
		return s.paint(ansiDim, "· info   ")
	}
}

// Text returns the report for people: a block for each rule, the most severe first, and a summary in one line.
func (r *Report) Text(s TextStyle) string {
	var out strings.Builder
	fmt.Fprintln(&out, s.paint(ansiStrong, r.Bundle)+s.paint(ansiDim, r.formatComparison()))
	titles, fixes := map[string]string{}, map[string]string{}
	for _, rule := range r.Rules {
		titles[rule.ID], fixes[rule.ID] = rule.Title, rule.Fix
	}
	// The findings are sorted, so findings of the same rule and severity follow each other.
	for start := 0; start < len(r.Findings); {
		end := start
		for end < len(r.Findings) && r.Findings[end].Rule == r.Findings[start].Rule &&
			r.Findings[end].Severity == r.Findings[start].Severity {
			end++
		}
		block := r.Findings[start:end]
		fmt.Fprintf(&out, "\n%s %s  %s\n", s.formatSeverity(block[0].Severity), s.paint(ansiStrong, block[0].Rule),
			titles[block[0].Rule])
		r.writeBlock(&out, s, block)
		fmt.Fprintf(&out, "    %s\n", s.paint(ansiDim, "fix: "+cutFirstSentence(fixes[block[0].Rule])))
		start = end
	}
	fmt.Fprintf(&out, "\n%s\n", r.formatSummary(s))
	return out.String()
}

// writeBlock writes the findings of one rule: all of them, or the first maxShownFindings and the number of the others.
func (r *Report) writeBlock(out *strings.Builder, s TextStyle, block []Finding) {
	shown := block
	if !s.All && len(shown) > maxShownFindings+1 { // "and 1 more" would need as many lines
		shown = shown[:maxShownFindings]
	}
	for _, f := range shown {
		place := r.formatPlace(f)
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

// formatPlace returns the file and line of a finding in the form that editors and terminals recognize as a link. For a
// finding without a file, it returns the folder of the bundle.
func (r *Report) formatPlace(f Finding) string {
	if f.File == "" {
		return r.Directory
	}
	if f.Line == 0 {
		return r.formatFile(f)
	}
	return fmt.Sprintf("%s:%d", r.formatFile(f), f.Line)
}

// formatFile returns the file of a finding, relative to the user's folder. The file of waivers is not in the
// bundle's folder.
func (r *Report) formatFile(f Finding) string {
	if f.Rule == ruleWaiverExpired || f.Rule == ruleWaiverUnused {
		return f.File
	}
	return path.Join(r.Directory, f.File)
}

// formatComparison returns a text about the versions that the bundle was compared with.
func (r *Report) formatComparison() string {
	switch n := len(r.History); n {
	case 0:
		return ", compared with no other version"
	case 1:
		return ", compared with " + r.History[0]
	default:
		return fmt.Sprintf(", compared with %d versions from %s to %s", n, r.History[0], r.History[n-1])
	}
}

// formatSummary returns the summary of the report in one line.
func (r *Report) formatSummary(s TextStyle) string {
	var parts []string
	for _, severity := range severities {
		if n := r.Count(severity); n > 0 {
			parts = append(parts, formatCount(n, severity))
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

// formatCount returns a number of findings, such as "2 errors".
func formatCount(n int, severity Severity) string {
	if severity == Info {
		return fmt.Sprintf("%d %s", n, severity)
	}
	return phrase.Count(n, string(severity))
}

var markdownLink = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)

// cutFirstSentence returns the first sentence of a text in Markdown, without links and full stop.
func cutFirstSentence(text string) string {
	sentence, _, _ := strings.Cut(markdownLink.ReplaceAllString(text, "$1"), ". ")
	return strings.TrimSuffix(sentence, ".")
}
