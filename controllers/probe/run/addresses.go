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

// errAddressDenied says that the one who runs this process denies an address to every
// probe. It comes with errAddressRefused.
var errAddressDenied = errors.New("denied here")

// errAddressRefused says that a probe, or a redirect that it follows, led to an
// address that is private to this machine or its cloud.
var errAddressRefused = errors.New("address refused")

// privatePrefixes are addresses at which clouds serve credentials to their
// machines and that are not link-local.
var privatePrefixes = []netip.Prefix{
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud
	netip.MustParsePrefix("255.255.255.255/32"), // broadcast
	netip.MustParsePrefix("0.0.0.0/8"),          // this host, on Linux
	netip.MustParsePrefix("fec0::/10"),          // site-local, as link-local once was
}

// embeddedIPv4 are the IPv6 ranges that contain an IPv4 address, and its
// offset: a translator on the way would lead there.
var embeddedIPv4 = []struct {
	prefix netip.Prefix
	offset int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},   // NAT64, RFC 6052
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12}, // NAT64, RFC 8215
	{netip.MustParsePrefix("2002::/16"), 2},       // 6to4, RFC 3056
	{netip.MustParsePrefix("::/96"), 12},          // IPv4-compatible, RFC 4291
}

// isPrivate tells whether an address belongs to this machine, its link or its
// cloud's metadata service. Networks of RFC 1918 are not private in this sense,
// because clusters use them.
func isPrivate(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() {
		return true
	}
	for _, prefix := range privatePrefixes {
		if prefix.Contains(a) {
			return true
		}
	}
	inner, wrapped := unwrap(a)
	return wrapped && isPrivate(inner)
}

// withPrivate is isPrivate with more addresses.
func withPrivate(more []netip.Prefix) func(netip.Addr) bool {
	own := addressResolver{denied: more}
	return func(a netip.Addr) bool { return isPrivate(a) || own.isDenied(a) }
}

// unwrap returns the IPv4 address that a translator on the way to an IPv6 address would
// lead to.
func unwrap(a netip.Addr) (netip.Addr, bool) {
	for _, w := range embeddedIPv4 {
		if w.prefix.Contains(a) {
			bytes := a.As16()
			return netip.AddrFrom4([4]byte(bytes[w.offset : w.offset+4])), true
		}
	}
	return netip.Addr{}, false
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
	case g.isDenied(address), private && allowPrivate && g.noPrivate && !trusted:
		return fmt.Errorf("%w: %s is %w to all probes", errAddressRefused, host, errAddressDenied)
	case private && !allowPrivate && !trusted:
		return fmt.Errorf("%w: %s is private to the machine that probes or to its cloud", errAddressRefused, host)
	}
	return nil
}

// isDenied also knows IPv4 addresses that are wrapped into IPv6 ones.
func (g addressResolver) isDenied(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, prefix := range g.denied {
		if prefix.Contains(a) {
			return true
		}
	}
	inner, wrapped := unwrap(a)
	return wrapped && g.isDenied(inner)
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
