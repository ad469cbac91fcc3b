// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// ErrMetadata says that an address leads to the metadata service of a cloud.
var ErrMetadata = errors.New("it leads to the metadata service of a cloud, to which nothing connects")

// ErrRedirect says that a server wants a request to go elsewhere.
var ErrRedirect = errors.New("the server redirects, which is not followed")

// RefuseMetadata is the Control of a net.Dialer that keeps connections from the metadata services of clouds. It sees
// addresses after names are resolved, but not those behind a proxy.
func RefuseMetadata(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err == nil && IsMetadata(to.Addr()) { // else it is no IP address, such as a socket of this machine
		return ErrMetadata
	}
	return nil
}

// Dialer connects to anything but metadata services.
func Dialer() *net.Dialer {
	return &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, Control: RefuseMetadata}
}

// Credentials are the files with which a server and its client prove who they are. Empty: no token, and the authorities
// of the system.
type Credentials struct {
	// TokenFile has a bearer token, and is read again when it changes. CAFile has the certificates of the authority
	// that signed the server's.
	TokenFile, CAFile string
}

// Transport connects to anything but metadata services, through the proxy of the environment.
func (c Credentials) Transport() (http.RoundTripper, error) {
	transport, err := rest.TransportFor(&rest.Config{BearerTokenFile: c.TokenFile, Dial: Dialer().DialContext,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.CAFile}})
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	return transport, nil
}

// Client follows no redirects, since a transport adds its credentials to each request, and reads at most so many bytes
// of an answer; more is an http.MaxBytesError.
func Client(transport http.RoundTripper, maxBytes int64) *http.Client {
	return &http.Client{Transport: bounded{transport, maxBytes}, CheckRedirect: refuseRedirect}
}

func refuseRedirect(to *http.Request, _ []*http.Request) error {
	return fmt.Errorf("%w: to %s", ErrRedirect, to.URL.Redacted())
}

// Transport is a plain one that connects to anything but metadata services, through the proxy of the environment.
func Transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = Dialer().DialContext
	return t
}

type bounded struct {
	http.RoundTripper
	maxBytes int64
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, b.maxBytes)
	}
	return response, err //nolint:wrapcheck // a RoundTripper passes on the errors of the one that it wraps
}
