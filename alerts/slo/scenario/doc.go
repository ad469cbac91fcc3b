// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenario compares the pages of rule sets in failures of a whole fleet. Each scenario
// defines what happens and which failures need a page. It is written as a test for promtool,
// which evaluates the rules; the pages in promtool's output are then compared with the failures.
//
// The package runs no programs: its callers run promtool.
package scenario
