// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

// compatibilityRules are about what OLM v0 and OLM v1 refuse.
func compatibilityRules() []Rule {
	return nil
}
