// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

// MaxInlineBytes is the maximum size of the inlined manifests in an InstallPlan. etcd refuses requests above 1.5 MiB by
// default; a third of this is reserved for data that OLM and the API server add (metadata, managed fields, conditions,
// bundle lookups). A bundle below this limit also fits into a gRPC message: OLM's client accepts 4 MiB, and the message
// contains the CSV twice.
const MaxInlineBytes = 1 << 20
