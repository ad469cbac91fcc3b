// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package newoperator

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestNewOperator makes one operator, installs it on a cluster with OLM, and runs its end-to-end tests there.
func TestNewOperator(t *testing.T) {
	a := newAuthor(t, namespaced())
	a.makeOperator()
	a.tryOnCluster()
}

// tryOnCluster has OLM install the bundle on a cluster of its own, runs the end-to-end tests, and removes it.
func (a *author) tryOnCluster() {
	t := a.t
	t.Helper()
	c := testenv.Cluster(t, cluster.Options{OLM: true, Pods: true, Quick: true,
		Images: map[string]cluster.Image{a.image(): {Path: a.binary()}}})
	a.env = append(a.env, "KUBECONFIG="+c.Kubeconfig())
	var report struct {
		Namespace string
		Complete  bool
		Pods      struct{ Total, Stubs int }
		Examples  []struct{ Name, State string }
		Problems  []any
	}
	out := a.run(a.program, "bundle", "try", filepath.Join("ladders", "bundles", "0.1.0"), "--keep", "-o", "json")
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// The pods of the example's image, which nobody has, are stubs; those of the operator are not.
	if !report.Complete || len(report.Problems) > 0 || report.Pods.Total <= report.Pods.Stubs {
		t.Errorf("the trial: %+v", report)
	}
	if len(report.Examples) != 1 || report.Examples[0].State != "Ready" {
		t.Errorf("the example: %+v", report.Examples)
	}
	a.env = append(a.env, "E2E_NAMESPACE="+report.Namespace)
	a.run("make", "e2e")
	a.run(a.program, "bundle", "try", "--remove", report.Namespace)
}
