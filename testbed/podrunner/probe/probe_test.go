// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/testbed/podrunner/probe"
)

func split(t *testing.T, address string) (string, int32) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return host, int32(n)
}

func TestHTTP(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(r.URL.Query().Get("code"))
		if err != nil || r.URL.Path != "/healthz" || r.Header.Get("X-Probe") != "yes" {
			code = http.StatusBadRequest
		}
		w.WriteHeader(code)
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	tests := map[string]struct {
		server *httptest.Server
		scheme corev1.URIScheme
		path   string
		port   string // name
		wantOK bool
	}{
		"200":          {plain, corev1.URISchemeHTTP, "/healthz?code=200", "http", true},
		"redirect":     {plain, corev1.URISchemeHTTP, "/healthz?code=302", "http", true},
		"500":          {plain, corev1.URISchemeHTTP, "/healthz?code=500", "http", false},
		"https":        {secure, corev1.URISchemeHTTPS, "/healthz?code=200", "http", true},
		"wrong scheme": {secure, corev1.URISchemeHTTP, "/healthz?code=200", "http", false},
		"no such port": {plain, corev1.URISchemeHTTP, "/healthz?code=200", "no", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			host, port := split(t, tt.server.Listener.Addr().String())
			target := probe.Target{Host: host, Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port}}}
			err := probe.Check(t.Context(),
				&corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
					Scheme: tt.scheme, Path: tt.path, Port: intstr.FromString(tt.port),
					HTTPHeaders: []corev1.HTTPHeader{{Name: "X-Probe", Value: "yes"}},
				}}}, target)
			if (err == nil) != tt.wantOK {
				t.Errorf("error = %v, want success %t", err, tt.wantOK)
			}
		})
	}
}

func TestTCP(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host, port := split(t, listener.Addr().String())
	p := &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}},
	}
	if err := probe.Check(t.Context(), p, probe.Target{Host: host}); err != nil {
		t.Errorf("open port: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := probe.Check(t.Context(), p, probe.Target{Host: host}); err == nil {
		t.Error("a closed port passes")
	}
}

func TestGRPC(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	status := health.NewServer()
	status.SetServingStatus("bad", healthpb.HealthCheckResponse_NOT_SERVING)
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, status)
	go func() { _ = server.Serve(listener) }() // ends with Stop
	defer server.Stop()

	host, port := split(t, listener.Addr().String())
	tests := map[string]struct {
		service *string
		wantOK  bool
	}{
		"whole server":    {nil, true},
		"not serving":     {ptr.To("bad"), false},
		"unknown service": {ptr.To("no"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: port,
				Service: tt.service}}}
			if err := probe.Check(t.Context(), p, probe.Target{Host: host}); (err == nil) != tt.wantOK {
				t.Errorf("error = %v, want success %t", err, tt.wantOK)
			}
		})
	}
}

func TestExec(t *testing.T) {
	failure := errors.New("failed")
	target := probe.Target{Exec: func(_ context.Context, command []string) error {
		if len(command) == 1 && command[0] == "true" {
			return nil
		}
		return failure
	}}
	for command, want := range map[string]error{"true": nil, "false": failure} {
		p := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{command}}}}
		if err := probe.Check(t.Context(), p, target); !errors.Is(err, want) {
			t.Errorf("%s: error = %v, want %v", command, err, want)
		}
	}
}

func TestNoHandler(t *testing.T) {
	if err := probe.Check(t.Context(), &corev1.Probe{}, probe.Target{}); err == nil {
		t.Error("a probe without a handler passes")
	}
}
