// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
)

// start runs a cluster for one test and stops it at the end.
func start(t *testing.T, opts cluster.Options) *cluster.Cluster {
	t.Helper()
	binaries, err := build.Ensure(t.Context(), t.Output(), opts.Components()...)
	if err != nil {
		t.Fatal(err)
	}
	opts.Binaries, opts.Dir, opts.Out = binaries, t.TempDir(), t.Output()
	c, err := cluster.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop(context.Background()) })
	return c
}

func TestClusterWithOLM(t *testing.T) {
	c := start(t, cluster.Options{Name: "full", OLM: true})
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range list.Items {
		t.Log(ns.Name)
	}
	for _, s := range c.Processes() {
		t.Logf("%+v %d MiB", s, s.ResidentBytes>>20)
	}
}
