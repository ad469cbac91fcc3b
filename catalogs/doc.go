// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalogs reads file-based catalogs and answers questions about their upgrade graphs: which version a channel
// offers, and along which bundles an installed version gets there.
//
// Its input is a stream of catalog documents (JSON or YAML) and nothing else: it opens no file and no connection, and
// it knows no Kubernetes client. Where a catalog comes from is the business of the package oci; what of it a cluster
// gets of it is decided in the package view.
//
// The rules are those of OLM v0 and of operator-registry's validation: a catalog that this package accepts is one that
// opm accepts.
package catalogs
