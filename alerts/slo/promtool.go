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

// What promtool reads.
type (
	testFile struct {
		RuleFiles          []string `json:"rule_files"`
		EvaluationInterval string   `json:"evaluation_interval"`
		// Order is that of the groups: in a file, it is none.
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

// Lengths of stories in minutes. promtool evaluates every rule in every minute,
// so only partial outages that need the slowest tier's window are that long.
const (
	testLength = 14 * 60
	longLength = 3*24*60 + 10
)

// clusterHistory is what the SLI csv says of a cluster over time.
type clusterHistory struct {
	cluster, version string
	timeline         []Slice
	// nan gives bad slices as NaN.
	nan bool
	// from and to bound the minutes in which the cluster exists at all.
	from, to int
}

// Tests writes unit tests for promtool of the rules of a set in a rule file. They
// play stories of clusters: outages and parts of them above and below every
// tier, recovery, single bad samples, missing and odd data, clusters that come
// and go, upgrades, releases that are bad on several clusters, an objective that
// is edited, and time that is excluded from a budget.
//
// The stories are of one operator: the first of the set that has an objective
// for csv, or else one that only has the default's. There has to be one. It is no
// critical one: promtool evaluates all rules at one interval, so it cannot play slices
// of two lengths.
func Tests(s Set, ruleFile string) ([]byte, error) {
	operator, objective, err := s.subject()
	if err != nil {
		return nil, err
	}
	rules, err := Build(s)
	if err != nil {
		return nil, err
	}
	file := testFile{RuleFiles: []string{ruleFile}, EvaluationInterval: duration(Step), Fuzzy: true, Tests: []testCase{
		s.clustersTest("clusters of "+operator.String(), operator, objective, clusterHistories()),
		s.clustersTest("partial outages", operator, objective, partial(objective)),
		annotationsTest(s, operator, objective),
		releaseTest(operator),
		upgradeTest(operator, objective),
		editedTest(objective),
		excludedTest(operator, objective),
		sameNameTest(operator),
	}}
	file.Order = rules.Order()
	text, err := yaml.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("write rule tests: %w", err)
	}
	return append([]byte(header), text...), nil
}

// subject is the operator that the tests are about, with its objective for csv.
func (s Set) subject() (types.NamespacedName, Objective, error) {
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

// clusterHistories are the stories of single clusters. Each has a version of its own, so
// that none of them is its release's fault.
func clusterHistories() []clusterHistory {
	out := []clusterHistory{
		{cluster: "quiet", timeline: stretch(0, 0)},
		{cluster: "outage", timeline: stretch(60, 90)},
		{cluster: "outage-for-ever", timeline: stretch(100, testLength)},
		{cluster: "one-sample", timeline: stretch(61, 62)},
		{cluster: "comes-and-goes", timeline: fill(stretch(60, 70), Bad, 110, 120)},
		{cluster: "two-samples", timeline: stretch(62, 64)},
		{cluster: "nan", timeline: stretch(200, 230), nan: true},
		{cluster: `odd "chars" \ {=~} $x é`, timeline: stretch(300, 320)},
		{cluster: "missing-data", timeline: fill(stretch(0, 0), Missing, 400, 460)},
		{cluster: "gap-in-outage", timeline: fill(stretch(500, 540), Missing, 510, 520)},
		{cluster: "appears-broken", timeline: stretch(600, 640), from: 600},
		{cluster: "disappears-broken", timeline: stretch(700, 760), to: 730},
	}
	return versioned(out)
}

// partial are outages of twice and half of what each tier alerts at.
func partial(o Objective) []clusterHistory {
	var out []clusterHistory
	for _, t := range Tiers() {
		threshold := t.Threshold(o.Target, o.period())
		out = append(out,
			clusterHistory{cluster: "above-" + t.Name, timeline: everyNth(max(1, int(0.5/threshold)))},
			clusterHistory{cluster: "below-" + t.Name, timeline: everyNth(int(math.Ceil(2 / threshold)))})
	}
	return versioned(out)
}

// versioned gives each history a version of its own and an end.
func versioned(histories []clusterHistory) []clusterHistory {
	for i := range histories {
		histories[i].version = fmt.Sprintf("1.%d.0", i)
		if histories[i].to == 0 {
			histories[i].to = len(histories[i].timeline)
		}
	}
	return histories
}

// stretch is a timeline that is bad in some minutes.
func stretch(from, to int) []Slice { return fill(make([]Slice, testLength), Bad, from, to) }

func fill(timeline []Slice, with Slice, from, to int) []Slice {
	for i := from; i < to; i++ {
		timeline[i] = with
	}
	return timeline
}

// everyNth is a partial outage: one slice of n is bad.
func everyNth(n int) []Slice {
	timeline := make([]Slice, longLength)
	for i := n; i < longLength; i += n {
		timeline[i] = Bad
	}
	return timeline
}

// clustersTest samples all clusters' alerts whenever those of one change, just
// before and then.
func (s Set) clustersTest(name string, operator types.NamespacedName, o Objective, all []clusterHistory) testCase {
	test := testCase{Name: name}
	length := len(all[0].timeline)
	expected := make([][]firing, len(all))
	moments := map[int]bool{}
	for i, h := range all {
		test.Series = append(test.Series, h.series(operator)...)
		expected[i] = h.expect(o, !slices.Contains(s.WithoutAlerts, AlertSLIAbsent))
		changes := 0
		// A partial outage has tiers come and go with every slice; the first few changes say it all.
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
			test.Exprs = append(test.Exprs, alertsAt(all, expected, operator, m))
		}
	}
	return test
}

// firing are the alerts about one cluster.
type firing struct {
	Verdict
	absent bool
}

// alertsAt expects exactly the alerts of that minute.
func alertsAt(all []clusterHistory, expected [][]firing, operator types.NamespacedName, minute int) testExpr {
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

// expect judges a history minute by minute.
func (h clusterHistory) expect(o Objective, absence bool) []firing {
	timeline := slices.Clone(h.timeline)
	fill(timeline, Missing, 0, h.from)
	fill(timeline, Missing, h.to, len(timeline))
	out := make([]firing, len(timeline))
	known := timeline
	if !h.nan { // what is not a number confirms nothing
		known = Slices(timeline, 1)
	}
	for i, v := range NewJudge(o).Judge(known) {
		out[i].Verdict = v
	}
	window, since := int(absentWindow/Step), -1
	for i := range timeline {
		present := 0
		for _, s := range timeline[max(0, i-window+1) : i+1] {
			if s != Missing {
				present++
			}
		}
		if i-window < h.from || i >= h.to || present >= absentLeast {
			since = -1
			continue
		}
		if since < 0 {
			since = i
		}
		out[i].absent = absence && i-since >= int(absentFor/Step)
	}
	return out
}

// series are what an agent would export.
func (h clusterHistory) series(operator types.NamespacedName) []testInput {
	id := fmt.Sprintf("cluster=%q,%s", h.cluster, matchOperator(operator))
	constant := func(value string) string {
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
		{series.OperatorExpected + "{" + id + "}", constant("1")},
		{h.info(operator, h.version), constant("1")},
		{series.OperatorUpgrading + "{" + id + "}", constant("0")},
		{series.OperatorCSVSucceeded + "{" + id + "}", csv},
		// Something is known of the cluster, whatever is missing of the SLI.
		{series.OperatorCatalogReady + "{" + id + "}", constant("1")},
		{fmt.Sprintf("%s{cluster=%q}", series.ClusterOnline, h.cluster), constant("1")},
		{fmt.Sprintf("%s{state=\"online\",pod=%q}", series.FleetClusters, h.cluster),
			Samples(len(h.timeline), func(int) string { return "1" })},
	}
}

// info is the series that says which version of an operator is installed.
func (h clusterHistory) info(operator types.NamespacedName, version string) string {
	return fmt.Sprintf("%s{cluster=%q,%s,namespace=\"echo\",csv=\"echo.v%s\",version=%q,release=\"release-of-%s\"}",
		series.OperatorInfo, h.cluster, matchOperator(operator), version, version, version)
}

// Samples writes n samples in promtool's notation, equal ones together. An empty
// one is missing, and the first of several is marked stale as a scrape would.
func Samples(n int, at func(int) string) string {
	var out []string
	for i := 0; i < n; {
		j := i + 1
		for j < n && at(j) == at(i) {
			j++
		}
		value, times := at(i), j-i
		if value == "" && i > 0 {
			out = append(out, "stale")
			times--
		}
		switch {
		case times == 0:
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
