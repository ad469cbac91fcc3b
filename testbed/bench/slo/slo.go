// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slo compares what rules of SLOs cost in a real Prometheus: Bellwether's, and those that sloth and pyrra make of the
// same objectives.
//
// A made-up fleet (package fleet) is scraped, with some days of history. Each side has a Prometheus of its own with that data
// and its rules; one has none, which shows what everything but the rules costs. The peers' rules are data, made beforehand:
// see testdata/README.md.
package slo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/bench/slo/fleet"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
	"github.com/bellwether-dev/bellwether/testbed/runs"
)

// Options say how much to measure.
type Options struct {
	Fleet fleet.Size
	// Round is how often what has to be fresh is scraped and evaluated. What is measured is worth something at the default of a
	// minute only.
	Round time.Duration
	// InTurn has only one Prometheus run at a time, which takes longer.
	InTurn bool
}

const (
	// warmLimit bounds how long rehearsals take.
	warmLimit = 10 * time.Minute
	look      = 500 * time.Millisecond
)

// result is what one side showed.
type result struct {
	side
	prometheus.RuleState

	// cpu is what the processors did in all rounds.
	cpu time.Duration
	// evaluations of rules, in all rounds.
	evaluations int
	// memory is the most that was seen.
	memory int64
	alerts int
}

// bench is a benchmark under way.
type bench struct {
	Options

	out      io.Writer
	dir      string
	binaries map[string]string
	fleet    *fleet.Fleet
}

// Measure runs the benchmark; out receives a line per step.
func Measure(ctx context.Context, out io.Writer, o Options) (figure.Section, error) {
	if o.Round == 0 {
		o.Round = time.Minute
	}
	results, err := measure(ctx, out, o)
	if err != nil {
		return figure.Section{}, err
	}
	return report(o, results), nil
}

func measure(ctx context.Context, out io.Writer, o Options) (results []result, err error) {
	run, err := runs.Claim(ctx, fmt.Sprintf("bench-slo-%d", os.Getpid()))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, run.Release(err != nil && ctx.Err() == nil)) }()
	b := &bench{Options: o, out: out, dir: run.Dir()}
	if b.binaries, err = build.Ensure(ctx, out, build.Prometheus, build.BlockWriter); err != nil {
		return nil, err
	}
	if b.fleet, err = fleet.New(o.Fleet); err != nil {
		return nil, err
	}
	all, err := sides(b.fleet)
	if err != nil {
		return nil, err
	}
	for _, batch := range batches(all, o.InTurn) {
		of, err := b.batch(ctx, batch)
		if err != nil {
			return nil, err
		}
		results = append(results, of...)
	}
	return results, nil
}

// say shows progress. That nobody can see it is no reason to stop.
func (b *bench) say(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format, args...) }

// batch measures some sides at the same time.
func (b *bench) batch(ctx context.Context, batch []side) (results []result, err error) {
	begin := time.Now().Truncate(time.Second)
	exporter, err := startExporter(ctx, b.fleet, begin)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, exporter.stop()) }()
	var all []*subject
	defer func() {
		for _, s := range all {
			s.server.Stop(context.WithoutCancel(ctx))
			err = errors.Join(err, os.RemoveAll(s.dir))
		}
	}()
	for _, s := range batch {
		dir := filepath.Join(b.dir, fmt.Sprintf("prometheus-%d", len(all)))
		b.say("%s: writing %d minutes of history\n", s.name, b.fleet.Size().History)
		if err := fill(ctx, b.binaries[build.BlockWriter], dir, b.fleet, s, begin); err != nil {
			return nil, err
		}
		server, err := b.start(ctx, dir, s, exporter)
		if err != nil {
			return nil, fmt.Errorf("start Prometheus with %s: %w", s.name, err)
		}
		all = append(all, &subject{bench: b, side: s, dir: dir, server: server})
	}
	if err := together(ctx, all, (*subject).warm); err != nil {
		return nil, err
	}
	b.say("measuring rounds of %s\n", b.Round)
	if err := together(ctx, all, (*subject).observe); err != nil {
		return nil, err
	}
	for _, s := range all {
		results = append(results, s.result)
	}
	return results, nil
}

// together does a step with all of them at once.
func together(ctx context.Context, all []*subject, step func(*subject, context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range all {
		group.Go(func() error {
			if err := step(s, ctx); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// start runs a Prometheus on its history. Compactions would be measured, too, and depend on nothing but luck; small blocks are
// never compacted.
func (b *bench) start(ctx context.Context, dir string, s side, e *exporter) (*prometheus.Server, error) {
	rules, err := s.file(s.rehearse(b.Round))
	if err != nil {
		return nil, err
	}
	return prometheus.Start(ctx, prometheus.Options{
		Dir: dir, Binary: b.binaries[build.Prometheus], Rules: rules, Jobs: e.jobs(b.fleet.Size().Clusters), Interval: b.Round,
		Args: []string{"--storage.tsdb.min-block-duration=2h", "--storage.tsdb.max-block-duration=2h", "--log.level=warn"},
	})
}

// subject is a side under way.
type subject struct {
	*bench
	side

	dir    string
	server *prometheus.Server
	result result
}

// warm evaluates all rules some times, and sets the intervals that are measured.
func (s *subject) warm(ctx context.Context) error {
	if err := poll(ctx, s.server.Process(), warmLimit, func(ctx context.Context) error {
		now, err := read(ctx, s.server)
		if err == nil && len(s.groups) > 0 && now.least < s.rehearsals {
			err = fmt.Errorf("a group was evaluated %d times", now.least)
		}
		return err
	}); err != nil {
		return err
	}
	rules, err := s.file(every(s.Round))
	if err != nil {
		return err
	}
	if err := s.server.SetRules(ctx, rules); err != nil {
		return err
	}
	s.say("%s: %d rules are warm\n", s.name, s.count())
	return nil
}

// poll waits until ready is.
func poll(ctx context.Context, p *process.Process, limit time.Duration, ready func(context.Context) error) error {
	return p.WaitReady(ctx, limit, ready)
}

// observe looks at the rounds that are measured.
func (s *subject) observe(ctx context.Context) error {
	before, err := read(ctx, s.server)
	if err != nil {
		return err
	}
	memory, err := s.wait(ctx, time.Duration(s.rounds*float64(s.Round)))
	if err != nil {
		return err
	}
	after, err := read(ctx, s.server)
	if err != nil {
		return err
	}
	if failed := after.failures; failed > 0 {
		_, err := s.server.Evaluated(ctx)
		return fmt.Errorf("%d evaluations failed: %w", failed, err)
	}
	state, err := s.server.Evaluated(ctx)
	if err != nil && len(s.groups) > 0 {
		return fmt.Errorf("look at rules: %w", err)
	}
	alerts, err := s.alerts(ctx)
	if err != nil {
		return err
	}
	s.result = result{
		side: s.side, RuleState: state, cpu: after.cpu - before.cpu, evaluations: after.evaluations - before.evaluations,
		memory: memory, alerts: alerts,
	}
	s.say("%s: %.2f s of processor time, %d evaluations, %d alerts\n", s.name, s.result.cpu.Seconds(), s.result.evaluations, alerts)
	return nil
}

// wait returns the most memory that was seen meanwhile.
func (s *subject) wait(ctx context.Context, d time.Duration) (int64, error) {
	timer, ticker := time.NewTimer(d), time.NewTicker(look)
	defer timer.Stop()
	defer ticker.Stop()
	most := int64(0)
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-s.server.Process().Done():
			return 0, s.server.Process().Failure()
		case <-ticker.C:
			most = max(most, anonymous(s.server.Process().PID()))
		case <-timer.C:
			return most, nil
		}
	}
}

// alerts counts those that fire and those that wait, as some of pyrra's do for hours.
func (s *subject) alerts(ctx context.Context) (int, error) {
	found, err := s.server.Query(ctx, "count(ALERTS)", time.Time{})
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return int(found[0].Value), nil
}
