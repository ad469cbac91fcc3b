// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenario compares rule sets by what they page for in failures of a whole
// fleet. Each scenario says what happens and which failures a person has to be
// paged for. It is written as a test for promtool, which evaluates the rules; the
// pages that promtool reports are then compared with the failures.
//
// The package runs nothing: its callers run promtool.
package scenario
