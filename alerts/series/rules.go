// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package series

// Hash is a digest of all rules of a file.
const Hash = "hash"

// SLORulesInfo is 1 with the Hash of the loaded rules of all operators, and, with OperatorNamespace and Operator, of
// the rules of own SLIs. A rule records it, and the hub compares the hash with the hash of the rules that it wrote.
const SLORulesInfo = "bellwether:slo_rules:info"
