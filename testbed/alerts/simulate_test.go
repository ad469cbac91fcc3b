// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	simulation "github.com/bellwether-dev/bellwether/alerts/slo/scenario"
	"github.com/bellwether-dev/bellwether/testbed/build"
)

// TestSimulatedScenarios plays scenarios of `bellwether slo simulate` with Bellwether's rules and with sloth's, and
// reads what promtool reports.
func TestSimulatedScenarios(t *testing.T) {
	const target = 999_000
	rules, err := slo.Build(simulation.Set(target))
	if err != nil {
		t.Fatal(err)
	}
	text, err := slo.RuleFile(rules.All())
	if err != nil {
		t.Fatal(err)
	}
	ours := simulation.Rules{File: "bellwether.yaml", Order: rules.Order(), Page: `severity="page"`}
	sloth := simulation.Rules{File: "sloth.yaml", Order: simulation.SlothOrder(), Page: `severity="page"`, Apart: true}
	files := map[string][]byte{ours.File: text, sloth.File: simulation.SlothRules(target)}

	for name, want := range map[string]struct{ ours, sloth simulation.Score }{
		"outage of 5 minutes on one cluster": {
			simulation.Score{Failures: 1, Found: 1, Pages: 1, Detection: []int{1}, Reset: []int{30}},
			simulation.Score{Failures: 1, Found: 1, Pages: 1, Detection: []int{0}, Reset: []int{29}}},
		"a cluster goes dark during an outage": {
			simulation.Score{Failures: 2, Found: 2, Pages: 2, Detection: []int{1, 9}},
			simulation.Score{Failures: 2, Found: 1, Pages: 1, Lost: 1, Detection: []int{0}}},
	} {
		for of, test := range map[string]struct {
			rules simulation.Rules
			want  simulation.Score
		}{"Bellwether": {ours, want.ours}, "sloth": {sloth, want.sloth}} {
			t.Run(name+" of "+of, func(t *testing.T) {
				t.Parallel()
				test.want.Scenario = name
				if diff := cmp.Diff(test.want, simulated(t, name, test.rules, files)); diff != "" {
					t.Errorf("score (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// simulated plays a scenario.
func simulated(t *testing.T, name string, rules simulation.Rules, files map[string][]byte) simulation.Score {
	t.Helper()
	all := simulation.All()
	i := slices.IndexFunc(all, func(s simulation.Scenario) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no scenario %q", name)
	}
	test, err := all[i].Test(rules)
	if err != nil {
		t.Fatal(err)
	}
	dir := write(t, map[string][]byte{rules.File: files[rules.File], "test.yaml": test})
	// It fails wherever something pages.
	output, _ := promtoolCommand(t.Context(), binary(t, build.Promtool), "test", "rules",
		filepath.Join(dir, "test.yaml")).CombinedOutput()
	pages, err := all[i].Pages(output)
	if err != nil {
		t.Fatal(err)
	}
	return all[i].Score(pages)
}
