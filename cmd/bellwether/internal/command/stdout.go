// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// stream is stdout or stderr. It escapes all text, so that text from a cluster or a registry cannot control the
// terminal. It also keeps the first write error, so that a command whose output is lost does not exit with status 0.
type stream struct {
	raw io.Writer

	mu      sync.Mutex
	escaped term.Writer
	failed  error
}

func newStream(raw io.Writer) *stream { return &stream{raw: raw, escaped: term.Writer{Writer: raw}} }

// Write implements io.Writer.
func (o *stream) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.escaped.Write(p)
	// EPIPE is not a failure: a reader such as head closes the pipe when it needs no more output.
	if err != nil && !errors.Is(err, syscall.EPIPE) && o.failed == nil {
		o.failed = err
	}
	return n, err //nolint:wrapcheck // an io.Writer returns the errors of the underlying writer
}

// readWriteError returns the first write error of a stream.
func readWriteError(out io.Writer) error {
	o, ok := out.(*stream)
	if !ok {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// unwrapStream returns the writer below a stream, for callers that move the cursor.
func unwrapStream(out io.Writer) io.Writer {
	if o, ok := out.(*stream); ok {
		return o.raw
	}
	return out
}

// File returns the file of a stream of Env; false if the stream does not write to a file. Text that is
// written to the file is not escaped.
func File(out io.Writer) (*os.File, bool) {
	f, ok := unwrapStream(out).(*os.File)
	return f, ok
}
