// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// guide is the link from a page to the guide of SLOs, in the folder next to the folder of the pages.
const guide = "../" + "guides/slos.md"

// Marks around generated text. The text between them is replaced; all other text of a page is kept.
const (
	beginMark = "<!-- generated: make generate replaces this part -->"
	endMark   = "<!-- end of the generated part -->"
)

// Sections are the headings of the parts of a page that people write, in their order.
var Sections = []string{"What it means for users", "First look", "Likely causes", "What to do", "When it ends",
	"If it is wrong"}

// Missing is the text of a section that is not written yet.
const Missing = "(Nobody has written this section yet.)"

// Page returns the page of an alert: the generated parts, and the text that people wrote into the
// existing page, which may be empty. slis is the page about the SLIs; its sections are copied.
func Page(a Alert, existing, slis string) (string, error) {
	about, err := a.describeAlert()
	if err != nil {
		return "", err
	}
	var body strings.Builder
	written := splitParts(removeGenerated(existing))
	for _, heading := range Sections {
		fmt.Fprintf(&body, "\n## %s\n\n%s\n", heading, cmp.Or(written[heading], Missing))
	}
	if slo.IsAboutSLI(a.Name) {
		fmt.Fprintf(&body, "\n%s\n%s%s\n", beginMark, a.buildSLISections(slis), endMark)
	}
	return fmt.Sprintf("# %s\n\n%s\n%s%s%s\n%s", a.Name, beginMark, about, a.explainWords(body.String()), endMark,
		body.String()), nil
}

// removeGenerated returns the text of a page that people wrote.
func removeGenerated(page string) string {
	for {
		before, rest, found := strings.Cut(page, beginMark)
		if !found {
			return page
		}
		_, after, _ := strings.Cut(rest, endMark)
		page = before + after
	}
}

// splitParts returns the texts below the headings of the second level, by heading.
func splitParts(page string) map[string]string {
	out := map[string]string{}
	for _, part := range strings.Split("\n"+page, "\n## ")[1:] {
		heading, text, _ := strings.Cut(part, "\n")
		out[heading] = strings.TrimSpace(text)
	}
	return out
}

// describeAlert returns the text that is generated from the rules of the alert.
func (a Alert) describeAlert() (string, error) {
	var b strings.Builder
	for i, annotation := range []string{"summary", "description"} {
		texts, err := a.listTexts(annotation)
		if err != nil {
			return "", err
		}
		for _, text := range texts {
			if i == 0 {
				text = "**" + text + ".**"
			}
			fmt.Fprintf(&b, "%s\n\n", wrap(text))
		}
	}
	fmt.Fprintf(&b, "| | |\n|---|---|\n")
	for _, row := range [][2]string{
		{"severity", a.listSeverities()}, {"about", a.describeScope() + " (scope `" + a.scope() + "`)"}, {"fires",
			a.describeFiring()},
		{"ends", a.describeEnd()}, {"labels", a.formatLabels()}, {"switch it off", a.describeSwitch()},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	b.WriteString(a.formatTiers())
	return b.String(), nil
}

// listTexts returns the texts that an annotation of any of the rules can have.
func (a Alert) listTexts(name string) ([]string, error) {
	var out []string
	for _, r := range a.Rules {
		texts, err := expandTemplate(r.Annotations[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
		for _, text := range texts {
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out, nil
}

// width is the maximum length of a line.
const width = 140

// wrap breaks a text into lines, but not between a number and its %.
func wrap(text string) string {
	const joint = "\x00"
	var out strings.Builder
	line := 0
	for i, word := range strings.Fields(strings.ReplaceAll(text, " %", joint+"%")) {
		switch {
		case i == 0: // no separator precedes the first word
		case line+1+len(word) > width:
			out.WriteString("\n")
			line = 0
		default:
			out.WriteString(" ")
			line++
		}
		out.WriteString(word)
		line += len(word)
	}
	return strings.ReplaceAll(out.String(), joint, " ")
}

// formatLabels lists the labels. Some labels are not on every alert with the name.
func (a Alert) formatLabels() string {
	all := a.Rules[0].Labels
	for _, r := range a.Rules[1:] {
		all = mergeAlternatives(all, r.Labels)
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text := "`" + name + "`"
		if !all[name] {
			text += " (not always)"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// formatTiers returns a table of the windows of alerts about burn rates. It is empty for other alerts.
func (a Alert) formatTiers() string {
	if a.Name != slo.AlertOperator && a.Name != slo.AlertRelease {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nThe budget of 30 days burns this many times too fast, over both windows:\n\n" +
		"| severity | windows | times too fast | for |\n|---|---|---|---|\n")
	addRow := func(t slo.Tier, operators string) {
		fmt.Fprintf(&b, "| %s | %s and %s | %.3g | %s |\n", t.Severity, spellDuration(t.Long.String()),
			spellDuration(t.Short.String()),
			t.Factor(slo.DefaultPeriod), operators)
	}
	for _, t := range slo.Tiers() {
		addRow(t, "all operators")
	}
	if a.Name == slo.AlertOperator {
		addRow(slo.CriticalTier(), "operators with `criticality: Critical`")
	}
	return b.String()
}

// explainWords explains the words in capital letters in the commands of a text.
func (a Alert) explainWords(text string) string {
	var out []string
	for _, word := range [][2]string{
		{"OPERATOR", a.describeOperator()},
		{"OPERATOR_NAMESPACE", a.describeLabel(series.OperatorNamespace, "the namespace of the operator on the hub")},
		{"CLUSTER", a.describeCluster()},
		{"FILE", "a kubeconfig of the cluster"},
		{"NAMESPACE", "the namespace that the operator runs in on the cluster, as `bellwether why` prints it"},
		{"DEPLOYMENT", "a Deployment of the operator"},
		{"SLI", "the label `sli`"},
		{"VERSION", "the label `version`"},
		{"WAVE", a.describeLabel(series.Wave, "a wave that `bellwether rollout get` shows")},
		{"GATE", a.describeLabel(series.Gate, "a gate that `bellwether rollout get` shows")},
		{"ROLLOUT", "a rollout, as `NAMESPACE/NAME`"},
		{"PROMETHEUS", "the URL of your Prometheus"},
	} {
		if regexp.MustCompile("`[^`]*\\b" + word[0] + "\\b").MatchString(text) {
			out = append(out, "- `"+word[0]+"` is "+word[1]+".\n")
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "\nIn the commands on this page:\n\n" + strings.Join(out, "")
}

// describeLabel describes a word as a label of the alert, or as other if the alert does not have the label.
func (a Alert) describeLabel(label, other string) string {
	if _, found := a.Rules[0].Labels[label]; found {
		return "the label `" + label + "`"
	}
	return other
}

// describeOperator describes the operator in the commands.
func (a Alert) describeOperator() string {
	if a.Name == slo.AlertCluster {
		return "one of the annotation `operators`"
	}
	return "the labels `operator_namespace/operator`"
}

// describeCluster describes the cluster in the commands.
func (a Alert) describeCluster() string {
	if a.Name == slo.AlertRelease {
		return "one of the annotation `clusters`"
	}
	return a.describeLabel(series.Cluster, "a cluster that `bellwether rollout get` shows")
}
