// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

// operatorRules are about the validators of operator-framework/api, and what they overlook.
func operatorRules() []Rule {
	return nil
}
