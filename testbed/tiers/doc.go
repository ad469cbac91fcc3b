// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tiers runs this repository's tests by tier: what `make test` and `make test-cluster` run, and the step
// "cluster" of .ci/run.
//
// The table tests.txt names every test with its tier, and is the only place that decides it: moving a test to another
// tier is a change of one line. Verify compares the table with the tree.
package tiers
