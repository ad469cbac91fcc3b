// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lintrules checks rules for the whole tree: links of the documentation, names of packages, imports between
// folders, paths that leave the tree. With the build tag "lint" it also checks that the rules of .golangci.yml about
// the direction of dependencies reject code that breaks them: it lints a small module with the layout of this module,
// in which each file breaks or keeps one rule.
package lintrules
