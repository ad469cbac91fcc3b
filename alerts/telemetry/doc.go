// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package telemetry sends measurements of clusters to the hub. It contains both the sending and the receiving side.
//
// In a cluster without a Prometheus, an Evaluator evaluates the edge part of the rules of SLOs, and a
// Sender sends the series that the hub needs to the hub's Prometheus. The rules are the same: a Prometheus
// engine evaluates them on samples from the process itself. Samples are kept only as long as the rules
// read them. The Evaluator scrapes nothing, so SLIs from metrics of operators have no slices here.
//
// On the hub, a Gate receives the remote writes (1.0 or 2.0) of the clusters' Prometheuses
// before a store of metrics. A sender must prove its cluster. It may write only series of
// that cluster, and only series that rules read. Accepted requests are forwarded unchanged.
// The gate stores nothing: while the store is not available, senders keep their samples.
package telemetry
