// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/bellwether-dev/bellwether/internal/outbound"
)

// errAddressDenied means that the administrator of this process denies an address to all probes.
// It is joined with errAddressRefused.
var errAddressDenied = errors.New("denied here")

// errAddressRefused means that a probe, or a redirect that the probe follows, led to an address
// that is private to this machine or its cloud.
var errAddressRefused = errors.New("address refused")

// newPrivateCheck returns a function that reports whether an address is private: by
// outbound.IsPrivate, or in one of the additional ranges.
func newPrivateCheck(more []netip.Prefix) func(netip.Addr) bool {
	return func(a netip.Addr) bool { return outbound.IsPrivate(a) || outbound.IsAmong(a, more) }
}

// nameResolver looks up names. It is net.DefaultResolver except in tests.
type nameResolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// addressResolver resolves hosts to addresses and decides which
// addresses a probe may connect to.
type addressResolver struct {
	names nameResolver
	// isPrivate reports whether an address needs spec.allowPrivate.
	isPrivate func(netip.Addr) bool
	// denied are addresses that are refused even with spec.allowPrivate, and even if the target
	// is an object. If noPrivate is set, spec.allowPrivate has no effect.
	denied    []netip.Prefix
	noPrivate bool
}

// checkAddress returns an error if a probe must not connect to an address. The error wraps
// errAddressRefused, and also errAddressDenied if spec.allowPrivate does not permit the address.
// trusted means that the address belongs to an object which the probe names.
func (r addressResolver) checkAddress(host string, address netip.Addr, allowPrivate, trusted bool) error {
	if host != address.String() {
		host += ", which is " + address.String() + ","
	}
	needsAllowPrivate := r.isPrivate(address) && !trusted
	ignoresAllowPrivate := needsAllowPrivate && allowPrivate && r.noPrivate
	switch {
	case outbound.IsAmong(address, r.denied) || ignoresAllowPrivate:
		return fmt.Errorf("%w: %s is %w to all probes", errAddressRefused, host, errAddressDenied)
	case needsAllowPrivate && !allowPrivate:
		return fmt.Errorf("%w: %s is private to the machine that probes or to its cloud", errAddressRefused, host)
	}
	return nil
}

// resolve returns the address of a host that a probe may connect to, preferably IPv4. The caller
// must connect to this address, because a second lookup could return another address.
func (r addressResolver) resolve(ctx context.Context, host string, allowPrivate bool) (netip.Addr, error) {
	address, err := netip.ParseAddr(host)
	if err != nil {
		addresses, err := r.names.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return netip.Addr{}, fmt.Errorf("look up %s: %w", host, err)
		}
		if address = preferIPv4(addresses); !address.IsValid() {
			return netip.Addr{}, fmt.Errorf("look up %s: %w", host,
				&net.DNSError{Err: "no address", Name: host, IsNotFound: true})
		}
	}
	address = address.Unmap()
	if err := r.checkAddress(host, address, allowPrivate, false); err != nil {
		return netip.Addr{}, err
	}
	return address, nil
}

// preferIPv4 returns the first IPv4 address, or the first address if there is none.
func preferIPv4(found []netip.Addr) netip.Addr {
	var firstAddress netip.Addr
	for _, a := range found {
		if a.Unmap().Is4() {
			return a
		}
		if !firstAddress.IsValid() {
			firstAddress = a
		}
	}
	return firstAddress
}
