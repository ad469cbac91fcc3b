// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"net/http"
	"net/netip"
	"syscall"

	"github.com/bellwether-dev/bellwether/outbound"
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

// refuseMetadata keeps connections from the metadata service of a cloud: no registry is there, and a registry may
// redirect to it.
func refuseMetadata(network, address string, c syscall.RawConn) error {
	if err := outbound.RefuseMetadata(network, address, c); err != nil {
		return failf(ErrDenied, "%s", err)
	}
	return nil
}
