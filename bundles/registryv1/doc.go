// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registryv1 has what everybody must know about registry+v1 bundles who does not read them: the types of their
// properties, how a version is written in a name, and how large a bundle may be.
//
// It imports nothing of Bellwether and no validator, so that the agent, which reads catalogs, stays small. Package
// bundles reads whole bundles.
package registryv1
