// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/build"
)

// Measure runs a load so often, each time in another process, against servers in this one.
func Measure(ctx context.Context, out io.Writer, runs int, l Load) (figure.Section, error) {
	dir, err := os.MkdirTemp("", "bellwether-bench-")
	if err != nil {
		return figure.Section{}, fmt.Errorf("create folder: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder for temporary files
	binaries, err := build.Local(ctx, out, dir, build.ProbeEngine)
	if err != nil {
		return figure.Section{}, err
	}
	targets, stop, err := Serve(ctx)
	if err != nil {
		return figure.Section{}, err
	}
	defer stop()
	results := make([]Result, 0, runs)
	for range runs {
		fmt.Fprintf(out, "running %d probes, each every %s, for %s ...\n", l.Probes, l.Interval, l.For)
		result, err := runEngine(ctx, out, binaries[build.ProbeEngine], l, targets)
		if err != nil {
			return figure.Section{}, err
		}
		results = append(results, result)
	}
	return report(l, results), nil
}

func runEngine(ctx context.Context, out io.Writer, engine string, l Load, targets Targets) (Result, error) {
	var text bytes.Buffer
	cmd := exec.CommandContext(ctx, engine,
		fmt.Sprintf("--probes=%d", l.Probes), "--interval="+l.Interval.String(), "--timeout="+l.Timeout.String(),
		"--for="+l.For.String(),
		"--plain="+targets.Plain, "--secure="+targets.Secure, "--silent="+targets.Silent, "--closed="+targets.Closed)
	cmd.Stdout, cmd.Stderr = &text, out
	if err := cmd.Run(); err != nil {
		return Result{}, fmt.Errorf("run probes: %w", err)
	}
	var result Result
	if err := json.Unmarshal(text.Bytes(), &result); err != nil {
		return Result{}, fmt.Errorf("read result: %w", err)
	}
	return result, nil
}

// Serve starts the servers that probes go to.
func Serve(ctx context.Context) (t Targets, stop func(), err error) {
	silent, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return t, nil, fmt.Errorf("listen: %w", err)
	}
	go func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close() //nolint:errcheck // it was never written to
				_, _ = io.Copy(io.Discard, conn)
			}()
		}
	}()
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	plain, secure := httptest.NewServer(hello), httptest.NewUnstartedServer(hello)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	// Port 1 of loopback is nobody's on the machines that this runs on.
	return Targets{Plain: plain.URL, Secure: secure.URL, Silent: "http://" + silent.Addr().String(),
			Closed: "http://127.0.0.1:1"}, func() {
			_ = silent.Close()
			plain.Close()
			secure.Close()
		}, nil
}

// report judges what was measured.
func report(l Load, results []Result) figure.Section {
	detail := fmt.Sprintf("One process runs the engine of the agents with %d probes, each every %s, for %s: %d probe "+
		"runs in all. Of 20 probes 16 query a server without TLS, 2 one with TLS, 1 one that accepts and never "+
		"answers "+
		"(until the timeout of %s), and 1 a port that is closed. All %d series are scraped twice in each interval, "+
		"which takes %s each time and is part of the processor time. A probe run is late if it begins after its time. "+
		"Medians are those of all processes; the maximum and wrong results are of all of them together.",
		l.Probes, l.Interval, l.For, sum(results, func(r Result) int { return r.Runs }), l.Timeout, results[0].Series,
		median(results, func(r Result) time.Duration { return r.Scrape }).Round(time.Millisecond))
	name := fmt.Sprintf("%d probes every %s: ", l.Probes, l.Interval)
	row := func(what string, q figure.Quantity, p figure.Promise) figure.Row {
		return figure.Row{Name: name + what, Ours: q, Promise: p, Runs: len(results)}
	}
	return figure.Section{Key: "probes", Title: "Probes on one agent", Detail: detail, Rows: []figure.Row{
		row("lateness, median", figure.Duration(median(results, func(r Result) time.Duration { return r.LateP50 })),
			figure.Promise{}),
		row("lateness, p99", figure.Duration(median(results, func(r Result) time.Duration { return r.LateP99 })),
			figure.Below(figure.Duration(time.Second))),
		row("lateness, maximum", figure.Duration(most(results, func(r Result) time.Duration { return r.LateMost })),
			figure.Promise{}),
		row("processor time per minute", figure.Duration(median(results, func(r Result) time.Duration {
			return time.Duration(float64(r.CPU) / r.Elapsed.Minutes())
		})), figure.Promise{}),
		row("resident memory, maximum", figure.Bytes(most(results, func(r Result) int64 { return r.Resident })),
			figure.Promise{}),
		row("resident memory before the first probe",
			figure.Bytes(median(results, func(r Result) int64 { return r.IdleResident })), figure.Promise{}),
		row("wrong results", figure.Count(sum(results, func(r Result) int { return r.Wrong })),
			figure.Below(figure.Count(1))),
	}}
}

func values[T any](results []Result, of func(Result) T) []T {
	all := make([]T, 0, len(results))
	for _, r := range results {
		all = append(all, of(r))
	}
	return all
}

func median[T ~int64 | ~float64](results []Result, of func(Result) T) T {
	return figure.Median(values(results, of))
}

func most[T cmp.Ordered](results []Result, of func(Result) T) T {
	return slices.Max(values(results, of))
}

func sum(results []Result, of func(Result) int) int {
	total := 0
	for _, n := range values(results, of) {
		total += n
	}
	return total
}
