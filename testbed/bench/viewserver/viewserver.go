// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package viewserver compares what serves a catalog to OLM: the view of one operator, as an agent serves it, and opm
// serve. Both read the same folder and answer the same API; each is a process of its own.
package viewserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/runs"
)

// Options say how much to measure.
type Options struct {
	Runs int
	// Large is the catalog that the promise is about, Small one that tells what does not depend on size.
	Large, Small catalogtest.Options
}

const (
	// maxRatio is what was promised of a view, for memory and for time.
	maxRatio = 0.2
	// maxWhole is what was promised of a whole catalog: to beat opm in everything.
	maxWhole = 1.0
)

// bench is a benchmark under way.
type bench struct {
	out      io.Writer
	dir      string
	binaries map[string]string
	runs     int
}

// Measure runs the benchmark; out receives a line per step.
func Measure(ctx context.Context, out io.Writer, o Options) (section figure.Section, err error) {
	run, err := runs.Claim(ctx, fmt.Sprintf("bench-view-%d", os.Getpid()))
	if err != nil {
		return figure.Section{}, err
	}
	defer func() { err = errors.Join(err, run.Release(err != nil && ctx.Err() == nil)) }()
	b := &bench{out: out, dir: run.Dir(), runs: o.Runs}
	if b.binaries, err = build.Ensure(ctx, out, build.OPM); err != nil {
		return figure.Section{}, err
	}
	own, err := build.Local(ctx, out, filepath.Join(b.dir, "bin"), build.ViewServer, build.Bellwether)
	if err != nil {
		return figure.Section{}, err
	}
	maps.Copy(b.binaries, own)
	large, err := b.measureCatalog(ctx, "large", o.Large)
	if err != nil {
		return figure.Section{}, err
	}
	small, err := b.measureCatalog(ctx, "small", o.Small)
	if err != nil {
		return figure.Section{}, err
	}
	return report(o, large, small), nil
}

// say shows progress. That nobody can see it is no reason to stop.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

// sample is what one run of one server showed.
type sample struct {
	ready time.Duration
	// resident and anonymous memory once ready; read after all bundles were listed once, as OLM does when it connects.
	resident, anonymous, read int64
	// took is empty for a view, which has other answers.
	took times
}

// samples are all runs by server.
type samples map[server][]sample

func (b *bench) measureCatalog(ctx context.Context, name string, o catalogtest.Options) (samples, error) {
	c := catalog{dir: filepath.Join(b.dir, name), cache: filepath.Join(b.dir, name+"-cache"), options: o}
	say(b.out, "writing %s\n", describe(o))
	if err := catalogtest.WriteDir(c.dir, o); err != nil {
		return nil, fmt.Errorf("write catalog: %w", err)
	}
	say(b.out, "building opm's cache ahead of time ...\n")
	if err := b.buildCache(ctx, c); err != nil {
		return nil, err
	}
	all := samples{}
	for i := range b.runs {
		for _, s := range servers {
			one, err := b.measure(ctx, s, c)
			if err != nil {
				return nil, fmt.Errorf("measure %s: %w", s, err)
			}
			say(b.out, "%s catalog %d/%d, %s: ready in %s, %s\n", name, i+1, b.runs, s, figure.Duration(one.ready),
				figure.Bytes(one.resident))
			all[s] = append(all[s], one)
		}
	}
	return all, nil
}

func describe(o catalogtest.Options) string {
	return fmt.Sprintf("a catalog of %d packages with %d versions each", o.Packages, o.Versions)
}

// limit of one start. A large cache takes opm minutes where others work too.
const limit = 20 * time.Minute

// measure starts a server, asks until it answers, and stops it.
func (b *bench) measure(ctx context.Context, s server, c catalog) (one sample, err error) {
	spec, address, err := b.spec(ctx, s, c)
	if err != nil {
		return sample{}, err
	}
	start := time.Now()
	p, err := process.Start(spec)
	if err != nil {
		return sample{}, err
	}
	defer p.Stop(context.WithoutCancel(ctx))
	if err := Wait(ctx, p, address); err != nil {
		return sample{}, err
	}
	one.ready = time.Since(start)
	if one.resident, err = process.ResidentBytes(p.PID()); err != nil {
		return sample{}, err
	}
	if one.anonymous, err = anonymousBytes(p.PID()); err != nil {
		return sample{}, err
	}
	if err := readAll(ctx, address, c, s == view); err != nil {
		return sample{}, err
	}
	if one.read, err = process.ResidentBytes(p.PID()); err != nil || s == view {
		return one, err
	}
	one.took, err = askAll(ctx, address, c)
	return one, err
}

// look is how often a server is asked: often enough that it does not show in the figures.
const look = 5 * time.Millisecond

// Wait asks until the server answers.
func Wait(ctx context.Context, p *process.Process, address string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, process.ErrTimeout)
	defer cancel()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for answers(ctx, address) != nil {
		select {
		case <-p.Done():
			return p.Failure()
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; its log ends with:\n%s", p.Name(), context.Cause(ctx), p.Tail())
		case <-ticker.C:
		}
	}
	return nil
}
