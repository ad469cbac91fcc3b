// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outbound is how hub and agent reach others over the network: which addresses they never connect to, that they
// follow no redirect with credentials, and how much of an answer they read.
package outbound

import "net/netip"

// metadata are addresses at which clouds serve credentials to their machines, and that are not link-local.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud
}

// local are further addresses of this machine and its link.
var local = []netip.Prefix{
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

// IsMetadata tells whether an address is that of a cloud's metadata service, or of the link, where most of them are.
func IsMetadata(a netip.Addr) bool {
	return IsAmong(a, metadata) || anyOf(a, func(a netip.Addr) bool { return a.IsLinkLocalUnicast() })
}

// IsPrivate tells whether an address belongs to this machine, its link or its
// cloud's metadata service. Networks of RFC 1918 are not private in this sense,
// because clusters use them.
func IsPrivate(a netip.Addr) bool {
	return IsMetadata(a) || IsAmong(a, local) || anyOf(a, func(a netip.Addr) bool {
		return a.IsLoopback() || a.IsUnspecified() || a.IsMulticast()
	})
}

// IsAmong tells whether an address is in one of some networks, also an IPv4 address that is wrapped into an IPv6 one.
func IsAmong(a netip.Addr, networks []netip.Prefix) bool {
	return anyOf(a, func(a netip.Addr) bool {
		for _, prefix := range networks {
			if prefix.Contains(a) {
				return true
			}
		}
		return false
	})
}

// anyOf asks about an address, and about the IPv4 address that a translator on the way to it would lead to.
func anyOf(a netip.Addr, is func(netip.Addr) bool) bool {
	a = a.Unmap().WithZone("")
	if is(a) {
		return true
	}
	for _, w := range embeddedIPv4 {
		if w.prefix.Contains(a) {
			bytes := a.As16()
			return is(netip.AddrFrom4([4]byte(bytes[w.offset : w.offset+4])))
		}
	}
	return false
}
