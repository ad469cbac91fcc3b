// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package folder compiles a folder of ladder files into a folder that holds a
// file-based catalog: it reads ladders, bundle folders and icons, fetches
// bundle images by digest, has package compile do the work, and writes the
// result.
//
// Nothing is written before everything has compiled, and each package's file is
// replaced as a whole. The content of a catalog is decided by package compile.
package folder
