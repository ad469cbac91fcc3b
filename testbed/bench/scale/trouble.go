// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/hollow"
	"github.com/bellwether-dev/bellwether/testbed/hollow/stage"
	"github.com/bellwether-dev/bellwether/testbed/poll"
)

// TroubleOptions say how fleets in trouble are measured.
type TroubleOptions struct {
	Clusters   int
	Shares     []float64
	LeaseEvery time.Duration
	Seed       uint64
}

// condition is what part of a fleet suffers from.
type condition struct {
	name string
	hollow.Trouble
}

// conditions are those of a share of the fleet.
func (o TroubleOptions) conditions(share float64) []condition {
	lease := 3 * o.LeaseEvery
	return []condition{
		{fmt.Sprintf("%.0f %% unreachable", 100*share), hollow.Trouble{Share: share}},
		// Long enough to be noticed, and back for about as long.
		{fmt.Sprintf("%.0f %% flapping", 100*share), hollow.Trouble{Share: share,
			Up: hollow.Delay{Median: lease, Spread: 0.5}, Down: hollow.Delay{Median: 2 * lease, Spread: 0.5}}},
	}
}

// healthy are how long healthy clusters took to Ready: from the change of the ManagedOperator, and from their
// admission.
type healthy struct {
	condition
	changed, admitted []time.Duration
}

// Of the time that OLM takes on a cluster; short, so that what the hub takes shows.
const (
	resolves = 200 * time.Millisecond
	installs = 800 * time.Millisecond
)

// MeasureTrouble measures how long healthy clusters take to Ready while others are cut off.
func MeasureTrouble(ctx context.Context, out io.Writer, o TroubleOptions) (figure.Section, error) {
	section := figure.Section{Key: "scale-trouble", Title: "Healthy clusters while others are cut off"}
	h := Options{LeaseEvery: o.LeaseEvery, Seed: o.Seed}.hollow()
	h.Install = hollow.Delay{Median: installs, Spread: 0.2}
	h.Resolve = hollow.Delay{Median: resolves, Spread: 0.2}
	l, err := startLab(ctx, out, setup{clusters: o.Clusters, operators: 1, hollow: h})
	if err != nil {
		return section, err
	}
	all, err := l.troubles(ctx, o)
	if stopErr := l.stop(context.WithoutCancel(ctx), err != nil && ctx.Err() == nil); err == nil {
		err = stopErr
	}
	if err != nil {
		return section, err
	}
	reportTrouble(&section, o, all)
	return section, nil
}

// troubles rolls a version out for each condition, with one rollout in an untroubled fleet before and after all of
// them.
func (l *lab) troubles(ctx context.Context, o TroubleOptions) ([]healthy, error) {
	if _, err := l.rollOut(ctx, 1, 0, 1); err != nil {
		return nil, err
	}
	conditions := []condition{{name: "no trouble"}}
	for _, share := range o.Shares {
		conditions = append(conditions, o.conditions(share)...)
	}
	conditions = append(conditions, condition{name: "no trouble, at the end"})
	var all []healthy
	for i, c := range conditions {
		h, err := l.trouble(ctx, c, i+1)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", c.name, err)
		}
		l.say("%s: healthy clusters took %s in the median and %s at the 90th percentile", c.name,
			figure.Median(h.changed).Round(time.Millisecond), figure.Quantile(h.changed, 0.9).Round(time.Millisecond))
		all = append(all, h)
	}
	return all, nil
}

func (l *lab) trouble(ctx context.Context, c condition, version int) (healthy, error) {
	all := healthy{condition: c}
	outage, end := context.WithCancel(ctx)
	defer end()
	hit := l.fleet.Disturb(outage, c.Trouble)
	if len(hit) > 0 && c.Down.Median == 0 {
		if err := l.UntilOffline(ctx, fleetName, hit); err != nil {
			return all, err
		}
	}
	before := l.revision()
	o := stage.Operator(0, version, map[string]string{stage.LabelFleet: fleetName}, stage.Waves(1, len(l.names)))
	began := time.Now()
	if err := l.Set(ctx, o); err != nil {
		return all, err
	}
	well := len(l.names) - len(hit)
	if err := poll.Until(ctx, look, func() error {
		all.changed, all.admitted = nil, nil
		for _, change := range l.fleet.Changes() {
			changed := before[change.Cluster] != change.Hash && !change.Ready.IsZero()
			if _, cut := slices.BinarySearch(hit, change.Cluster); changed && !cut {
				all.changed = append(all.changed, change.Ready.Sub(began))
				all.admitted = append(all.admitted, change.Ready.Sub(change.Admitted))
			}
		}
		if len(all.changed) < well {
			return fmt.Errorf("%d of %d healthy clusters run the version", len(all.changed), well)
		}
		return nil
	}); err != nil {
		return all, err
	}
	end()
	return all, l.untilAll(ctx, version)
}

// revision is what each cluster was admitted to last.
func (l *lab) revision() map[string]string {
	all := map[string]string{}
	for _, change := range l.fleet.Changes() {
		all[change.Cluster] = change.Hash
	}
	return all
}

// untilAll waits until all clusters are online and run the version.
func (l *lab) untilAll(ctx context.Context, version int) error {
	if err := l.UntilOnline(ctx, fleetName, len(l.names)); err != nil {
		return err
	}
	return l.UntilRollout(ctx, catalogtest.Version(version), func(r *v1alpha1.OperatorRollout) bool {
		return int(r.Status.Clusters.Succeeded) == len(l.names)
	})
}

func reportTrouble(section *figure.Section, o TroubleOptions, all []healthy) {
	first, last := all[0], all[len(all)-1]
	for _, of := range []struct {
		name  string
		times func(healthy) []time.Duration
	}{
		{"from the change of the operator", func(h healthy) []time.Duration { return h.changed }},
		{"from the cluster's admission", func(h healthy) []time.Duration { return h.admitted }},
	} {
		untroubled := slices.Concat(of.times(first), of.times(last))
		for _, h := range all[1 : len(all)-1] {
			section.Rows = append(section.Rows,
				troubleRow(h.name+", "+of.name+", median", figure.Median(of.times(h)), figure.Median(untroubled)),
				troubleRow(h.name+", "+of.name+", 90th percentile", figure.Quantile(of.times(h), 0.9),
					figure.Quantile(untroubled, 0.9)))
		}
	}
	section.Detail = fmt.Sprintf("Times end when a cluster is Ready, as the agents' watch sees it, and are those of "+
		"the clusters that are not cut off, of %d, all in one wave. The peer is the same fleet without trouble, "+
		"before and after; its medians from the change were %s and %s. OLM takes about a second of each time. A "+
		"cluster that flaps is cut off for about %s and back for about %s, in turn.", o.Clusters,
		figure.Median(first.changed).Round(time.Millisecond), figure.Median(last.changed).Round(time.Millisecond),
		6*o.LeaseEvery, 3*o.LeaseEvery)
}

func troubleRow(name string, ours, untroubled time.Duration) figure.Row {
	row := figure.Row{Name: name, Ours: figure.Duration(ours), Peer: figure.Duration(untroubled),
		Promise: figure.AtMost(1.1), Runs: 1}
	row.Ratio = figure.Ratio(row.Ours, row.Peer)
	return row
}
