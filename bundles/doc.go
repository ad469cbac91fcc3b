// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bundles reads one version of an operator in the form in which its author publishes it. This is a registry+v1
// bundle: a folder of manifests, including a ClusterServiceVersion, and a folder of metadata. The package also has
// definitions for code that reads bundles from catalogs: the types of properties, the form of a version in a bundle
// name, and the maximum size of a bundle.
//
// Input are files or manifests, output is a Bundle. The package checks only that a bundle is readable; package lint
// checks the content. It must not access registries; package oci of the catalogs does this.
package bundles
