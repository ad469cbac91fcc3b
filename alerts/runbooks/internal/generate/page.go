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

// guide is the link from a page to the guide of SLOs, in the folder beside its own.
const guide = "../" + "guides/slos.md"

// Marks around what is generated. The text between them is replaced, all other text
// of a page is kept.
const (
	begin = "<!-- generated: make generate replaces this part -->"
	end   = "<!-- end of the generated part -->"
)

// Sections are the headings of the parts of a page that people write, in their order.
var Sections = []string{"What it means for users", "First look", "Likely causes", "What to do", "When it ends",
	"If it is wrong"}

// Missing is what a section says that nobody has written yet.
const Missing = "(Nobody has written this section yet.)"

// Page is the page of an alert: the generated parts, and what people wrote into the
// existing one, which may be empty. It takes the sections about SLIs from the page about them.
func Page(a Alert, existing, slis string) (string, error) {
	about, err := a.about()
	if err != nil {
		return "", err
	}
	var body strings.Builder
	written := parts(withoutGenerated(existing))
	for _, heading := range Sections {
		fmt.Fprintf(&body, "\n## %s\n\n%s\n", heading, cmp.Or(written[heading], Missing))
	}
	if slo.IsAboutSLI(a.Name) {
		fmt.Fprintf(&body, "\n%s\n%s%s\n", begin, a.aboutSLIs(slis), end)
	}
	return fmt.Sprintf("# %s\n\n%s\n%s%s%s\n%s", a.Name, begin, about, a.words(body.String()), end, body.String()), nil
}

// withoutGenerated leaves the text that people wrote.
func withoutGenerated(page string) string {
	for {
		before, rest, found := strings.Cut(page, begin)
		if !found {
			return page
		}
		_, after, _ := strings.Cut(rest, end)
		page = before + after
	}
}

// parts are the texts below the headings of the second level, by heading.
func parts(page string) map[string]string {
	out := map[string]string{}
	for _, part := range strings.Split("\n"+page, "\n## ")[1:] {
		heading, text, _ := strings.Cut(part, "\n")
		out[heading] = strings.TrimSpace(text)
	}
	return out
}

// about says what follows from the rules of the alert.
func (a Alert) about() (string, error) {
	var b strings.Builder
	for i, annotation := range []string{"summary", "description"} {
		texts, err := a.annotation(annotation)
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
		{"severity", a.severities()}, {"about", a.of() + " (scope `" + a.scope() + "`)"}, {"fires", a.fires()},
		{"ends", a.ends()}, {"labels", a.labels()}, {"switch it off", a.switchedOff()},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	b.WriteString(a.tiers())
	return b.String(), nil
}

// annotation are the texts that an annotation of any of the rules can become.
func (a Alert) annotation(name string) ([]string, error) {
	var out []string
	for _, r := range a.Rules {
		texts, err := readable(r.Annotations[name])
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

// width is where lines of text end.
const width = 140

// wrap breaks a text into lines, but not between a number and its %.
func wrap(text string) string {
	const joint = "\x00"
	var out strings.Builder
	line := 0
	for i, word := range strings.Fields(strings.ReplaceAll(text, " %", joint+"%")) {
		switch {
		case i == 0:
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

// labels lists the labels. Some are not on every alert of the name.
func (a Alert) labels() string {
	all := a.Rules[0].Labels
	for _, r := range a.Rules[1:] {
		all = either(all, r.Labels)
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

// tiers are the windows by which alerts about burn rates fire.
func (a Alert) tiers() string {
	if a.Name != slo.AlertOperator && a.Name != slo.AlertRelease {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nThe budget of 30 days burns this many times too fast, over both windows:\n\n" +
		"| severity | windows | times too fast | for |\n|---|---|---|---|\n")
	row := func(t slo.Tier, of string) {
		fmt.Fprintf(&b, "| %s | %s and %s | %.3g | %s |\n", t.Severity, spell(t.Long.String()), spell(t.Short.String()),
			t.Factor(slo.DefaultPeriod), of)
	}
	for _, t := range slo.Tiers() {
		row(t, "all operators")
	}
	if a.Name == slo.AlertOperator {
		row(slo.CriticalTier(), "operators with `criticality: Critical`")
	}
	return b.String()
}

// words says what the words in capital letters of a text stand for.
func (a Alert) words(text string) string {
	var out []string
	for _, word := range [][2]string{
		{"OPERATOR", a.operatorWord()},
		{"OPERATOR_NAMESPACE", a.labelOr(series.OperatorNamespace, "the namespace of the operator on the hub")},
		{"CLUSTER", a.clusterWord()},
		{"FILE", "a kubeconfig of the cluster"},
		{"NAMESPACE", "the namespace that the operator runs in on the cluster, as `bellwether why` prints it"},
		{"DEPLOYMENT", "a Deployment of the operator"},
		{"SLI", "the label `sli`"},
		{"VERSION", "the label `version`"},
		{"WAVE", a.labelOr(series.Wave, "a wave that `bellwether rollout get` shows")},
		{"GATE", a.labelOr(series.Gate, "a gate that `bellwether rollout get` shows")},
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

// labelOr says that a word is a label of the alert, or something else if it is none.
func (a Alert) labelOr(label, other string) string {
	if _, found := a.Rules[0].Labels[label]; found {
		return "the label `" + label + "`"
	}
	return other
}

// operatorWord says which operator is meant.
func (a Alert) operatorWord() string {
	if a.Name == slo.AlertCluster {
		return "one of the annotation `operators`"
	}
	return "the labels `operator_namespace/operator`"
}

// clusterWord says which cluster is meant.
func (a Alert) clusterWord() string {
	if a.Name == slo.AlertRelease {
		return "one of the annotation `clusters`"
	}
	return a.labelOr(series.Cluster, "a cluster that `bellwether rollout get` shows")
}
