// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"bytes"
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
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/build"
)

// Measure runs a load in a process of its own, against servers in this one.
func Measure(ctx context.Context, out io.Writer, l Load) (figure.Section, error) {
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
	fmt.Fprintf(out, "running %d probes, each every %s, for %s ...\n", l.Probes, l.Interval, l.For)
	var text bytes.Buffer
	cmd := exec.CommandContext(ctx, binaries[build.ProbeEngine],
		fmt.Sprintf("--probes=%d", l.Probes), "--interval="+l.Interval.String(), "--timeout="+l.Timeout.String(),
		"--for="+l.For.String(),
		"--plain="+targets.Plain, "--secure="+targets.Secure, "--silent="+targets.Silent, "--closed="+targets.Closed)
	cmd.Stdout, cmd.Stderr = &text, out
	if err := cmd.Run(); err != nil {
		return figure.Section{}, fmt.Errorf("run probes: %w", err)
	}
	var result Result
	if err := json.Unmarshal(text.Bytes(), &result); err != nil {
		return figure.Section{}, fmt.Errorf("read result: %w", err)
	}
	return report(l, result), nil
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
func report(l Load, r Result) figure.Section {
	detail := fmt.Sprintf("One process runs the engine of the agents with %d probes, each every %s, for %s: %d runs. "+
		"Of 20 probes 16 ask a "+
		"server without TLS, 2 one with TLS, 1 one that accepts and never answers (until the timeout of %s), and 1 a "+
		"port where nobody "+
		"listens. All %d series are scraped twice in each interval, which takes %s each time and is part of the "+
		"processor time. "+
		"A run is late if it begins after its time. Runs with another result than expected: %d.",
		l.Probes, l.Interval, l.For, r.Runs, l.Timeout, r.Series, r.Scrape.Round(time.Millisecond), r.Wrong)
	name := fmt.Sprintf("%d probes every %s: ", l.Probes, l.Interval)
	row := func(what string, q figure.Quantity, p figure.Promise) figure.Row {
		return figure.Row{Name: name + what, Ours: q, Promise: p, Runs: 1}
	}
	return figure.Section{Key: "probes", Title: "Probes on one agent", Detail: detail, Rows: []figure.Row{
		row("lateness, median", figure.Duration(r.LateP50), figure.Promise{}),
		row("lateness, p99", figure.Duration(r.LateP99), figure.Below(figure.Duration(time.Second))),
		row("lateness, most", figure.Duration(r.LateMost), figure.Promise{}),
		row("processor time per minute", figure.Duration(time.Duration(float64(r.CPU)/r.Elapsed.Minutes())),
			figure.Promise{}),
		row("resident memory, most", figure.Bytes(r.Resident), figure.Promise{}),
		row("resident memory before the first probe", figure.Bytes(r.IdleResident), figure.Promise{}),
		row("wrong results", figure.Count(r.Wrong), figure.Below(figure.Count(1))),
	}}
}
