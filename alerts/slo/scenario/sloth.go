// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	_ "embed"
	"regexp"
	"strconv"
	"strings"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// slothRules are the rules that sloth generates from sloth/spec.yaml.
//
//go:embed sloth/rules.yaml
var slothRules string

// slothBudget is the error budget of the target in that file, 99.9 %, in the notation of sloth.
const slothBudget = "0.0009999999999999432"

// SlothVersion is the version of sloth that generated the rules.
const SlothVersion = "v0.16.0"

// SlothOrder returns the order of the groups in the rule file of sloth.
func SlothOrder() []string {
	var out []string
	for _, found := range regexp.MustCompile(`(?m)^- name: (.+)$`).FindAllStringSubmatch(slothRules, -1) {
		out = append(out, found[1])
	}
	return out
}

// SlothRules returns the rules that sloth generates for the objectives of the scenarios, with the error budget of the
// given target.
func SlothRules(target slo.PPM) []byte {
	budget := strconv.FormatFloat(target.Budget().Ratio(), 'f', -1, 64)
	return []byte(strings.ReplaceAll(slothRules, slothBudget, budget))
}
