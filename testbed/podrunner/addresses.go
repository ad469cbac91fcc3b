// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// ErrNoAddress is returned when every address of the range is taken.
var ErrNoAddress = errors.New("no pod address is free")

// addresses gives each pod a loopback address of its own. The first address of
// the range is the node's.
type addresses struct {
	prefix netip.Prefix
	node   netip.Addr

	mu    sync.Mutex
	taken map[netip.Addr]types.UID
	next  netip.Addr
}

func newAddresses(cidr string) (*addresses, error) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil, fmt.Errorf("parse address range: %w", err)
	}
	prefix = prefix.Masked()
	node := prefix.Addr().Next()
	if !prefix.Addr().IsLoopback() || !prefix.Addr().Is4() || !prefix.Contains(node.Next()) {
		return nil, fmt.Errorf("address range %s is not a range of IPv4 loopback addresses", cidr)
	}
	return &addresses{prefix: prefix, node: node, next: node.Next(), taken: map[netip.Addr]types.UID{}}, nil
}

// take returns an address for the pod: the wanted one if the pod may have it,
// otherwise the one that has been free the longest.
func (a *addresses) take(pod types.UID, wanted string) (netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if addr, err := netip.ParseAddr(wanted); err == nil && a.prefix.Contains(addr) && addr != a.node {
		if owner, ok := a.taken[addr]; !ok || owner == pod {
			a.taken[addr] = pod
			return addr, nil
		}
	}
	for first := a.next; ; {
		addr := a.next
		a.advance()
		if _, ok := a.taken[addr]; !ok {
			a.taken[addr] = pod
			return addr, nil
		}
		if a.next == first {
			return netip.Addr{}, fmt.Errorf("%w in %s", ErrNoAddress, a.prefix)
		}
	}
}

// advance moves next on, around the range's end; the last address is left out
// as a network's broadcast address.
func (a *addresses) advance() {
	a.next = a.next.Next()
	if !a.prefix.Contains(a.next.Next()) {
		a.next = a.node.Next()
	}
}

// release gives the pod's address back.
func (a *addresses) release(pod types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for addr, owner := range a.taken {
		if owner == pod {
			delete(a.taken, addr)
		}
	}
}

// size is how many pods the range has addresses for.
func (a *addresses) size() int {
	return 1<<(32-a.prefix.Bits()) - 3 // less network, node and broadcast
}
