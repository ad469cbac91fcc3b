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
	// maxAge is how old a measurement may be for a verdict to rest on it.
	maxAge = 2 * time.Minute
	// slack is how long after the end of its window a gate may have no verdict before
	// it counts as waiting: the last measurement takes a moment.
	slack = 2 * MeasureInterval
)

// Question is what the gates want to know. Whoever answers it evaluates all queries
// at the time At.
type Question struct {
	Wave, Gate string
	// Since is when the window begins, and At when it ends; whole seconds.
	Since, At time.Time
	// Clusters are those that are judged.
	Clusters []string
	// Queries by the name of their part.
	Queries map[string]string
	// Custom says that somebody else than Bellwether wrote the query.
	Custom bool
}

// Answer is a question with its results.
type Answer struct {
	Question
	// Failure says why there are no results; empty where there are.
	Failure string
	// Results by the name of the query.
	Results map[string]Result
}

// Result is what a query came to.
type Result struct {
	// Type is as Prometheus says: scalar, vector, matrix or string.
	Type    string
	Samples []Sample
}

// Sample is one number with the labels that it is of.
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

// IsMeasured tells whether a gate judges a wave after its clusters were updated.
func IsMeasured(g v1alpha1.Gate) bool {
	return g.SLO != nil || g.Baseline != nil || g.PromQL != nil || g.Job != nil
}

// GateWindow is how long the wave has to be measured for a gate at least; zero for
// a gate that is not measured.
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

// evaluated are the clusters of a wave that gates judge: those that run the release
// and can be seen.
func (s *waveState) evaluated() []string {
	var names []string
	for _, m := range s.members {
		if m.Updated && (m.Class == ClassSucceeded || m.Class == ClassFailed || m.Class == ClassInProgress) {
			names = append(names, m.Cluster)
		}
	}
	slices.Sort(names)
	return names
}

// questions are those that are due, of the waves that nothing but time and gates
// hold back.
func (p *pass) questions(waves []v1alpha1.WaveStatus) []Question {
	var questions []Question
	for i, w := range waves {
		s := &p.states[i]
		clusters := s.evaluated()
		if !s.isObserved(w.Phase) || len(clusters) == 0 {
			continue
		}
		for j, g := range s.Gates {
			if g.Job == nil && isOpen(g, s.gates[j]) && p.isDue(s, g, clusters) {
				questions = append(questions, p.question(s, g, clusters))
			}
		}
	}
	return questions
}

// isObserved tells whether a wave in a phase is measured.
func (s *waveState) isObserved(phase v1alpha1.WavePhase) bool {
	return (phase == v1alpha1.WaveSoaking || phase == v1alpha1.WaveVerifying) && s.updatedAt != nil &&
		s.failedGate() == nil
}

// isDue tells whether a gate is to be measured now.
func (p *pass) isDue(s *waveState, g v1alpha1.Gate, clusters []string) bool {
	now, since := p.in.Now, s.updatedAt.Time
	a, ok := p.answer(s, g, clusters)
	if !ok {
		return !now.Before(since.Add(MeasureInterval))
	}
	end := since.Add(GateWindow(g))
	return now.Sub(a.At) >= MeasureInterval || a.At.Before(end) && !now.Before(end)
}

// answer is the newest one about these clusters and this soak.
func (p *pass) answer(s *waveState, g v1alpha1.Gate, clusters []string) (Answer, bool) {
	var newest Answer
	found := false
	for _, a := range p.in.Answers {
		if a.Wave != s.Name || a.Gate != g.Name || !a.Since.Equal(s.updatedAt.Time) ||
			!slices.Equal(a.Clusters, clusters) || found && !a.At.After(newest.At) {
			continue
		}
		newest, found = a, true
	}
	return newest, found
}

func (p *pass) question(s *waveState, g v1alpha1.Gate, clusters []string) Question {
	q := Question{Wave: s.Name, Gate: g.Name, Since: s.updatedAt.Time, At: stampTime(p.in.Now).Time, Clusters: clusters}
	query := p.queryOf(s.Name, q.At.Sub(q.Since), matchAll(clusters))
	switch {
	case g.SLO != nil:
		q.Queries = query.ofSLO(g.SLO)
	case g.Baseline != nil:
		q.Queries = query.ofBaseline(g.Baseline)
	default:
		// One that cannot be restricted is not asked.
		q.Custom = true
		if text, err := p.promQL(s, g, query); err == nil {
			q.Queries = map[string]string{queryValue: slo.Few(text)}
		}
	}
	return q
}

// promQL is the query of a gate, which sees no more than the clusters that are judged, and what the namespaces of the
// operator may see. Those of RolloutPolicies, which whoever runs the hub writes, see everything.
func (p *pass) promQL(s *waveState, g v1alpha1.Gate, q query) (string, error) {
	var scope slo.Scope
	for _, w := range p.in.Rollout.Spec.Strategy.Waves {
		isOwn := func(own v1alpha1.Gate) bool { return w.Name == s.Name && own.Name == g.Name }
		if slices.ContainsFunc(w.Gates, isOwn) {
			scope = slo.Scope{Clusters: q.clusters, Namespace: q.ro.Spec.Release.TargetNamespace(),
				OperatorNamespace: q.ro.Namespace}
		}
	}
	return slo.Restrict(q.expand(g.PromQL.Query), scope)
}

// query has what the queries of a gate are about.
type query struct {
	ro       *v1alpha1.OperatorRollout
	wave     string
	window   string
	seconds  float64
	clusters string
	release  string
}

func (p *pass) queryOf(waveName string, window time.Duration, clusters string) query {
	return query{ro: p.in.Rollout, wave: waveName, window: fmt.Sprintf("%ds", int(window.Seconds())),
		seconds: window.Seconds(), clusters: clusters, release: series.ShortHash(p.hash)}
}

// matchAll is a regular expression of clusters.
func matchAll(clusters []string) string {
	quoted := make([]string, 0, len(clusters))
	for _, c := range clusters {
		quoted = append(quoted, regexp.QuoteMeta(c))
	}
	return strings.Join(quoted, "|")
}

// maxListed is how many clusters a query has in a status.
const maxListed = 5

// abbreviate is matchAll for a query that is shown.
func abbreviate(clusters []string) string {
	if len(clusters) <= maxListed {
		return matchAll(clusters)
	}
	return fmt.Sprintf("%s|... (%d more)", matchAll(clusters[:maxListed]), len(clusters)-maxListed)
}

// of selects a series of the operator.
func (q query) of(name string, matchers ...string) string {
	all := append([]string{fmt.Sprintf("%s=%q", series.OperatorNamespace, q.ro.Namespace),
		fmt.Sprintf("%s=%q", series.Operator, q.ro.Spec.Operator.Name)}, matchers...)
	return name + "{" + strings.Join(all, ",") + "}"
}

// inWave matches the clusters that are judged.
func (q query) inWave() string { return series.Cluster + "=~" + strconv.Quote(q.clusters) }

const onInstall = "on (" + series.Cluster + ", " + series.OperatorNamespace + ", " + series.Operator + ")"

// bad adds up bad slices, or bad requests where the budget counts those.
func (q query) bad(matchers ...string) string {
	return fmt.Sprintf("sum_over_time(%s[%s])", q.of(series.SLIBadSlice, matchers...), q.window)
}

// samples counts slices, or requests where the budget counts those.
func (q query) samples(matchers ...string) string {
	return fmt.Sprintf("(sum_over_time(%s[%s]) or count_over_time(%s[%s]))", q.of(series.SLIRequests, matchers...),
		q.window, q.of(series.SLIBad, matchers...), q.window)
}

func byClusterAndSLI(expr string) string {
	return fmt.Sprintf("sum by (%s, %s) (%s)", series.Cluster, series.SLI, expr)
}

// coverage is the share of its slices that a cluster must have.
const coverage = 0.8

// enough are the slices of clusters that have so many of them. Slices are a minute
// apart at most.
func (q query) enough() string {
	least := int(coverage * q.seconds / 60)
	return fmt.Sprintf("count_over_time(%s[%s]) >= %d", q.of(series.SLIBad, q.inWave()), q.window, max(least, 1))
}

// covered are the clusters that have slices, and whose agent says that they run the
// release.
func (q query) covered() string {
	return fmt.Sprintf("group by (%s) ((%s) and %s %s)", series.Cluster, q.enough(), onInstall,
		q.of(series.OperatorInfo, q.inWave(), fmt.Sprintf("%s=%q", series.Release, q.release)))
}

// missing are the SLIs that a cluster must have and does not have.
func (q query) missing(matchers ...string) string {
	return fmt.Sprintf("group by (%s, %s) (%s unless on (%s, %s) (%s))", series.Cluster, series.SLI,
		q.of(series.SLIExpected, append(matchers, q.inWave())...), series.Cluster, series.SLI, q.enough())
}

func (q query) ofSLO(g *v1alpha1.SLOGate) map[string]string {
	only := matchSLIs(g.Objectives)
	inWave := append(slices.Clone(only), q.inWave())
	return map[string]string{
		queryObjectives: fmt.Sprintf("max by (%s) (%s)", series.SLI, q.of(series.SLOObjective, only...)),
		queryGuards:     fmt.Sprintf("max by (%s) (%s)", series.SLI, q.of(series.SLOGuard, only...)),
		queryBad:        byClusterAndSLI(q.bad(inWave...)),
		querySamples:    byClusterAndSLI(q.samples(inWave...)),
		queryCovered:    q.covered(),
		queryMissing:    q.missing(only...),
	}
}

// matchSLIs is a matcher for some SLIs; none for all.
func matchSLIs(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return []string{series.SLI + "=~" + strconv.Quote(matchAll(names))}
}

// burn is the query whose values are the burn rates of an SLI on each cluster.
func (q query) burn(sli string) string {
	matcher := fmt.Sprintf("%s=%q", series.SLI, sli)
	samples := byClusterAndSLI(q.samples(matcher, q.inWave()))
	return fmt.Sprintf("(%s or 0 * %s) / %s / on (%s) group_left () (1 - max by (%s) (%s))",
		byClusterAndSLI(q.bad(matcher, q.inWave())), samples, samples, series.SLI, series.SLI,
		q.of(series.SLOObjective, matcher))
}

func (q query) ofBaseline(g *v1alpha1.BaselineGate) map[string]string {
	sli := fmt.Sprintf("%s=%q", series.SLI, g.SLI)
	return map[string]string{
		queryGuards:     fmt.Sprintf("max by (%s) (%s)", series.SLI, q.of(series.SLOGuard, sli)),
		queryBad:        byClusterAndSLI(q.bad(sli, q.inWave())),
		querySamples:    byClusterAndSLI(q.samples(sli, q.inWave())),
		queryOldBad:     byClusterAndSLI(q.onOthers(q.bad(sli))),
		queryOldSamples: byClusterAndSLI(q.onOthers(q.samples(sli))),
		queryCovered:    q.covered(),
		queryMissing:    q.missing(sli),
	}
}

// onOthers keeps the clusters that run another release, and not this one.
func (q query) onOthers(expr string) string {
	return fmt.Sprintf("%s and %s %s unless %s %s", expr, onInstall,
		q.of(series.OperatorInfo, fmt.Sprintf("%s!=%q", series.Release, q.release)), onInstall,
		q.of(series.OperatorInfo, fmt.Sprintf("%s=%q", series.Release, q.release)))
}

// variable is how a query names what is put in its place.
var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// variables that a query of a gate may have.
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

// expand puts values in the place of variables. The regular expression of clusters
// is written into a PromQL string, so its backslashes are doubled.
func (q query) expand(text string) string {
	return variable.ReplaceAllStringFunc(text, func(found string) string {
		value, ok := variables[variable.FindStringSubmatch(found)[1]]
		if !ok {
			return found
		}
		return strings.ReplaceAll(value(q), `\`, `\\`)
	})
}

// dueGates are the times at which a wave's gates are measured again, or their
// windows end.
func (p *pass) dueGates(s *waveState, phase v1alpha1.WavePhase) []time.Time {
	if !s.isObserved(phase) {
		return nil
	}
	var times []time.Time
	for i, g := range s.Gates {
		if !isOpen(g, s.gates[i]) {
			continue
		}
		end := s.updatedAt.Add(GateWindow(g))
		times = append(times, end, end.Add(slack), p.in.Now.Add(MeasureInterval))
	}
	return times
}
