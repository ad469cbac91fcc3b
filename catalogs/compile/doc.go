// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compile turns a ladder file and its bundles into a package of a file-based catalog. Nobody writes an upgrade
// edge: they are computed, so that
//
//   - each channel has exactly one head, the highest good version that has reached it;
//   - every version below it, whether offered, blocked, retired or unknown, has exactly one next version, or with the
//     policy Direct one best one, and gets to the head along it; nothing leads down;
//   - OLM v0 and OLM v1 agree on that next version, which package agree checks on the result;
//   - what an earlier catalog offered is still there, unless the ladder says why not.
//
// It is pure: ladder, bundles and the earlier catalog come in, documents go out, and the same input gives the same
// bytes. It reads no file and no registry. Today's date comes in too, and decides only whether it compiles.
package compile
