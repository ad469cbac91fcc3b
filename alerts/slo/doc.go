// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slo turns objectives of operators into recording and alerting rules
// for a whole fleet, and says beforehand how those alerts will behave.
//
// The input is a Set: operators, their objectives and their own SLIs. The
// outputs are rule groups in prometheus-operator's types, the same as a plain
// rule file, unit tests of them for promtool, a report of what cannot work, and
// a simulation.
//
// Every SLI becomes a series of slices: at each evaluation, every 60 s, 1 if
// the operator was bad and 0 if not. Objectives are series too, so one rule for
// each window and tier serves every operator and every cluster: the number of
// rules does not grow with either. A slice that is missing counts as good for
// burn rates, and is what the alert about absence is for.
//
// The package is pure: no client, no clock, no logger. It queries nothing.
package slo
