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

// slothRules is what sloth makes of sloth/spec.yaml.
//
//go:embed sloth/rules.yaml
var slothRules string

// slothBudget is how sloth writes the error budget of the target in that file, 99.9 %.
const slothBudget = "0.0009999999999999432"

// SlothVersion is the version of sloth that made the rules.
const SlothVersion = "v0.16.0"

// SlothOrder is the order of the groups in the rule file of sloth.
func SlothOrder() []string {
	var out []string
	for _, found := range regexp.MustCompile(`(?m)^- name: (.+)$`).FindAllStringSubmatch(slothRules, -1) {
		out = append(out, found[1])
	}
	return out
}

// SlothRules returns a rule file of sloth for the objectives of scenarios, with a
// target.
func SlothRules(target slo.PPM) []byte {
	budget := strconv.FormatFloat(target.Budget().Ratio(), 'f', -1, 64)
	return []byte(strings.ReplaceAll(slothRules, slothBudget, budget))
}
