// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ladder reads and writes the source of truth of a package in a catalog: a small YAML file that people
// review, with the package's versions, the highest channel of each version, and the blocked, deprecated and
// retired versions.
//
// The channels form a ladder. A version enters at the lowest channel and is promoted rung by rung; a channel offers
// the versions that have reached it or a higher channel. Package compile computes the upgrade edges.
//
// Its input is the text of the file; it opens no file, reads no bundle and has no clock. Edits keep the comments of
// the file's authors.
package ladder
