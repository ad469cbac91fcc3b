// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package viewserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// errNotServing says that a server listens, but is not ready by its own word.
var errNotServing = errors.New("not serving")

// knock bounds one question whether a server is ready.
const knock = 5 * time.Second

// answers tells whether a server says of itself that it serves. It connects first: a gRPC client would wait a second
// after each failure, and the measured time would come in steps.
func answers(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, knock)
	defer cancel()
	probe, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	_ = probe.Close()
	return ask(address, func(conn *grpc.ClientConn) error {
		response, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{},
			grpc.WaitForReady(true))
		if err == nil && response.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			return errNotServing
		}
		return err
	})
}

// Count lists all bundles, as OLM does when it connects, and returns how many there are.
func Count(ctx context.Context, address string) (int, error) {
	count, _, err := list(ctx, address, "")
	return count, err
}

// errContent says that a server serves something else than it should.
var errContent = errors.New("unexpected content")

// readAll lists everything once, as OLM does, and checks that it is there: the head of the operator's channel in full,
// and all bundles unless it is a view.
func readAll(ctx context.Context, address string, c catalog, isView bool) error {
	names, head, err := list(ctx, address, c.bundle(1))
	if err != nil {
		return fmt.Errorf("list bundles: %w", err)
	}
	want := c.options.Packages * c.options.Versions
	if isView {
		want = len(slices.Compact([]string{c.bundle(1), c.bundle(2)}))
	}
	if names != want {
		return fmt.Errorf("list bundles: %w: %d bundles, want %d", errContent, names, want)
	}
	if len(head.GetObject()) == 0 || head.GetCsvJson() == "" {
		return fmt.Errorf("list bundles: %w: %s has no manifests", errContent, c.bundle(1))
	}
	return nil
}

// list returns how many bundles there are, and the named one.
func list(ctx context.Context, address, name string) (count int, found *api.Bundle, err error) {
	err = ask(address, func(conn *grpc.ClientConn) error {
		stream, err := api.NewRegistryClient(conn).ListBundles(ctx, &api.ListBundlesRequest{})
		if err != nil {
			return err
		}
		for {
			bundle, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			count++
			if bundle.GetCsvName() == name {
				found = bundle
			}
		}
	})
	return count, found, err
}

func ask(address string, question func(*grpc.ClientConn) error) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	defer func() { _ = conn.Close() }()
	return question(conn)
}
