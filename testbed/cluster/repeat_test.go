// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

// answers is an API server that gives one answer after the other.
type answers struct {
	codes []int
	asked int
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	code := a.codes[min(a.asked, len(a.codes)-1)]
	a.asked++
	recorder := httptest.NewRecorder()
	recorder.WriteHeader(code)
	return recorder.Result(), nil
}

func TestReadsAreRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		codes  []int
		want   int
		asked  int // 0: more often than the codes
	}{
		"an answer":              {http.MethodGet, []int{200}, 200, 1},
		"etcd was slow twice":    {http.MethodGet, []int{500, 504, 200}, 200, 3},
		"a refusal is an answer": {http.MethodGet, []int{403}, 403, 1},
		"a write":                {http.MethodPost, []int{500}, 500, 1},
		"never":                  {http.MethodGet, []int{503}, 503, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &answers{codes: c.codes}
				request := httptest.NewRequestWithContext(t.Context(), c.method, "/api", nil)
				response, err := repeatReads{server}.RoundTrip(request)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				if response.StatusCode != c.want || c.asked != 0 && server.asked != c.asked {
					t.Errorf("got %d after %d requests, want %d after %d", response.StatusCode, server.asked, c.want,
						c.asked)
				}
			})
		})
	}
}
