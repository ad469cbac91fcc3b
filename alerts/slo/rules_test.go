// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

var update = flag.Bool("update", false, "write golden files")

// goldenSets are the sets with golden files, which testbed/alerts
// checks with the real promtool. The other sets differ only in numbers.
var goldenSets = []string{"default", "critical"}

func sets() map[string]Set {
	out := mostSets()
	critical := out["mixed"]
	critical.Operators = slices.Clone(critical.Operators)
	for _, i := range []int{1, 2} {
		critical.Operators[i].Criticality = Critical
	}
	critical.RunbookURL, critical.DashboardURL = out["default"].RunbookURL, out["default"].DashboardURL
	out["critical"] = critical
	return out
}

// mostSets have no critical operator.
func mostSets() map[string]Set {
	return map[string]Set{
		"default": {Default: DefaultProfile(), RunbookURL: DefaultRunbooks,
			DashboardURL: "https://grafana.example.com/d/bellwether-slo"},
		// So strict that no tier would wait for a second bad sample, but for the guard.
		"strict": {Default: []Objective{{SLI: "csv", Target: 999_900}}},
		"mixed": {
			Default: DefaultProfile(),
			Operators: []Operator{
				{Namespace: "fleet", Name: "echo", Team: "echo \"team\" {{ $x }}",
					Labels:      map[string]string{"area": "{{ $x }}", "shift": "day"},
					Annotations: map[string]string{"contact": `call {{ $labels.cluster }} "now"`}, Objectives: []Objective{
						{SLI: "csv", Target: 950_000}, {SLI: "reconcile", Target: 999_000, Period: 7 * day},
						{SLI: "probe:api", Target: 990_000}, {SLI: "requests", Target: 999_000},
						{SLI: "slow", Target: 990_000}, {SLI: "minutes", Target: 990_000},
						{SLI: "gauge", Target: 990_000},
					}, Own: []OwnSLI{
						RequestRatio("requests", "http_requests_total", []Matcher{{"job", "=", `echo"\x`}},
							[]Matcher{{"code", "=~", "5.."}}),
						LatencyThreshold("slow", "http_request_duration_seconds", "0.5", nil),
						{Name: "minutes", Bad: "rate(bad_total[5m])", Total: "rate(all_total[5m])", Method: Timeslices,
							SliceTarget: 950_000, MinRequests: 20},
						BoolGauge("gauge", "echo_healthy", nil),
					}},
				{Namespace: "fleet", Name: `odd.na-me"\|`, Objectives: []Objective{{SLI: "available", Target: 995_000,
					Alerts: AlertsTickets},
					{SLI: "reconcile", Target: 990_000, Thresholds: Thresholds{BadShare: 250_000}},
					{SLI: "queue", Target: 990_000, Alerts: AlertsNone}},
					Annotations: map[string]string{"contact": "on {{ call }} \"odd\""},
					Without:     []string{"catalog", Probe}},
				{Namespace: "staging", Name: "echo", Objectives: []Objective{{SLI: "csv", Target: 950_000},
					{SLI: "latency", Target: 990_000, Thresholds: Thresholds{Duration: 500 * time.Millisecond}}},
					Labels:  map[string]string{"area": "staging"},
					Without: []string{"catalog"}},
			},
		},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run `go test ./alerts/slo -update`", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func build(t *testing.T, s Set) *Rules {
	t.Helper()
	r, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestGolden(t *testing.T) {
	for _, name := range goldenSets {
		text, err := RuleFile(build(t, sets()[name]).All())
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".rules.yaml", text)
	}
}

// TestObjectsAndFileAreTheSame compares the two outputs, group by group.
func TestObjectsAndFileAreTheSame(t *testing.T) {
	r := build(t, sets()["mixed"])
	text, err := RuleFile(r.All())
	if err != nil {
		t.Fatal(err)
	}
	var file monitoringv1.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	var groups []monitoringv1.RuleGroup
	for _, o := range r.PrometheusRules("monitoring", "bellwether", map[string]string{"prometheus": "main"}) {
		if o.Namespace != "monitoring" || o.Kind != "PrometheusRule" || o.Labels["prometheus"] != "main" {
			t.Errorf("object %s: %+v", o.Name, o.ObjectMeta)
		}
		groups = append(groups, o.Spec.Groups...)
	}
	if diff := cmp.Diff(file.Groups, groups); diff != "" {
		t.Errorf("objects differ from the file (-file +objects):\n%s", diff)
	}
}

// TestRulesDoNotGrow holds the idea of the rule set: neither operators nor
// clusters make it longer, only different targets do.
func TestRulesDoNotGrow(t *testing.T) {
	few := build(t, Set{Default: DefaultProfile(),
		Operators: []Operator{{Namespace: "n", Name: "a", Objectives: []Objective{{SLI: "csv", Target: 950_000}}}}})
	many := Set{Default: DefaultProfile()}
	for i := range 200 {
		many.Operators = append(many.Operators, Operator{Namespace: "n", Name: "operator-" + strings.Repeat("x", i),
			Objectives: []Objective{{SLI: "csv", Target: 950_000}}})
	}
	r1, a1 := few.Count()
	r2, a2 := build(t, many).Count()
	if r1 != r2 || a1 != a2 {
		t.Errorf("1 operator has %d + %d rules, 200 have %d + %d", r1, a1, r2, a2)
	}
	// 19 of the rules record remaining budgets: one rule for each SLI that operators
	// have, so that a rule keeps only its own slices of 30 days in memory.
	if r1 > 119 || a1 > 26 {
		t.Errorf("%d recording rules and %d alerts; a rule costs every fleet", r1, a1)
	}
}

// TestIntervals checks that every series is recorded at least every 5
// minutes, because an instant selector does not find older samples.
func TestIntervals(t *testing.T) {
	for _, g := range build(t, sets()["critical"]).All() {
		d, err := time.ParseDuration(string(*g.Interval))
		if err != nil || d < CriticalStep || d >= 5*time.Minute {
			t.Errorf("group %s is evaluated every %s (%v)", g.Name, *g.Interval, err)
		}
	}
}

// withOwn has one operator with one own SLI.
func withOwn(own OwnSLI) Set {
	return Set{Operators: []Operator{{Namespace: "n", Name: "a", Own: []OwnSLI{own},
		Objectives: []Objective{{SLI: own.Name, Target: 990_000}}}}}
}

// withTexts has one operator with labels and annotations of its alerts.
func withTexts(labels, annotations map[string]string) Set {
	return Set{Operators: []Operator{{Namespace: "n", Name: "a", Labels: labels, Annotations: annotations}}}
}

func TestRefused(t *testing.T) {
	one := func(o Objective) Set { return Set{Default: []Objective{o}} }
	own := RequestRatio("requests", "http_requests_total", nil, nil)
	a := Operator{Namespace: "n", Name: "a"}
	for name, test := range map[string]struct {
		set  Set
		want error
		text string
	}{
		"target 100": {one(Objective{SLI: "csv", Target: One}), ErrTarget, "no budget"},
		"target 0":   {one(Objective{SLI: "csv"}), ErrTarget, "above 0"},
		"period": {one(Objective{SLI: "csv", Target: 999_000, Period: time.Hour}), ErrPeriod,
			"at least 3d"},
		"ten years": {one(Objective{SLI: "csv", Target: 999_000, Period: 3650 * day}), ErrPeriod,
			"at most 92d"},
		"unknown": {one(Objective{SLI: "reconcil", Target: 999_000}), ErrSLI, "did you mean reconcile?"},
		"far off": {one(Objective{SLI: "beauty", Target: 999_000}), ErrSLI,
			"choose one of csv, available"},
		"twice": {Set{Default: []Objective{{SLI: "csv", Target: 999_000},
			{SLI: "csv", Target: 990_000}}}, ErrTarget, "two objectives"},
		"no name":               {Set{Operators: []Operator{{Namespace: "n"}}}, ErrOperator, "1 to 253"},
		"no namespace":          {Set{Operators: []Operator{{Name: "a"}}}, ErrOperator, "needs a namespace"},
		"same operator":         {Set{Operators: []Operator{a, a}}, ErrOperator, "twice"},
		"own without objective": {Set{Operators: []Operator{{Namespace: "n", Name: "a", Own: []OwnSLI{own}}}}, ErrSLI, "no objective"},
		"own with a taken name": {Set{Operators: []Operator{{Namespace: "n", Name: "a",
			Own: []OwnSLI{RequestRatio("csv", "x", nil, nil)}}}}, ErrSLI, "already"},
		"own without query": {withOwn(OwnSLI{Name: "b"}), ErrQuery, "empty"},
		"own with a query that is not PromQL": {withOwn(OwnSLI{Name: "b", Bad: "x{", Total: "x"}), ErrQuery,
			"bad requests"},
		"own with a gauge that is not PromQL": {withOwn(OwnSLI{Name: "b", Good: "x{"}), ErrQuery, "gauge"},
		"own with a gauge and requests": {withOwn(OwnSLI{Name: "b", Good: "g", Bad: "x", Total: "y"}), ErrSLI,
			"it has a gauge"},
		"own with an unknown method": {withOwn(OwnSLI{Name: "b", Bad: "x", Total: "y", Method: "Calendar"}), ErrSLI,
			"choose one of Occurrences"},
		"own slices without a target": {withOwn(OwnSLI{Name: "b", Bad: "x", Total: "y", Method: Timeslices}), ErrSLI,
			"a slice needs a target"},
		"own requests with a target of slices": {withOwn(OwnSLI{Name: "b", Bad: "x", Total: "y", SliceTarget: 950_000}),
			ErrSLI, "only Timeslices"},
		"a threshold of another SLI": {one(Objective{SLI: "queue", Target: 990_000,
			Thresholds: Thresholds{BadShare: 1}}), ErrThreshold, "no badPercent, but duration and depth"},
		"a threshold of none": {one(Objective{SLI: "csv", Target: 990_000, Thresholds: Thresholds{Depth: 1}}),
			ErrThreshold, "nor any other"},
		"a duration that nobody counts": {one(Objective{SLI: "latency", Target: 990_000,
			Thresholds: Thresholds{Duration: 12 * time.Second}}), ErrThreshold, "choose one of 10, 15 s"},
		"a duration above all bounds": {one(Objective{SLI: "latency", Target: 990_000,
			Thresholds: Thresholds{Duration: 2 * time.Minute}}), ErrThreshold, "choose one of 60 s"},
		"a share of all": {one(Objective{SLI: "operands", Target: 990_000, Thresholds: Thresholds{BadShare: One}}),
			ErrThreshold, "below 100"},
		"alerts that do not exist": {one(Objective{SLI: "csv", Target: 990_000, Alerts: "Emails"}), ErrAlert,
			"All, Pages, Tickets"},
		"without an unknown alert":      {Set{WithoutAlerts: []string{"BellwetherHubdown"}}, ErrAlert, "mean BellwetherHubDown?"},
		"without alerts about budgets":  {Set{WithoutAlerts: []string{AlertOperator}}, ErrAlert, "by objective"},
		"without alerts about clusters": {Set{WithoutAlerts: []string{AlertCluster}}, ErrAlert, "cannot be left out"},
		"a runbook with a template":     {Set{RunbookURL: "https://x/{{ .Evil }}"}, ErrAlert, "http or https URL"},
		"a label of ours":               {withTexts(map[string]string{"severity": "page"}, nil), ErrAlert, "Bellwether's own"},
		"no label":                      {withTexts(map[string]string{"a-b": "x"}, nil), ErrAlert, "no name of a label"},
		"an empty label":                {withTexts(map[string]string{"a": ""}, nil), ErrAlert, "1 to 200"},
		"an annotation of ours":         {withTexts(nil, map[string]string{"summary": "x"}), ErrAlert, "Bellwether's own"},
		"a runbook":                     {withTexts(nil, map[string]string{"runbook_url": "x"}), ErrAlert, "runbookURL"},
		"own of another operator": {
			Set{Operators: []Operator{{Namespace: "n", Name: "a",
				Objectives: []Objective{{SLI: "requests", Target: 999_000}}}}},
			ErrSLI, "choose",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Build(test.set)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%v, want %q with %q", err, test.want, test.text)
			}
		})
	}
}

// TestGoldenTests writes the tests of the rules, which promtool runs.
func TestGoldenTests(t *testing.T) {
	for _, name := range goldenSets {
		text, err := Tests(sets()[name], name+".rules.yaml")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".tests.yaml", text)
	}
	if _, err := Tests(Set{Default: []Objective{{SLI: "queue", Target: 990_000}}}, "x"); !errors.Is(err, ErrSLI) {
		t.Errorf("tests of a set without csv: %v", err)
	}
}

// TestReference looks every SLI, with its target, and every series up in the reference.
func TestReference(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "slo.md"))
	if err != nil {
		t.Fatal(err)
	}
	reference := string(text)
	for _, s := range SLIs() {
		target := s.Target.String()
		if s.Required {
			target += ", expected"
		}
		if row := "| `" + s.Name + "` | " + target + " | " + s.Bad + " |"; !strings.Contains(reference, row) {
			t.Errorf("the reference does not say %q", row)
		}
	}
	for _, s := range append(series.Exported(), series.Recorded()...) {
		if !strings.Contains(reference, "| `"+s.Name) {
			t.Errorf("the reference does not name %s", s.Name)
		}
	}
	for _, g := range build(t, sets()["critical"]).All() {
		for _, r := range g.Rules {
			name := strings.TrimRight(r.Record, "0123456789smhd")
			if r.Record != "" && !strings.Contains(reference, "| `"+r.Record) &&
				!strings.Contains(reference, "| `"+name) {
				t.Errorf("the reference does not name %s", r.Record)
			}
		}
	}
}

func TestSections(t *testing.T) {
	for sli, want := range map[string]string{
		"csv": "csv", "custom-resources": "custom-resources", "probe:api": "probe", "probe:api:hub": "probe",
		"requests": OwnSLIs, "probe": OwnSLIs,
	} {
		if got := FindSection(sli); got != want {
			t.Errorf("section of %s: %s, want %s", sli, got, want)
		}
	}
	if got := Sections(); got[0] != "csv" || got[len(got)-1] != OwnSLIs || !slices.Contains(got, "probe") {
		t.Errorf("sections: %v", got)
	}
}

// TestRunbookLinks checks the part of the links after the folder.
func TestRunbookLinks(t *testing.T) {
	for _, r := range mostSets()["default"].buildGroups(Whole) {
		for _, alert := range r.Rules {
			link := alert.Annotations[AnnotationRunbook]
			page := DefaultRunbooks + "/" + alert.Alert + ".md"
			hasSection := len(link) > len(page)
			if alert.Alert != "" && (!strings.HasPrefix(link, page) || IsAboutSLI(alert.Alert) != hasSection) {
				t.Errorf("%s links to %q", alert.Alert, link)
			}
		}
	}
	if link := (Set{RunbookURL: "https://example.com/runbooks/"}).buildRunbookURL(AlertHubDown, ""); link !=
		"https://example.com/runbooks/BellwetherHubDown.md" {
		t.Errorf("link of a folder with a slash: %s", link)
	}
	for _, g := range (Set{Default: DefaultProfile()}).buildGroups(Whole) {
		for _, alert := range g.Rules {
			if link, ok := alert.Annotations[AnnotationRunbook]; ok {
				t.Errorf("%s links to %q without a folder", alert.Alert, link)
			}
		}
	}
}

// TestRulesSayTheNumbers spells the factors, windows and comparisons out once more:
// the golden files would follow a wrong one with -update, and this does not.
func TestRulesSayTheNumbers(t *testing.T) {
	text, err := RuleFile(build(t, Set{Default: DefaultProfile()}).All())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"clamp_max(14.4 * ", "clamp_max(6 * ", "clamp_max(3 * ", "clamp_max(1 * ", ", 0.9)",
		"bellwether:slo_objective:ratio + 2.5",
		`bellwether:sli_bad_cluster:sum1h / 60 > on (operator_namespace, operator, sli) group_left () ` +
			`bellwether:slo_threshold:ratio{tier="1h"}`,
		`bellwether:sli_bad_version:sum5m / 5 > on`, "bellwether:sli_bad_version:sum6h / 360 > on",
		"bellwether:sli_bad_version:sum30m / 30 > on",
		"bellwether:sli_bad_version:sum1d / 1440 > on", "bellwether:sli_bad_version:sum2h / 120 > on",
		"bellwether:sli_bad_version:sum3d / 4320 > on",
		"clamp_min(0.05 * bellwether:operator_version:clusters, 2)", ">= 3 and on (cluster)",
		">= on (operator_namespace, operator, sli) group_left () 0.5 * max by",
	} {
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
			t.Errorf("the rules do not say %q", want)
		}
	}
}

// TestLeastSum compares the limit for recorded sums with the smallest threshold of all
// objectives: 3 times the budget of a day and the budget of 3 days, in whole minutes.
func TestLeastSum(t *testing.T) {
	minutes := func(target PPM, period time.Duration) Set {
		return Set{Default: DefaultProfile(), Operators: []Operator{{Namespace: "n", Name: "a",
			Objectives: []Objective{{SLI: "csv", Target: target, Period: period}}}}}
	}
	for name, c := range map[string]struct {
		set        Set
		day, three float64
	}{
		"the default profile":  {Set{Default: []Objective{{SLI: "csv", Target: 999_000}}}, 4, 4},
		"a higher target":      {minutes(999_900, 0), 0, 0},
		"a lower one":          {Set{Default: []Objective{{SLI: "csv", Target: 950_000}}}, 216, 216},
		"a shorter period":     {minutes(999_000, 7*day), 1, 1},
		"a period of 3 months": {Set{Default: []Objective{{SLI: "csv", Target: 999_000, Period: 90 * day}}}, 12, 12},
	} {
		tiers := Tiers()
		if got := c.set.computeLeastSum(tiers[2]); got != c.day {
			t.Errorf("%s: %g slices of a day, want %g", name, got, c.day)
		}
		if got := c.set.computeLeastSum(tiers[3]); got != c.three {
			t.Errorf("%s: %g slices of 3 days, want %g", name, got, c.three)
		}
	}
}
