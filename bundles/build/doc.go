// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build creates registry+v1 bundles from the manifests that an author deploys an operator with.
//
// Its input is YAML, a kustomization or a Helm chart, together with data that manifests do not have: the package, the
// version, the channels, and descriptions for people (markers of Operator SDK in the operator's Go types). Its output
// is the files of a bundle. It follows the rules of `operator-sdk generate bundle`, with one exception: an object that
// OLM cannot install is never dropped silently. It is an error that names the object, or a warning if the object is not
// needed. The same input must give the same bytes: a chart that renders differently each time, for example because it
// generates passwords, is refused.
//
// The package must not open connections; a function of the caller returns the digests of images. Only Write changes
// files; charts, kustomizations and Go types are read from the disk.
package build
