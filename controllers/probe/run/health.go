// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

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

// maxHealthAnswer limits the bytes that are read of a gRPC server's answer and of its headers.
const maxHealthAnswer = 64 << 10

// checkHealth calls grpc.health.v1.Health/Check at an address, and reports whether the
// server is serving. It stores an error of the call in logged, and registers the same series as
// blackbox_exporter's prober. That prober is not used, because its call has no deadline (v0.28):
// a server that does not answer would block it forever.
func checkHealth(ctx context.Context, address string, module config.GRPCProbe, registry *prometheus.Registry,
	logged *errorLog) bool {
	transport := insecure.NewCredentials()
	if module.TLS {
		tls, err := pconfig.NewTLSConfig(&module.TLSConfig)
		if err != nil {
			logged.override(fmt.Errorf("%w: spec.tls: %w", errSpec, err))
			return false
		}
		transport = credentials.NewTLS(tls)
	}
	var connectErr connectError
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(recordingCredentials{transport, &connectErr}),
		grpc.WithContextDialer(connectErr.dial), grpc.WithDisableRetry(),
		grpc.WithMaxHeaderListSize(maxHealthAnswer),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxHealthAnswer)),
		grpc.WithDisableServiceConfig(), grpc.WithReadBufferSize(proxyBuffer), grpc.WithWriteBufferSize(proxyBuffer))
	if err != nil {
		logged.override(fmt.Errorf("make gRPC client: %w", err))
		return false
	}
	defer conn.Close() //nolint:errcheck // nothing is left to be written
	var server peer.Peer
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx,
		&grpc_health_v1.HealthCheckRequest{Service: module.Service}, grpc.Peer(&server))
	recordHealth(registry, status.Code(err), answer.GetStatus(), server)
	if err != nil {
		logged.override(connectErr.classify(err))
		return false
	}
	return answer.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING
}

// connectError stores the error of a failed connection, because gRPC
// keeps only the error's text.
type connectError struct{ err atomic.Pointer[error] }

// dial connects to an address and stores the first error.
func (c *connectError) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		c.err.CompareAndSwap(nil, &err)
	}
	return conn, err
}

// classify returns the error that caused an error of gRPC, so that errors.Is and errors.As work.
func (c *connectError) classify(err error) error {
	if status.Code(err) == codes.DeadlineExceeded {
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	if firstErr := c.err.Load(); firstErr != nil {
		return *firstErr
	}
	return err
}

// recordingCredentials records the error of a failed TLS handshake.
type recordingCredentials struct {
	credentials.TransportCredentials
	connectError *connectError
}

// ClientHandshake implements credentials.TransportCredentials. It stores the first error.
func (c recordingCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn,
	credentials.AuthInfo,
	error) {
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		c.connectError.err.CompareAndSwap(nil, &err)
	}
	return conn, info, err
}

func (c recordingCredentials) Clone() credentials.TransportCredentials {
	return recordingCredentials{c.TransportCredentials.Clone(), c.connectError}
}

// recordHealth registers the series about a health check: the status code, one series for each
// health status, with the value 1 for the reported status, and the expiry of the certificates.
func recordHealth(registry *prometheus.Registry, code codes.Code,
	health grpc_health_v1.HealthCheckResponse_ServingStatus,
	server peer.Peer) {
	set := func(name, help string, value float64) {
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		gauge.Set(value)
		registry.MustRegister(gauge)
	}
	set(series.ProbeGRPCStatusCode, "Response gRPC status code", float64(code))
	statuses := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: series.ProbeGRPCHealthResponse,
		Help: "Response HealthCheck response"}, []string{series.ProbeServingStatus})
	for name, number := range grpc_health_v1.HealthCheckResponse_ServingStatus_value {
		value := 0.0
		if code == codes.OK && int32(health) == number {
			value = 1
		}
		statuses.WithLabelValues(name).Set(value)
	}
	registry.MustRegister(statuses)
	tlsInfo, ok := server.AuthInfo.(credentials.TLSInfo)
	if !ok || len(tlsInfo.State.PeerCertificates) == 0 {
		return
	}
	set(series.ProbeSSLEarliestExpiry, "Returns last SSL chain expiry in unixtime",
		float64(findFirstExpiry(tlsInfo.State.PeerCertificates).Unix()))
	// The chain that expires last is exported, because the client needs only one valid chain.
	var latestExpiry time.Time
	for _, chain := range tlsInfo.State.VerifiedChains {
		if expiry := findFirstExpiry(chain); expiry.After(latestExpiry) {
			latestExpiry = expiry
		}
	}
	if !latestExpiry.IsZero() {
		set(series.ProbeSSLChainExpiry, "Returns last SSL chain expiry in timestamp", float64(latestExpiry.Unix()))
	}
}

// findFirstExpiry returns the earliest expiry of the certificates.
func findFirstExpiry(certificates []*x509.Certificate) time.Time {
	return slices.MinFunc(certificates, func(a, b *x509.Certificate) int {
		return a.NotAfter.Compare(b.NotAfter)
	}).NotAfter
}
