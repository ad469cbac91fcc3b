// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// output is what promtool prints, with two alerts that take turns in being the last one of a line.
const output = `  FAILED:
    name: x,
    expr: "ALERTS{alertstate=\"firing\",severity=\"page\"}", time: 1h2m0s,
        exp: nil
        got: ALERTS{alertname="A", cluster="c1"} 1E+00
    name: x,
    expr: "ALERTS{alertstate=\"firing\",severity=\"page\"}", time: 1h3m0s,
        exp: nil
        got: ALERTS{alertname="A", cluster="c1"} 1E+00, {__name__="ALERTS", alertname="A\"}", cluster="c2"} 1E+00
    name: x,
    expr: "ALERTS{alertstate=\"firing\",severity=\"page\"}", time: 1h5m0s,
        exp: nil
        got: ALERTS{alertname="A", cluster="c1"} 1E+00
`

func TestPages(t *testing.T) {
	got, err := Scenario{}.Pages([]byte(output))
	if err != nil {
		t.Fatal(err)
	}
	want := []Page{
		{map[string]string{"alertname": "A", "cluster": "c1"}, Span{62, 64}},
		{map[string]string{"alertname": `A"}`, "cluster": "c2"}, Span{63, 64}},
		{map[string]string{"alertname": "A", "cluster": "c1"}, Span{65, 66}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if got, err := (Scenario{}).Pages([]byte("Unit Testing:  t.yaml\n  SUCCESS\n")); err != nil || len(got) > 0 {
		t.Errorf("no page: %v, %v", got, err)
	}
}

func TestPagesOfOtherOutput(t *testing.T) {
	for name, text := range map[string]string{
		"another expectation": strings.Replace(output, "exp: nil", "exp: {} 1E+00", 1),
		"an error":            `    expr: "ALERTS", time: 1h2m0s, err: too many samples`,
		"a time":              strings.Replace(output, "1h2m0s", "1hh", 1),
	} {
		if got, err := (Scenario{}).Pages([]byte(text)); !errors.Is(err, ErrOutput) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func page(from, to int, labels ...string) Page {
	p := Page{map[string]string{}, Span{from, to}}
	for i := 0; i < len(labels); i += 2 {
		p.Labels[labels[i]] = labels[i+1]
	}
	return p
}

func TestScore(t *testing.T) {
	s := Scenario{Name: "s", Minutes: 300, Failures: []Failure{
		{"c0", csv, Span{60, 120}}, {"", "", Span{90, 300}}, {"c1", csv, Span{60, 200}}}}
	for name, test := range map[string]struct {
		pages []Page
		want  Score
	}{
		"none": {nil, Score{}},
		"each once": {[]Page{page(62, 130, "cluster", "c0", "sli", csv), page(63, 200, "cluster", "c1"), page(95, 300)},
			Score{Found: 3, Pages: 3, Detection: []int{2, 5, 3}, Reset: []int{10, 0}}},
		"of another rule set": {[]Page{page(62, 130, "cluster", "c0", "sloth_slo", csv)},
			Score{Found: 1, Pages: 1, Detection: []int{2}, Reset: []int{10}}},
		"again after it resolved": {
			[]Page{page(62, 70, "cluster", "c0", "sli", csv), page(80, 125, "cluster", "c0", "sli", csv)},
			Score{Found: 1, Pages: 2, Lost: 1, Detection: []int{2}, Reset: []int{5}}},
		"another SLI":     {[]Page{page(62, 70, "cluster", "c0", "sli", catalog)}, Score{Pages: 1}},
		"another cluster": {[]Page{page(62, 70, "cluster", "c2", "sli", csv)}, Score{Pages: 1}},
		"before it":       {[]Page{page(30, 70, "cluster", "c0", "sli", csv)}, Score{Pages: 1}},
		"at its end": {[]Page{page(124, 130, "cluster", "c0", "sli", catalog),
			page(204, 210, "cluster", "c1", "sli", csv)},
			Score{Found: 2, Pages: 2, Lost: 1, Detection: []int{34, 144}, Reset: []int{10}}},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.Scenario, test.want.Failures = "s", 3
			if diff := cmp.Diff(test.want, s.Score(test.pages)); diff != "" {
				t.Errorf("score (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSum(t *testing.T) {
	got := Sum([]Score{{Failures: 2, Found: 1, Pages: 4, Lost: 1, Detection: []int{3}, Reset: []int{1}},
		{Failures: 2, Found: 2, Pages: 2, Detection: []int{1, 9}}})
	want := Score{Scenario: "all", Failures: 4, Found: 3, Pages: 6, Lost: 1, Detection: []int{3, 1, 9}, Reset: []int{1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m, ok := Median(got.Detection); !ok || m != 3 || got.Recall() != 0.75 || got.Precision() != 0.5 {
		t.Errorf("median %v, recall %v, precision %v", m, got.Recall(), got.Precision())
	}
	if m, ok := Median([]int{1, 4}); !ok || m != 2.5 {
		t.Errorf("median of two: %v", m)
	}
	if _, ok := Median(nil); ok || (Score{}).Recall() != 1 || (Score{}).Precision() != 1 {
		t.Error("nothing has a median, or a recall or precision below 1")
	}
}

// TestScenarios checks that each scenario is long enough for its failures, and that a test of it can be written.
func TestScenarios(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range All() {
		if seen[s.Name] {
			t.Errorf("two scenarios are called %q", s.Name)
		}
		seen[s.Name] = true
		for _, f := range s.Failures {
			if f.When.From < 60 || f.When.To <= f.When.From || f.When.To > s.Minutes {
				t.Errorf("%s: a failure from minute %d to %d of %d", s.Name, f.When.From, f.When.To, s.Minutes)
			}
		}
		for _, apart := range []bool{false, true} {
			text, err := s.Test(Rules{File: "r.yaml", Page: `severity="page"`, Apart: apart})
			var file testFile
			if err := errors.Join(err, yaml.UnmarshalStrict(text, &file)); err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
			for _, c := range file.Tests {
				if len(c.Exprs) != s.Minutes {
					t.Errorf("%s: %d minutes are looked at, of %d", s.Name, len(c.Exprs), s.Minutes)
				}
			}
		}
	}
}

func TestSlothRulesHaveTheTarget(t *testing.T) {
	if text := string(SlothRules(999_000)); !strings.Contains(text, "(14.4 * 0.001)") ||
		strings.Contains(text, slothBudget) {
		t.Errorf("rules for 99.9 %%:\n%.3000s", text)
	}
	if text := string(SlothRules(990_000)); strings.Count(text, "* 0.01)") != 24 {
		t.Errorf("rules for 99 %%: %d thresholds", strings.Count(text, "* 0.01)"))
	}
	if _, err := slo.Build(Set(999_000)); err != nil {
		t.Error(err)
	}
}
