// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgrade measures how long an upgrade of the sample operator takes from the moment that somebody wants it
// until OLM calls its CSV Succeeded: with Bellwether, from the hub's admission, and with OLM alone, from the moment
// that the catalog holds the new version. Both work in turn on the same cluster. It measures rollbacks in the same way.
//
// OLM alone has everything in its favour: its Subscription approves automatically, its catalog is a server in memory,
// and the server drops OLM's connection when the new version appears, which makes OLM resolve at once. Without that it
// would look again only after minutes.
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/bench/lab"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
)

// Options say how much to measure.
type Options struct {
	// Pairs of runs, ours and OLM's alone.
	Pairs int
	// Settle is how long the cluster may come to rest before each measurement.
	Settle time.Duration
}

const (
	from, to = "1.0.0", "1.1.0"
	// maxRatio is what was promised.
	maxRatio = 1.3
)

// Measure runs the benchmark; out receives a line per step.
func Measure(ctx context.Context, out io.Writer, o Options) (section figure.Section, err error) {
	l, err := lab.Start(ctx, out, "upgrade", map[string]string{
		bundle.OperatorImage: build.EchoOperator,
	})
	if err != nil {
		return figure.Section{}, err
	}
	defer func() {
		err = errors.Join(err, l.Stop(context.WithoutCancel(ctx), err != nil && ctx.Err() == nil))
	}()
	ours, err := newSteered(ctx, l)
	if err != nil {
		return figure.Section{}, err
	}
	defer ours.stop(context.WithoutCancel(ctx))
	alone, err := newAlone(l)
	if err != nil {
		return figure.Section{}, err
	}
	defer alone.stop()
	var pairs []pair
	for i := 1; i <= o.Pairs; i++ {
		var p pair
		if p.ours, err = run(ctx, l, ours, i, o.Settle); err != nil {
			return figure.Section{}, fmt.Errorf("measure Bellwether: %w", err)
		}
		say(out, "upgrade %d/%d with Bellwether: %s\n", i, o.Pairs, p.ours)
		if p.alone, err = run(ctx, l, alone, i, o.Settle); err != nil {
			return figure.Section{}, fmt.Errorf("measure OLM alone: %w", err)
		}
		say(out, "upgrade %d/%d with OLM alone:  %s, ratio %.2f\n", i, o.Pairs, p.alone, p.ratio(succeeded))
		pairs = append(pairs, p)
	}
	return report(pairs), nil
}

// say shows progress. That nobody can see it is no reason to stop.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

// contender changes an operator's version in one way.
type contender interface {
	// name is part of a namespace's name.
	name() string
	// prepare brings the cluster to the version in a namespace from which it starts.
	prepare(ctx context.Context, namespace string) error
	// start begins the clock at time zero, starts what is measured and returns. It sees to it that the clock learns of
	// phases that are not to be seen in the namespace.
	start(ctx context.Context, c *clock) error
	// ends are the phases to wait for.
	ends() []phase
	// cleanUp leaves nothing in the namespace.
	cleanUp(ctx context.Context) error
}

// run measures one upgrade from an empty cluster to an empty cluster.
func run(ctx context.Context, l *lab.Lab, c contender, round int, settle time.Duration) (timeline, error) {
	var times timeline
	measure := func(ctx context.Context, namespace string) (err error) {
		if err := lab.Settle(ctx, settle); err != nil {
			return err
		}
		times, err = watched(ctx, l, c, namespace, to)
		return err
	}
	return times, inEmptyCluster(ctx, l, c, round, measure)
}

// inEmptyCluster prepares a contender, measures, and cleans up.
func inEmptyCluster(ctx context.Context, l *lab.Lab, c contender, round int,
	measure func(ctx context.Context, namespace string) error) error {
	namespace := fmt.Sprintf("%s-%d", c.name(), round)
	if err := c.prepare(ctx, namespace); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	if err := measure(ctx, namespace); err != nil {
		return err
	}
	if err := c.cleanUp(ctx); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return removeCRD(ctx, l)
}
