// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alerts contains no code. Its packages are, among others, the names of the series that exporters, rules and
// dashboards share (series), the calculations and rules of SLOs (slo), the remaining error budgets (budgets), and the
// pages that alerts link to (runbooks). They read objectives and return typed rules; they have no Kubernetes client.
package alerts
