// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"net/http"
	"net/netip"
	"syscall"

	"github.com/bellwether-dev/bellwether/internal/outbound"
)

// credentialGuard sends no credentials over plain HTTP, except to this machine. The author of a source can set
// Insecure, but the credentials can belong to other users.
type credentialGuard struct {
	inner http.RoundTripper
}

// RoundTrip refuses a request with credentials over plain HTTP, except to this machine.
func (g credentialGuard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" && req.Header.Get("Authorization") != "" && !isLoopback(req.URL.Hostname()) {
		return nil, errorf(ErrDenied, "there are credentials for the registry, and they are not sent over plain HTTP: "+
			"serve it by HTTPS, or remove its credentials")
	}
	return g.inner.RoundTrip(req)
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// refuseMetadata refuses connections to the metadata service of a cloud. That service is not a registry, but a
// registry could redirect to it.
func refuseMetadata(network, address string, c syscall.RawConn) error {
	if err := outbound.RefuseMetadata(network, address, c); err != nil {
		return errorf(ErrDenied, "%s", err)
	}
	return nil
}
