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

// claimPort is the port by which the owner of an address range holds it.
const claimPort = 20249

// claimTries is how many ranges are tried before none counts as free.
const claimTries = 100

// claimRange finds a /24 of loopback for a cluster's pods that no other testbed on this machine uses. The claim is a
// listener on the range's last address, so it ends with this process, however that ends.
func claimRange(ctx context.Context) (string, net.Listener, error) {
	for range claimTries {
		prefix := fmt.Sprintf("127.%d.%d", 16+rand.IntN(224), rand.IntN(256))
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(prefix+".254", strconv.Itoa(claimPort)))
		if err == nil {
			return prefix + ".0/24", listener, nil
		}
	}
	return "", nil, errors.New("claim address range: none free on loopback")
}
