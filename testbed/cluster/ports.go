// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports come from below the range that systems hand out to outgoing connections. Within it, a client that keeps dialling a
// stopped API server could be given the server's own port and so keep it from coming back.
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
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address(port))
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// onFreePorts calls start with n free ports. Between the choice and the component's own bind somebody else may take one; then
// it tries again with others. Any other failure of start is returned as it is.
func onFreePorts(ctx context.Context, n int, start func(ports []int) error) error {
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

// claimPort is the port by which the owner of an address range holds it.
const claimPort = 20249

// claimRange finds a /24 of loopback for a cluster's pods that no other testbed on this machine uses. The claim is a
// listener on the range's last address, so it ends with this process, however that ends.
func claimRange(ctx context.Context) (string, net.Listener, error) {
	for range portTries {
		prefix := fmt.Sprintf("127.%d.%d", 16+rand.IntN(224), rand.IntN(256))
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(prefix+".254", strconv.Itoa(claimPort)))
		if err == nil {
			return prefix + ".0/24", listener, nil
		}
	}
	return "", nil, errors.New("claim address range: none free on loopback")
}
