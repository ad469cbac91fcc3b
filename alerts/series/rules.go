// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package series

// Hash is a digest of all rules of a file.
const Hash = "hash"

// SLORulesInfo is 1 with the Hash of the rules that are loaded, for the rules of
// all operators, and with OperatorNamespace and Operator for those of own SLIs. The hub records it, and
// compares it with what it wrote.
const SLORulesInfo = "bellwether:slo_rules:info"
