// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/bundles/bundletest"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/bench/viewserver"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/process"
	"github.com/bellwether-dev/bellwether/testbed/runs"
)

// BundleOptions say how much of what to measure.
type BundleOptions struct {
	Runs int
	// Packages, with 30 small bundles each.
	Packages int
	// Large is how many versions of one package with 1.5 MiB of definitions each there are.
	Large int
	// Many is how many tiny versions of one package there are.
	Many int
}

// input is a folder of ladders with bundle folders.
type input struct {
	name   string
	folder catalogtest.LadderFolder
	dir    string
	// bundles are the bundle folders, the lowest version of each package first.
	bundles []string
}

// inputs are those of the options. The seed gives the same bundles each time.
func (o BundleOptions) inputs() []*input {
	const versions, small, tiny = 30, 2 << 10, 300
	large := bundletest.NestedCRDs{Count: 3, Versions: 2, Bytes: 3 << 19, Seed: 1}
	return []*input{
		{name: fmt.Sprintf("%d small bundles", o.Packages*versions),
			folder: catalogtest.LadderFolder{Packages: o.Packages, Versions: versions, SchemaBytes: small}},
		{name: fmt.Sprintf("%d large bundles", o.Large),
			folder: catalogtest.LadderFolder{Packages: 1, Versions: o.Large, CRDs: large.Generate}},
		{name: fmt.Sprintf("%d versions of one package", o.Many),
			folder: catalogtest.LadderFolder{Packages: 1, Versions: o.Many, SchemaBytes: tiny}},
	}
}

// task is what is measured with each input.
type task int

const (
	compileFolder task = iota
	lintHistory
	verifyCatalog
	serveCatalog
	renderFolder
	renderHistory
	validateCatalog
	opmServe
)

var tasks = []task{compileFolder, renderFolder, lintHistory, renderHistory, verifyCatalog, validateCatalog,
	serveCatalog, opmServe}

// peers are what opm has that comes nearest.
var peers = []struct{ ours, peer task }{{compileFolder, renderFolder}, {lintHistory, renderHistory},
	{verifyCatalog, validateCatalog}, {serveCatalog, opmServe}}

func (t task) String() string {
	return [...]string{
		compileFolder: "`bellwether catalog compile`", lintHistory: "`bellwether bundle lint --history`",
		verifyCatalog: "`bellwether catalog verify`", serveCatalog: "`bellwether catalog serve`",
		renderFolder: "`opm render` of all bundles", renderHistory: "`opm render` of the package's bundles",
		validateCatalog: "`opm validate`", opmServe: "`opm serve`",
	}[t]
}

// taskSamples are all runs by task.
type taskSamples map[task][]sample

// MeasureBundles measures the work on many, on large, and on many versions of bundles; out receives a line per step.
func MeasureBundles(ctx context.Context, out io.Writer, o BundleOptions) (section figure.Section, err error) {
	run, err := runs.Claim(ctx, fmt.Sprintf("bench-bundles-%d", os.Getpid()))
	if err != nil {
		return figure.Section{}, err
	}
	defer func() { err = errors.Join(err, run.Release(err != nil && ctx.Err() == nil)) }()
	b, err := newBench(ctx, out, run.Dir(), build.Bellwether)
	if err != nil {
		return figure.Section{}, err
	}
	inputs := o.inputs()
	all := make([]taskSamples, len(inputs))
	for i, in := range inputs {
		if err := b.write(in, i); err != nil {
			return figure.Section{}, err
		}
		if all[i], err = b.measureTasks(ctx, in, o.Runs); err != nil {
			return figure.Section{}, fmt.Errorf("measure %s: %w", in.name, err)
		}
	}
	return reportBundles(inputs, all), nil
}

// write writes an input and finds its bundle folders.
func (b *bench) write(in *input, i int) error {
	in.dir = filepath.Join(b.dir, fmt.Sprintf("input%d", i))
	b.say("writing %s\n", in.name)
	if err := os.MkdirAll(in.dir, 0o750); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	if err := in.folder.Write(in.dir); err != nil {
		return fmt.Errorf("write %s: %w", in.name, err)
	}
	for p := range in.folder.Packages {
		for v := range in.folder.Versions {
			in.bundles = append(in.bundles, filepath.Join(in.dir, "bundles", catalogtest.PackageName(p),
				catalogtest.Version(v)))
		}
	}
	return nil
}

// catalog is where an input is compiled to.
func (in *input) catalog() string { return in.dir + "-compiled" }

// history are the bundles of the first package; the last of them is linted.
func (in *input) history() []string { return in.bundles[:in.folder.Versions] }

func (b *bench) measureTasks(ctx context.Context, in *input, runs int) (taskSamples, error) {
	all := taskSamples{}
	for i := range runs {
		for _, t := range tasks {
			one, err := b.measureTask(ctx, t, in)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t, err)
			}
			b.say("%d/%d, %s, %s: %s, %s\n", i+1, runs, in.name, t, figure.Duration(one.took), figure.Bytes(one.peak))
			all[t] = append(all[t], one)
		}
	}
	return all, nil
}

func (b *bench) measureTask(ctx context.Context, t task, in *input) (sample, error) {
	ours, opm := b.binaries[build.Bellwether], b.binaries[build.OPM]
	switch t {
	case compileFolder:
		return b.compileInput(ctx, in)
	case lintHistory:
		newest := in.history()[in.folder.Versions-1]
		one, err := command(ctx, ours, "bundle", "lint", newest, "--history", filepath.Dir(newest), "-o", "json")
		if isFindings(err) { // as is to be expected of bundles that are made up
			err = nil
		}
		return one, err
	case verifyCatalog:
		return command(ctx, ours, "catalog", "verify", in.catalog())
	case renderFolder:
		return command(ctx, opm, slices.Concat([]string{"render"}, in.bundles)...)
	case renderHistory:
		return command(ctx, opm, slices.Concat([]string{"render"}, in.history())...)
	case validateCatalog:
		return command(ctx, opm, "validate", in.catalog())
	case serveCatalog:
		return b.measureServer(ctx, in, func(address string) []string {
			return []string{ours, "catalog", "serve", in.catalog(), "--addr", address}
		})
	default:
		return b.measureServer(ctx, in, func(address string) []string {
			_, port, _ := strings.Cut(address, ":")
			return []string{opm, "serve", in.catalog(), "--port", port, "--pprof-addr", "", "--termination-log",
				filepath.Join(b.dir, "termination.log")}
		})
	}
}

// compileInput compiles from nothing: without a cache, and without what was compiled before.
func (b *bench) compileInput(ctx context.Context, in *input) (sample, error) {
	cache, err := os.MkdirTemp(b.dir, "cache-")
	if err != nil {
		return sample{}, fmt.Errorf("create folder: %w", err)
	}
	if err := os.RemoveAll(in.catalog()); err != nil {
		return sample{}, fmt.Errorf("remove former catalog: %w", err)
	}
	one, err := command(ctx, "/usr/bin/env", "BELLWETHER_CACHE="+cache, b.binaries[build.Bellwether], "catalog",
		"compile", in.dir, in.catalog())
	return one, errors.Join(err, os.RemoveAll(cache))
}

// measureServer measures a server from its start until it answers and has listed all bundles once, as for OLM.
func (b *bench) measureServer(ctx context.Context, in *input, args func(address string) []string) (sample, error) {
	address, err := viewserver.FreeAddress(ctx)
	if err != nil {
		return sample{}, err
	}
	// opm makes its cache in the folder for temporary files.
	temporary, err := os.MkdirTemp(b.dir, "tmp-")
	if err != nil {
		return sample{}, fmt.Errorf("create folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	line := args(address)
	start := time.Now()
	p, err := process.Start(process.Spec{Name: "server", Path: line[0], Args: line[1:], Dir: b.dir,
		Log: filepath.Join(b.dir, "server.log"), Env: []string{"TMPDIR=" + temporary}})
	if err != nil {
		return sample{}, err
	}
	defer p.Stop(context.WithoutCancel(ctx))
	if err := viewserver.Wait(ctx, p, address); err != nil {
		return sample{}, err
	}
	one := sample{took: time.Since(start)}
	count, err := viewserver.Count(ctx, address)
	if err == nil && count < in.folder.Packages {
		err = fmt.Errorf("list bundles: only %d", count)
	}
	one.peak = highWater(p.PID())
	return one, err
}

func reportBundles(inputs []*input, all []taskSamples) figure.Section {
	var rows []figure.Row
	grid := [][]string{{"bundles", "what", "time", "processor time", "peak memory"}}
	for i, in := range inputs {
		for _, pair := range peers {
			ours, peer := all[i][pair.ours], all[i][pair.peer]
			name := fmt.Sprintf("%s, and %s, %s", pair.ours, pair.peer, in.name)
			for _, aspect := range []struct {
				what  string
				value func([]sample) figure.Quantity
			}{{"time", took}, {"peak memory", peak}} {
				a, b := aspect.value(ours), aspect.value(peer)
				rows = append(rows, figure.Row{Name: name + ", " + aspect.what, Ours: a, Peer: b,
					Ratio: figure.Ratio(a, b), Promise: figure.AtMost(maxRatio), Runs: len(ours)})
			}
		}
		for _, t := range tasks {
			of := all[i][t]
			cpu := processor(of).String()
			if t == serveCatalog || t == opmServe {
				cpu = "" // a server does not end by itself
			}
			grid = append(grid, []string{in.name, t.String(), took(of).String(), cpu, peak(of).String()})
		}
	}
	return figure.Section{Key: "bundles", Title: "Work on bundles, against opm on the same bundles", Rows: rows,
		Detail: "Medians. Processor time is that of all cores together, in user and system mode.\n\n" +
			figure.Grid(grid)}
}
