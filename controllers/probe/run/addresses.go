// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/bellwether-dev/bellwether/outbound"
)

// errAddressDenied says that the one who runs this process denies an address to every
// probe. It comes with errAddressRefused.
var errAddressDenied = errors.New("denied here")

// errAddressRefused says that a probe, or a redirect that it follows, led to an
// address that is private to this machine or its cloud.
var errAddressRefused = errors.New("address refused")

// withPrivate is outbound.IsPrivate with more addresses.
func withPrivate(more []netip.Prefix) func(netip.Addr) bool {
	return func(a netip.Addr) bool { return outbound.IsPrivate(a) || outbound.IsAmong(a, more) }
}

// nameResolver looks up names. It is net.DefaultResolver outside of tests.
type nameResolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// addressResolver finds addresses and decides which of them a probe may connect
// to.
type addressResolver struct {
	names nameResolver
	// isPrivate says which addresses need spec.allowPrivate.
	isPrivate func(netip.Addr) bool
	// denied are addresses that spec.allowPrivate does not permit either, and neither
	// does a target that is an object. Nothing that is private is permitted where
	// noPrivate is set.
	denied    []netip.Prefix
	noPrivate bool
}

// permit returns why a probe must not connect to an address; nil if it may. trusted says
// that the address is that of an object which the probe names.
func (g addressResolver) permit(host string, address netip.Addr, allowPrivate, trusted bool) error {
	if host != address.String() {
		host += ", which is " + address.String() + ","
	}
	switch private := g.isPrivate(address); {
	case outbound.IsAmong(address, g.denied), private && allowPrivate && g.noPrivate && !trusted:
		return fmt.Errorf("%w: %s is %w to all probes", errAddressRefused, host, errAddressDenied)
	case private && !allowPrivate && !trusted:
		return fmt.Errorf("%w: %s is private to the machine that probes or to its cloud", errAddressRefused, host)
	}
	return nil
}

// resolve returns the address of a host, IPv4 if there is one. The caller
// connects to this address: a second lookup could give another one.
func (g addressResolver) resolve(ctx context.Context, host string, allowPrivate bool) (netip.Addr, error) {
	address, err := netip.ParseAddr(host)
	if err != nil {
		found, err := g.names.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return netip.Addr{}, fmt.Errorf("look up %s: %w", host, err)
		}
		if address = preferIPv4(found); !address.IsValid() {
			return netip.Addr{}, fmt.Errorf("look up %s: %w", host,
				&net.DNSError{Err: "no address", Name: host, IsNotFound: true})
		}
	}
	address = address.Unmap()
	if err := g.permit(host, address, allowPrivate, false); err != nil {
		return netip.Addr{}, err
	}
	return address, nil
}

func preferIPv4(found []netip.Addr) netip.Addr {
	var first netip.Addr
	for _, a := range found {
		if a.Unmap().Is4() {
			return a
		}
		if !first.IsValid() {
			first = a
		}
	}
	return first
}
