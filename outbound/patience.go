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

// Patient waits at most so long for a sign of life of the server: an answer with its body, or an answer to a GET of
// another URL, ping, which is sent to a server that has not answered after half of the time. One that answers the ping
// is slow and does not hang, so the request may take as long as its context permits. Without a ping only the answer
// itself counts. After a server has given no sign of life once, further requests fail at once: a server that hangs
// costs one wait, however many requests a command makes. The error wraps ErrNoAnswer.
func Patient(transport http.RoundTripper, timeout time.Duration, ping string) http.RoundTripper {
	return &patient{RoundTripper: transport, timeout: timeout, ping: ping}
}

// maxPing is how much of the answer to a ping is read.
const maxPing = 1 << 16

type patient struct {
	http.RoundTripper
	timeout time.Duration
	ping    string

	mu     sync.Mutex
	failed error
}

// RoundTrip implements http.RoundTripper.
func (p *patient) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := p.failure(); err != nil {
		return nil, err
	}
	late := fmt.Errorf("%w within %s", ErrNoAnswer, p.timeout)
	ctx, cancel := context.WithCancelCause(r.Context())
	go p.watch(ctx, r.Header, func() { cancel(late) })
	response, err := p.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		defer cancel(nil)
		return nil, p.note(ctx, late, err)
	}
	note := func(err error) error { return p.note(ctx, late, err) }
	response.Body = &patientBody{ReadCloser: response.Body, note: note, cancel: func() { cancel(nil) }}
	return response, nil
}

// watch gives up a request whose server gives no sign of life in time. It returns once the request has ended.
func (p *patient) watch(ctx context.Context, header http.Header, giveUp func()) {
	first, stopFirst := context.WithTimeout(ctx, p.timeout/2)
	defer stopFirst()
	<-first.Done()
	second, stopSecond := context.WithTimeout(ctx, p.timeout-p.timeout/2)
	defer stopSecond()
	if ctx.Err() != nil || p.answersPing(second, header) {
		return
	}
	<-second.Done()
	if ctx.Err() == nil {
		giveUp()
	}
}

// answersPing tells whether the server answers a small request to the end, whatever it says.
func (p *patient) answersPing(ctx context.Context, header http.Header) bool {
	if p.ping == "" {
		return false
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.ping, nil)
	if err != nil {
		return false
	}
	if value := header.Get("Authorization"); value != "" {
		r.Header.Set("Authorization", value)
	}
	response, err := p.RoundTripper.RoundTrip(r)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, maxPing))
	return err == nil
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
	cancel func()
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
