// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command echo-server is the HTTP server that echo-operator deploys.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/echo/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "echo-server:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := server.ConfigFromEnv(os.Getenv)
	if err != nil {
		return err
	}
	srv := &http.Server{Addr: config.Address, Handler: server.New(config), ReadHeaderTimeout: 5 * time.Second}
	drained := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		drained <- srv.Shutdown(grace)
	}()
	fmt.Printf("echo-server %s listens on %s\n", config.Version, config.Address)
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return <-drained
}
