// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestGuideListsAll looks for each question, and for each column of each view, in the guide.
func TestGuideListsAll(t *testing.T) {
	content, err := os.ReadFile("../docs/guides/inventory.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(content)
	for _, q := range Questions() {
		var parameters, example []string
		for _, p := range q.Parameters {
			parameter := p.Name + "="
			if p.IsOptional {
				parameter = "[" + parameter + "]"
			}
			parameters, example = append(parameters, parameter), append(example, " "+p.Name+"="+p.Example)
		}
		arguments := "none"
		if len(parameters) > 0 {
			arguments = "`" + strings.Join(parameters, " ") + "`"
		}
		row := fmt.Sprintf("| `%s` | %s | %s | `bellwether query %s%s` |\n", q.Name, arguments, q.Doc, q.Name,
			strings.Join(example, ""))
		if !strings.Contains(guide, row) {
			t.Errorf("the guide lacks the row\n%s", row)
		}
	}
	for _, v := range Views() {
		if !strings.Contains(guide, "`"+v.Name+"`") {
			t.Errorf("the guide lacks the view %s", v.Name)
		}
		for _, c := range v.Columns {
			if c.Name == "valid_from" || c.Name == "valid_to" || c.Name == "observed_until" { // described once for all
				continue
			}
			row := fmt.Sprintf("| `%s` | %s | %s |\n", c.Name, strings.ToLower(string(c.Type)), c.Doc)
			if !strings.Contains(guide, row) {
				t.Errorf("the guide lacks the row of %s\n%s", v.Name, row)
			}
		}
	}
}
