// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/testbed/build"
)

// TestPromtool has promtool check the golden rules of package slo. Their generated stories are played, but for the long
// ones: TestStories and TestPartialOutages play those, and this test does so for one set. promtool takes several times
// as long as the other program, so it plays only the shortest story of each set, and of one set also
// the one about what an alert says.
func TestPromtool(t *testing.T) {
	tool, folder := binary(t, build.Promtool), golden(t)
	files, err := filepath.Glob(filepath.Join(folder, "*.rules.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules in %s (%v)", folder, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			if err := promtool(t.Context(), tool, "check", "rules", "--lint", "all", "--lint-fatal", file); err != nil {
				t.Error(err)
			}
			tests := strings.Replace(file, ".rules.", ".tests.", 1)
			short, names := "an objective", "what an alert says|an upgrade|time is excluded"
			if strings.HasPrefix(filepath.Base(file), "critical.") {
				short, names = short+"|what an alert says", "an upgrade|time is excluded|clusters of|a bad release"
			}
			if err := promtool(t.Context(), tool, "test", "rules", "--run", short, tests); err != nil {
				t.Error(err)
			}
			if err := playFile(t, tests, names); err != nil {
				t.Error(err)
			}
		})
	}
}

// sets have one objective each, which leaves little to evaluate. The strict one would have no tier wait for a second
// bad sample, but for the guard, and the fastest tier of the low one could never alert, but for the bound of
// thresholds.
var sets = map[string]slo.Set{
	"csv":    {Default: []slo.Objective{{SLI: "csv", Target: 995_000}}},
	"strict": {Default: []slo.Objective{{SLI: "csv", Target: 999_900}}},
	"low":    {Default: []slo.Objective{{SLI: "csv", Target: 500_000}}},
}

// stories writes the rules of a set with some text replaced, and the generated tests of them, and returns the path of
// both.
func stories(t *testing.T, set slo.Set, from, to string) (rules, tests string) {
	t.Helper()
	built, err := slo.Build(set)
	if err != nil {
		t.Fatal(err)
	}
	text, err := slo.RuleFile(built.All())
	if err != nil {
		t.Fatal(err)
	}
	played, err := slo.Tests(set, "rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := write(t, map[string][]byte{"rules.yaml": replaced(t, text, from, to), "tests.yaml": played})
	return filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "tests.yaml")
}

func TestStories(t *testing.T) {
	for name, set := range sets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, tests := stories(t, set, "", "")
			if err := playFile(t, tests, "clusters of"); err != nil {
				t.Error(err)
			}
		})
	}
}

// until leaves the later moments of stories out, and so the time that it takes to get there.
func until(t *testing.T, path string, minutes int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	later := func(moment any) bool {
		at, err := strconv.Atoi(strings.TrimSuffix(moment.(map[string]any)["eval_time"].(string), "m"))
		return err != nil || at > minutes
	}
	for _, test := range file["tests"].([]any) {
		story := test.(map[string]any)
		if moments, ok := story["promql_expr_test"].([]any); ok {
			story["promql_expr_test"] = slices.DeleteFunc(moments, later)
		}
	}
	if text, err = yaml.Marshal(file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// mutant is a mistake in the rules of a set, and the story that has to fail by it.
type mutant struct{ set, from, to, story string }

// soon is how many minutes of a story are enough for most mutants, and late for those about absence.
const soon, late = 240, 450

// mutants are one of each kind of thing that a rule is made of: factors, windows, comparisons, joins, and what keeps
// alerts apart.
var mutants = map[string]mutant{
	"factor":               {"csv", "clamp_max(14.4 *", "clamp_max(28.8 *", "clusters of"},
	"bound of a threshold": {"low", "0.9)", "9)", "clusters of"},
	"long window":          {"csv", "slice[1h]", "slice[2h]", "what an alert says"},
	"short window":         {"csv", "slice[5m]", "slice[1h]", "clusters of"},
	"slices of a window":   {"csv", "cluster:sum1h / 60 ", "cluster:sum1h / 600 ", "clusters of"},
	"comparison":           {"csv", "cluster:sum1h / 60 > on", "cluster:sum1h / 60 < on", "what an alert says"},
	"short window's weight": {"csv", "and bellwether:sli_bad_cluster:sum5m",
		"or bellwether:sli_bad_cluster:sum5m", "clusters of"},
	"guard": {"strict", "slo_objective:ratio + 2.5", "slo_objective:ratio + 0.5", "clusters of"},
	"two scrapes": {"strict", "idelta(bellwether_operator_csv_succeeded[3m])",
		"idelta(bellwether_operator_csv_succeeded[1m])", "clusters of"},
	"the scrape before": {"strict", "bellwether_operator_csv_succeeded[3m])) == bool 0",
		"bellwether_operator_csv_succeeded[3m])) <= bool 1", "clusters of"},
	"budget": {"csv", `sum_over_time(bellwether:sli_bad:slice{sli="csv"}[30d])`,
		`sum_over_time(bellwether:sli_bad:slice{sli="csv"}[1h])`, "what an alert says"},
	"clusters covered": {"csv", "unless on (cluster, operator_namespace, operator, sli) (bellwether:sli_bad_version:slice",
		"unless on (cluster, operator_namespace, operator, sli) (bellwether:sli_no_version:slice", "a bad release"},
	"clusters of a release": {"csv", "clusters, 2)", "clusters, 1)", "clusters of"},
	"upgrade": {"csv", "topk by (cluster, operator_namespace, operator) (1, ",
		"topk by (cluster, operator_namespace, operator) (2, ", "an upgrade"},
	"identity of slices": {"csv", "max by (cluster, operator_namespace, operator) (bellwether_operator_csv_succeeded",
		"max by (cluster, operator) (bellwether_operator_csv_succeeded", "two operators"},
	"identity of teams": {"csv", "* on (operator_namespace, operator) group_left (team)",
		"* on (operator) group_left (team)", "two operators"},
	"note of an edit": {"csv", "changes(bellwether:slo_objective:ratio[1d])",
		"changes(bellwether:slo_objective:ratio[1m])", "an objective"},
	"NaN is bad": {"csv", "bellwether_operator_csv_succeeded != bool 1",
		"bellwether_operator_csv_succeeded < bool 1", "clusters of"},
	"absence": {"csv", ">= 5)", ">= 0)", "clusters of"},
	"ticket beside a page": {"csv", `unless on (cluster, operator_namespace, operator, sli) ` +
		`max_over_time(bellwether:slo_burn:ratio{tier=~"1h|6h"}[6h])`,
		`unless on (cluster, operator_namespace, operator, sli) max_over_time(bellwether:slo_burn:ratio{tier=~"no"}[6h])`,
		"clusters of"},
	"a page that recurs": {"csv", "[6h:1m]) >= 2", "[6h:1m]) >= 1", "clusters of"},
	"a page is held":     {"csv", `slo_burn:ratio{tier=~"1h|6h"}[65m])`, `slo_burn:ratio{tier=~"1h|6h"}[5m])`, "clusters of"},
}

// TestMutants makes mistakes in the rules, one at a time, and expects the generated tests to notice each.
func TestMutants(t *testing.T) {
	tool := binary(t, build.Promtool)
	t.Run("no mistake", func(t *testing.T) {
		t.Parallel()
		_, tests := stories(t, sets["csv"], "", "")
		until(t, tests, soon)
		if err := playFile(t, tests, ""); err != nil {
			t.Error(err)
		}
	})
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules, tests := stories(t, sets[m.set], m.from, m.to)
			if err := promtool(t.Context(), tool, "check", "rules", rules); err != nil {
				t.Fatalf("the mutant is no rule: %v", err)
			}
			minutes := soon
			if name == "absence" {
				minutes = late
			}
			until(t, tests, minutes)
			if playFile(t, tests, m.story) == nil {
				t.Errorf("the tests pass with %q for %q", m.to, m.from)
			}
		})
	}
}
