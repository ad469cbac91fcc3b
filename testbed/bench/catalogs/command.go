// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// sample is what one run of a command showed.
type sample struct {
	took time.Duration
	// user is the time that processors worked for it.
	user time.Duration
	// peak is the most resident memory that it had.
	peak int64
}

const look = 5 * time.Millisecond

// command runs a program to its end. Its output goes through a pipe, as into another program, and nowhere. The error
// holds what it wrote to standard error, and is an *exec.ExitError if the program said so; the sample is valid then,
// too.
func command(ctx context.Context, path string, args ...string) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	// A writer that is no file makes a pipe.
	cmd.Stdout, cmd.Stderr = struct{ io.Writer }{io.Discard}, &complaint
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return sample{}, fmt.Errorf("start %s: %w", path, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	peak, err := watch(cmd.Process.Pid, done)
	one := sample{took: time.Since(start), peak: peak}
	if cmd.ProcessState != nil {
		one.user = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if err != nil {
		return one, fmt.Errorf("run %s %s: %w\n%s", path, strings.Join(args, " "), err, complaint.Bytes())
	}
	return one, nil
}

// watch reads the process's high-water mark until it ends. The figure that a parent gets from the system would do as
// well, were it not at least the parent's own memory: a child that is about to become another program shares it.
func watch(pid int, done <-chan error) (peak int64, err error) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return peak, err
		case <-ticker.C:
			peak = max(peak, highWater(pid))
		}
	}
}

// highWater is 0 where the process has ended, and on systems that do not tell.
func highWater(pid int) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "VmHWM:" {
			continue
		}
		if kilobytes, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			return kilobytes << 10
		}
	}
	return 0
}

// isFindings tells whether a lint ended well and found something.
func isFindings(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 1
}
