// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root

import (
	"strings"
	"testing"
	"text/template"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// TestAlertsNameRealCommands parses each command in the texts of alerts with the existing commands and flags: once with
// a rollout in the results of the template's queries, and once without.
func TestAlertsNameRealCommands(t *testing.T) {
	rules, err := slo.Build(slo.Set{Default: slo.DefaultProfile()})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, group := range rules.All() {
		for _, rule := range group.Rules {
			for _, name := range []string{"look", "rollback"} {
				for _, results := range [][]string{nil, {"echo-2"}} {
					command := render(t, rule.Annotations[name], results)
					if command == "" {
						continue
					}
					found[command] = true
					// Only a shell treats quoted text as one word.
					arguments, ours := strings.CutPrefix(quoted.ReplaceAllString(command, "reason"), "bellwether ")
					if err := parse(t, strings.Fields(arguments)); err != nil || !ours {
						t.Errorf("%s: %s: %v", rule.Alert, command, err)
					}
				}
			}
		}
	}
	for _, want := range []string{"bellwether operator get label-operator -n label-operator_namespace",
		"bellwether rollout get echo-2 -n label-operator_namespace",
		"bellwether rollout rollback echo-2 -n label-operator_namespace " +
			`--reason "label-version burns its label-sli budget"`,
		"bellwether why label-cluster label-operator -n label-operator_namespace",
		"bellwether fleet get label-cluster"} {
		if !found[want] {
			t.Errorf("no alert says %q: %v", want, found)
		}
	}
}

// render expands a template of an annotation as Prometheus does. All queries have the same results.
func render(t *testing.T, text string, results []string) string {
	t.Helper()
	labels := map[string]string{}
	for _, name := range []string{"cluster", "operator_namespace", "operator", "version", "sli"} {
		labels[name] = "label-" + name
	}
	parsed, err := template.New("").Funcs(template.FuncMap{
		"query": func(string) []string { return results },
		"label": func(_, result string) string { return result },
	}).Option("missingkey=error").Parse("{{ $labels := . }}" + text)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := parsed.Execute(&out, labels); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
