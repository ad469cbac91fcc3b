// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// TestCriticalityChangesNoBudget compares the rules of a set with and without critical operators:
// slices of 60 s, budgets, tickets, and alerts about releases and clusters must be equal.
func TestCriticalityChangesNoBudget(t *testing.T) {
	recorded := func(s Set) map[string]string {
		out := map[string]string{}
		for _, g := range build(t, s).All() {
			if *g.Interval == "15s" {
				continue
			}
			for _, r := range g.Rules {
				if r.Record != "" && r.Labels[series.Tier] != CriticalTier().Name {
					out[fmt.Sprint(r.Record, r.Labels)] = r.Expr.String()
				}
			}
		}
		return out
	}
	standard, critical := recorded(sets()["mixed"]), recorded(sets()["critical"])
	for name, expr := range standard {
		// These rules differ: the criticality is recorded, and no ticket
		// about a release or a budget follows a page of the critical tier.
		if strings.HasPrefix(name, series.SLOTeam) {
			continue
		}
		got := strings.ReplaceAll(critical[name], `tier=~"15m|`, `tier=~"`)
		if diff := cmp.Diff(expr, got); diff != "" {
			t.Errorf("%s (-standard +critical):\n%s", name, diff)
		}
	}
}

// TestPagesAreOfOneRule reports a second rule that makes pages
// about operators: it would resolve the alerts of the first rule.
func TestPagesAreOfOneRule(t *testing.T) {
	s := Set{Default: DefaultProfile()}
	pages := func() []string {
		var out []string
		for _, g := range build(t, s).Groups {
			for _, r := range g.Rules {
				if r.Alert == AlertOperator && r.Labels[series.Severity] == series.Page {
					out = append(out, g.Name)
				}
			}
		}
		return out
	}
	if got := pages(); !slices.Equal(got, []string{"bellwether-sli"}) {
		t.Errorf("without critical operators, pages are in %q", got)
	}
	s.Operators = []Operator{{Namespace: "n", Name: "a", Criticality: Critical}, {Namespace: "n", Name: "b"}}
	if got := pages(); !slices.Equal(got, []string{"bellwether-sli-critical"}) {
		t.Errorf("with a critical operator, pages are in %q", got)
	}
}

// TestCriticalRulesDoNotGrow compares the number of rules for one and for many critical operators.
func TestCriticalRulesDoNotGrow(t *testing.T) {
	s := Set{Default: DefaultProfile()}
	count := func() int {
		recording, alerting := build(t, s).Count()
		return recording + alerting
	}
	none := count()
	s.Operators = append(s.Operators, Operator{Namespace: "n", Name: "a", Criticality: Critical})
	one := count()
	for i := range 100 {
		s.Operators = append(s.Operators, Operator{Namespace: fmt.Sprint("n", i), Name: "a", Criticality: Critical})
	}
	if many := count(); many != one || one > none+15 {
		t.Errorf("%d rules without a critical operator, %d with one, %d with many", none, one, many)
	}
	if !slices.Contains(build(t, s).Order(), "bellwether-sli-critical") {
		t.Error("there is no group of critical operators")
	}
}

// TestCriticalTierSaysTheNumbers spells the decision's numbers out once more.
func TestCriticalTierSaysTheNumbers(t *testing.T) {
	tier := CriticalTier()
	if tier.Factor(DefaultPeriod) != 28.8 || tier.countSlices(tier.Long) != 60 || tier.countSlices(tier.Short) != 5 {
		t.Errorf("the tier %+v: factor %g", tier, tier.Factor(DefaultPeriod))
	}
	for target, want := range map[PPM]time.Duration{999_000: 45 * time.Second, 995_000: 135 * time.Second} {
		if took, ok := tier.Detection(target, DefaultPeriod, 1); !ok || took != want {
			t.Errorf("a total outage at %s %% pages after %s (%v), want %s", target, took, ok, want)
		}
	}
	text, err := RuleFile(build(t, sets()["critical"]).All())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"clamp_max(28.8 * ", "sum15m / 60 > on", "sum75s / 5 > on", "[15m]", "[75s]",
		"[30m]", "bellwether:cluster_bad_now:operators >= 3", "interval: 15s", "8 / max by"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the rules do not say %q", want)
		}
	}
}
