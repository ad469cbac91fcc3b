// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outbound has the rules for connections of hub and agent to other systems: which addresses they never connect
// to, that they follow no redirect with credentials, and how much of an answer they read.
package outbound

import "net/netip"

// metadataNetworks are the addresses of clouds' metadata services that are not link-local. These services give
// credentials to machines.
var metadataNetworks = []netip.Prefix{
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud
}

// localNetworks are further addresses of this machine and its link.
var localNetworks = []netip.Prefix{
	netip.MustParsePrefix("255.255.255.255/32"), // broadcast
	netip.MustParsePrefix("0.0.0.0/8"),          // this host, on Linux
	netip.MustParsePrefix("fec0::/10"),          // site-local, deprecated
}

// embeddedIPv4 are the IPv6 ranges whose addresses contain an IPv4 address, with its offset. A translator can forward
// such an address to the IPv4 address.
var embeddedIPv4 = []struct {
	prefix netip.Prefix
	offset int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},   // NAT64, RFC 6052
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12}, // NAT64, RFC 8215
	{netip.MustParsePrefix("2002::/16"), 2},       // 6to4, RFC 3056
	{netip.MustParsePrefix("::/96"), 12},          // IPv4-compatible, RFC 4291
}

// IsMetadata reports whether an address is link-local or belongs to a cloud's metadata service. Most metadata services
// have link-local addresses.
func IsMetadata(a netip.Addr) bool {
	return IsAmong(a, metadataNetworks) || hasMatchingAddress(a,
		func(a netip.Addr) bool { return a.IsLinkLocalUnicast() })
}

// IsPrivate reports whether an address belongs to this machine, its link or its cloud's metadata service. Networks of
// RFC 1918 are not private in this sense, because clusters use them.
func IsPrivate(a netip.Addr) bool {
	return IsMetadata(a) || IsAmong(a, localNetworks) || hasMatchingAddress(a, func(a netip.Addr) bool {
		return a.IsLoopback() || a.IsUnspecified() || a.IsMulticast()
	})
}

// IsAmong reports whether an address is in one of the networks, also if it is an IPv4 address inside an IPv6 address.
func IsAmong(a netip.Addr, networks []netip.Prefix) bool {
	return hasMatchingAddress(a, func(a netip.Addr) bool {
		for _, prefix := range networks {
			if prefix.Contains(a) {
				return true
			}
		}
		return false
	})
}

// hasMatchingAddress reports whether matches returns true for an address, or for the IPv4 address inside it.
func hasMatchingAddress(a netip.Addr, matches func(netip.Addr) bool) bool {
	a = a.Unmap().WithZone("")
	if matches(a) {
		return true
	}
	for _, w := range embeddedIPv4 {
		if w.prefix.Contains(a) {
			bytes := a.As16()
			return matches(netip.AddrFrom4([4]byte(bytes[w.offset : w.offset+4])))
		}
	}
	return false
}
