// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package folder compiles a folder of ladder files into a folder with a file-based catalog: it reads ladders, bundle
// folders and icons, fetches bundle images by digest, calls package compile, and writes the result.
//
// It writes nothing to the output before everything has compiled, and replaces each package's file as a whole.
// Package compile decides the content of a catalog.
package folder
