// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slo turns objectives of operators into recording and alerting
// rules for a whole fleet, and predicts how the alerts will behave.
//
// The input is a Set: operators, their objectives and their own SLIs. The outputs are rule
// groups in prometheus-operator's types, a plain rule file with these groups, unit tests
// of the rules for promtool, a report of objectives that cannot work, and a simulation.
//
// Every SLI becomes a series of slices: each evaluation, every 60 s, records 1 if the operator was bad and 0
// if it was good. PromQL for slices gives 1 for a bad slice and 0 for a good slice. Objectives are series too,
// so one rule for each window and tier serves every operator and every cluster: the number of rules does not
// grow with the number of operators or clusters. A missing slice counts as good for burn rates; a separate
// alert reports missing slices.
//
// The package is pure: it has no client, clock or logger, and sends no queries.
package slo
