// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboards holds the Grafana dashboards of a fleet as typed Go: the
// fleet, a rollout, an operator's SLOs, a cluster, the controllers' internals,
// catalogs, and whether pages would arrive.
//
// The input is the names in package series, which exporters and rules share, and
// the SLOs' tiers; the output is Grafana's classic dashboard model, and its JSON
// under out and in the chart. The package is pure: it talks to no Grafana and to
// no Prometheus. What a dashboard has to be like is in package lint, which holds
// every one of them to it.
//
// Every selector of a query comes from package-internal helpers that add the
// variables for the labels that the series has, so no panel can forget one.
package dashboards

//go:generate go run ./internal/generate
