// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// Parts are what people write about each SLI, in their order. Each part is a paragraph
// that begins with its name in bold letters, and what follows it.
var Parts = []string{"Users", "First look", "Likely causes", "What to do", "If it is wrong", noData}

// noData is the part about an SLI that is not measured.
const noData = "No data"

// SLIs is the page about the SLIs: the generated parts, and what people wrote into the
// existing one. What comes before the first SLI is kept.
func SLIs(existing string) string {
	written := parts(withoutGenerated(existing))
	introduction, _, _ := strings.Cut(existing, "\n## ")
	var b strings.Builder
	b.WriteString(strings.TrimSpace(introduction) + "\n")
	for _, name := range slo.Sections() {
		own := bold(written[name])
		fmt.Fprintf(&b, "\n## %s\n\n%s\n%s\n%s\n", name, begin, rule(name), end)
		for _, part := range Parts {
			b.WriteString(paragraph(part, cmp.Or(own[part], Missing)))
		}
	}
	return b.String()
}

// paragraph writes a part. Code and lists begin below its name.
func paragraph(part, text string) string {
	between := " "
	if strings.HasPrefix(text, "```") || strings.HasPrefix(text, "- ") {
		between = "\n\n"
	}
	return fmt.Sprintf("\n**%s:**%s%s\n", part, between, text)
}

// rule says when an SLI is bad, and what its default is.
func rule(name string) string {
	for _, s := range slo.SLIs() {
		if slo.SectionOf(s.Name) != name {
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

// bold are the texts of the parts of a section, by the bold word that each begins with.
func bold(section string) map[string]string {
	out := map[string]string{}
	for _, part := range strings.Split("\n"+section, "\n**")[1:] {
		name, text, found := strings.Cut(part, ":**")
		if found {
			out[name] = strings.TrimSpace(text)
		}
	}
	return out
}

// aboutSLIs are the sections of the page of an alert, one for each SLI: why it fails,
// or why there are no data of it.
func (a Alert) aboutSLIs(slis string) string {
	sections := parts(withoutGenerated(slis))
	var b strings.Builder
	for i, name := range slo.Sections() {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "## %s\n\n%s\n", name, rule(name))
		fmt.Fprintf(&b, "\n%s\n", a.first())
		for _, part := range Parts {
			if (part == noData) == (a.Name == slo.AlertSLIAbsent) {
				b.WriteString(paragraph(part, bold(sections[name])[part]))
			}
		}
	}
	return b.String()
}

// first says what comes before looking for the cause in an SLI.
func (a Alert) first() string {
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
