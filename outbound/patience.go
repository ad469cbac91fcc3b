// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// ErrNoAnswer says that a server did not answer in time.
var ErrNoAnswer = errors.New("no answer")

// Patient waits at most so long for each answer with its body. After a server has not answered once, further requests
// fail at once: a server that hangs costs one wait, however many requests a command makes. The error wraps ErrNoAnswer.
func Patient(transport http.RoundTripper, timeout time.Duration) http.RoundTripper {
	return &patient{RoundTripper: transport, timeout: timeout}
}

type patient struct {
	http.RoundTripper
	timeout time.Duration

	mu     sync.Mutex
	failed error
}

// RoundTrip implements http.RoundTripper.
func (p *patient) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := p.failure(); err != nil {
		return nil, err
	}
	late := fmt.Errorf("%w within %s", ErrNoAnswer, p.timeout)
	ctx, cancel := context.WithTimeoutCause(r.Context(), p.timeout, late)
	response, err := p.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		defer cancel()
		return nil, p.note(ctx, late, err)
	}
	note := func(err error) error { return p.note(ctx, late, err) }
	response.Body = &patientBody{ReadCloser: response.Body, note: note, cancel: cancel}
	return response, nil
}

func (p *patient) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// note remembers that the server was late, and returns the error to tell.
func (p *patient) note(ctx context.Context, late, err error) error {
	if !errors.Is(context.Cause(ctx), late) {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = late
	return late
}

type patientBody struct {
	io.ReadCloser
	note   func(error) error
	cancel context.CancelFunc
}

func (b *patientBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.note(err)
	}
	return n, err
}

func (b *patientBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
