// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

// broken is a stdout that fails with one error.
type broken struct{ errno syscall.Errno }

func (b broken) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: b.errno}
}

// A command whose output is lost fails, and reports this once. Its result still decides the exit code.
func TestOutputLost(t *testing.T) {
	value := &Output{Format: OutputJSON}
	say := func(a *Env) error { a.Say("a report\n"); return nil }
	for name, test := range map[string]struct {
		errno syscall.Errno
		run   func(*Env) error
		code  int
		says  string
	}{
		"table, disk full": {syscall.ENOSPC, say, exit.Error, "Error: the disk is full: cannot write /dev/stdout\n"},
		"table, I/O error": {syscall.EIO, say, exit.Error,
			"Error: write the output: write /dev/stdout: input/output error\n"},
		"JSON, I/O error": {syscall.EIO, func(a *Env) error { return value.Value(a.Streams.Out, 1) }, exit.Error,
			"Error: print value: write /dev/stdout: input/output error\n"},
		"exit code of its own": {syscall.EIO, func(a *Env) error {
			a.Say("a report\n")
			return &exit.CodeError{Code: exit.Failed}
		}, exit.Failed, "Error: write the output: write /dev/stdout: input/output error\n"},
		"reader closed": {syscall.EPIPE, say, exit.OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var errOut bytes.Buffer
			a := NewEnv("bellwether", genericiooptions.IOStreams{Out: broken{test.errno}, ErrOut: &errOut})
			if code := a.Exit(test.run(a)); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if got := errOut.String(); !strings.HasPrefix(got, test.says) || strings.Count(got, "Error:") > 1 ||
				(test.says == "") != (got == "") {
				t.Errorf("stderr is %q, want %q", got, test.says)
			}
		})
	}
}
