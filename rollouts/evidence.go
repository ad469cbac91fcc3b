// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

const (
	// MeasureInterval is how often a gate is measured.
	MeasureInterval = 30 * time.Second
	// maxMeasurementAge is the maximum age of a measurement that a verdict uses.
	maxMeasurementAge = 2 * time.Minute
	// verdictSlack is how long after the end of its window a gate can have no verdict before it counts as waiting. The
	// last measurement takes some time.
	verdictSlack = 2 * MeasureInterval
)

// Question is the data that a gate needs. All queries must be evaluated at the time At.
type Question struct {
	Wave, Gate string
	// Since is when the window begins, and At when it ends, in whole seconds.
	Since, At time.Time
	// Clusters are the clusters that the gate judges.
	Clusters []string
	// Queries are the PromQL queries by name.
	Queries map[string]string
	// Custom is true if the query is not written by Bellwether.
	Custom bool
}

// Answer is a question with its results.
type Answer struct {
	Question
	// Failure says why there are no results; empty if there are results.
	Failure string
	// Results are the results by the name of the query.
	Results map[string]Result
}

// Result is the result of one query.
type Result struct {
	// Type is the type in Prometheus' terms: scalar, vector, matrix or string.
	Type    string
	Samples []Sample
}

// Sample is one number with its labels.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Names of queries.
const (
	queryValue      = "value"
	queryObjectives = "objectives"
	queryGuards     = "guards"
	queryBad        = "bad"
	querySamples    = "samples"
	queryOldBad     = "baseline bad"
	queryOldSamples = "baseline samples"
	queryCovered    = "covered"
	queryMissing    = "missing"
)

// IsMeasured reports whether a gate judges a wave after the wave's clusters were updated.
func IsMeasured(g v1alpha1.Gate) bool {
	return g.SLO != nil || g.Baseline != nil || g.PromQL != nil || g.Job != nil
}

// GateWindow returns the minimum time for which a gate measures the wave; zero for a gate without a window.
func GateWindow(g v1alpha1.Gate) time.Duration {
	switch {
	case g.SLO != nil && g.SLO.Window != nil:
		return g.SLO.Window.Duration
	case g.Baseline != nil && g.Baseline.Window != nil:
		return g.Baseline.Window.Duration
	case g.PromQL != nil && g.PromQL.Window != nil:
		return g.PromQL.Window.Duration
	}
	return 0
}

// listEvaluatedClusters returns the sorted names of the members that gates judge: members that run the release and can
// be observed.
func listEvaluatedClusters(members []member) []string {
	var names []string
	for _, m := range members {
		if m.Updated && (m.Class == ClassSucceeded || m.Class == ClassFailed || m.Class == ClassInProgress) {
			names = append(names, m.Cluster)
		}
	}
	slices.Sort(names)
	return names
}

// listGateQuestions returns the questions that are due, for the waves whose gates are being measured. Gates with a Job
// have no questions. hash identifies the release.
func listGateQuestions(in Input, hash string, waves []judgedWave, statuses []v1alpha1.WaveStatus) []Question {
	var questions []Question
	for i := range waves {
		w := &waves[i]
		if !isMeasuring(w, statuses[i].Phase) {
			continue
		}
		clusters := listEvaluatedClusters(w.members)
		for k, g := range w.Gates {
			q := Question{Wave: w.Name, Gate: g.Name, Since: w.clock.updatedAt.Time, At: roundDown(in.Now).Time,
				Clusters: clusters}
			canAnswer := len(clusters) > 0 && g.Job == nil && isOpen(g, w.gates[k])
			if canAnswer && isQuestionDue(q, GateWindow(g), in.Answers, in.Now) {
				questions = append(questions, addQueries(q, in.Rollout, hash, g))
			}
		}
	}
	return questions
}

// isMeasuring reports whether the gates of a wave in this phase are measured.
func isMeasuring(w *judgedWave, phase v1alpha1.WavePhase) bool {
	return (phase == v1alpha1.WaveSoaking || phase == v1alpha1.WaveVerifying) && w.clock.updatedAt != nil &&
		w.failedGate == nil
}

// isQuestionDue reports whether the question must be asked now: MeasureInterval after the newest answer or, without an
// answer, after the start of the window. It is also due at the end of the window.
func isQuestionDue(q Question, window time.Duration, answers []Answer, now time.Time) bool {
	a, ok := findNewestAnswer(answers, q)
	if !ok {
		return !now.Before(q.Since.Add(MeasureInterval))
	}
	end := q.Since.Add(window)
	return now.Sub(a.At) >= MeasureInterval || a.At.Before(end) && !now.Before(end)
}

// findNewestAnswer returns the newest answer for the gate, the soak and the clusters of a question. It returns false
// if there is none.
func findNewestAnswer(answers []Answer, q Question) (Answer, bool) {
	var newest Answer
	found := false
	for _, a := range answers {
		if a.Wave != q.Wave || a.Gate != q.Gate || !a.Since.Equal(q.Since) ||
			!slices.Equal(a.Clusters, q.Clusters) || found && !a.At.After(newest.At) {
			continue
		}
		newest, found = a, true
	}
	return newest, found
}

// addQueries returns the question with the queries of the gate.
func addQueries(q Question, ro *v1alpha1.OperatorRollout, hash string, g v1alpha1.Gate) Question {
	query := newQuery(ro, hash, q.Wave, q.At.Sub(q.Since), buildPattern(q.Clusters))
	switch {
	case g.SLO != nil:
		q.Queries = query.buildSLOQueries(g.SLO)
	case g.Baseline != nil:
		q.Queries = query.buildBaselineQueries(g.Baseline)
	default:
		// A query that cannot be restricted is not sent.
		q.Custom = true
		if text, err := buildPromQL(g, query); err == nil {
			q.Queries = map[string]string{queryValue: slo.LimitResult(text)}
		}
	}
	return q
}

// buildPromQL returns the query of a PromQL gate with the values of its variables. It is an error if the query cannot
// be restricted. The query of a gate of the strategy is restricted to the judged clusters and to the data that the
// operator's namespaces can read. Gates of RolloutPolicies, which the hub's administrators write, are not restricted.
func buildPromQL(g v1alpha1.Gate, q query) (string, error) {
	var scope slo.Scope
	for _, w := range q.ro.Spec.Strategy.Waves {
		isOwn := func(own v1alpha1.Gate) bool { return w.Name == q.wave && own.Name == g.Name }
		if slices.ContainsFunc(w.Gates, isOwn) {
			scope = slo.Scope{Clusters: q.clusters, Namespace: q.ro.Spec.Release.TargetNamespace(),
				OperatorNamespace: q.ro.Namespace}
		}
	}
	return slo.Restrict(q.expandVariables(g.PromQL.Query), scope)
}

// query has the values that the queries of a gate contain.
type query struct {
	ro       *v1alpha1.OperatorRollout
	wave     string
	window   string
	seconds  float64
	clusters string
	release  string
}

// newQuery returns the values for the queries of a wave's gates. hash identifies the release.
func newQuery(ro *v1alpha1.OperatorRollout, hash, waveName string, window time.Duration, clusters string) query {
	return query{ro: ro, wave: waveName, window: fmt.Sprintf("%ds", int(window.Seconds())),
		seconds: window.Seconds(), clusters: clusters, release: series.ShortHash(hash)}
}

// buildPattern returns a regular expression that matches exactly these names.
func buildPattern(clusters []string) string {
	quoted := make([]string, 0, len(clusters))
	for _, c := range clusters {
		quoted = append(quoted, regexp.QuoteMeta(c))
	}
	return strings.Join(quoted, "|")
}

// maxListed is the maximum number of clusters in a query that a status shows.
const maxListed = 5

// buildShortPattern returns buildPattern's result for at most maxListed clusters, and says how many are left out.
func buildShortPattern(clusters []string) string {
	if len(clusters) <= maxListed {
		return buildPattern(clusters)
	}
	return fmt.Sprintf("%s|... (%d more)", buildPattern(clusters[:maxListed]), len(clusters)-maxListed)
}

// selectSeries returns a selector of a series of the operator.
func (q query) selectSeries(name string, matchers ...string) string {
	all := append([]string{fmt.Sprintf("%s=%q", series.OperatorNamespace, q.ro.Namespace),
		fmt.Sprintf("%s=%q", series.Operator, q.ro.Spec.Operator.Name)}, matchers...)
	return name + "{" + strings.Join(all, ",") + "}"
}

// matchWave returns a matcher for the clusters that are judged.
func (q query) matchWave() string { return series.Cluster + "=~" + strconv.Quote(q.clusters) }

// joinOnInstall makes a binary operation in PromQL match the series of the same install.
const joinOnInstall = "on (" + series.Cluster + ", " + series.OperatorNamespace + ", " + series.Operator + ")"

// sumBad returns a query for the number of bad slices in the window, or of bad requests if the budget counts requests.
func (q query) sumBad(matchers ...string) string {
	return fmt.Sprintf("sum_over_time(%s[%s])", q.selectSeries(series.SLIBadSlice, matchers...), q.window)
}

// sumSamples returns a query for the number of slices in the window, or of requests if the budget counts requests.
func (q query) sumSamples(matchers ...string) string {
	return fmt.Sprintf("(sum_over_time(%s[%s]) or count_over_time(%s[%s]))", q.selectSeries(series.SLIRequests,
		matchers...),
		q.window, q.selectSeries(series.SLIBad, matchers...), q.window)
}

// sumByClusterAndSLI returns a query for the sums of expr by cluster and SLI.
func sumByClusterAndSLI(expr string) string {
	return fmt.Sprintf("sum by (%s, %s) (%s)", series.Cluster, series.SLI, expr)
}

// coverage is the share of the expected slices that a cluster must have for a verdict.
const coverage = 0.8

// selectSufficient returns a query for the series with enough slices in the window. Slices are at most a minute apart.
func (q query) selectSufficient() string {
	minSlices := int(coverage * q.seconds / 60)
	return fmt.Sprintf("count_over_time(%s[%s]) >= %d", q.selectSeries(series.SLIBad, q.matchWave()), q.window,
		max(minSlices, 1))
}

// selectCovered returns a query for the clusters that have enough slices and whose agent reports that they run
// the release.
func (q query) selectCovered() string {
	return fmt.Sprintf("group by (%s) ((%s) and %s %s)", series.Cluster, q.selectSufficient(), joinOnInstall,
		q.selectSeries(series.OperatorInfo, q.matchWave(), fmt.Sprintf("%s=%q", series.Release, q.release)))
}

// selectMissing returns a query for the SLIs that a cluster must have and does not have enough slices of.
func (q query) selectMissing(matchers ...string) string {
	return fmt.Sprintf("group by (%s, %s) (%s unless on (%s, %s) (%s))", series.Cluster, series.SLI,
		q.selectSeries(series.SLIExpected, append(matchers, q.matchWave())...), series.Cluster, series.SLI,
		q.selectSufficient())
}

// buildSLOQueries returns the queries of an SLO gate, by name: the objectives and guards by SLI, the bad and all slices
// by cluster and SLI, the covered clusters, and the missing SLIs by cluster.
func (q query) buildSLOQueries(g *v1alpha1.SLOGate) map[string]string {
	sliMatchers := matchSLIs(g.Objectives)
	inWave := append(slices.Clone(sliMatchers), q.matchWave())
	return map[string]string{
		queryObjectives: fmt.Sprintf("max by (%s) (%s)", series.SLI, q.selectSeries(series.SLOObjective,
			sliMatchers...)),
		queryGuards:  fmt.Sprintf("max by (%s) (%s)", series.SLI, q.selectSeries(series.SLOGuard, sliMatchers...)),
		queryBad:     sumByClusterAndSLI(q.sumBad(inWave...)),
		querySamples: sumByClusterAndSLI(q.sumSamples(inWave...)),
		queryCovered: q.selectCovered(),
		queryMissing: q.selectMissing(sliMatchers...),
	}
}

// matchSLIs returns a matcher for the SLIs with these names. It returns nil, which matches all SLIs, if there
// are none.
func matchSLIs(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return []string{series.SLI + "=~" + strconv.Quote(buildPattern(names))}
}

// buildBurnQuery returns a query for the burn rates of an SLI on each cluster: the share of bad slices in the window,
// divided by the share that the objective permits. The status shows the query.
func (q query) buildBurnQuery(sli string) string {
	matcher := fmt.Sprintf("%s=%q", series.SLI, sli)
	samples := sumByClusterAndSLI(q.sumSamples(matcher, q.matchWave()))
	// "or 0 *" gives clusters without a bad slice the value 0.
	return fmt.Sprintf("(%s or 0 * %s) / %s / on (%s) group_left () (1 - max by (%s) (%s))",
		sumByClusterAndSLI(q.sumBad(matcher, q.matchWave())), samples, samples, series.SLI, series.SLI,
		q.selectSeries(series.SLOObjective, matcher))
}

// buildBaselineQueries returns the queries of a baseline gate, by name. The queries of an SLO gate are in it, without
// the objectives, and the bad and all slices of the clusters that run another release.
func (q query) buildBaselineQueries(g *v1alpha1.BaselineGate) map[string]string {
	sli := fmt.Sprintf("%s=%q", series.SLI, g.SLI)
	return map[string]string{
		queryGuards:     fmt.Sprintf("max by (%s) (%s)", series.SLI, q.selectSeries(series.SLOGuard, sli)),
		queryBad:        sumByClusterAndSLI(q.sumBad(sli, q.matchWave())),
		querySamples:    sumByClusterAndSLI(q.sumSamples(sli, q.matchWave())),
		queryOldBad:     sumByClusterAndSLI(q.filterBaseline(q.sumBad(sli))),
		queryOldSamples: sumByClusterAndSLI(q.filterBaseline(q.sumSamples(sli))),
		queryCovered:    q.selectCovered(),
		queryMissing:    q.selectMissing(sli),
	}
}

// filterBaseline restricts expr to the clusters that run another release and not the new release.
func (q query) filterBaseline(expr string) string {
	return fmt.Sprintf("%s and %s %s unless %s %s", expr, joinOnInstall,
		q.selectSeries(series.OperatorInfo, fmt.Sprintf("%s!=%q", series.Release, q.release)), joinOnInstall,
		q.selectSeries(series.OperatorInfo, fmt.Sprintf("%s=%q", series.Release, q.release)))
}

// variablePattern matches a variable in a query.
var variablePattern = regexp.MustCompile(`\$\{([^}]*)\}`)

// variables are the variables that the query of a gate can have.
var variables = map[string]func(query) string{
	"clusters":           func(q query) string { return q.clusters },
	"window":             func(q query) string { return q.window },
	"release":            func(q query) string { return q.release },
	"hash":               func(q query) string { return q.ro.Spec.Release.Hash() },
	"version":            func(q query) string { return q.ro.Spec.Release.Version },
	"operator":           func(q query) string { return q.ro.Spec.Operator.Name },
	"operator_namespace": func(q query) string { return q.ro.Namespace },
	"namespace":          func(q query) string { return q.ro.Spec.Release.TargetNamespace() },
	"wave":               func(q query) string { return q.wave },
}

// expandVariables replaces the variables in a query by their values. Unknown variables stay. The regular expression of
// clusters is written into a PromQL string, so its backslashes are doubled.
func (q query) expandVariables(text string) string {
	return variablePattern.ReplaceAllStringFunc(text, func(found string) string {
		value, ok := variables[variablePattern.FindStringSubmatch(found)[1]]
		if !ok {
			return found
		}
		return strings.ReplaceAll(value(q), `\`, `\\`)
	})
}

// listGateTimes returns when the gates of a wave in this phase are measured again, when their windows end, and when
// gates without a verdict count as waiting. It returns nil if the gates are not measured.
func listGateTimes(w *judgedWave, phase v1alpha1.WavePhase, now time.Time) []time.Time {
	if !isMeasuring(w, phase) {
		return nil
	}
	var times []time.Time
	for i, g := range w.Gates {
		if !isOpen(g, w.gates[i]) {
			continue
		}
		end := w.clock.updatedAt.Add(GateWindow(g))
		times = append(times, end, end.Add(verdictSlack), now.Add(MeasureInterval))
	}
	return times
}
