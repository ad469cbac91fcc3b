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
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/bench/slo/fleet"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
	"github.com/bellwether-dev/bellwether/testbed/runs"
)

// Options say how much to measure.
type Options struct {
	Fleet fleet.Size
	// Clusters are the sizes of it that MeasureSizes measures all rules with, and Hub is the one for the hub part; 0:
	// none.
	Clusters []int
	Hub      int
	// Rounds is how many rounds are measured of each. Default: 5.
	Rounds int
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
	// lookAtGroups is shorter than the interval of any group, so that no evaluation is missed.
	lookAtGroups = 5 * time.Second
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
	// slowest is the longest evaluation of each group that was seen.
	slowest map[string]float64
}

// bench is a benchmark under way.
type bench struct {
	Options

	out      io.Writer
	dir      string
	binaries map[string]string
	started  time.Time
}

func (o Options) defaulted() Options {
	o.Round = cmp.Or(o.Round, time.Minute)
	o.Rounds = cmp.Or(o.Rounds, 5)
	return o
}

// Measure compares the rules with those of others; out receives a line per step.
func Measure(ctx context.Context, out io.Writer, o Options) (figure.Section, error) {
	o = o.defaulted()
	results, err := claimed(ctx, out, o, (*bench).compare)
	if err != nil {
		return figure.Section{}, err
	}
	return report(o, results), nil
}

// MeasureSizes measures the rules on larger fleets, without others.
func MeasureSizes(ctx context.Context, out io.Writer, o Options) (figure.Section, error) {
	o = o.defaulted()
	results, err := claimed(ctx, out, o, (*bench).sizes)
	if err != nil {
		return figure.Section{}, err
	}
	return reportSizes(o, results), nil
}

// claimed measures in a folder that is removed afterwards.
func claimed(ctx context.Context, out io.Writer, o Options,
	measure func(*bench, context.Context) ([]result, error)) (results []result, err error) {
	run, err := runs.Claim(ctx, fmt.Sprintf("bench-slo-%d", os.Getpid()))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, run.Release(err != nil && ctx.Err() == nil)) }()
	b := &bench{Options: o, out: out, dir: run.Dir(), started: time.Now()}
	if b.binaries, err = build.Ensure(ctx, out, build.Prometheus, build.BlockWriter); err != nil {
		return nil, err
	}
	return measure(b, ctx)
}

// compare measures all sides. All but pyrra's rules leave two cores time to spare, and so hardly disturb each other;
// pyrra's need one for themselves.
func (b *bench) compare(ctx context.Context) ([]result, error) {
	f, err := fleet.New(b.Fleet)
	if err != nil {
		return nil, err
	}
	all, err := sides(f, b.Together)
	if err != nil {
		return nil, err
	}
	return b.measure(ctx, all[:len(all)-1], all[len(all)-1:])
}

// sizes measures one size after the other: two would not fit into the memory of a small machine.
func (b *bench) sizes(ctx context.Context) ([]result, error) {
	var results []result
	add := func(clusters int, part slo.Part) error {
		size := b.Fleet
		size.Clusters = clusters
		f, err := fleet.New(size)
		if err != nil {
			return err
		}
		s, err := ourSide(f, part)
		if err != nil {
			return err
		}
		more, err := b.measure(ctx, []side{s})
		results = append(results, more...)
		return err
	}
	for _, clusters := range b.Clusters {
		if err := add(clusters, slo.Whole); err != nil {
			return nil, err
		}
	}
	if b.Hub > 0 {
		if err := add(b.Hub, slo.Hub); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// say shows progress. That nobody can see it is no reason to stop.
func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.out, "%6s  "+format, append([]any{time.Since(b.started).Round(time.Second)}, args...)...)
}

// measure starts all sides, and measures those of a batch at the same time.
func (b *bench) measure(ctx context.Context, batches ...[]side) (results []result, err error) {
	r := &running{bench: b, begin: time.Now().Truncate(time.Second), exporters: map[*fleet.Fleet]*exporter{}}
	defer func() { err = errors.Join(err, r.stop(ctx)) }()
	for _, batch := range batches {
		for _, s := range batch {
			if err := r.start(ctx, s); err != nil {
				return nil, err
			}
		}
	}
	first := 0
	for _, batch := range batches {
		subjects := r.subjects[first : first+len(batch)]
		first += len(batch)
		if err := errors.Join(together(ctx, subjects, (*subject).warm), ctx.Err()); err != nil {
			return nil, err
		}
		if err := together(ctx, subjects, (*subject).observe); err != nil {
			return nil, err
		}
		for _, s := range subjects {
			s.server.Stop(ctx)
			results = append(results, s.result)
		}
	}
	return results, nil
}

// running is what was started.
type running struct {
	*bench

	begin     time.Time
	exporters map[*fleet.Fleet]*exporter
	subjects  []*subject
}

// start starts a Prometheus, and what it scrapes unless that runs already.
func (r *running) start(ctx context.Context, s side) error {
	if r.exporters[s.fleet] == nil {
		of := func(cluster int) iter.Seq[fleet.Series] { return s.exposed(cluster, r.begin) }
		e, err := startExporter(ctx, s.fleet, of, r.begin)
		if err != nil {
			return err
		}
		r.exporters[s.fleet] = e
	}
	started, err := r.prepare(ctx, s, r.exporters[s.fleet], r.begin)
	if err != nil {
		return err
	}
	r.subjects = append(r.subjects, started)
	return nil
}

func (r *running) stop(ctx context.Context) error {
	var errs []error
	for _, s := range r.subjects {
		s.server.Stop(context.WithoutCancel(ctx))
		errs = append(errs, os.RemoveAll(s.dir))
	}
	for _, e := range r.exporters {
		errs = append(errs, e.stop())
	}
	return errors.Join(errs...)
}

// prepare writes the history of a side, and starts its Prometheus.
func (b *bench) prepare(ctx context.Context, s side, e *exporter, begin time.Time) (*subject, error) {
	dir := filepath.Join(b.dir, "prometheus-"+s.slug())
	b.say("%s on %d clusters: writing %d minutes of history\n", s.name, s.fleet.Size().Clusters, s.history)
	if err := fill(ctx, b.binaries[build.BlockWriter], dir, s, begin); err != nil {
		return nil, err
	}
	server, err := b.start(ctx, dir, s, e)
	if err != nil {
		return nil, fmt.Errorf("start Prometheus with %s: %w", s.name, err)
	}
	return &subject{bench: b, side: s, dir: dir, server: server}, nil
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
		if rules, err = s.file(b.Round, rehearse(b.Round)); err != nil {
			return nil, err
		}
	}
	return prometheus.Start(ctx, prometheus.Options{
		Dir: dir, Binary: b.binaries[build.Prometheus], Rules: rules,
		Jobs:     e.jobs(s.fleet.Size().Clusters, s.part == slo.Hub),
		Interval: b.Round,
		Args: []string{"--storage.tsdb.min-block-duration=2h", "--storage.tsdb.max-block-duration=2h",
			"--log.level=warn",
			// The largest fleets would take nearly all memory of a small machine, and leave none for what is scraped.
			"--auto-gomemlimit.ratio=0.75",
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
	// begin is when the rounds began that are measured.
	begin  time.Time
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
	rules, err := s.file(s.Round, every(s.Round))
	if err != nil {
		return err
	}
	if err := s.server.SetRules(ctx, rules); err != nil {
		return err
	}
	s.say("%s on %d clusters: measuring %d rounds of %s with %d rules\n", s.name, s.fleet.Size().Clusters, s.Rounds,
		s.Round, s.rules())
	s.result.side = s.side
	if s.result.before, err = read(ctx, s.server); err != nil {
		return err
	}
	s.begin = time.Now()
	if s.result.memory, err = s.wait(ctx, time.Duration(s.Rounds)*s.Round); err != nil {
		return err
	}
	if err := s.wholeRound(ctx); err != nil {
		return err
	}
	s.result.took = time.Since(s.begin)
	if s.result.after, err = read(ctx, s.server); err != nil {
		return err
	}
	if s.result.alerts, err = s.count(ctx, "count(ALERTS)"); err != nil {
		return err
	}
	group, took, interval := s.result.slowestGroup()
	s.say("%s on %d clusters: %.2f s of processor time in %s, %d alerts; group %q took up to %s of %s\n", s.name,
		s.fleet.Size().Clusters, (s.result.after.cpu - s.result.before.cpu).Seconds(),
		s.result.took.Round(time.Second), s.result.alerts, group, took.Round(time.Millisecond), interval)
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
		now, err := read(ctx, s.server)
		if err != nil {
			return err
		}
		s.noteGroups(now)
		if seen, all := len(s.result.slowest), len(s.groups); seen < all {
			return fmt.Errorf("%d of %d groups were evaluated since then", seen, all)
		}
		return nil
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("look at rules: %w", err)
	}
	return nil
}

// wait returns the most memory that was seen meanwhile.
func (s *subject) wait(ctx context.Context, d time.Duration) (int64, error) {
	timer, ticker, groups := time.NewTimer(d), time.NewTicker(look), time.NewTicker(lookAtGroups)
	defer timer.Stop()
	defer ticker.Stop()
	defer groups.Stop()
	most := int64(0)
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-s.server.Process().Done():
			return 0, s.server.Process().Failure()
		case <-ticker.C:
			most = max(most, anonymous(s.server.Process().PID()))
		case <-groups.C:
			now, err := read(ctx, s.server)
			if err != nil {
				return most, err
			}
			s.noteGroups(now)
		case <-timer.C:
			return most, nil
		}
	}
}

// noteGroups keeps how long the slowest evaluation of each group took. A rehearsal, for which all groups compete, is
// none.
func (s *subject) noteGroups(now reading) {
	if s.result.slowest == nil {
		s.result.slowest = map[string]float64{}
	}
	for name, g := range now.groups {
		if g.began < float64(s.begin.Unix()) {
			continue
		}
		s.result.slowest[name] = max(s.result.slowest[name], g.last)
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
