// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
	"github.com/bellwether-dev/bellwether/engines/olmv0/templates"
)

// TestReadsWhatThePlanAsksFor has an operator that is only partly in the caches: its ClusterServiceVersion is only on
// the API server, and a definition was deleted. Each is read when the plan requests it, and the catalog last.
func TestReadsWhatThePlanAsksFor(t *testing.T) {
	t.Parallel()
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: named("echo", "echo.v1.0.0")}
	csv.Status.Phase = operatorsv1alpha1.CSVPhaseSucceeded
	csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "echoes.example.com"}}
	deployment := &appsv1.Deployment{ObjectMeta: named("echo", "echo"), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "echo"}}}}
	deployment.Labels = map[string]string{plan.LabelOwner: csv.Name}
	pod := &corev1.Pod{ObjectMeta: named("echo", "echo-1")}
	pod.Labels = deployment.Spec.Selector.MatchLabels
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "echo"}}
	sub := subscriptionOfSomebody("echo", "echo", labelled(echoOperator), func(s *operatorsv1alpha1.Subscription) {
		s.Status.InstalledCSV, s.Status.CurrentCSV = csv.Name, csv.Name
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorsv1alpha1.AddToScheme,
		operatorsv1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	having := func(objects ...client.Object) client.WithWatch {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	}
	set, err := templates.Load("")
	if err != nil {
		t.Fatal(err)
	}
	views := serve.New(serve.Options{})
	t.Cleanup(views.Close)
	f := newFixture(t)
	e := New(Options{Local: having(sub, deployment), Live: having(namespace, csv, pod), Catalogs: f.registries,
		Views: views, Templates: set, OLM: func() (bool, bool) { return true, true }, Now: f.now}, f.notify)

	install := admittedTo("echo")
	install.Spec.Admission.Release.Channel, install.Spec.Admission.Release.Bundle = "stable", csv.Name
	o, err := e.Observe(t.Context(), install)
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	next := e.Plan(install, o, now)
	for next.NotReady {
		for _, a := range next.Actions {
			if a.Verb != plan.Read || a.Value == "" {
				t.Errorf("a plan that is not ready does more than to read, or does not say why: %+v", a)
			}
			asked = append(asked, a.Kind+" "+a.Name)
		}
		if len(next.Actions) == 0 { // the catalog is being read
			f.waitFor(client.ObjectKeyFromObject(install))
			if o, err = e.Observe(t.Context(), install); err != nil {
				t.Fatal(err)
			}
			asked = append(asked, "again")
		}
		if err := e.Apply(t.Context(), install, o, next.Actions); err != nil {
			t.Fatal(err)
		}
		next = e.Plan(install, o, now)
	}
	all := []string{"ClusterServiceVersion echo.v1.0.0", "CustomResourceDefinition echoes.example.com", "Pods echo",
		"Catalog "}
	want := append(append(append([]string{}, all...), "again"), all...)
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	c := o.facts.Cluster
	if diff := cmp.Diff([]string{"echoes.example.com"}, c.MissingDefinitions); diff != "" {
		t.Errorf("definitions that are gone (-want +got):\n%s", diff)
	}
	if installed, ok := c.Installed(); !ok || installed.Name != csv.Name || len(c.Deployments) != 1 ||
		o.facts.Offer.ViewHash == "" || next.Report.Progress == nil {
		t.Errorf("installed %+v, Deployments %+v, offer %+v, report %+v", installed, c.Deployments, o.facts.Offer,
			next.Report)
	}
}
