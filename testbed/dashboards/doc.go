// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboards runs every query of the Grafana dashboards, as they are shipped, against a real Prometheus that
// has the history of a fleet: each has to be valid, to select series that somebody exports, and to return data without
// a warning.
//
// It also records what the queries return in a run, for the pictures of the documentation.
package dashboards
