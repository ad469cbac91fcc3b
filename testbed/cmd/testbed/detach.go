// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// progressFD is the first descriptor after stdin, stdout and stderr.
const progressFD = 3

// detach runs "up" in a session of its own, shows its progress, and returns when the fleet is up. The child owns the
// fleet from then on.
func detach(ctx context.Context, out io.Writer, o upOptions) error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("open pipe: %w", err)
	}
	defer func() { _ = reader.Close() }()
	complaints, err := os.CreateTemp("", "bellwether-testbed-*.log")
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	defer func() {
		_ = complaints.Close()
		_ = os.Remove(complaints.Name())
	}()

	child, err := startDetached(o, writer, complaints)
	_ = writer.Close() // the child has its own; without this the pipe would never end
	if err != nil {
		return err
	}
	// The child is out of reach of the terminal, so Ctrl-C is passed on for as long as this program waits.
	stop := context.AfterFunc(ctx, func() { _ = child.Process.Signal(syscall.SIGTERM) })
	defer stop()
	if _, err := io.Copy(out, reader); err != nil {
		return fmt.Errorf("read progress: %w", err)
	}
	if ready(o.name, child.Process.Pid) {
		printKubeconfigs(out, o.name)
		say(out, "\nThe fleet stays up; \"testbed down%s\" removes it.\n", nameFlag(o.name))
		return child.Process.Release()
	}
	failure := child.Wait()
	text, _ := os.ReadFile(complaints.Name())
	return errors.Join(fmt.Errorf("start fleet in the background: %w", failure),
		errors.New(strings.TrimSpace(string(text))))
}

func startDetached(o upOptions, progress, complaints *os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	args := []string{"up", "--name", o.name, "--clusters", strings.Join(o.clusters, ","), "--progress-fd",
		strconv.Itoa(progressFD)}
	for _, image := range o.images {
		args = append(args, "--image", image)
	}
	if o.noPods {
		args = append(args, "--no-pods")
	}
	child := exec.CommandContext(context.Background(), self, args...)
	child.Stderr = complaints
	child.ExtraFiles = []*os.File{progress}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return nil, fmt.Errorf("start in the background: %w", err)
	}
	return child, nil
}

func nameFlag(name string) string {
	if name == defaultName {
		return ""
	}
	return " --name " + name
}
