// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alerts holds nothing itself. Its packages are the names of the series
// that exporters, rules and dashboards share (series), the maths of SLOs with the
// rules that are made of them (slo), what is left of budgets (budgets), and the pages
// that alerts link to (runbooks). They take objectives and give typed rules; they have
// no Kubernetes client.
package alerts
