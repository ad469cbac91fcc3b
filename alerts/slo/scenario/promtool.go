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

// What promtool reads.
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
	// Name is what people call it.
	Name string
	// File is its path, and Order the names of its groups in the order in which they
	// are evaluated. Empty: any order.
	File  string
	Order []string
	// Page is a label matcher of PromQL that selects alerts that page, as in
	// severity="page".
	Page string
	// Apart says that the rules do not compare operators or clusters with each other.
	// Each operator on each cluster is then played alone, and of those to which nothing
	// happens only one: promtool gives a query no more than 10,000 samples.
	Apart bool
}

// Test writes a test for promtool that plays a scenario. The test expects that
// nothing pages: what pages is in promtool's output, which Pages reads.
func (s Scenario) Test(rules Rules) ([]byte, error) {
	fleets := []fleet{s.fleet}
	if rules.Apart {
		fleets = s.fleet.apart()
	}
	var cases []testCase
	for _, f := range fleets {
		c := testCase{Name: s.Name, Series: f.series(s.Minutes)}
		for m := range s.Minutes {
			c.Exprs = append(c.Exprs, testExpr{Expr: firing(rules.Page), At: fmt.Sprintf("%dm", m)})
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

func firing(page string) string { return `ALERTS{alertstate="firing",` + page + `}` }

// Page is an alert that was sent to a person.
type Page struct {
	Labels map[string]string
	// When it fired.
	When Span
}

// ErrOutput says that the output of promtool was not understood.
var ErrOutput = errors.New("unexpected output of promtool")

var (
	// unexpected is how promtool reports the result of an expression.
	unexpected = regexp.MustCompile(`(?m)^ *expr: "(?:\\.|[^"\\])*", time: ([0-9hms]+),\n +exp: nil\n +got: (.*)$`)
	sample     = regexp.MustCompile(`((?:ALERTS)?\{(?:"(?:\\.|[^"\\])*"|[^"}])*\}) 1E\+00(?:, |$)`)
	failed     = regexp.MustCompile(`(?m)^ *expr: `)
)

// Pages reads the pages of a scenario from the output of promtool, in the order in
// which they began.
func (s Scenario) Pages(output []byte) ([]Page, error) {
	minutes := unexpected.FindAllSubmatch(output, -1)
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
			labels, err := labelsOf(text)
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

func labelsOf(metric string) (map[string]string, error) {
	labels, err := parser.NewParser(parser.Options{}).ParseMetric(metric)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrOutput, metric, err)
	}
	out := labels.Map()
	delete(out, "__name__")
	return out, nil
}
