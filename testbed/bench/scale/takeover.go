// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/hollow"
	"github.com/bellwether-dev/bellwether/testbed/hollow/stage"
	"github.com/bellwether-dev/bellwether/testbed/poll"
)

// TakeoverOptions say how the death of a leader is measured.
type TakeoverOptions struct {
	Clusters, Runs int
	LeaseEvery     time.Duration
	Seed           uint64
}

// takeover is what followed the death of a leader, each from that time on.
type takeover struct{ leads, acts, finished time.Duration }

// MeasureTakeover kills the leading one of two hubs in the middle of a rollout, and measures how long it takes until
// the other one leads, admits a cluster, and has finished the rollout.
func MeasureTakeover(ctx context.Context, out io.Writer, o TakeoverOptions) (figure.Section, error) {
	section := figure.Section{Key: "scale-takeover", Title: "The death of the leading hub"}
	h := Options{LeaseEvery: o.LeaseEvery, Seed: o.Seed}.hollow()
	// The rollout must not be over before the leader is dead.
	h.Install = hollow.Delay{Median: 2 * time.Second}
	l, err := startLab(ctx, out, setup{clusters: o.Clusters, operators: 1, hollow: h})
	if err != nil {
		return section, err
	}
	all, err := l.takeovers(ctx, o.Runs)
	if stopErr := l.stop(context.WithoutCancel(ctx), err != nil && ctx.Err() == nil); err == nil {
		err = stopErr
	}
	if err != nil {
		return section, err
	}
	for _, r := range []struct {
		name string
		of   func(takeover) time.Duration
	}{
		{"killed to the other hub leads", func(t takeover) time.Duration { return t.leads }},
		{"killed to the other hub's first admission", func(t takeover) time.Duration { return t.acts }},
		{"killed to the end of the rollout", func(t takeover) time.Duration { return t.finished }},
	} {
		var times []time.Duration
		for _, t := range all {
			times = append(times, r.of(t))
		}
		section.Rows = append(section.Rows, figure.Row{Name: fmt.Sprintf("%d clusters, %s", o.Clusters, r.name),
			Ours: figure.Duration(figure.Median(times)), Runs: len(times)})
	}
	section.Detail = "Two hubs run; the leading one is killed (SIGKILL) when a third of a rollout's clusters are " +
		"done. `--leader-election-lease-duration` is 15 seconds, its default: that long the other one waits for the " +
		"leader that fell silent. It has read everything by then. OLM takes 2 seconds for each installation."
	return section, nil
}

func (l *lab) takeovers(ctx context.Context, times int) ([]takeover, error) {
	if _, err := l.rollOut(ctx, 1, 0, 1); err != nil {
		return nil, err
	}
	var all []takeover
	for n := range times {
		t, err := l.takeover(ctx, n+1)
		if err != nil {
			return nil, err
		}
		l.say("takeover: leads after %s, acts after %s, rollout finished after %s", t.leads, t.acts, t.finished)
		all = append(all, t)
	}
	return all, nil
}

func (l *lab) takeover(ctx context.Context, version int) (takeover, error) {
	var t takeover
	heir, err := l.anotherHub(ctx)
	if err != nil {
		return t, err
	}
	leader := l.hub
	l.hub = heir // what is stopped at the end
	defer leader.Kill()
	if _, err := l.untilIdle(ctx, leader); err != nil {
		return t, err
	}
	operator := stage.Operator(0, version, map[string]string{stage.LabelFleet: fleetName},
		stage.Waves(5, len(l.names)))
	if err := l.Set(ctx, operator); err != nil {
		return t, err
	}
	if err := l.untilPart(ctx, catalogtest.Version(version), len(l.names)/3); err != nil {
		return t, err
	}
	began := time.Now()
	leader.Kill()
	group, ctx := errgroup.WithContext(ctx)
	until := func(to *time.Duration, metric string, least float64) {
		group.Go(func() error {
			err := poll.Until(ctx, look, func() error {
				m, err := heir.Metrics(ctx)
				if err != nil {
					return err
				}
				if m.Sum(metric) < least {
					return fmt.Errorf("%s of the other hub is %v", metric, m.Sum(metric))
				}
				return nil
			})
			*to = time.Since(began)
			return err
		})
	}
	until(&t.leads, "leader_election_master_status", 1)
	until(&t.acts, series.RolloutAdmissionsTotal, 1)
	group.Go(func() error {
		_, err := l.UntilRolledOut(ctx, catalogtest.Version(version), 1, v1alpha1.RolloutSucceeded)
		t.finished = time.Since(began)
		return err
	})
	return t, group.Wait()
}

// untilPart waits until a rollout has brought so many clusters to its release.
func (l *lab) untilPart(ctx context.Context, version string, clusters int) error {
	return l.UntilRollout(ctx, version, func(r *v1alpha1.OperatorRollout) bool {
		return int(r.Status.Clusters.Succeeded) >= clusters
	})
}
