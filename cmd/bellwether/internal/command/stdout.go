// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
)

// stdout keeps the first error of writing, so that a command whose output is lost does not end as a success, whichever
// way it writes.
type stdout struct {
	io.Writer

	mu     sync.Mutex
	failed error
}

func (o *stdout) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	// A reader that closed its end, such as head, has what it wants.
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.failed == nil {
			o.failed = err
		}
	}
	return n, err //nolint:wrapcheck // an io.Writer passes on the errors of the one that it writes to
}

// lost returns the first error of writing to stdout.
func lost(out io.Writer) error {
	o, ok := out.(*stdout)
	if !ok {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// File returns the file that a stream of Env writes to; false if it is none.
func File(out io.Writer) (*os.File, bool) {
	if o, ok := out.(*stdout); ok {
		out = o.Writer
	}
	f, ok := out.(*os.File)
	return f, ok
}
