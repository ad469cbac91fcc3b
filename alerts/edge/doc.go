// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edge evaluates the edge part of the rules of SLOs where a cluster has no
// Prometheus, and sends what travels to the Prometheus of the hub.
//
// The rules are the same, and so is the language: an engine of Prometheus evaluates them on
// samples that are taken in the process itself, of which no more are kept than the rules
// look back for. It scrapes nobody: SLIs of what operators say of themselves have no
// slices here.
package edge
