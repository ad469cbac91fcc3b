// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bundles reads one version of an operator as its author ships it: a registry+v1 bundle, that is a folder of
// manifests with a ClusterServiceVersion among them, and a folder of metadata.
//
// It is pure: files or manifests come in, a Bundle goes out. It judges nothing beyond what makes a bundle readable;
// that is for package lint. It knows no registry; that is for package oci of the catalogs.
package bundles
