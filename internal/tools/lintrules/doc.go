// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lintrules checks what holds for the whole tree: links of the documentation, names of packages, imports
// between folders, paths that leave the tree. With the build tag "lint" it also proves that the rules of
// .golangci.yml about the direction of dependencies fail code that breaks them: it lints a small module with the
// layout of this one, in which each file breaks one rule or keeps it.
package lintrules
