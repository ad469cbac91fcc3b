// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalogs reads file-based catalogs and computes their upgrade graphs: the version that a channel offers,
// the bundles along which an installed version is upgraded to it, and the versions that are blocked, either by the
// catalog or by the spec of its OperatorCatalog. For policies it also computes where content comes from: the registry
// of an image, and whether two public keys are equal.
//
// Its input is a stream of catalog documents (JSON or YAML) and objects of the API. It opens no file and no
// connection, and uses no Kubernetes client. Package oci fetches catalogs; package view decides which part of a
// catalog a cluster gets. The hub and the agents both use this package, so that their results are equal.
//
// The rules are those of OLM v0 and of operator-registry's validation: opm accepts every catalog that this
// package accepts.
package catalogs
