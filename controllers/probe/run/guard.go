// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// errAddressRefused says that a probe, or a redirect that it follows, led to an
// address that is private to this machine or its cloud.
var errAddressRefused = errors.New("address refused")

// metadata holds the addresses at which clouds serve credentials to their
// machines, and which are not link-local.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud
	netip.MustParsePrefix("255.255.255.255/32"), // broadcast
	netip.MustParsePrefix("0.0.0.0/8"),          // this host, on Linux
	netip.MustParsePrefix("fec0::/10"),          // site-local, as link-local once was
}

// wrapped are the ranges of IPv6 that hold an address of IPv4, and where in them:
// a translator on the way would lead there.
var wrapped = []struct {
	prefix netip.Prefix
	offset int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},   // NAT64, RFC 6052
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12}, // NAT64, RFC 8215
	{netip.MustParsePrefix("2002::/16"), 2},       // 6to4, RFC 3056
	{netip.MustParsePrefix("::/96"), 12},          // IPv4-compatible, RFC 4291
}

// private tells whether an address is one of this machine, of its link or of its
// cloud's metadata service. Networks of RFC 1918 are not: clusters live there.
func private(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() {
		return true
	}
	for _, prefix := range metadata {
		if prefix.Contains(a) {
			return true
		}
	}
	for _, w := range wrapped {
		if w.prefix.Contains(a) {
			bytes := a.As16()
			return private(netip.AddrFrom4([4]byte(bytes[w.offset : w.offset+4])))
		}
	}
	return false
}

// resolver looks names up; net.DefaultResolver but in tests.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// guard finds addresses and says which of them a probe may connect to.
type guard struct {
	resolver resolver
	// private says which addresses need spec.allowPrivate.
	private func(netip.Addr) bool
}

// address of a host: an address of IPv4 where there is one. It is the address
// to connect to: a second look-up could lead elsewhere.
func (g guard) address(ctx context.Context, host string, allowPrivate bool) (netip.Addr, error) {
	address, err := netip.ParseAddr(host)
	if err != nil {
		found, err := g.resolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return netip.Addr{}, fmt.Errorf("look up %s: %w", host, err)
		}
		if address = prefer(found); !address.IsValid() {
			return netip.Addr{}, fmt.Errorf("look up %s: %w", host,
				&net.DNSError{Err: "no address", Name: host, IsNotFound: true})
		}
	}
	address = address.Unmap()
	if !allowPrivate && g.private(address) {
		if host != address.String() {
			host += ", which is " + address.String() + ","
		}
		return netip.Addr{}, fmt.Errorf("%w: %s is private to the machine that probes or to its cloud",
			errAddressRefused, host)
	}
	return address, nil
}

func prefer(found []netip.Addr) netip.Addr {
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
