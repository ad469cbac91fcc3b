// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentmem measures the resident memory of an agent, idle and with many operators, against a real OLM. The
// benchmark is a Go benchmark, for work on the agent; Measure runs it for the table of all figures.
package agentmem

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
	"github.com/bellwether-dev/bellwether/testbed/build"
)

const (
	mebi = 1 << 20
	// stopDelay is how long an interrupted benchmark may take to stop its cluster.
	stopDelay = 30 * time.Second
)

// Measure runs the benchmark of this package so often, each time with another cluster, and judges its figures. Its
// output goes to out.
func Measure(ctx context.Context, out io.Writer, runs int) (figure.Section, error) {
	all := make([]map[string]float64, 0, runs)
	for range runs {
		metrics, err := runBenchmark(ctx, out)
		if err != nil {
			return figure.Section{}, err
		}
		all = append(all, metrics)
	}
	return report(all), nil
}

func runBenchmark(ctx context.Context, out io.Writer) (map[string]float64, error) {
	root, err := build.Root()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkResidentMemory$", "-benchtime",
		"1x", "-timeout", "60m", "-v", "./bench/agentmem")
	cmd.Dir, cmd.Env = filepath.Join(root, "testbed"), append(os.Environ(), "GOWORK=off")
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&text, out), out
	// The test binary is a child of the go command: both must hear of the end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopDelay
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("run benchmark: %w", err)
	}
	return parse(text.String()), nil
}

// parse returns the metrics of a line of benchmark output by their unit: name, iterations, then pairs of value and
// unit.
func parse(output string) map[string]float64 {
	metrics := map[string]float64{}
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "BenchmarkResidentMemory") {
			continue
		}
		for i := 2; i+1 < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
				metrics[fields[i+1]] = value
			}
		}
	}
	return metrics
}

// report judges the metrics of all runs. A figure that is missing breaks its promise.
func report(runs []map[string]float64) figure.Section {
	const detail = "Each figure is the largest resident memory of the agent's process in that state, in any of the " +
		"runs. Each operator " +
		"lives in a namespace of its own, under a real OLM, with a CRD of about 100 KiB in each of five versions; " +
		"its pods are stubs, which takes nothing from what the agent sees."
	section := figure.Section{Key: "memory", Title: "Resident memory of the agent", Detail: detail}
	for _, state := range []struct {
		unit, name string
		limit      int64
	}{
		{"idle-MiB", "agent, idle", 64},
		{"30-operators-MiB", "agent, 30 operators installed", 96},
		{"upgraded-MiB", "agent, 30 operators, all just upgraded", 96},
		{"restarted-MiB", "agent, 30 operators, just restarted", 96},
	} {
		most := 0.
		for _, metrics := range runs {
			value, ok := metrics[state.unit]
			if !ok {
				value = math.MaxInt32
			}
			most = max(most, value)
		}
		section.Rows = append(section.Rows, figure.Row{
			Name: state.name, Ours: figure.Bytes(int64(most * mebi)),
			Promise: figure.Below(figure.Bytes(state.limit * mebi)), Runs: len(runs),
		})
	}
	return section
}
