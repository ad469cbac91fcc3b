// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package remotewrite is a gate in front of a store of metrics, through which the
// Prometheus of each cluster sends series by remote write, 1.0 or 2.0.
//
// A sender proves which cluster it is, and may write series of that cluster only, and
// only those that rules read of clusters. What passes is forwarded as it came. The gate
// stores nothing: while the store is away, senders keep what they have.
package remotewrite
