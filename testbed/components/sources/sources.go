// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sources keeps the modules in go.mod whose definitions of clusters are installed in
// tests of discovery: the files are copied from the modules, and nothing of them is linked.
package sources

import (
	_ "sigs.k8s.io/cluster-api/api/core/v1beta2"
	_ "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)
