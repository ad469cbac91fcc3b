// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// killDelay is how long a cancelled go command may take to close its output.
const killDelay = 5 * time.Second

// goBuild compiles pkg of the module in dir into path.
func goBuild(ctx context.Context, dir, path, pkg, tags, ldflags string) error {
	args := []string{"build", "-trimpath", "-mod=readonly", "-buildvcs=false", "-o", path}
	if tags != "" {
		args = append(args, "-tags", tags)
	}
	if ldflags != "" {
		args = append(args, "-ldflags", ldflags)
	}
	_, err := goCommand(ctx, dir, append(args, pkg)...)
	return err
}

// moduleDir returns the folder of a module that the module in dir requires, downloading it if need be.
func moduleDir(ctx context.Context, dir, module string) (string, error) {
	if _, err := goCommand(ctx, dir, "mod", "download", module); err != nil {
		return "", err
	}
	found, err := goCommand(ctx, dir, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module)
	return strings.TrimSpace(found), err
}

// goCommand runs the go command in dir and returns what it printed. Cancelling ctx ends the compilers it started too.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killDelay
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("run go %s: %w", args[0], ctx.Err())
		}
		return "", fmt.Errorf("run go %s in %s: %w\n%s", args[0], dir, err, tail(stderr.String(), 40))
	}
	return stdout.String(), nil
}

// tail returns the last n lines of text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
