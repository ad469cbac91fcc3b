// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build makes registry+v1 bundles out of the manifests that an author deploys an operator with.
//
// Its input is YAML, as kustomize prints it or package helmchart renders it, and what manifests cannot say: the
// package, the version, the channels. Its output is the files of a bundle. The rules are those of `operator-sdk
// generate bundle`, but for one: what OLM could not install is an error that names it, or a warning where nothing is
// lost by it, and is never dropped in silence. The same input gives the same bytes.
//
// It decides and computes, and opens no connection: digests of images come from a function that the caller gives. Only
// Write touches the disk.
package build
