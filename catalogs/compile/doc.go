// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compile turns a ladder file and its bundles into a package of a
// file-based catalog. Upgrade edges are computed, not written by hand, so that
//
//   - each channel has exactly one head, the highest version in it that is neither blocked nor retired;
//   - every version below it, whether offered, blocked, retired or unknown, has exactly one next version, or with the
//     policy Direct one preferred one, and reaches the head through it; there are no downgrades;
//   - OLM v0 and OLM v1 agree on that next version, which package agree checks on the result;
//   - what an earlier catalog offered is still offered, unless the ladder says why not.
//
// It is pure: its input is the ladder, the bundles and the earlier catalog, its
// output the documents, and the same input gives the same bytes. It reads no
// file and no registry. The current date is an input too, and decides only
// whether the ladder compiles.
package compile
