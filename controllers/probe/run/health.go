// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/prometheus/blackbox_exporter/config"
	"github.com/prometheus/client_golang/prometheus"
	pconfig "github.com/prometheus/common/config"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// maxHealth is what is read of a gRPC server's answer, and of its headers.
const maxHealth = 64 << 10

// checkHealth asks grpc.health.v1.Health/Check at an address, and records what
// blackbox_exporter's prober would. That one's own call has no deadline (v0.28):
// a server that does not answer would hold it for ever.
func checkHealth(ctx context.Context, to string, module config.GRPCProbe, registry *prometheus.Registry,
	heard *listener) bool {
	transport := insecure.NewCredentials()
	if module.TLS {
		tls, err := pconfig.NewTLSConfig(&module.TLSConfig)
		if err != nil {
			heard.first(fmt.Errorf("%w: spec.tls: %w", errSpec, err))
			return false
		}
		transport = credentials.NewTLS(tls)
	}
	var broken cause
	conn, err := grpc.NewClient("passthrough:///"+to, grpc.WithTransportCredentials(handshake{transport, &broken}),
		grpc.WithContextDialer(broken.dial), grpc.WithDisableRetry(),
		grpc.WithMaxHeaderListSize(maxHealth), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxHealth)),
		grpc.WithDisableServiceConfig(), grpc.WithReadBufferSize(relayBuffer), grpc.WithWriteBufferSize(relayBuffer))
	if err != nil {
		heard.first(fmt.Errorf("make gRPC client: %w", err))
		return false
	}
	defer conn.Close() //nolint:errcheck // nothing is left to be written
	var from peer.Peer
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx,
		&grpc_health_v1.HealthCheckRequest{Service: module.Service}, grpc.Peer(&from))
	record(registry, status.Code(err), answer.GetStatus(), from)
	if err != nil {
		heard.first(broken.of(err))
		return false
	}
	return answer.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING
}

// cause remembers why there was no connection: gRPC keeps only its text.
type cause struct{ err atomic.Pointer[error] }

func (c *cause) dial(ctx context.Context, to string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		c.err.CompareAndSwap(nil, &err)
	}
	return conn, err
}

// of gives an error of gRPC the kind that it would have without it.
func (c *cause) of(err error) error {
	if status.Code(err) == codes.DeadlineExceeded {
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	if first := c.err.Load(); first != nil {
		return *first
	}
	return err
}

// handshake tells cause of TLS that could not be agreed on.
type handshake struct {
	credentials.TransportCredentials
	cause *cause
}

func (h handshake) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo,
	error) {
	conn, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		h.cause.err.CompareAndSwap(nil, &err)
	}
	return conn, info, err
}

func (h handshake) Clone() credentials.TransportCredentials {
	return handshake{h.TransportCredentials.Clone(), h.cause}
}

func record(registry *prometheus.Registry, code codes.Code, health grpc_health_v1.HealthCheckResponse_ServingStatus,
	from peer.Peer) {
	set := func(name, help string, value float64) {
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		gauge.Set(value)
		registry.MustRegister(gauge)
	}
	set(series.ProbeGRPCStatusCode, "Response gRPC status code", float64(code))
	said := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: series.ProbeGRPCHealthResponse,
		Help: "Response HealthCheck response"}, []string{series.ProbeServingStatus})
	for name, number := range grpc_health_v1.HealthCheckResponse_ServingStatus_value {
		value := 0.0
		if code == codes.OK && int32(health) == number {
			value = 1
		}
		said.WithLabelValues(name).Set(value)
	}
	registry.MustRegister(said)
	if secure, ok := from.AuthInfo.(credentials.TLSInfo); ok && len(secure.State.PeerCertificates) > 0 {
		expiry := secure.State.PeerCertificates[0].NotAfter
		for _, certificate := range secure.State.PeerCertificates {
			if certificate.NotAfter.Before(expiry) {
				expiry = certificate.NotAfter
			}
		}
		set(series.ProbeSSLEarliestExpiry, "Returns last SSL chain expiry in unixtime", float64(expiry.Unix()))
	}
}
