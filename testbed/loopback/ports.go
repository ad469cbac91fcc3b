// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loopback gives the servers of a testbed addresses that nobody outside this machine reaches, and that do not
// collide with those of other testbeds.
package loopback

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports come from below the range that systems hand out to outgoing connections. Within it, a client that keeps
// dialling a stopped API server could be given the server's own port and so keep it from coming back.
const (
	firstPort = 20000
	lastPort  = 32000
	portTries = 100
	// startTries is how often a component is started on fresh ports after somebody else took the chosen ones.
	startTries = 4
)

var errNoPort = errors.New("no free port")

// freePort returns a port of loopback that nobody listens on right now.
func freePort(ctx context.Context) (int, error) {
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if portFree(ctx, port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("pick port between %d and %d: %w", firstPort, lastPort, errNoPort)
}

func portFree(ctx context.Context, port int) bool {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", Address(port))
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}

// Address is a port of loopback as host:port.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// OnFreePorts calls start with n free ports. Between the choice and the component's own bind somebody else may take
// one; then it tries again with others. Any other failure of start is returned as it is.
func OnFreePorts(ctx context.Context, n int, start func(ports []int) error) error {
	var err error
	for range startTries {
		ports := make([]int, n)
		for i := range ports {
			if ports[i], err = freePort(ctx); err != nil {
				return err
			}
		}
		if err = start(ports); err == nil || ctx.Err() != nil || allFree(ctx, ports) {
			return err
		}
	}
	return err
}

// allFree reports whether all ports are free; after a failed start that means that ports were not the reason.
func allFree(ctx context.Context, ports []int) bool {
	for _, port := range ports {
		if !portFree(ctx, port) {
			return false
		}
	}
	return true
}
