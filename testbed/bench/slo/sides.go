// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"iter"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/testbed/bench/slo/fleet"
)

// side is a Prometheus with one tool's rules.
type side struct {
	name   string
	groups []monitoringv1.RuleGroup
	// recorded is what these rules recorded in the past and still read.
	recorded iter.Seq[fleet.Series]
	// rounds are measured: as many as the slowest group waits.
	rounds float64
	// Before that, rehearsals of all groups fill what they read of each other; pace is how many there are in a round.
	rehearsals, pace int
}

// Names of the sides. Idle has no rules: what it takes is for scraping alone.
const (
	idle       = "no rules"
	bellwether = "Bellwether"
	sloth      = "sloth"
	pyrra      = "pyrra"
)

func sides(f *fleet.Fleet) ([]side, error) {
	built, err := slo.Build(ours())
	if err != nil {
		return nil, fmt.Errorf("build rules: %w", err)
	}
	ofSloth, err := peerRules(sloth, slothVersion, f.Size().Operators)
	if err != nil {
		return nil, err
	}
	ofPyrra, err := peerRules(pyrra, pyrraVersion, f.Size().Operators)
	if err != nil {
		return nil, err
	}
	none := func(func(fleet.Series) bool) {}
	return []side{
		{name: idle, recorded: none, rounds: 4},
		// From slices over windows and burn rates to alerts it takes four rehearsals.
		{name: bellwether, groups: built.All(), recorded: recordedByUs(f), rounds: 4, rehearsals: 4, pace: 3},
		{name: sloth, groups: ofSloth, recorded: recordedBySloth(f, ofSloth), rounds: 4, rehearsals: 1, pace: 1},
		// Its rules read only what is scraped, and of their own what is a few minutes old.
		{name: pyrra, groups: ofPyrra, recorded: none, rounds: 2.5, rehearsals: 1, pace: 1},
	}, nil
}

// batches are the sides that are measured at the same time. The first three leave most of two cores idle, and so do not
// disturb each other; pyrra needs one for itself.
func batches(all []side, inTurn bool) [][]side {
	if !inTurn {
		return [][]side{all[:3], all[3:]}
	}
	var out [][]side
	for _, s := range all {
		out = append(out, []side{s})
	}
	return out
}

// count is the number of rules.
func (s side) count() int {
	n := 0
	for _, g := range s.groups {
		n += len(g.Rules)
	}
	return n
}

// intervals is how long a group waits from one evaluation to the next.
type intervals func(own time.Duration) time.Duration

// every takes a group's own interval, but none below a round: pyrra asks for 30 s, and everybody else evaluates each minute.
// A round that is not a minute makes all of them longer or shorter.
func every(round time.Duration) intervals {
	factor := round.Minutes()
	return func(own time.Duration) time.Duration { return time.Duration(float64(max(own, time.Minute)) * factor) }
}

// rehearse evaluates all groups equally often.
func (s side) rehearse(round time.Duration) intervals {
	return func(time.Duration) time.Duration { return round / time.Duration(s.pace) }
}

// file is a rule file with other intervals; nil if there are no rules.
func (s side) file(in intervals) (map[string][]byte, error) {
	if len(s.groups) == 0 {
		return nil, nil
	}
	var groups []monitoringv1.RuleGroup
	for _, g := range s.groups {
		own := time.Duration(0)
		if g.Interval != nil {
			d, err := model.ParseDuration(string(*g.Interval))
			if err != nil {
				return nil, fmt.Errorf("read interval of %s: %w", g.Name, err)
			}
			own = time.Duration(d)
		}
		interval := monitoringv1.Duration(model.Duration(in(own)).String())
		g.Interval = &interval
		groups = append(groups, g)
	}
	text, err := slo.File(groups)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"bench.yaml": text}, nil
}
