// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// measurements have the state of Prometheus in a simulation, and the verdicts that a hub may give.
type measurements struct {
	// burns is true if the release installs without errors and every measurement of it is bad.
	burns bool
	// isCalm is true if Prometheus works and has all data.
	isCalm bool
	// answers that were given, by gate and time.
	answers map[string]measurement
	// budgets are the parts of the error budget that were left, by rollout and time.
	budgets map[string]float64
	// unobserved are the waves that a person let continue although no cluster of the wave was observed.
	unobserved map[string]bool
}

// measurement is an answer in truth.
type measurement struct {
	good, bad bool
	clusters  []string
}

// asked is a question that Prometheus has not answered.
type asked struct {
	rollout *rollout
	rollouts.Question
}

func gateKey(ro *v1alpha1.OperatorRollout, wave, gate string, at time.Time) string {
	return fmt.Sprintf("%s/%s/%s/%d", ro.UID, wave, gate, at.Unix())
}

// measuredGates draws gates that measure.
func (sim *simulation) measuredGates(last bool) []v1alpha1.Gate {
	window := &metav1.Duration{Duration: pick(sim.rng, time.Minute, 2*time.Minute)}
	var gates []v1alpha1.Gate
	if sim.rng.IntN(4) == 0 {
		g := queryGate()
		g.PromQL.Window, g.PromQL.FailureLimit = window, new(sim.rng.Int32N(2))
		gates = append(gates, g)
	}
	if sim.rng.IntN(4) == 0 {
		g := sloGate()
		g.SLO.Window = window
		gates = append(gates, g)
	}
	if sim.rng.IntN(8) == 0 && !last {
		g := baselineGate()
		g.Baseline.Window = window
		gates = append(gates, g)
	}
	return gates
}

// ask records questions, one for each gate.
func (h *hub) ask(r *rollout, questions []rollouts.Question) {
	for _, q := range questions {
		if !slices.ContainsFunc(h.asked, func(a asked) bool {
			return a.rollout == r && a.Wave == q.Wave && a.Gate == q.Gate
		}) {
			h.asked = append(h.asked, asked{r, q})
		}
	}
}

// hear makes Prometheus answer all questions of a hub.
func (h *hub) hear(s *simulation) {
	for _, a := range h.asked {
		if h.answers == nil {
			h.answers = map[*rollout][]rollouts.Answer{}
		}
		// A pass that has begun continues with the answers from its start.
		others := slices.DeleteFunc(slices.Clone(h.answers[a.rollout]), func(known rollouts.Answer) bool {
			return known.Wave == a.Wave && known.Gate == a.Gate
		})
		h.answers[a.rollout] = append(others, s.measure(a))
	}
	h.asked = nil
}

// measure answers a question: with an error, without data, good or bad.
func (sim *simulation) measure(a asked) rollouts.Answer {
	if a.Wave == "" {
		return sim.measureBudget(a)
	}
	answer := rollouts.Answer{Question: a.Question}
	n := sim.rng.IntN(100)
	if sim.isCalm {
		n = 50
	}
	truth := measurement{clusters: a.Clusters}
	outcome := "good"
	switch {
	case n < 8:
		outcome, answer.Failure = "an error", "Prometheus is down"
		answer.Results = goodResults(a.Question) // an error never counts as success, whatever comes with it
	case n < 16:
		outcome, answer.Results = "no data", map[string]rollouts.Result{}
	case n < 20:
		outcome, answer.Results = "gaps", with(goodResults(a.Question), "covered", ofClusters())
		answer.Results["value"] = vector()
	case sim.burns || n > 95:
		outcome, truth.bad, answer.Results = "bad", true, badResults(a.Question)
	default:
		truth.good, answer.Results = true, goodResults(a.Question)
	}
	ro := a.rollout.now()
	key := gateKey(ro, a.Wave, a.Gate, a.At)
	if other, both := sim.answers[key]; both { // two hubs asked at the same time
		truth.good, truth.bad = truth.good || other.good, truth.bad || other.bad
	}
	sim.answers[key] = truth
	sim.log("gate %s of %s/%s is measured over %s: %s", a.Gate, ro.Name, a.Wave, a.At.Sub(a.Since), outcome)
	return answer
}

func goodResults(q rollouts.Question) map[string]rollouts.Result {
	return resultsOf(q, 0)
}

func badResults(q rollouts.Question) map[string]rollouts.Result {
	return resultsOf(q, 900)
}

// resultsOf returns results for all kinds of gates, with this number of bad slices of 1000.
func resultsOf(q rollouts.Question, bad float64) map[string]rollouts.Result {
	results := baselineResults(bad, 1000, 0, 1000)
	results["objectives"] = vector(ofSLI("reconcile", 0.99))
	results["covered"] = ofClusters(q.Clusters...)
	results["value"] = vector(rollouts.Sample{Value: bad})
	return results
}

func overridden(ro *v1alpha1.OperatorRollout, wave, gate string) bool {
	return slices.ContainsFunc(ro.Spec.Overrides,
		func(o v1alpha1.GateOverride) bool { return o.Wave == wave && o.Gate == gate })
}

// overrideGates lets a person override gates of the newest rollout.
func (sim *simulation) overrideGates(r *rollout, which func(v1alpha1.GateStatus) bool) {
	sim.putRollout(r, r.now().ResourceVersion, func(ro *v1alpha1.OperatorRollout) {
		for _, wave := range ro.Status.Waves {
			for _, g := range wave.Gates {
				if which(g) && !g.Approval && !overridden(ro, wave.Name, g.Name) {
					ro.Spec.Overrides = append(ro.Spec.Overrides,
						v1alpha1.GateOverride{Wave: wave.Name, Gate: g.Name, By: "ann", Reason: "known"})
				}
			}
		}
	})
}

// isHeldByGate reports whether nothing but a gate without a verdict holds a rollout.
func isHeldByGate(ro *v1alpha1.OperatorRollout) bool {
	for _, wave := range ro.Status.Waves {
		for _, g := range wave.Gates {
			if g.WaitingSince != nil && g.Verdict == v1alpha1.GateWaiting {
				return true
			}
		}
	}
	return false
}

// checkGates: when a wave is verified, each gate of it that measures was overridden,
// or has a good measurement that is recent, long enough, of all its clusters, and
// that begins after each of them was updated.
func (sim *simulation) checkGates(p *hubPass, wave v1alpha1.WaveStatus, spec v1alpha1.Wave) {
	ro := p.read
	if sim.unobserved[string(ro.UID)+wave.Name] {
		return // there was nothing to measure
	}
	for i, g := range spec.Gates {
		if g.Approval != nil || overridden(ro, wave.Name, g.Name) {
			continue
		}
		m := wave.Gates[i].Measurement
		if m == nil {
			sim.violate("wave %s is verified, and gate %s was never measured", wave.Name, g.Name)
			continue
		}
		truth := sim.answers[gateKey(ro, wave.Name, g.Name, m.At.Time)]
		if !truth.good {
			sim.violate("wave %s is verified, and gate %s was not good at %s", wave.Name, g.Name, m.At)
		}
		if m.Window.Duration < rollouts.GateWindow(g) || p.in.Now.Sub(m.At.Time) > 2*time.Minute {
			sim.violate("wave %s is verified by gate %s, measured over %s, %s ago", wave.Name, g.Name,
				m.Window.Duration,
				p.in.Now.Sub(m.At.Time))
		}
		sim.checkMeasured(p, wave.Name, g.Name, truth, m.At.Add(-m.Window.Duration))
	}
}

func (sim *simulation) checkMeasured(p *hubPass, wave, gate string, truth measurement, since time.Time) {
	fit := map[string]bool{}
	for _, c := range p.in.Clusters {
		fit[c.Name] = c.Online && !c.Paused && !c.Deleting && c.Labels["fleet"] == "yes"
	}
	for _, i := range p.view {
		if i.Rollout != p.read.Name || i.Wave != wave || !i.isUpdated() || i.Stamp.Hash != p.read.Spec.Release.Hash() {
			continue
		}
		if fit[i.Cluster] && !i.Deleting && !slices.Contains(truth.clusters, i.Cluster) {
			sim.violate("wave %s is verified by gate %s, which did not measure %s", wave, gate, i.Cluster)
		}
		e := sim.entry(i)
		if e != nil && i.Stamp.RolloutUID == string(p.read.UID) && !sim.left[i.Cluster] && e.succeededRV <= i.rv &&
			since.Before(e.succeededAt) {
			sim.violate("gate %s of wave %s measured from %s on, before %s was updated at "+
				"%s", gate, wave, since, i.Cluster,
				e.succeededAt)
		}
	}
}

// checkEntered: no wave is entered before every gate of the waves before it passed
// or was overridden.
func (sim *simulation) checkEntered(ro *v1alpha1.OperatorRollout, wave string, place int) {
	for _, before := range ro.Status.Waves[:place] {
		spec, _ := strategyWave(ro, before.Name)
		for i, g := range spec.Gates {
			if g.Approval != nil || sim.unobserved[string(ro.UID)+before.Name] ||
				before.Phase == v1alpha1.WaveSkipped {
				continue
			}
			if i >= len(before.Gates) || !before.Gates[i].IsPassed() {
				sim.violate("wave %s is entered before gate %s of wave %s passed", wave, g.Name, before.Name)
			}
		}
	}
}

// checkFailures: a gate that failed stays so until it is overridden or the rollout
// is tried again.
func (sim *simulation) checkFailures(p *hubPass) {
	for i, was := range p.read.Status.Waves {
		for _, g := range was.Gates {
			if g.Verdict != v1alpha1.GateFailed || i >= len(p.d.Status.Waves) {
				continue
			}
			for _, is := range p.d.Status.Waves[i].Gates { // a policy may be gone, and its gate with it
				if is.Name == g.Name && is.Verdict != v1alpha1.GateFailed && is.Verdict != v1alpha1.GateOverridden &&
					p.read.Spec.Retries <= g.Retries {
					sim.violate("gate %s of wave %s had failed and is %s", g.Name, was.Name, is.Verdict)
				}
			}
		}
	}
}

// hasFailedGate reports whether a gate of the rollout failed by a bad measurement.
func (sim *simulation) hasFailedGate(ro *v1alpha1.OperatorRollout) bool {
	for _, wave := range ro.Status.Waves {
		for _, g := range wave.Gates {
			if g.Verdict == v1alpha1.GateFailed &&
				sim.answers[gateKey(ro, wave.Name, g.Name, g.Measurement.At.Time)].bad {
				return true
			}
		}
	}
	return false
}
