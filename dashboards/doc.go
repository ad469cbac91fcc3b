// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboards has the Grafana dashboards of a fleet as typed Go: the fleet, a rollout, an operator's SLOs, a
// cluster, the internals of the controllers, the catalogs, and the health of the paging.
//
// The inputs are the names in package series, which exporters and rules share, and the tiers of the SLOs. The output is
// Grafana's classic dashboard model, and its JSON under out and in the chart. The package is pure: it does not connect
// to Grafana or Prometheus. Package lint has the rules for dashboards, and checks all of them.
//
// Queries select series with selectSeries and similar functions. They add the dashboard's variables for the labels of
// the series, so that no panel ignores the selected cluster or operator.
package dashboards

//go:generate go run ./internal/generate
