// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// interruptDelay is how long tests may take to stop what they started, once they are interrupted.
const interruptDelay = time.Minute

// productNice is how much the tests of the product, and their compilers, yield to those of the testbed: these start API
// servers, which break when they get no processor for half a minute.
const productNice = 10

// GoTest runs jobs with the go command.
type GoTest struct {
	// Root is the root of the tree.
	Root string
	// Flags go before the packages.
	Flags []string
	// Out gets what the go command prints beside the results. Calls of Write follow each other.
	Out io.Writer
}

// Run runs a job. That tests failed is no error. When ctx ends, the tests are interrupted as Ctrl-C does it, so that
// they stop what they started.
func (g GoTest) Run(ctx context.Context, job Job, listener Listener) error {
	args := append([]string{"test", "-json"}, g.Flags...)
	if job.Run != "" {
		args = append(args, "-run", job.Run)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, job.packages()...)...)
	cmd.Dir = filepath.Join(g.Root, job.Module)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = interruptDelay
	out := &lineWriter{out: g.Out}
	cmd.Stderr = out
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("read output of go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start go test: %w", err)
	}
	if job.Module == "." {
		if err := syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, productNice); err != nil {
			_, _ = fmt.Fprintf(out, "tests of the product do not yield: %v\n", err)
		}
	}
	failures := &failureCount{Listener: listener}
	err = readEvents(stdout, failures, out.print)
	if waitErr := cmd.Wait(); err == nil {
		err = waitErr
	}
	switch exit := (*exec.ExitError)(nil); {
	case ctx.Err() != nil:
		return fmt.Errorf("run go test: %w", context.Cause(ctx))
	case failures.n > 0 && errors.As(err, &exit):
		return nil
	case err != nil:
		return fmt.Errorf("run go test in %s: %w", job.Module, err)
	}
	return nil
}

// failureCount counts the packages that failed.
type failureCount struct {
	Listener
	n int
}

func (c *failureCount) End(p *Package) {
	if !p.Passed {
		c.n++
	}
	c.Listener.End(p)
}

// lineWriter passes on what several goroutines write.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

func (w *lineWriter) print(line string) { _, _ = fmt.Fprintln(w, line) }
