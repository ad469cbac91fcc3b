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

// ErrNoAnswer means that a server did not answer in time.
var ErrNoAnswer = errors.New("no answer")

// NewPatientTransport returns a transport that waits at most for the timeout until the server answers: with the
// complete answer, or with an answer to a GET of the URL ping. After half of the timeout it sends the ping. A server
// that answers the ping is slow but works, so the request may take as long as its context permits. With an empty ping,
// only the answer itself counts. After a server did not answer once, further requests fail immediately, so that a
// command waits only once for a server that hangs. The error wraps ErrNoAnswer.
func NewPatientTransport(transport http.RoundTripper, timeout time.Duration, ping string) http.RoundTripper {
	return &patientTransport{RoundTripper: transport, timeout: timeout, ping: ping}
}

// maxPing is the maximum number of bytes that are read of the answer to a ping.
const maxPing = 1 << 16

// patientTransport is the transport of NewPatientTransport.
type patientTransport struct {
	http.RoundTripper
	timeout time.Duration
	ping    string

	mu        sync.Mutex
	lateError error
}

// RoundTrip implements http.RoundTripper.
func (p *patientTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := p.readFailure(); err != nil {
		return nil, err
	}
	lateError := fmt.Errorf("%w within %s", ErrNoAnswer, p.timeout)
	ctx, cancel := context.WithCancelCause(r.Context())
	go p.watch(ctx, r.Header, func() { cancel(lateError) })
	response, err := p.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		defer cancel(nil)
		return nil, p.recordLate(ctx, lateError, err)
	}
	record := func(err error) error { return p.recordLate(ctx, lateError, err) }
	response.Body = &patientBody{ReadCloser: response.Body, recordError: record, cancel: func() { cancel(nil) }}
	return response, nil
}

// watch calls giveUp if the server answers neither the request nor the ping in time. In the first half of the timeout
// it waits only for the request; in the second half it also sends the ping. It returns when the request has ended, when
// the ping is answered, or after giveUp.
func (p *patientTransport) watch(ctx context.Context, header http.Header, giveUp func()) {
	firstHalf, cancelFirst := context.WithTimeout(ctx, p.timeout/2)
	defer cancelFirst()
	<-firstHalf.Done()
	secondHalf, cancelSecond := context.WithTimeout(ctx, p.timeout-p.timeout/2)
	defer cancelSecond()
	if ctx.Err() != nil || p.isAnsweringPing(secondHalf, header) {
		return
	}
	<-secondHalf.Done()
	if ctx.Err() == nil {
		giveUp()
	}
}

// isAnsweringPing reports whether the server answers a GET of the URL ping completely, with any status. The request has
// the credentials in header. Without a ping, the result is false.
func (p *patientTransport) isAnsweringPing(ctx context.Context, header http.Header) bool {
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

// readFailure returns the error of an earlier request that was late; nil if there is none.
func (p *patientTransport) readFailure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lateError
}

// recordLate returns late, and records it for further requests, if the request was ended because it was late.
// Otherwise it returns err.
func (p *patientTransport) recordLate(ctx context.Context, lateError, err error) error {
	if !errors.Is(context.Cause(ctx), lateError) {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lateError = lateError
	return lateError
}

// patientBody is the body of an answer, whose errors are recorded.
type patientBody struct {
	io.ReadCloser
	recordError func(error) error
	cancel      func()
}

func (b *patientBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.recordError(err)
	}
	return n, err
}

func (b *patientBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
