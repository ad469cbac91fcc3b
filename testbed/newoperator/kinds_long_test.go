// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package newoperator

import "testing"

// TestNewOperatorKinds does the same with the other kinds of operators, and runs the linters on all.
func TestNewOperatorKinds(t *testing.T) {
	for _, k := range []kind{namespaced(), clusterScoped(), existingTypes(t)} {
		t.Run(k.name, func(t *testing.T) {
			a := newAuthor(t, k)
			a.makeOperator()
			a.run("make", "lint")
			a.tryOnCluster()
		})
	}
}
