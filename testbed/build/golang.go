// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// killDelay is how long a cancelled go command may take to close its output.
const killDelay = 5 * time.Second

// goModule runs the go command in one module.
type goModule struct {
	dir string
	env []string // added to this program's environment
	// watch, if there is one, gets what the go command writes to standard error.
	watch io.Writer
}

// build compiles packages into path: a file, or a folder if it ends with a separator.
func (m goModule) build(ctx context.Context, path string, packages []string, flags ...string) error {
	args := append([]string{"build", "-mod=readonly", "-buildvcs=false", "-o", path}, flags...)
	_, err := m.run(ctx, append(args, packages...)...)
	return err
}

// requiredDir returns the folder of a module that this one requires, downloading it if need be.
func (m goModule) requiredDir(ctx context.Context, module string) (string, error) {
	if _, err := m.run(ctx, "mod", "download", module); err != nil {
		return "", err
	}
	found, err := m.run(ctx, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module)
	return strings.TrimSpace(found), err
}

// run returns what the go command printed. Cancelling ctx ends the compilers it started too.
func (m goModule) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = m.dir
	cmd.Env = append(append(os.Environ(), "GOWORK=off"), m.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killDelay
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if m.watch != nil {
		cmd.Stderr = io.MultiWriter(&stderr, m.watch)
	}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("run go %s: %w", args[0], ctx.Err())
		}
		return "", fmt.Errorf("run go %s in %s: %w\n%s", args[0], m.dir, err, tail(stderr.String(), 40))
	}
	return stdout.String(), nil
}

// tail returns the last n lines of text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
