// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ladder is the source of truth of a package in a catalog: a small YAML file that people review, with the
// package's versions, the channel that each has reached, and what is blocked, deprecated or retired.
//
// The channels are a ladder. A version enters at the lowest one and is promoted rung by rung; a channel offers the
// versions that have reached it or a higher one. Package compile computes the upgrade edges.
//
// Its input is the text of the file; it opens no file, reads no bundle and has no clock. Edits keep the comments of
// the people who wrote the file.
package ladder
