// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// BuildRules returns the rule sets to compare, for the objectives of the scenarios with
// a target: Bellwether's first, then sloth's. The files are relative to any folder.
func BuildRules(target slo.PPM) ([]Rules, error) {
	rules, err := slo.Build(Set(target))
	if err != nil {
		return nil, err
	}
	text, err := slo.RuleFile(rules.All())
	if err != nil {
		return nil, err
	}
	page := fmt.Sprintf("%s=%q", series.Severity, series.Page)
	return []Rules{
		{Name: "Bellwether", File: "bellwether.yaml", Text: text, Order: rules.Order(), Page: page},
		{Name: "sloth " + SlothVersion, File: "sloth.yaml", Text: SlothRules(target), Order: SlothOrder(), Page: page,
			Apart: true},
	}, nil
}

// Result is the result of a rule set in several scenarios.
type Result struct {
	// Rules is the name of the rule set.
	Rules  string  `json:"rules"`
	Scores []Score `json:"scores"`
	// All is the sum of the scores, and Recall and Precision are those of all scenarios together.
	All       Score   `json:"all"`
	Recall    float64 `json:"recall"`
	Precision float64 `json:"precision"`
}

// NewResult returns the result of a rule set with these scores.
func NewResult(rules string, scores []Score) Result {
	all := Sum(scores)
	return Result{Rules: rules, Scores: scores, All: all, Recall: all.Recall(), Precision: all.Precision()}
}
