// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compile turns a ladder file and its bundles into a package of a file-based catalog. It computes the upgrade
// edges, so that
//
//   - each channel has exactly one head, the highest version in it that is neither blocked nor retired;
//   - every version below it, whether offered, blocked, retired or unknown, has exactly one next version (with the
//     policy Direct one preferred next version) and reaches the head through it; there are no downgrades;
//   - OLM v0 and OLM v1 agree on that next version; package agree checks the result;
//   - every version that an earlier catalog offered is still offered, unless the ladder says why not.
//
// It is pure: its input is the ladder, the bundles and the earlier catalog, and its output are the documents. The
// same input gives the same bytes. It reads no file and no registry. The current date is an input too, and only
// decides whether the ladder compiles.
package compile
