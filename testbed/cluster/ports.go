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

// ranges are the loopback addresses of one cluster.
type ranges struct {
	pods     string // a /24
	services string // a /23
}

// claimRanges finds a /22 of loopback that no other testbed on this machine uses, for a cluster's pods and Services.
// The claim is a listener on the pods' last address, so it ends with this process, however that ends.
func claimRanges(ctx context.Context) (ranges, net.Listener, error) {
	for range claimTries {
		second, third := 16+rand.IntN(224), 4*rand.IntN(64)
		claim := fmt.Sprintf("127.%d.%d.254", second, third)
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(claim, strconv.Itoa(claimPort)))
		if err == nil {
			return ranges{
				pods:     fmt.Sprintf("127.%d.%d.0/24", second, third),
				services: fmt.Sprintf("127.%d.%d.0/23", second, third+2),
			}, listener, nil
		}
	}
	return ranges{}, nil, errors.New("claim address ranges: none free on loopback")
}
