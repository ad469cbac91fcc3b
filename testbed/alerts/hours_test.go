// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/testbed/build"
)

// spentOfC is what the budget of SLI csv on cluster c is short of, in slices of its period; and slicesOfC are the bad
// slices that there are.
var (
	spentOfC  = fmt.Sprintf(`round((1 - %s{cluster="c",sli="csv"}) * 43200 * 0.005)`, series.SLOBudgetLeft)
	slicesOfC = fmt.Sprintf(`sum without (hour, blamed) (sum_over_time(%s{cluster="c",sli="csv"}[30d]))`,
		series.SLIBadSlice)
)

// TestHourlySums has promtool, which evaluates all groups equally often, record sums at certain times only. Budgets are
// exact in between, and stay as they are while there are no sums that they could be made of.
func TestHourlySums(t *testing.T) {
	const minutes = 480
	// The sums of a part are recorded while this has a result.
	onceAnHour := func(string) string { return "vector(time() % 3600) == 2400" }
	is := func(at string, want float64) testExpr {
		return testExpr{Expr: spentOfC, At: at, Samples: []testSample{{
			`{cluster="c",operator_namespace="fleet",operator="echo",sli="csv"}`, want}}}
	}
	var exact []testExpr
	for m := 1; m <= minutes; m++ {
		exact = append(exact, testExpr{Expr: fmt.Sprintf("%s != %s", spentOfC, slicesOfC), At: fmt.Sprintf("%dm", m)})
	}
	for name, test := range map[string]struct {
		recorded func(part string) string
		want     []testExpr
	}{
		"each hour": {onceAnHour, append(exact, is("41m", 30), is("99m", 30), is("104m", 35), is("180m", 60),
			is("366m", 62), is("480m", 70))},
		"before the first sums": {func(string) string { return "vector(0) > 1" },
			append(exact[:178:178], is("150m", 60))},
		// 3 hours after the last sums, nothing is known but what was recorded before; new sums are complete again.
		"no sums for some hours": {func(part string) string {
			return onceAnHour(part) + " and (vector(time()) < 6300 or vector(time()) > 24000)"
		}, []testExpr{is("180m", 60), is("270m", 60), is("390m", 60), is("480m", 70)}},
		"the sums of one part fail": {func(part string) string {
			if part == "2" {
				return onceAnHour(part) + " and vector(time()) < 6300"
			}
			return onceAnHour(part)
		}, []testExpr{is("99m", 30), is("150m", 60), is("180m", 60), is("480m", 60)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fleet{minutes: minutes, installs: []install{{cluster: "c", operator: "echo", onlyCSV: true,
				bad: map[string][]span{"csv": {{10, 40}, {100, 130}, {365, 375}}}}}}
			playAt(t, test.recorded, testCase{Name: name, Series: f.series(), Exprs: test.want})
		})
	}
}

// playAt has promtool play a case through rules whose sums are recorded under a condition.
func playAt(t *testing.T, recorded func(part string) string, test testCase) {
	t.Helper()
	rules, err := slo.Build(slo.Set{Default: []slo.Objective{{SLI: "csv", Target: 995_000}}})
	if err != nil {
		t.Fatal(err)
	}
	groups := rules.All()
	sums := 0
	for _, g := range groups {
		for i, r := range g.Rules {
			if part := r.Labels[series.Part]; part != "" {
				g.Rules[i].Expr = intstr.FromString(fmt.Sprintf("(%s) and on () (%s)", r.Expr.String(),
					recorded(part)))
				sums++
			}
		}
	}
	if sums == 0 {
		t.Fatal("there are no sums")
	}
	text, err := slo.File(groups)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := yaml.Marshal(testFile{RuleFiles: []string{"rules.yaml"}, Interval: "1m", Fuzzy: true,
		Order: rules.Order(), Tests: []testCase{test}})
	if err != nil {
		t.Fatal(err)
	}
	dir := write(t, map[string][]byte{"rules.yaml": text, "tests.yaml": tests})
	if err := promtool(t.Context(), binary(t, build.Promtool), "test", "rules", filepath.Join(dir,
		"tests.yaml")); err != nil {
		t.Error(err)
	}
}
