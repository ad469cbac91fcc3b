// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slo compares what rules of SLOs cost in a real Prometheus: Bellwether's, and those that sloth and pyrra make
// of the same objectives.
//
// A made-up fleet (package fleet) is scraped, with some days of history. Each side has a Prometheus of its own with
// that data and its rules; one has none, which shows what everything but the rules costs. The peers' rules are data,
// made beforehand: see testdata/README.md.
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
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
	"github.com/bellwether-dev/bellwether/testbed/runs"
)

// Options say how much to measure.
type Options struct {
	Fleet fleet.Size
	// Round is how often what has to be fresh is scraped and evaluated. What is measured is worth something at the
	// default of a minute only.
	Round time.Duration
	// Together adds sloth with one objective for all operators together.
	Together bool
}

const (
	// limit bounds each step of a side; on a quiet machine none takes longer than some rounds.
	limit = 15 * time.Minute
	look  = 500 * time.Millisecond
)

// result is what one side showed.
type result struct {
	side
	prometheus.RuleState

	before, after reading
	// took is the time from one to the other.
	took time.Duration
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
	all, err := sides(b.fleet, o.Together)
	if err != nil {
		return nil, err
	}
	return b.measure(ctx, all)
}

// say shows progress. That nobody can see it is no reason to stop.
func (b *bench) say(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format, args...) }

// measure starts all sides, and measures those of a batch at the same time.
func (b *bench) measure(ctx context.Context, all []side) (results []result, err error) {
	begin := time.Now().Truncate(time.Second)
	exporter, err := startExporter(ctx, b.fleet, begin)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, exporter.stop()) }()
	var subjects []*subject
	defer func() {
		for _, s := range subjects {
			s.server.Stop(context.WithoutCancel(ctx))
			err = errors.Join(err, os.RemoveAll(s.dir))
		}
	}()
	for _, s := range all {
		dir := filepath.Join(b.dir, "prometheus-"+s.slug())
		b.say("%s: writing %d minutes of history\n", s.name, b.fleet.Size().History)
		if err := fill(ctx, b.binaries[build.BlockWriter], dir, b.fleet, s, begin); err != nil {
			return nil, err
		}
		server, err := b.start(ctx, dir, s, exporter)
		if err != nil {
			return nil, fmt.Errorf("start Prometheus with %s: %w", s.name, err)
		}
		subjects = append(subjects, &subject{bench: b, side: s, dir: dir, server: server})
	}
	for _, batch := range batches(subjects) {
		if err := errors.Join(together(ctx, batch, (*subject).warm), ctx.Err()); err != nil {
			return nil, err
		}
		if err := together(ctx, batch, (*subject).observe); err != nil {
			return nil, err
		}
		for _, s := range batch {
			s.server.Stop(ctx)
			results = append(results, s.result)
		}
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

// start runs a Prometheus on its history. Compactions would be measured, too, and depend on nothing but luck; small
// blocks are never compacted.
func (b *bench) start(ctx context.Context, dir string, s side, e *exporter) (*prometheus.Server, error) {
	var rules map[string][]byte
	if s.rehearsals > 0 {
		var err error
		if rules, err = s.file(rehearse(b.Round)); err != nil {
			return nil, err
		}
	}
	return prometheus.Start(ctx, prometheus.Options{
		Dir: dir, Binary: b.binaries[build.Prometheus], Rules: rules, Jobs: e.jobs(b.fleet.Size().Clusters),
		Interval: b.Round,
		Args: []string{"--storage.tsdb.min-block-duration=2h", "--storage.tsdb.max-block-duration=2h",
			"--log.level=warn",
			// What takes long is measured, too.
			"--query.timeout=15m"},
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

// warm waits for scrapes and rehearsals.
func (s *subject) warm(ctx context.Context) error {
	return s.server.Process().WaitReady(ctx, limit, func(ctx context.Context) error {
		scraped, err := s.count(ctx, "count(count_over_time(up[5m]) >= 2)")
		if err != nil {
			return err
		}
		now, err := read(ctx, s.server)
		if err != nil {
			return err
		}
		if scraped < s.fleet.Size().Clusters || now.least < s.rehearsals {
			return fmt.Errorf("%d clusters were scraped twice, and every group was evaluated %d times", scraped,
				now.least)
		}
		return nil
	})
}

// observe sets the intervals that are measured, and looks at the rounds.
func (s *subject) observe(ctx context.Context) (err error) {
	rules, err := s.file(every(s.Round))
	if err != nil {
		return err
	}
	if err := s.server.SetRules(ctx, rules); err != nil {
		return err
	}
	s.say("%s: measuring %.1f rounds of %s with %d rules\n", s.name, s.rounds, s.Round, s.rules())
	s.result.side = s.side
	if s.result.before, err = read(ctx, s.server); err != nil {
		return err
	}
	start := time.Now()
	if s.result.memory, err = s.wait(ctx, time.Duration(s.rounds*float64(s.Round))); err != nil {
		return err
	}
	if err := s.wholeRound(ctx); err != nil {
		return err
	}
	s.result.took = time.Since(start)
	if s.result.after, err = read(ctx, s.server); err != nil {
		return err
	}
	if s.result.alerts, err = s.count(ctx, "count(ALERTS)"); err != nil {
		return err
	}
	s.say("%s: %.2f s of processor time in %s, %d alerts\n",
		s.name, (s.result.after.cpu - s.result.before.cpu).Seconds(), s.result.took.Round(time.Second), s.result.alerts)
	return nil
}

// wholeRound waits until every rule was evaluated, which a busy machine may not have got to, and wants that none has
// failed.
func (s *subject) wholeRound(ctx context.Context) error {
	var failed error
	err := s.server.Process().WaitReady(ctx, limit, func(ctx context.Context) error {
		state, err := s.server.Evaluated(ctx)
		s.result.RuleState = state
		if errors.Is(err, prometheus.ErrUnevaluated) {
			return prometheus.ErrUnevaluated
		}
		failed = err
		return nil
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("look at rules: %w", err)
	}
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

// count evaluates a query that counts.
func (s *subject) count(ctx context.Context, query string) (int, error) {
	found, err := s.server.Query(ctx, query, time.Time{})
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return int(found[0].Value), nil
}
