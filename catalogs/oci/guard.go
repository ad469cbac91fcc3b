// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"fmt"
	"net/http"
	"net/netip"
)

// credentialGuard sends no credentials over plain HTTP, except to this machine. Whoever
// writes a source may set Insecure; the credentials are others'.
type credentialGuard struct {
	inner http.RoundTripper
}

func (g credentialGuard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" && req.Header.Get("Authorization") != "" && !isLoopback(req.URL.Hostname()) {
		return nil, fmt.Errorf("%w: there are credentials for %s, and they are not sent over plain HTTP: serve it by "+
			"HTTPS, or remove its credentials", ErrDenied, req.URL.Host)
	}
	return g.inner.RoundTrip(req)
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}
