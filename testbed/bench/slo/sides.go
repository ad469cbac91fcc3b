// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"iter"
	"strconv"
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
	fleet  *fleet.Fleet
	// part of our rules. With the hub part, what is scraped is what clusters send.
	part slo.Part
	// history is how many minutes of it there are, and raw how many minutes of what is scraped.
	history, raw int
	// recorded is what these rules recorded in the past and still read.
	recorded iter.Seq[fleet.Series]
	// Before they are measured, rehearsals of all groups fill what they read of each other.
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

// sides are those to compare, the one with the most to do at last; together adds sloth with one objective for all
// operators.
func sides(f *fleet.Fleet, together bool) ([]side, error) {
	us, err := ourSide(f, slo.Whole)
	if err != nil {
		return nil, err
	}
	rules := map[string][]monitoringv1.RuleGroup{}
	for peer := range versions {
		if rules[peer], err = peerRules(peer, f.Size().Operators); err != nil {
			return nil, err
		}
	}
	none := func(func(fleet.Series) bool) {}
	end := f.Size().History
	// The peers' rules read what was scraped and what is in their history, but for some that cost little.
	peer := func(name string, recorded iter.Seq[fleet.Series]) side {
		return side{name: name, groups: rules[name], fleet: f, recorded: recorded, history: min(end, slowest),
			raw: min(end, slowest)}
	}
	all := []side{
		{name: idle, fleet: f, recorded: none, history: min(end, recent), raw: min(end, recent)}, us,
		peer(sloth, recordedBySloth(f, rules[sloth], false)),
	}
	if together {
		all = append(all, peer(slothFleet, recordedBySloth(f, rules[slothFleet], true)))
	}
	return append(all, peer(pyrra, none)), nil
}

// ourSide is a Prometheus with our rules. From slices over windows and burn rates to alerts it takes four rehearsals.
func ourSide(f *fleet.Fleet, part slo.Part) (side, error) {
	built, err := slo.BuildPart(ours(), part)
	if err != nil {
		return side{}, fmt.Errorf("build rules: %w", err)
	}
	name := bellwether
	if part != slo.Whole {
		name += ", " + string(part) + " part"
	}
	end := f.Size().History
	return side{name: name, groups: built.All(), fleet: f, part: part, recorded: recordedByUs(f, part), history: end,
		raw: min(end, recent), rehearsals: 4}, nil
}

// exposed is what is scraped of a cluster, or sent by it.
func (s side) exposed(cluster int, begin time.Time) iter.Seq[fleet.Series] {
	if s.part == slo.Hub {
		return sent(s.fleet, cluster, begin)
	}
	return s.fleet.Exported(cluster)
}

// target are the labels that what is scraped gets.
func (s side) target(cluster int) map[string]string {
	labels := fleet.Target(cluster)
	if s.part == slo.Hub {
		delete(labels, "instance")
		delete(labels, "job")
	}
	return labels
}

// slug is a name for a folder.
func (s side) slug() string {
	name := strings.ToLower(strings.NewReplacer(" ", "-", ",", "").Replace(s.name))
	return name + "-" + strconv.Itoa(s.fleet.Size().Clusters)
}

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

// file is a rule file with other intervals; nil if there are no rules. Delays are shorter in rounds that are shorter
// than a minute.
func (s side) file(round time.Duration, in intervals) (map[string][]byte, error) {
	if len(s.groups) == 0 {
		return nil, nil
	}
	var groups []monitoringv1.RuleGroup
	for _, g := range s.groups {
		interval := monitoringv1.Duration(model.Duration(in(ownInterval(g))).String())
		g.Interval = &interval
		if g.QueryOffset != nil {
			delay := time.Duration(float64(slo.QueryOffset) * round.Minutes())
			g.QueryOffset = new(monitoringv1.Duration(model.Duration(delay).String()))
		}
		groups = append(groups, g)
	}
	text, err := slo.RuleFile(groups)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"bench.yaml": text}, nil
}
