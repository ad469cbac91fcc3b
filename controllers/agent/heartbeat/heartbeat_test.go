// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

var start = time.Date(2026, 11, 22, 2, 0, 0, 0, time.UTC)

// TestOutage plays checks in a row, one each ten seconds.
func TestOutage(t *testing.T) {
	const since, text = v1alpha1.AnnotationAPIServerUnreachableSince, v1alpha1.AnnotationAPIServerError
	down := errors.New("connection refused")
	fine := map[string]string{since: ""}
	tests := map[string]struct {
		before map[string]string
		checks []error
		want   map[string]string
	}{
		"never checked, and the first check fails": {nil, []error{down}, map[string]string{}},
		"reachable":                           {nil, []error{nil}, fine},
		"one lost check is no outage":         {fine, []error{nil, down}, fine},
		"two lost checks apart are no outage": {fine, []error{down, nil, down}, fine},
		"two in a row are, since the first": {fine, []error{nil, down, errors.New("timeout")},
			map[string]string{since: "2026-11-22T02:00:10Z", text: "connection refused"}},
		"a longer outage changes nothing": {fine, []error{down, errors.New("a"), errors.New("b"), errors.New("c")},
			map[string]string{since: "2026-11-22T02:00:00Z", text: "connection refused"}},
		"an outage that a process before this one reported": {map[string]string{since: "earlier", text: "no route"},
			[]error{down, down, down}, map[string]string{since: "earlier", text: "no route"}},
		"it answers again": {map[string]string{since: "earlier", text: "no route"}, []error{down, nil}, fine},
		"a long error is cut": {fine, []error{errors.New(strings.Repeat("x", 600)), down},
			map[string]string{since: "2026-11-22T02:00:00Z", text: strings.Repeat("x", maxErrorLength-1) + "…"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			maps.Copy(got, test.before)
			var o outage
			for i, err := range test.checks {
				o.record(err, start.Add(time.Duration(i)*10*time.Second))
				o.writeAnnotations(got)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCheck plays servers that are not a working API server.
func TestCheck(t *testing.T) {
	answer := func(code int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, body)
		}
	}
	const status = `{"kind":"Status","apiVersion":"v1"}`
	const unnamed = `{"kind":"Namespace","apiVersion":"v1"}`
	const namespace = `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"1"}}`
	tests := map[string]struct {
		server http.HandlerFunc
		ok     bool
	}{
		"an API server":                   {answer(200, "application/json", namespace), true},
		"a load balancer's page":          {answer(200, "text/html", "<html>welcome</html>"), false},
		"a load balancer's ok":            {answer(200, "text/plain", "ok"), false},
		"an empty object":                 {answer(200, "application/json", "{}"), false},
		"an empty namespace":              {answer(200, "application/json", unnamed), false},
		"an API server without etcd":      {answer(500, "application/json", status), false},
		"a load balancer without servers": {answer(503, "text/plain", "no backend"), false},
		"refused credentials":             {answer(401, "application/json", status), false},
		"no answer":                       {nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				if r.URL.Query().Get("resourceVersion") != "" {
					t.Errorf("request %s would be answered from the watch cache", r.URL)
				}
				if test.server == nil {
					cancel() // the time is up
					<-r.Context().Done()
					return
				}
				test.server(w, r)
			}))
			defer server.Close()
			api, err := NewAPIServer(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			if err := api.Check(ctx); (err == nil) != test.ok {
				t.Errorf("check: %v, want success %t", err, test.ok)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

func TestRefusal(t *testing.T) {
	unauthorized := apierrors.NewUnauthorized("token expired")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "a", errors.New("no Role"))
	steps := []struct {
		name string
		err  error
		want string // in the health check; empty: healthy
	}{
		{"accepted", nil, ""},
		{"the hub is away", errors.New("connection refused"), ""},
		{"refused", fmt.Errorf("get Lease: %w", unauthorized),
			"hub refuses my credentials since 2026-11-22T02:02:00Z: get Lease: token expired; run `bellwether fleet " +
				"join prod-1 --cluster-kubeconfig FILE`"},
		{"not granted any more: the same refusal", forbidden, "hub refuses my credentials since 2026-11-22T02:02:00Z"},
		{"the hub is away meanwhile", errors.New("connection refused"),
			"hub refuses my credentials since 2026-11-22T02:02:00Z"},
		{"accepted again", nil, ""},
	}
	r := Lease{ClusterName: "prod-1"}
	for i, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			r.record(step.err, start.Add(time.Duration(i)*time.Minute))
			err := r.Ready(nil)
			if (err != nil) != (step.want != "") || err != nil && !strings.Contains(err.Error(), step.want) {
				t.Errorf("health check: %v, want %q", err, step.want)
			}
		})
	}
}

// TestConnected verifies that the health check fails at the start, and when the Lease is
// not valid, for any reason.
func TestConnected(t *testing.T) {
	t.Parallel()
	now := start
	l := Lease{Validity: 90 * time.Second, Now: func() time.Time { return now }}
	for _, step := range []struct {
		name  string
		after time.Duration
		note  bool
		err   error
		want  string // empty: healthy
	}{
		{name: "at the start", want: "has not been renewed yet"},
		{name: "the hub is away from the start", note: true, err: errors.New("connection refused"),
			want: "has not been renewed yet: connection refused"},
		{name: "accepted", note: true},
		{name: "the hub is away for a moment", after: 90 * time.Second, note: true, err: errors.New("timeout")},
		{name: "the hub is away for too long", after: time.Second, note: true, err: errors.New("connection refused"),
			want: "has not been renewed since 2026-11-22T02:00:00Z: connection refused"},
		{name: "accepted again", note: true},
	} {
		now = now.Add(step.after)
		if step.note {
			l.record(step.err, now)
		}
		err := l.Connected(nil)
		if (err != nil) != (step.want != "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Errorf("%s: %v, want %q", step.name, err, step.want)
		}
	}
}
