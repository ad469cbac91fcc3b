// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package outbound_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellwether-dev/bellwether/internal/outbound"
)

// transport answers by a function.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// hangs is a body that never ends.
type hangs struct{ ctx context.Context }

func (h hangs) Read([]byte) (int, error) {
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}

func (hangs) Close() error { return nil }

// TestAServerThatHangsCostsOneWait has a server that takes requests and does not answer, or not to the end.
func TestAServerThatHangsCostsOneWait(t *testing.T) {
	const ping = "http://prometheus.example.com/ping"
	for name, answer := range map[string]transport{
		"no answer to the ping either": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
		"half an answer": func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: hangs{r.Context()}, Request: r}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := outbound.NewClient(outbound.NewPatientTransport(answer, 5*time.Second, ping), 1000)
				began := time.Now()
				for range 3 {
					if err := get(t.Context(), client); !errors.Is(err, outbound.ErrNoAnswer) ||
						!strings.Contains(err.Error(), "no answer within 5s") {
						t.Errorf("error %v, want no answer within 5s", err)
					}
				}
				if waited := time.Since(began); waited != 5*time.Second {
					t.Errorf("three requests waited for %s, want 5s", waited)
				}
			})
		})
	}
}

// TestPatienceIsAboutTheServer has a caller that gives up first, and a server that is slow and answers.
func TestPatienceIsAboutTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := outbound.NewClient(outbound.NewPatientTransport(transport(func(r *http.Request) (*http.Response,
			error) {
			select {
			case <-time.After(4 * time.Second):
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("yes"))}, nil
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}), 5*time.Second, ""), 1000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := get(ctx, client); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, outbound.ErrNoAnswer) {
			t.Errorf("error %v, want that of the caller", err)
		}
		if err := get(t.Context(), client); err != nil {
			t.Errorf("a slow server: %v", err)
		}
	})
}

// TestASlowServerIsWaitedFor has a query that takes longer than a server that hangs is waited for.
func TestASlowServerIsWaitedFor(t *testing.T) {
	const ping = "http://prometheus.example.com/ping"
	slow := transport(func(r *http.Request) (*http.Response, error) {
		answer := &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("yes"))}
		if r.URL.String() == ping {
			if r.Header.Get("Authorization") != "Basic YW5uYTpzZWNyZXQ=" {
				return nil, errors.New("no credentials")
			}
			answer.StatusCode = http.StatusServiceUnavailable
			return answer, nil
		}
		select {
		case <-time.After(20 * time.Second): // impatient: so long the server takes, in the time of synctest
			return answer, nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	})
	for ping, want := range map[string]error{ping: nil, "": outbound.ErrNoAnswer} {
		t.Run("ping "+ping, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := outbound.NewClient(outbound.NewPatientTransport(slow, 5*time.Second, ping), 1000)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				for range 2 {
					if err := get(ctx, client); !errors.Is(err, want) {
						t.Fatalf("error %v, want %v", err, want)
					}
					ctx = t.Context()
				}
				short, stop := context.WithTimeout(t.Context(), 10*time.Second)
				defer stop()
				if err := get(short, client); want == nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v, want that of the caller", err)
				}
			})
		})
	}
}

func get(ctx context.Context, client *http.Client) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://anna:secret@prometheus.example.com", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.ReadAll(response.Body)
	return err
}
