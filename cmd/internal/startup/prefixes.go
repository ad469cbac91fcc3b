// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"fmt"
	"net/netip"
)

// ParsePrefixes parses ranges of addresses in flags, such as 10.0.0.0/8.
func ParsePrefixes(texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no range of addresses such as 10.0.0.0/8: %w", text, err)
		}
		all = append(all, prefix.Masked())
	}
	return all, nil
}
