// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboards will hold the Grafana dashboards as typed Go: one for the
// fleet, one for a rollout, and one that is generated for each operator. It
// shares the names of metrics with the code that exports them, and renders
// JSON; it talks to no Grafana.
//
// It is empty until metrics and SLOs are built.
package dashboards
