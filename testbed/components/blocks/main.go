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
	flag.DurationVar(&g.block, "block", 18*time.Hour, "time range of a block")
	flag.Parse()
	g.start = time.Unix(start, 0)
	if err := run(ctx, os.Stdin, *dir, g); err != nil {
		fmt.Fprintln(os.Stderr, "write-blocks:", err)
		os.Exit(1) //nolint:gocritic // stop only restores the signals
	}
}

// grid says when samples are.
type grid struct {
	start       time.Time
	step, block time.Duration
	samples     int
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
	if dir == "" || g.step <= 0 || g.block < g.step || g.samples < 1 {
		return errors.New("--dir, --step, --samples and a --block of at least one step are needed")
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
	each := int(g.block / g.step)
	for first := 0; first < g.samples; first += each {
		group.Go(func() error { return writeBlock(ctx, dir, all, g, first, min(first+each, g.samples)) })
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
