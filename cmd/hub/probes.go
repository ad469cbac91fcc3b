// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/bellwether-dev/bellwether/cmd/internal/startup"
	"github.com/bellwether-dev/bellwether/controllers/probe"
)

// privateNetworks are all ranges that can contain the hub's pods and Services: RFC
// 1918, RFC 6598 and RFC 4193.
var privateNetworks = []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"}

// probeFlags limit the addresses that EndpointProbes on the hub connect to.
type probeFlags struct {
	denied, private []string
	allowPrivate    bool
}

// addFlags adds the flags.
func (f *probeFlags) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&f.denied, "probe-denied-cidrs", nil,
		"ranges of addresses that no EndpointProbe connects to from the hub, as in 192.0.2.0/24")
	fs.StringSliceVar(&f.private, "probe-private-cidrs", privateNetworks,
		"ranges of addresses that are private to the hub besides loopback, link-local and metadata addresses: those "+
			"of its pods and Services")
	fs.BoolVar(&f.allowPrivate, "probe-allow-private", false,
		"let EndpointProbes with spec.allowPrivate connect to private addresses from the hub")
}

// parseAddresses returns the limits of the flags. It returns an error if a range is invalid.
func (f *probeFlags) parseAddresses() (probe.Addresses, error) {
	a := probe.Addresses{NoPrivate: !f.allowPrivate}
	var err error
	if a.Denied, err = startup.ParsePrefixes(f.denied); err != nil {
		return a, fmt.Errorf("--probe-denied-cidrs: %w", err)
	}
	if a.Private, err = startup.ParsePrefixes(f.private); err != nil {
		return a, fmt.Errorf("--probe-private-cidrs: %w", err)
	}
	return a, nil
}
