// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Types of promtool's test files.
type (
	testFile struct {
		RuleFiles          []string `json:"rule_files"`
		EvaluationInterval string   `json:"evaluation_interval"`
		// Order is the order of the groups. A rule file itself defines no order between groups.
		Order []string   `json:"group_eval_order"`
		Fuzzy bool       `json:"fuzzy_compare"`
		Tests []testCase `json:"tests"`
	}
	testCase struct {
		Name   string      `json:"name"`
		Series []testInput `json:"input_series"`
		Exprs  []testExpr  `json:"promql_expr_test,omitempty"`
		Alerts []testAlert `json:"alert_rule_test,omitempty"`
	}
	testInput struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	testExpr struct {
		Expr    string       `json:"expr"`
		At      string       `json:"eval_time"`
		Samples []testSample `json:"exp_samples"`
	}
	testSample struct {
		Labels string  `json:"labels"`
		Value  float64 `json:"value"`
	}
	testAlert struct {
		At     string        `json:"eval_time"`
		Alert  string        `json:"alertname"`
		Alerts []testFiredBy `json:"exp_alerts"`
	}
	testFiredBy struct {
		Labels      map[string]string `json:"exp_labels"`
		Annotations map[string]string `json:"exp_annotations"`
	}
)

// Lengths of stories in minutes. promtool evaluates every rule in every minute, so
// only partial outages, which need the slowest tier's window, have the longer length.
const (
	testLength = 14 * 60
	longLength = 3*24*60 + 10
)

// clusterHistory is the state of the SLI csv on a cluster over time.
type clusterHistory struct {
	cluster, version string
	timeline         []Slice
	// nan writes bad slices as NaN.
	nan bool
	// from and to are the first minute in which the cluster exists, and the first minute after it is gone.
	from, to int
}

// Tests returns unit tests for promtool of the rules of a set in a rule file. The tests simulate
// stories of clusters: full and partial outages above and below every tier, recovery, single bad
// samples, missing and odd data, clusters that appear and disappear, upgrades, releases that are
// bad on several clusters, an objective that is edited, and time that is excluded from a budget.
//
// The stories are about one operator: the first operator of the set that has an objective for csv, or else an
// operator that has only the default objectives. If there is no such operator, Tests returns an error. The operator
// must not be critical: promtool evaluates all rules at one interval, so it cannot simulate slices of two lengths.
func Tests(s Set, ruleFile string) ([]byte, error) {
	operator, objective, err := s.pickSubject()
	if err != nil {
		return nil, err
	}
	rules, err := Build(s)
	if err != nil {
		return nil, err
	}
	file := testFile{RuleFiles: []string{ruleFile}, EvaluationInterval: formatDuration(Step), Fuzzy: true,
		Tests: []testCase{
			s.buildClustersTest("clusters of "+operator.String(), operator, objective, listClusterHistories()),
			s.buildClustersTest("partial outages", operator, objective, listPartialOutages(objective)),
			buildAnnotationsTest(s, operator, objective),
			buildReleaseTest(operator),
			buildUpgradeTest(operator, objective),
			buildEditedTest(objective),
			buildExcludedTest(operator, objective),
			buildSameNameTest(operator),
		}}
	file.Order = rules.Order()
	text, err := yaml.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("write rule tests: %w", err)
	}
	return append([]byte(header), text...), nil
}

// pickSubject returns the operator of the tests and its objective for csv, which must have all alerts. If no operator
// has such an objective, it returns an operator that is not in the set and has the default objective.
func (s Set) pickSubject() (types.NamespacedName, Objective, error) {
	for _, op := range s.Operators {
		for _, o := range op.Objectives {
			if o.SLI == "csv" && o.Alerts == "" && op.Criticality != Critical {
				return op.ID(), o, nil
			}
		}
	}
	for _, o := range s.Default {
		if o.SLI == "csv" && o.Alerts == "" {
			id := types.NamespacedName{Namespace: "any-namespace", Name: "any-operator"}
			for slices.ContainsFunc(s.Operators, func(op Operator) bool { return op.ID() == id }) {
				id.Name += "-x"
			}
			return id, o, nil
		}
	}
	return types.NamespacedName{}, Objective{},
		fmt.Errorf("%w: tests are about csv, and no operator has an objective with all alerts for it", ErrSLI)
}

// listClusterHistories returns the stories of single clusters. Each cluster
// has a different version, so that no failure is blamed on a release.
func listClusterHistories() []clusterHistory {
	out := []clusterHistory{
		{cluster: "quiet", timeline: newTimeline(0, 0)},
		{cluster: "outage", timeline: newTimeline(60, 90)},
		{cluster: "outage-for-ever", timeline: newTimeline(100, testLength)},
		{cluster: "one-sample", timeline: newTimeline(61, 62)},
		{cluster: "comes-and-goes", timeline: fill(newTimeline(60, 70), Bad, 110, 120)},
		{cluster: "two-samples", timeline: newTimeline(62, 64)},
		{cluster: "nan", timeline: newTimeline(200, 230), nan: true},
		{cluster: `odd "chars" \ {=~} $x é`, timeline: newTimeline(300, 320)},
		{cluster: "missing-data", timeline: fill(newTimeline(0, 0), Missing, 400, 460)},
		{cluster: "gap-in-outage", timeline: fill(newTimeline(500, 540), Missing, 510, 520)},
		{cluster: "appears-broken", timeline: newTimeline(600, 640), from: 600},
		{cluster: "disappears-broken", timeline: newTimeline(700, 760), to: 730},
	}
	return setVersions(out)
}

// listPartialOutages returns outages of twice and of half the threshold of each tier.
func listPartialOutages(o Objective) []clusterHistory {
	var out []clusterHistory
	for _, t := range Tiers() {
		threshold := t.Threshold(o.Target, o.period())
		out = append(out,
			clusterHistory{cluster: "above-" + t.Name, timeline: newPartialTimeline(max(1, int(0.5/threshold)))},
			clusterHistory{cluster: "below-" + t.Name, timeline: newPartialTimeline(int(math.Ceil(2 / threshold)))})
	}
	return setVersions(out)
}

// setVersions gives each history in place a different version and an end, and returns the histories.
func setVersions(histories []clusterHistory) []clusterHistory {
	for i := range histories {
		histories[i].version = fmt.Sprintf("1.%d.0", i)
		if histories[i].to == 0 {
			histories[i].to = len(histories[i].timeline)
		}
	}
	return histories
}

// newTimeline returns a timeline that is bad from one minute up to another, exclusive.
func newTimeline(from, to int) []Slice { return fill(make([]Slice, testLength), Bad, from, to) }

// fill sets the slices from one minute up to another, exclusive, and returns the timeline.
func fill(timeline []Slice, with Slice, from, to int) []Slice {
	for i := from; i < to; i++ {
		timeline[i] = with
	}
	return timeline
}

// newPartialTimeline returns a partial outage: one of n slices is bad.
func newPartialTimeline(n int) []Slice {
	timeline := make([]Slice, longLength)
	for i := n; i < longLength; i += n {
		timeline[i] = Bad
	}
	return timeline
}

// buildClustersTest returns a test that checks the alerts of all
// clusters right before and after each change of any cluster's alerts,
// at the end of each tier's first long window, and in the last minute.
func (s Set) buildClustersTest(name string, operator types.NamespacedName, o Objective, all []clusterHistory) testCase {
	test := testCase{Name: name}
	length := len(all[0].timeline)
	expected := make([][]firing, len(all))
	moments := map[int]bool{}
	for i, h := range all {
		test.Series = append(test.Series, h.listSeries(operator)...)
		expected[i] = h.expect(o, !slices.Contains(s.WithoutAlerts, AlertSLIAbsent))
		changes := 0
		// In a partial outage the alerts of tiers change with every slice. The first few changes are enough.
		for m := 1; m < length && changes < 6; m++ {
			if expected[i][m] != expected[i][m-1] {
				moments[m-1], moments[m] = true, true
				changes++
			}
		}
	}
	for _, t := range Tiers() {
		moments[min(int(t.Long/Step), length-1)] = true
	}
	moments[length-1] = true
	for m := range length {
		if moments[m] {
			test.Exprs = append(test.Exprs, expectAlerts(all, expected, operator, m))
		}
	}
	return test
}

// firing contains the alerts about one cluster.
type firing struct {
	Verdict
	absent bool
}

// expectAlerts returns a check that exactly the expected alerts fire in a minute.
func expectAlerts(all []clusterHistory, expected [][]firing, operator types.NamespacedName, minute int) testExpr {
	e := testExpr{
		Expr: fmt.Sprintf("count by (alertname, severity, cluster) (ALERTS{alertstate=\"firing\",%s,sli=\"csv\","+
			"alertname!=%q})", matchOperator(operator), AlertExhausted),
		At: strconv.Itoa(minute) + "m",
	}
	add := func(fires bool, alert, severity, cluster string) {
		if fires {
			e.Samples = append(e.Samples, testSample{fmt.Sprintf("{alertname=%q,severity=%q,cluster=%q}", alert,
				severity, cluster), 1})
		}
	}
	for i, h := range all {
		f := expected[i][minute]
		add(f.Page, AlertOperator, series.Page, h.cluster)
		add(f.Ticket, AlertOperator, series.Ticket, h.cluster)
		add(f.absent, AlertSLIAbsent, series.Ticket, h.cluster)
	}
	return e
}

// expect returns the expected alerts of a history in each minute.
// absence is whether alerts about missing slices are enabled.
func (h clusterHistory) expect(o Objective, absence bool) []firing {
	timeline := slices.Clone(h.timeline)
	fill(timeline, Missing, 0, h.from)
	fill(timeline, Missing, h.to, len(timeline))
	out := make([]firing, len(timeline))
	judged := timeline
	if !h.nan { // a value that is not a number is never confirmed
		judged = Slices(timeline, 1)
	}
	for i, v := range NewJudge(o).Judge(judged) {
		out[i].Verdict = v
	}
	window, absentSince := int(absentWindow/Step), -1
	for i := range timeline {
		present := 0
		for _, s := range timeline[max(0, i-window+1) : i+1] {
			if s != Missing {
				present++
			}
		}
		// The alert needs a cluster that already existed before the window, and too few slices in the window.
		if i-window < h.from || i >= h.to || present >= absentMinSlices {
			absentSince = -1
			continue
		}
		if absentSince < 0 {
			absentSince = i
		}
		out[i].absent = absence && i-absentSince >= int(absentFor/Step)
	}
	return out
}

// listSeries returns the series that an agent with this history exports.
func (h clusterHistory) listSeries(operator types.NamespacedName) []testInput {
	id := fmt.Sprintf("cluster=%q,%s", h.cluster, matchOperator(operator))
	buildConstant := func(value string) string {
		return Samples(len(h.timeline), func(i int) string {
			if i < h.from || i >= h.to {
				return ""
			}
			return value
		})
	}
	csv := Samples(len(h.timeline), func(i int) string {
		switch {
		case i < h.from || i >= h.to || h.timeline[i] == Missing:
			return ""
		case h.timeline[i] == Good:
			return "1"
		case h.nan:
			return "NaN"
		}
		return "0"
	})
	return []testInput{
		{series.OperatorExpected + "{" + id + "}", buildConstant("1")},
		{h.nameInfoSeries(operator, h.version), buildConstant("1")},
		{series.OperatorUpgrading + "{" + id + "}", buildConstant("0")},
		{series.OperatorCSVSucceeded + "{" + id + "}", csv},
		// This series keeps the cluster measured while the SLI is missing.
		{series.OperatorCatalogReady + "{" + id + "}", buildConstant("1")},
		{fmt.Sprintf("%s{cluster=%q}", series.ClusterOnline, h.cluster), buildConstant("1")},
		{fmt.Sprintf("%s{state=\"online\",pod=%q}", series.FleetClusters, h.cluster),
			Samples(len(h.timeline), func(int) string { return "1" })},
	}
}

// nameInfoSeries returns the series that reports the installed version of an operator.
func (h clusterHistory) nameInfoSeries(operator types.NamespacedName, version string) string {
	return fmt.Sprintf("%s{cluster=%q,%s,namespace=\"echo\",csv=\"echo.v%s\",version=%q,release=\"release-of-%s\"}",
		series.OperatorInfo, h.cluster, matchOperator(operator), version, version, version)
}

// Samples returns n samples in promtool's notation, and joins equal samples. An empty sample
// is missing, and the first of several missing samples is marked stale, as a scrape would do.
func Samples(n int, valueAt func(int) string) string {
	var out []string
	for i := 0; i < n; {
		j := i + 1
		for j < n && valueAt(j) == valueAt(i) {
			j++
		}
		value, times := valueAt(i), j-i
		if value == "" && i > 0 {
			out = append(out, "stale")
			times--
		}
		switch {
		case times == 0: // the stale marker was the only missing sample
		case value == "":
			out = append(out, fmt.Sprintf("_x%d", times))
		case value == "NaN": // promtool cannot repeat these
			out = append(out, strings.TrimSpace(strings.Repeat("NaN ", times)))
		default:
			out = append(out, fmt.Sprintf("%sx%d", value, times-1))
		}
		i = j
	}
	return strings.Join(out, " ")
}
