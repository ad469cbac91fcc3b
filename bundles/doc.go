// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bundles will hold the model of an operator's bundle, the rules that
// lint it and the code that builds it from a chart or from manifests. Its rules
// are pure: a bundle goes in, findings come out; there is no Kubernetes client.
//
// It is empty until bundle tooling is built. Bundles of a catalog are read by
// package catalogs.
package bundles
