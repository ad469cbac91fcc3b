// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// Parts are the parts that people write about each SLI, in their order. Each part
// is a paragraph that begins with its name in bold letters, and the text after it.
var Parts = []string{"Users", "First look", "Likely causes", "What to do", "If it is wrong", noData}

// noData is the part about an SLI that is not measured.
const noData = "No data"

// SLIs returns the page about the SLIs: the generated parts, and the text that
// people wrote into the existing page. The text before the first SLI is kept.
func SLIs(existing string) string {
	written := splitParts(removeGenerated(existing))
	introduction, _, _ := strings.Cut(existing, "\n## ")
	var b strings.Builder
	b.WriteString(strings.TrimSpace(introduction) + "\n")
	for _, name := range slo.Sections() {
		own := splitBold(written[name])
		fmt.Fprintf(&b, "\n## %s\n\n%s\n%s\n%s\n", name, beginMark, describeSLI(name), endMark)
		for _, part := range Parts {
			b.WriteString(formatParagraph(part, cmp.Or(own[part], Missing)))
		}
	}
	return b.String()
}

// formatParagraph returns a part as Markdown. Code and lists begin below its name.
func formatParagraph(part, text string) string {
	between := " "
	if strings.HasPrefix(text, "```") || strings.HasPrefix(text, "- ") {
		between = "\n\n"
	}
	return fmt.Sprintf("\n**%s:**%s%s\n", part, between, text)
}

// describeSLI describes when an SLI is bad, and its defaults.
func describeSLI(name string) string {
	for _, s := range slo.SLIs() {
		if slo.FindSection(s.Name) != name {
			continue
		}
		alerts := "Pages and tickets."
		if s.Ticket {
			alerts = "Only tickets."
		}
		return wrap(fmt.Sprintf("Bad when %s. By default the target is %s %% over 30 days. %s",
			strings.TrimSuffix(s.Bad, "; only a ticket"), s.Target, alerts))
	}
	return "An SLI that an OperatorSLO defines under `own`, or that was read from a file of OpenSLO or sloth."
}

// splitBold returns the texts of the parts of a section, by the bold word at the beginning of each part.
func splitBold(section string) map[string]string {
	out := map[string]string{}
	for _, part := range strings.Split("\n"+section, "\n**")[1:] {
		name, text, found := strings.Cut(part, ":**")
		if found {
			out[name] = strings.TrimSpace(text)
		}
	}
	return out
}

// buildSLISections returns the sections of an alert's page,
// one for each SLI: why the SLI fails, or why it has no data.
func (a Alert) buildSLISections(slis string) string {
	sections := splitParts(removeGenerated(slis))
	var b strings.Builder
	for i, name := range slo.Sections() {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "## %s\n\n%s\n", name, describeSLI(name))
		fmt.Fprintf(&b, "\n%s\n", a.describeFirstStep())
		for _, part := range Parts {
			// The alert about missing data has only the part noData; all other alerts have all other parts.
			if (part == noData) == (a.Name == slo.AlertSLIAbsent) {
				b.WriteString(formatParagraph(part, splitBold(sections[name])[part]))
			}
		}
	}
	return b.String()
}

// describeFirstStep returns the step before the search for the cause in an SLI.
func (a Alert) describeFirstStep() string {
	switch a.Name {
	case slo.AlertRelease:
		return "**First stop the release:** [what to do](#what-to-do)."
	case slo.AlertSLIAbsent:
		return "**First see what else is silent:** [first look](#first-look)."
	case slo.AlertExhausted:
		return "**First see whether it still fails:** [first look](#first-look)."
	}
	return "**If an upgrade was the cause, stop it first:** [what to do](#what-to-do)."
}
