// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs the programs of a testbed as child processes that cannot be left behind: each has a process
// group of its own, dies with its parent (on Linux even when the parent is killed), and is written down in a file, so
// that a later run finds what an earlier one could not end.
//
// It knows nothing of what the programs do.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// stopGrace is how long a process may take after SIGTERM.
	stopGrace = 10 * time.Second
	// tailLines is how much of a log goes into an error.
	tailLines = 25
)

// Spec says what to run. All fields but Env are required.
type Spec struct {
	Name string   // component, for messages and file names
	Path string   // binary
	Args []string // without the binary
	Env  []string // added to a minimal environment
	Log  string   // file that collects stdout and stderr; appended to
	Dir  string   // folder that holds the record of the running process
}

// Process is a started child.
type Process struct {
	spec   Spec
	cmd    *exec.Cmd
	record Record
	done   chan struct{}
	err    error // of Wait; read after done
	once   sync.Once
}

// Start runs the program of spec until Stop, Kill, or the end of this program.
func Start(spec Spec) (*Process, error) {
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	// It outlives whatever context it was started in, until somebody stops it.
	cmd := exec.CommandContext(context.Background(), spec.Path, spec.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(baseEnv(), spec.Env...)
	cmd.SysProcAttr = attributes()
	if err := OnSpawner(cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p := &Process{spec: spec, cmd: cmd, done: make(chan struct{})}
	// Until it is waited for, even a process that has ended keeps its id and its start time.
	p.record, err = newRecord(spec, cmd.Process.Pid)
	if err == nil {
		err = p.record.write(spec.Dir)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("record %s: %w", spec.Name, err)
	}
	return p, nil
}

// baseEnv is what every program needs of the caller's environment. The rest is kept out, above all KUBECONFIG.
func baseEnv() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "USER"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Name returns the component's name.
func (p *Process) Name() string { return p.spec.Name }

// Done is closed when the process has ended, for whatever reason.
func (p *Process) Done() <-chan struct{} { return p.done }

// ended reports whether the process is gone; its id may belong to another one by now.
func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Failure describes an ended process with the tail of its log.
func (p *Process) Failure() error {
	<-p.done
	state := "exit status 0"
	if p.err != nil {
		state = p.err.Error()
	}
	return fmt.Errorf("%s ended (%s); its log ends with:\n%s", p.spec.Name, state, p.Tail())
}

// Tail returns the last lines of the log.
func (p *Process) Tail() string { return tailFile(p.spec.Log, tailLines) }

// Stop asks the process to end, and kills it and its whole group if it has not within the grace time or before ctx
// ends. It returns when the process is gone. Stopping an ended process is no error.
func (p *Process) Stop(ctx context.Context) {
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	if !p.ended() {
		_ = syscall.Kill(p.PID(), syscall.SIGTERM)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
	case <-timer.C:
	}
	p.Kill()
}

// Kill ends the process and its group at once, as a crash would, and returns when it is gone.
func (p *Process) Kill() {
	p.once.Do(func() {
		killGroup(p.PID())
		<-p.done
		_ = os.Remove(recordPath(p.spec.Dir, p.spec.Name))
	})
}

// killGroup ends every process of the group that pid leads. Group 0 would be this program's own, and group 1
// everything.
func killGroup(pid int) {
	if pid <= 1 {
		return
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
}

// ErrTimeout says that a process lives but was not ready in time.
var ErrTimeout = errors.New("not ready in time")

// WaitReady polls ready until it returns nil. It fails when the process ends, when ctx ends, or after limit; the error
// carries the tail of the log.
func (p *Process) WaitReady(ctx context.Context, limit time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrTimeout)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	var last error
	for {
		if last = ready(ctx); last == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.Failure()
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (%w); its log ends with:\n%s", p.spec.Name, context.Cause(ctx), last,
				p.Tail())
		case <-ticker.C:
		}
	}
}

// LogPath is where the log of a component goes below a cluster's folder.
func LogPath(dir, name string) string { return filepath.Join(dir, "logs", name+".log") }
