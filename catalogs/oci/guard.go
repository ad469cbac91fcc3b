// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"net/http"
	"net/netip"
	"slices"
	"syscall"
)

// credentialGuard sends no credentials over plain HTTP, except to this machine. Whoever
// writes a source may set Insecure; the credentials are others'.
type credentialGuard struct {
	inner http.RoundTripper
}

func (g credentialGuard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" && req.Header.Get("Authorization") != "" && !isLoopback(req.URL.Hostname()) {
		return nil, failf(ErrDenied, "there are credentials for the registry, and they are not sent over plain HTTP: "+
			"serve it by HTTPS, or remove its credentials")
	}
	return g.inner.RoundTrip(req)
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// metadata are addresses at which clouds give credentials to whoever asks, besides the link-local ones.
var metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200")}

// refuseMetadata keeps connections from the metadata service of a cloud: no registry is there, and a registry may
// redirect to it. It sees addresses after names are resolved, but not those behind a proxy.
func refuseMetadata(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil //nolint:nilerr // no IP address, such as a socket of this machine
	}
	if ip := to.Addr().Unmap().WithZone(""); ip.IsLinkLocalUnicast() || slices.Contains(metadata, ip) {
		return failf(ErrDenied, "it leads to a metadata address")
	}
	return nil
}
