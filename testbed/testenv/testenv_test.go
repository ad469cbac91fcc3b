// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv_test

import (
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func TestAPIServerServesBellwether(t *testing.T) {
	client, err := kubernetes.NewForConfig(testenv.APIServer(t))
	if err != nil {
		t.Fatal(err)
	}
	served, err := client.Discovery().ServerResourcesForGroupVersion("bellwether.dev/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fleetclusters", "operatorcatalogs", "managedoperators", "operatorrollouts",
		"operatorinstalls"} {
		if !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == want }) {
			t.Errorf("%s are not served", want)
		}
	}
}

func TestTestsShareTheAPIServerAndKeepApart(t *testing.T) {
	one, two := testenv.APIServer(t), testenv.APIServer(t)
	if one == two || one.Host != two.Host {
		t.Errorf("want copies of one configuration, have %s (%p) and %s (%p)", one.Host, one, two.Host, two)
	}
	var name string
	t.Run("with a namespace", func(t *testing.T) {
		name = testenv.Namespace(t, one, "apart")
		if other := testenv.Namespace(t, two, "apart"); other == name {
			t.Errorf("two calls gave the same namespace %s", name)
		}
	})
	client, err := kubernetes.NewForConfig(one)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if err == nil && ns.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("namespace %s outlives its test: %s", name, ns.Status.Phase)
	}
}
