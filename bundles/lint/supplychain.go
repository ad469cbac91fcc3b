// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

// supplyChainRules are about where images come from.
func supplyChainRules() []Rule {
	return nil
}
