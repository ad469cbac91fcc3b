// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serve exposes metrics and health of one OLM process on an address of the caller's choice. Upstream's mains
// insist on port 8080 of every interface, which only one process on a machine can have.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics serves /metrics, /healthz and /readyz on addr until ctx ends. It returns once the address is bound, so that a
// taken address is an error of the start. /readyz answers 200 only after ready is closed.
func Metrics(ctx context.Context, addr string, ready <-chan struct{}) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on metrics address: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.Handler())
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-ready:
			w.WriteHeader(http.StatusOK)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("serve metrics: %v", err))
		}
	}()
	return nil
}
