// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command write-blocks writes history into the data folder of a Prometheus that does not run: series from standard
// input, as blocks of its time series database.
//
// promtool does the same from OpenMetrics text, at a few hundred thousand samples a second. This takes series as runs
// of samples, encodes them straight into chunks and so writes tens of millions a second. It needs no knowledge of what
// the series are.
//
// The input is a line of JSON for each series:
//
//	{"labels": {"__name__": "up", ...}, "runs": [{"count": 60, "first": 1, "step": 0}, ...]}
//
// The samples of all series have the same times: the first is at --start, and each is --step after the one before. A
// run is count samples, of which each is step more than the one before. One with "absent": true is a gap.
//
// Prometheus joins old blocks to larger ones. With --blocks 54h,18h,2h the last 54 hours are in blocks of 18 hours, of
// which the last 18 are in blocks of 2 hours.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var g grid
	var start int64
	dir := flag.String("dir", "", "data folder of Prometheus")
	flag.Int64Var(&start, "start", 0, "time of the first sample, in seconds since 1970")
	flag.DurationVar(&g.step, "step", time.Minute, "time between two samples")
	flag.IntVar(&g.samples, "samples", 0, "samples of a series that has no gaps")
	flag.Func("blocks", "time ranges of blocks, the largest and oldest first", func(text string) error {
		return g.parseBlocks(text)
	})
	flag.Parse()
	g.start = time.Unix(start, 0)
	if err := run(ctx, os.Stdin, *dir, g); err != nil {
		fmt.Fprintln(os.Stderr, "write-blocks:", err)
		os.Exit(1) //nolint:gocritic // stop only restores the signals
	}
}

// grid says when samples are.
type grid struct {
	start time.Time
	step  time.Duration
	// blocks are their time ranges, the largest first. Each but the last leaves as much as one of its blocks to the next.
	blocks  []time.Duration
	samples int
}

func (g *grid) parseBlocks(text string) error {
	for size := range strings.SplitSeq(text, ",") {
		d, err := time.ParseDuration(size)
		if err != nil {
			return fmt.Errorf("parse size of blocks: %w", err)
		}
		g.blocks = append(g.blocks, d)
	}
	return nil
}

// samplesOf is a block's range of samples: from first up to and without last.
type samplesOf struct{ first, last int }

// ranges are those of all blocks, the oldest first.
func (g grid) ranges() []samplesOf {
	var out []samplesOf
	first := 0
	for i, size := range g.blocks {
		each, end := int(size/g.step), g.samples
		if i+1 < len(g.blocks) {
			end -= each
		}
		for ; first < end; first = out[len(out)-1].last {
			out = append(out, samplesOf{first, min(first+each, end)})
		}
	}
	return out
}

// at is the time of sample i in milliseconds.
func (g grid) at(i int) int64 { return g.start.Add(time.Duration(i) * g.step).UnixMilli() }

// series is one line of the input.
type series struct {
	Labels map[string]string `json:"labels"`
	Runs   []span            `json:"runs"`

	sorted labels.Labels
}

type span struct {
	Count  int     `json:"count"`
	First  float64 `json:"first"`
	Step   float64 `json:"step"`
	Absent bool    `json:"absent"`
}

func run(ctx context.Context, in io.Reader, dir string, g grid) error {
	if dir == "" || g.step <= 0 || len(g.blocks) == 0 || slices.Min(g.blocks) < g.step || g.samples < 1 {
		return errors.New("--dir, --step, --samples and --blocks of at least one step are needed")
	}
	all, err := read(in)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("create data folder: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, block := range g.ranges() {
		group.Go(func() error { return writeBlock(ctx, dir, all, g, block.first, block.last) })
	}
	return group.Wait()
}

// read reads all series, in the order in which an index has them.
func read(in io.Reader) ([]series, error) {
	var all []series
	decoder := json.NewDecoder(bufio.NewReaderSize(in, 1<<20))
	for {
		var s series
		err := decoder.Decode(&s)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read series %d: %w", len(all)+1, err)
		}
		s.sorted, s.Labels = labels.FromMap(s.Labels), nil
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b series) int { return labels.Compare(a.sorted, b.sorted) })
	for i := 1; i < len(all); i++ {
		if labels.Equal(all[i].sorted, all[i-1].sorted) {
			return nil, fmt.Errorf("read series: %s is there twice", all[i].sorted)
		}
	}
	return all, nil
}
