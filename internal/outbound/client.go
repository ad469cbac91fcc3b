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

// ErrMetadata means that an address belongs to the metadata service of a cloud.
var ErrMetadata = errors.New("it leads to the metadata service of a cloud, and such connections are refused")

// ErrRedirect means that a server redirects a request.
var ErrRedirect = errors.New("the server redirects, and redirects are not followed")

// RefuseMetadata can be the Control function of a net.Dialer. It refuses connections to the metadata services of
// clouds. It checks addresses after names are resolved, but cannot check addresses behind a proxy.
func RefuseMetadata(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	// Addresses that cannot be parsed, such as sockets of this machine, are not IP addresses.
	if err == nil && IsMetadata(target.Addr()) {
		return ErrMetadata
	}
	return nil
}

// NewDialer returns a dialer that does not connect to metadata services.
func NewDialer() *net.Dialer {
	return &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, Control: RefuseMetadata}
}

// Credentials are the files that authenticate a server and its client. Empty means no token, and the system's
// certificate authorities.
type Credentials struct {
	// TokenFile has a bearer token, and is read again when it changes. CAFile has the certificates of the authority
	// that signed the server's certificate.
	TokenFile, CAFile string
}

// Transport returns a transport with these credentials. It does not connect to metadata services, and uses the proxy
// of the environment.
func (c Credentials) Transport() (http.RoundTripper, error) {
	transport, err := rest.TransportFor(&rest.Config{BearerTokenFile: c.TokenFile, Dial: NewDialer().DialContext,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.CAFile}})
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	return transport, nil
}

// NewClient returns a client that follows no redirects, because a transport adds its credentials to each request. The
// client reads at most maxBytes bytes of an answer; a longer answer is an http.MaxBytesError.
func NewClient(transport http.RoundTripper, maxBytes int64) *http.Client {
	return &http.Client{Transport: limitedTransport{transport, maxBytes}, CheckRedirect: refuseRedirect}
}

// refuseRedirect returns an error for every redirect.
func refuseRedirect(request *http.Request, _ []*http.Request) error {
	return fmt.Errorf("%w: to %s", ErrRedirect, request.URL.Redacted())
}

// NewTransport returns a transport without credentials. It does not connect to metadata services, and uses the proxy of
// the environment.
func NewTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = NewDialer().DialContext
	return t
}

// limitedTransport limits the bytes that are read of an answer.
type limitedTransport struct {
	http.RoundTripper
	maxBytes int64
}

// RoundTrip implements http.RoundTripper.
func (b limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, b.maxBytes)
	}
	return response, err //nolint:wrapcheck // a RoundTripper passes on the errors of the one that it wraps
}
