// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/bellwether-dev/bellwether/internal/outbound"
)

// answers is a registry that gives one answer after the other, and repeats the last answer.
type answers struct {
	statuses []int
	header   string
	bodies   []string
}

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	body := ""
	if req.Body != nil {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		body = string(text)
	}
	status := a.statuses[min(len(a.bodies), len(a.statuses)-1)]
	a.bodies = append(a.bodies, body)
	header := http.Header{}
	if a.header != "" {
		header.Set("Retry-After", a.header)
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("")),
		Request: req}, nil
}

func TestRetries(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	const backoff = time.Second
	for name, test := range map[string]struct {
		answers
		// status is the status of the returned response, waits are the times between the requests, in whole seconds.
		status int
		waits  []int
	}{
		"fine":              {answers{statuses: []int{200}}, 200, nil},
		"not found":         {answers{statuses: []int{404}}, 404, nil},
		"too many requests": {answers{statuses: []int{429, 200}, header: "7"}, 200, []int{7}},
		"until a time": {answers{statuses: []int{503, 200}, header: "Sun, 01 Mar 2026 12:00:09 GMT"}, 200,
			[]int{9}},
		"a time that has passed": {answers{statuses: []int{503, 200}, header: "Sun, 01 Mar 2026 11:00:00 GMT"}, 200,
			[]int{0}},
		"too long to wait":   {answers{statuses: []int{429, 200}, header: "3600"}, 429, nil},
		"no number":          {answers{statuses: []int{500, 200}, header: "soon"}, 200, []int{1}},
		"comes back":         {answers{statuses: []int{500, 502, 503, 200}}, 200, []int{1, 2, 4}},
		"does not come back": {answers{statuses: []int{504}}, 504, []int{1, 2, 4, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			var waits []int
			tr := retryTransport{inner: &test.answers, backoff: backoff, now: func() time.Time { return now },
				sleep: func(_ context.Context, d time.Duration) error {
					waits = append(waits, int(d/time.Second))
					return nil
				}}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://example.com",
				strings.NewReader("content"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != test.status {
				t.Errorf("status %d, want %d", resp.StatusCode, test.status)
			}
			if diff := cmp.Diff(test.waits, waits); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
			for _, body := range test.bodies {
				if body != "content" {
					t.Errorf("a request was sent with %q", body)
				}
			}
		})
	}
}

// A request whose body cannot be read again is not repeated, and a wait ends with the context.
func TestRetriesEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tr := retryTransport{inner: &answers{statuses: []int{503}}, backoff: time.Hour, now: time.Now,
		sleep: outbound.Sleep}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://example.com", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	tr.backoff = time.Second
	if resp, err := tr.RoundTrip(req); !errors.Is(err, context.Canceled) {
		t.Errorf("the wait did not end with the context: %v", err)
		_ = resp.Body.Close()
	}
	once := &answers{statuses: []int{503}}
	tr.inner = once
	req, err = http.NewRequestWithContext(ctx, http.MethodPatch, "http://example.com",
		io.MultiReader(strings.NewReader("a stream")))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if len(once.bodies) != 1 || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%d requests were sent, and the answer is %d", len(once.bodies), resp.StatusCode)
	}
}

// An error for a response contains its status, and differs from the error for a missing response.
func TestClassify(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want error
		text string
	}{
		"no answer": {errors.New("dial tcp: connection refused"), ErrUnreachable, "registry unreachable"},
		"too many requests": {&transport.Error{StatusCode: 429}, ErrFailed,
			"registry failed: status 429 Too Many Requests"},
		"down":      {&transport.Error{StatusCode: 503}, ErrFailed, "status 503 Service Unavailable"},
		"teapot":    {&transport.Error{StatusCode: 418}, ErrFailed, "status 418 I'm a teapot"},
		"not found": {&transport.Error{StatusCode: 404}, ErrNotFound, "not found"},
		"denied":    {&transport.Error{StatusCode: 403}, ErrDenied, "access denied"},
		"full disk": {&fs.PathError{Op: "write", Path: "/cache", Err: syscall.ENOSPC}, syscall.ENOSPC,
			"write /cache: no space left on device"},
		"certificate": {&url.Error{Op: "Get", URL: "https://r.example.com/v2/",
			Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}, ErrUntrusted,
			"certificate of the registry not trusted"},
		"given up": {context.Canceled, context.Canceled, "context canceled"},
	} {
		got := classify(test.err)
		if !errors.Is(got, test.want) || !strings.Contains(got.Error(), test.text) {
			t.Errorf("%s: got %v, want %q", name, got, test.text)
		}
		if !errors.Is(test.want, ErrUnreachable) && errors.Is(got, ErrUnreachable) {
			t.Errorf("%s: it is called unreachable: %v", name, got)
		}
	}
}
