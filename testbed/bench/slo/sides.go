// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"iter"
	"strings"
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
	// rounds are measured: as many as the slowest group waits, or a multiple of that.
	rounds float64
	// Before that, rehearsals of all groups fill what they read of each other.
	rehearsals int
}

// Names of the sides. Idle has no rules: what it takes is for scraping alone.
const (
	idle       = "no rules"
	bellwether = "Bellwether"
	sloth      = "sloth"
	slothFleet = "sloth-fleet"
	pyrra      = "pyrra"
)

// sides are those to measure, the one with the most to do at last; together adds sloth with one objective for all
// operators.
func sides(f *fleet.Fleet, together bool) ([]side, error) {
	built, err := slo.Build(ours())
	if err != nil {
		return nil, fmt.Errorf("build rules: %w", err)
	}
	rules := map[string][]monitoringv1.RuleGroup{}
	for peer := range versions {
		if rules[peer], err = peerRules(peer, f.Size().Operators); err != nil {
			return nil, err
		}
	}
	none := func(func(fleet.Series) bool) {}
	all := []side{
		{name: idle, recorded: none, rounds: 4},
		// From slices over windows and burn rates to alerts it takes four rehearsals. The peers' rules read what was
		// scraped and what is in their history, but for some that cost little.
		{name: bellwether, groups: built.All(), recorded: recordedByUs(f), rounds: 4, rehearsals: 4},
		{name: sloth, groups: rules[sloth], recorded: recordedBySloth(f, rules[sloth], false), rounds: 2},
	}
	if together {
		all = append(all, side{name: slothFleet, groups: rules[slothFleet],
			recorded: recordedBySloth(f, rules[slothFleet], true), rounds: 2})
	}
	return append(all, side{name: pyrra, groups: rules[pyrra], recorded: none, rounds: 2.5}), nil
}

// slug is a name for a folder.
func (s side) slug() string { return strings.ToLower(strings.ReplaceAll(s.name, " ", "-")) }

// batches are the sides that are measured at the same time. All but pyrra's leave two cores time to spare, and so
// hardly disturb each other; pyrra's need one for themselves.
func batches(all []*subject) [][]*subject { return [][]*subject{all[:len(all)-1], all[len(all)-1:]} }

// rules is the number of rules.
func (s side) rules() int {
	n := 0
	for _, g := range s.groups {
		n += len(g.Rules)
	}
	return n
}

// ownInterval is a group's interval, or 0 if it leaves that to Prometheus.
func ownInterval(g monitoringv1.RuleGroup) time.Duration {
	if g.Interval == nil {
		return 0
	}
	d, err := model.ParseDuration(string(*g.Interval))
	if err != nil {
		return 0 // Prometheus refuses it with a better message
	}
	return time.Duration(d)
}

// intervals is how long a group waits from one evaluation to the next.
type intervals func(own time.Duration) time.Duration

// every takes a group's own interval, but none below a round: pyrra asks for 30 s, and everybody else evaluates each
// minute. A round that is not a minute makes all of them longer or shorter.
func every(round time.Duration) intervals {
	factor := round.Minutes()
	return func(own time.Duration) time.Duration { return time.Duration(float64(max(own, time.Minute)) * factor) }
}

// rehearse evaluates all groups equally often.
func rehearse(round time.Duration) intervals {
	return func(time.Duration) time.Duration { return round / 3 }
}

// file is a rule file with other intervals; nil if there are no rules.
func (s side) file(in intervals) (map[string][]byte, error) {
	if len(s.groups) == 0 {
		return nil, nil
	}
	var groups []monitoringv1.RuleGroup
	for _, g := range s.groups {
		interval := monitoringv1.Duration(model.Duration(in(ownInterval(g))).String())
		g.Interval = &interval
		groups = append(groups, g)
	}
	text, err := slo.File(groups)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"bench.yaml": text}, nil
}
