// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// Types of promtool's test files.
type (
	testFile struct {
		RuleFiles          []string   `json:"rule_files"`
		EvaluationInterval string     `json:"evaluation_interval"`
		Order              []string   `json:"group_eval_order,omitempty"`
		Tests              []testCase `json:"tests"`
	}
	testCase struct {
		Name   string     `json:"name"`
		Series []input    `json:"input_series"`
		Exprs  []testExpr `json:"promql_expr_test"`
	}
	input struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	testExpr struct {
		Expr    string     `json:"expr"`
		At      string     `json:"eval_time"`
		Samples []struct{} `json:"exp_samples"`
	}
)

// Rules is a rule set in a file.
type Rules struct {
	// Name is the name of the rule set for readers.
	Name string
	// File is the path of the file, Text its content, and Order the names
	// of its groups in the order of their evaluation. Empty: any order.
	File  string
	Text  []byte
	Order []string
	// Page is a label matcher of PromQL that selects alerts that page, as in severity="page".
	Page string
	// Apart means that the rules do not compare operators or clusters with each other.
	// Each operator on each cluster is then simulated separately, and only one of the
	// operators without events is simulated: promtool gives a query at most 10,000 samples.
	Apart bool
}

// Test returns a test for promtool that simulates a scenario. The test expects
// no pages, so promtool's output lists all pages, and Pages reads them.
func (s Scenario) Test(rules Rules) ([]byte, error) {
	fleets := []fleet{s.fleet}
	if rules.Apart {
		fleets = s.fleet.splitFleet()
	}
	var cases []testCase
	for _, f := range fleets {
		c := testCase{Name: s.Name, Series: f.listSeries(s.Minutes)}
		for m := range s.Minutes {
			c.Exprs = append(c.Exprs, testExpr{Expr: buildFiringQuery(rules.Page), At: fmt.Sprintf("%dm", m)})
		}
		cases = append(cases, c)
	}
	text, err := yaml.Marshal(testFile{RuleFiles: []string{rules.File}, EvaluationInterval: "1m", Order: rules.Order,
		Tests: cases})
	if err != nil {
		return nil, fmt.Errorf("write test: %w", err)
	}
	return text, nil
}

// buildFiringQuery returns a query for the firing alerts that page.
func buildFiringQuery(page string) string { return `ALERTS{alertstate="firing",` + page + `}` }

// Page is an alert that was sent to a person.
type Page struct {
	Labels map[string]string
	// When is the time in which it fired.
	When Span
}

// ErrOutput is wrapped by errors about unknown output of promtool.
var ErrOutput = errors.New("unexpected output of promtool")

var (
	// reportedExpr matches promtool's report about the result of an expression.
	reportedExpr = regexp.MustCompile(`(?m)^ *expr: "(?:\\.|[^"\\])*", time: ([0-9hms]+),\n +exp: nil\n +got: (.*)$`)
	sample       = regexp.MustCompile(`((?:ALERTS)?\{(?:"(?:\\.|[^"\\])*"|[^"}])*\}) 1E\+00(?:, |$)`)
	failed       = regexp.MustCompile(`(?m)^ *expr: `)
)

// Pages reads the pages of a scenario from the output of promtool, sorted by their start.
// An alert that fires in consecutive minutes with the same labels is one page.
func (s Scenario) Pages(output []byte) ([]Page, error) {
	minutes := reportedExpr.FindAllSubmatch(output, -1)
	if len(minutes) != len(failed.FindAll(output, -1)) {
		return nil, fmt.Errorf("%w: %.500s", ErrOutput, output)
	}
	open := map[string]*Page{}
	var all []*Page
	for _, found := range minutes {
		at, err := time.ParseDuration(string(found[1]))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOutput, err)
		}
		minute := int(at / time.Minute)
		for _, alert := range sample.FindAllSubmatch(found[2], -1) {
			text := string(alert[1])
			if page := open[text]; page != nil && page.When.To == minute {
				page.When.To++
				continue
			}
			labels, err := parseLabels(text)
			if err != nil {
				return nil, err
			}
			open[text] = &Page{labels, Span{minute, minute + 1}}
			all = append(all, open[text])
		}
	}
	out := make([]Page, len(all))
	for i, page := range all {
		out[i] = *page
	}
	slices.SortStableFunc(out, func(a, b Page) int { return a.When.From - b.When.From })
	return out, nil
}

// parseLabels parses the labels of an alert in the output of promtool.
func parseLabels(metric string) (map[string]string, error) {
	labels, err := parser.NewParser(parser.Options{}).ParseMetric(metric)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrOutput, metric, err)
	}
	out := labels.Map()
	delete(out, "__name__")
	return out, nil
}
