// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package child runs a container's program as a child process that cannot be
// left behind: it has a process group of its own and, on Linux, dies with this
// program even when that is killed. It knows nothing of pods.
package child

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/process"
)

// drain is how long the output of an ended process is read on, in case one of
// its own children still holds it.
const drain = time.Second

// Command says what to run. Nothing of this program's environment is handed on.
type Command struct {
	Path   string   // the binary
	Args   []string // without the binary
	Env    []string // NAME=value
	Dir    string   // working folder
	Output io.Writer
}

// Child is a started process.
type Child struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// Start runs the command.
func Start(c Command) (*Child, error) {
	cmd := exec.Command(c.Path, c.Args...) //nolint:noctx // Stop ends it, with its grace
	cmd.Env, cmd.Dir = c.Env, c.Dir
	cmd.Stdout, cmd.Stderr = c.Output, c.Output
	cmd.WaitDelay = drain
	cmd.SysProcAttr = attributes()
	if err := process.OnSpawner(cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	child := &Child{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(child.done)
		// How it ended is in ProcessState; an error here says no more.
		_ = cmd.Wait()
		child.killGroup()
	}()
	return child, nil
}

// PID returns the process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Done is closed when the process and its group have ended and all output is written.
func (c *Child) Done() <-chan struct{} { return c.done }

// ExitCode returns the exit code of an ended process as a container runtime
// counts it: 128 and the signal's number for one ended by a signal.
func (c *Child) ExitCode() int32 {
	<-c.done
	state := c.cmd.ProcessState
	if state == nil {
		return 255
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return int32(128 + ws.Signal())
	}
	return int32(state.ExitCode())
}

// Stop asks the process to end by SIGTERM and kills it with its whole group
// after grace, or as soon as now is closed. It returns when the process is gone.
func (c *Child) Stop(grace time.Duration, now <-chan struct{}) {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, syscall.ESRCH) {
		grace = 0
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
		return
	case <-timer.C:
	case <-now:
	}
	c.killGroup()
	<-c.done
}

// killGroup ends whatever is left of the group. That there is nothing is no error.
func (c *Child) killGroup() {
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
}
