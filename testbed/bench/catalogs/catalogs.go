// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalogs compares what works on whole catalogs: compiling and validating one with this project's code, and
// opm validate and opm render on the same files. It also measures how long the lint of a bundle takes.
package catalogs

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
	"github.com/bellwether-dev/bellwether/testbed/runs"
)

// Options say how much to measure.
type Options struct {
	Runs int
	// Catalog is the one to work on.
	Catalog catalogtest.Options
	// Bundle is the folder of the bundle to lint.
	Bundle string
}

// work is one way to work on a catalog.
type work int

const (
	// validate reads and validates every package.
	validate work = iota
	// compileAll computes every package's edges anew, lets the resolvers judge them, and writes the result.
	compileAll
	opmValidate
	opmRender
)

var works = []work{validate, compileAll, opmValidate, opmRender}

func (w work) String() string {
	return [...]string{
		validate: "`bellwether catalog show`", compileAll: "compile", opmValidate: "`opm validate`",
		opmRender: "`opm render`",
	}[w]
}

// samples are all runs by what was done.
type samples map[work][]sample

// bench is a benchmark under way.
type bench struct {
	out      io.Writer
	dir      string
	binaries map[string]string
}

// Measure runs the benchmark; out receives a line per step.
func Measure(ctx context.Context, out io.Writer, o Options) (section figure.Section, err error) {
	run, err := runs.Claim(ctx, fmt.Sprintf("bench-catalogs-%d", os.Getpid()))
	if err != nil {
		return figure.Section{}, err
	}
	defer func() { err = errors.Join(err, run.Release(err != nil && ctx.Err() == nil)) }()
	b, err := newBench(ctx, out, run.Dir(), build.CompileCatalog, build.Bellwether)
	if err != nil {
		return figure.Section{}, err
	}
	dir := filepath.Join(b.dir, "catalog")
	b.say("writing a catalog of %d packages with %d versions each\n", o.Catalog.Packages, o.Catalog.Versions)
	if err := catalogtest.WriteDir(dir, o.Catalog); err != nil {
		return figure.Section{}, fmt.Errorf("write catalog: %w", err)
	}
	all, err := b.measureAll(ctx, dir, o.Runs)
	if err != nil {
		return figure.Section{}, err
	}
	linted, err := b.lint(ctx, o)
	if err != nil {
		return figure.Section{}, err
	}
	return report(o, all, linted), nil
}

// newBench builds opm and programs of ours.
func newBench(ctx context.Context, out io.Writer, dir string, ours ...string) (*bench, error) {
	b := &bench{out: out, dir: dir}
	var err error
	if b.binaries, err = build.Ensure(ctx, out, build.OPM); err != nil {
		return nil, err
	}
	own, err := build.Local(ctx, out, filepath.Join(dir, "bin"), ours...)
	if err != nil {
		return nil, err
	}
	maps.Copy(b.binaries, own)
	return b, nil
}

// say shows progress. That nobody can see it is no reason to stop.
func (b *bench) say(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format, args...) }

func (b *bench) measureAll(ctx context.Context, dir string, runs int) (samples, error) {
	all := samples{}
	for i := range runs {
		for _, w := range works {
			one, err := b.measure(ctx, w, dir)
			if err != nil {
				return nil, fmt.Errorf("measure %s: %w", w, err)
			}
			b.say("%d/%d, %s: %s, %s\n", i+1, runs, w, figure.Duration(one.took), figure.Bytes(one.peak))
			all[w] = append(all[w], one)
		}
	}
	return all, nil
}

func (b *bench) measure(ctx context.Context, w work, dir string) (sample, error) {
	switch w {
	case validate:
		return command(ctx, b.binaries[build.Bellwether], "catalog", "show", dir)
	case opmValidate:
		return command(ctx, b.binaries[build.OPM], "validate", dir)
	case opmRender:
		return command(ctx, b.binaries[build.OPM], "render", dir)
	}
	out, err := os.MkdirTemp(b.dir, "compiled-")
	if err != nil {
		return sample{}, fmt.Errorf("create folder: %w", err)
	}
	one, err := command(ctx, b.binaries[build.CompileCatalog], "--in", dir, "--out", out)
	if err != nil {
		return sample{}, err
	}
	// What was measured has to be what it is said to be: opm must accept the compiled catalog.
	if _, err := command(ctx, b.binaries[build.OPM], "validate", out); err != nil {
		return sample{}, err
	}
	return one, os.RemoveAll(out)
}

// lint measures the lint of one bundle.
func (b *bench) lint(ctx context.Context, o Options) ([]sample, error) {
	var all []sample
	for i := range o.Runs {
		// That the lint finds something, which is exit status 1, is to be expected of other people's bundles.
		one, err := command(ctx, b.binaries[build.Bellwether], "bundle", "lint", o.Bundle, "-o", "json")
		if err != nil && !isFindings(err) {
			return nil, fmt.Errorf("measure lint: %w", err)
		}
		b.say("%d/%d, lint: %s, %s\n", i+1, o.Runs, figure.Duration(one.took), figure.Bytes(one.peak))
		all = append(all, one)
	}
	return all, nil
}

// LargestBundle returns the bundle folder below dir (operator/version) with the most bytes of manifests.
func LargestBundle(dir string) (string, error) {
	largest, size := "", int64(0)
	found, err := filepath.Glob(filepath.Join(dir, "*", "*", "manifests"))
	if err != nil {
		return "", fmt.Errorf("find bundles: %w", err)
	}
	for _, manifests := range found {
		entries, err := os.ReadDir(manifests)
		if err != nil {
			return "", fmt.Errorf("find bundles: %w", err)
		}
		sum := int64(0)
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				return "", fmt.Errorf("find bundles: %w", err)
			}
			sum += info.Size()
		}
		if sum > size {
			largest, size = filepath.Dir(manifests), sum
		}
	}
	if largest == "" {
		return "", fmt.Errorf("find bundles: there are none in %s", dir)
	}
	return largest, nil
}

// limit of one command. A large catalog takes minutes where others work too.
const limit = 20 * time.Minute
