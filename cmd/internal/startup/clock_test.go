// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestClockLearnsTheOffset(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	type answer struct {
		said time.Time
		took time.Duration
	}
	tests := map[string]struct {
		answers []answer
		want    time.Duration
	}{
		"nothing said":              {},
		"the same second":           {answers: []answer{{said: noon, took: 100 * time.Millisecond}}},
		"the second before":         {answers: []answer{{said: noon.Add(-time.Second), took: time.Millisecond}}},
		"said at the end of a wait": {answers: []answer{{said: noon.Add(30 * time.Second), took: 30 * time.Second}}},
		"an hour ahead": {answers: []answer{{said: noon.Add(time.Hour)}},
			want: time.Hour + 500*time.Millisecond},
		"an hour behind, and right again": {answers: []answer{{said: noon.Add(-time.Hour)}, {said: noon}},
			want: 500 * time.Millisecond},
		"known, and not known better by a slow answer": {want: time.Hour + 500*time.Millisecond,
			answers: []answer{{said: noon.Add(time.Hour)}, {said: noon.Add(time.Hour), took: time.Minute}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &Clock{now: func() time.Time { return noon }}
			for _, a := range test.answers {
				c.updateOffset(a.said, noon, noon.Add(a.took))
			}
			if got := c.Now().Sub(noon); got != test.want {
				t.Errorf("the offset is %s, want %s", got, test.want)
			}
		})
	}
}

func TestClockFollowsAServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	c := &Clock{now: func() time.Time { return time.Now().Add(-time.Hour) }}
	config := &rest.Config{Host: server.URL}
	c.Follow(config)
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	response, err := transport.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if got := c.Now(); got.Before(before.Add(-time.Minute)) || got.After(time.Now().Add(time.Minute)) {
		t.Errorf("the clock says %s, the server's %s", got, before)
	}
}
