// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"maps"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Requests counts what a client asks of an API server, as "GET operatorinstalls" or "PATCH operatorinstalls/status".
// The zero value is ready to be used.
type Requests struct {
	mu    sync.Mutex
	count map[string]int
}

// Count counts the requests of clients that are made with a configuration from now on.
func (r *Requests) Count(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			r.Add(request)
			return next.RoundTrip(request)
		})
	})
}

// Add counts a request.
func (r *Requests) Add(request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count = map[string]int{}
	}
	r.count[RequestName(request)]++
}

// Take returns the requests since it was called last.
func (r *Requests) Take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := maps.Clone(r.count)
	clear(r.count)
	return taken
}

// Writes returns how many of the requests write.
func Writes(requests map[string]int) int {
	n := 0
	for name, count := range requests {
		if verb, _, _ := strings.Cut(name, " "); verb != http.MethodGet && verb != "WATCH" {
			n += count
		}
	}
	return n
}

// RequestName is the verb and the resource of a request; the path where it is about none.
func RequestName(request *http.Request) string {
	verb := request.Method
	if verb == http.MethodGet && request.URL.Query().Has("watch") {
		verb = "WATCH"
	}
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	skip := 3 // apis, group and version
	if parts[0] == "api" {
		skip = 2
	} else if parts[0] != "apis" {
		return verb + " " + request.URL.Path
	}
	if len(parts) <= skip {
		return verb + " " + request.URL.Path
	}
	parts = parts[skip:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return verb + " " + parts[0] + "/" + parts[2]
	}
	return verb + " " + parts[0]
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
