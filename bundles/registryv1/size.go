// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package registryv1

// MaxInlineBytes is how much of an InstallPlan the inlined manifests may take. etcd refuses requests above 1.5 MiB by
// default; a third of that is left to what OLM and the API server add (metadata, managed fields, conditions, bundle
// lookups). A bundle below this limit also fits into a gRPC message, of which OLM's client accepts 4 MiB and which
// carries the CSV twice.
const MaxInlineBytes = 1 << 20
