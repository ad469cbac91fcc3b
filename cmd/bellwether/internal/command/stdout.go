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

// stream is stdout or stderr. It escapes what is written, so that no text from a cluster or a registry acts on the
// terminal, and keeps the first error, so that a command whose output is lost does not end as a success, whichever way
// it writes.
type stream struct {
	raw io.Writer

	mu     sync.Mutex
	shown  term.Writer
	failed error
}

func newStream(raw io.Writer) *stream { return &stream{raw: raw, shown: term.Writer{Writer: raw}} }

func (o *stream) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.shown.Write(p)
	// A reader that closed its end, such as head, has what it wants.
	if err != nil && !errors.Is(err, syscall.EPIPE) && o.failed == nil {
		o.failed = err
	}
	return n, err //nolint:wrapcheck // an io.Writer passes on the errors of the one that it writes to
}

// lost returns the first error of writing to a stream.
func lost(out io.Writer) error {
	o, ok := out.(*stream)
	if !ok {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// rawOf is what a stream writes to, for those who move the cursor.
func rawOf(out io.Writer) io.Writer {
	if o, ok := out.(*stream); ok {
		return o.raw
	}
	return out
}

// File returns the file that a stream of Env writes to; false if it is none. What is written to it is not escaped.
func File(out io.Writer) (*os.File, bool) {
	f, ok := rawOf(out).(*os.File)
	return f, ok
}
