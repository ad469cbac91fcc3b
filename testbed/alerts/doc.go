// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alerts holds the rules of SLOs against the programs that will run them: promtool checks them and plays
// stories through them, and a real Prometheus evaluates them on what it scrapes itself, in time that is compressed
// sixty times. Most stories are played by test-rules, which takes less processor time than promtool: see
// components/prometheus.
//
// Beside its tests it has that compression.
package alerts
