// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bellwether-dev/bellwether/apis/own"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
	"github.com/bellwether-dev/bellwether/engines/olmv0/templates"
)

var (
	echoOperator = v1alpha1.OperatorReference{Namespace: "fleet", Name: "echo"}
	zooOperator  = v1alpha1.OperatorReference{Namespace: "fleet", Name: "zoo"}
)

// admittedTo is an install that was admitted to a package, by the same name.
func admittedTo(pkg string) *v1alpha1.OperatorInstall {
	return &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-prod", Name: "fleet.echo"},
		Spec: v1alpha1.OperatorInstallSpec{Operator: echoOperator, Cluster: "prod",
			Admission: &v1alpha1.Admission{Rollout: "echo-1", Revision: 1, Hash: "hash",
				Release: v1alpha1.Release{Package: pkg, Channel: "stable", Version: "1.0.0", Bundle: pkg + ".v1.0.0"}}}}
}

// subscriptionOfSomebody is for a package, in its namespace.
func subscriptionOfSomebody(pkg, name string, change ...func(*operatorsv1alpha1.Subscription)) client.Object {
	sub := &operatorsv1alpha1.Subscription{ObjectMeta: named(pkg, name),
		Spec: &operatorsv1alpha1.SubscriptionSpec{Package: pkg, Channel: "stable", CatalogSource: "community",
			CatalogSourceNamespace: "olm"}}
	for _, c := range change {
		c(sub)
	}
	return sub
}

// labelled has the labels of what Bellwether manages for an operator.
func labelled(by v1alpha1.OperatorReference) func(*operatorsv1alpha1.Subscription) {
	return func(s *operatorsv1alpha1.Subscription) { s.Labels = by.ManagedLabels() }
}

// noted has an annotation with JSON.
func noted(annotation string, value any) func(*operatorsv1alpha1.Subscription) {
	return func(s *operatorsv1alpha1.Subscription) {
		text, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		annotations := map[string]string{annotation: string(text)}
		maps.Copy(annotations, s.Annotations)
		s.Annotations = annotations
	}
}

// readerOf observes an install on a cluster with these objects.
func readerOf(t *testing.T, install *v1alpha1.OperatorInstall, objects ...client.Object) *reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := operatorsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	set, err := templates.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return &reader{local: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), templates: set,
		install: install, data: dataFor(install, "127.0.0.1:50100"),
		observation: &Observation{rendered: map[string]*unstructured.Unstructured{}}}
}

// TestOursIsWhatWeMadeOrAdopted: a name says nothing about who made a Subscription.
func TestOursIsWhatWeMadeOrAdopted(t *testing.T) {
	t.Parallel()
	adoptedBy := func(by v1alpha1.OperatorReference) func(*operatorsv1alpha1.Subscription) {
		return noted(v1alpha1.AnnotationAdopted, original{Operator: by, Spec: map[string]any{"name": "echo"}})
	}
	keptBy := func(by v1alpha1.OperatorReference) func(*operatorsv1alpha1.Subscription) {
		r := recordOf(admittedTo("echo"))
		r.Operator = by
		return noted(v1alpha1.AnnotationKept, r)
	}
	ofPackage := func(name string) func(*operatorsv1alpha1.Subscription) {
		return func(s *operatorsv1alpha1.Subscription) { s.Spec.Package = name }
	}
	for name, test := range map[string]struct {
		pkg  string
		subs []client.Object
		// ours is the name of the operator's; empty for none.
		ours string
		// applied is the name of the Subscription that would be applied.
		applied string
	}{
		"none":       {"echo", nil, "", "echo"},
		"somebody's": {"echo", []client.Object{subscriptionOfSomebody("echo", "echo")}, "", "echo"},
		"somebody's by another name": {"echo", []client.Object{subscriptionOfSomebody("echo", "my-echo")}, "",
			"echo"},
		"made": {"echo", []client.Object{subscriptionOfSomebody("echo", "echo", labelled(echoOperator))}, "echo",
			"echo"},
		"made, and its package was changed": {"echo", []client.Object{subscriptionOfSomebody("echo", "echo",
			labelled(echoOperator), ofPackage("other"))}, "echo", "echo"},
		"made for another package before": {"echo", []client.Object{subscriptionOfSomebody("echo", "other",
			labelled(echoOperator), ofPackage("other"))}, "", "echo"},
		"adopted": {"echo", []client.Object{subscriptionOfSomebody("echo", "my-echo", adoptedBy(echoOperator))},
			"my-echo", "my-echo"},
		"adopted by another ManagedOperator": {"echo", []client.Object{subscriptionOfSomebody("echo", "my-echo",
			labelled(zooOperator), adoptedBy(zooOperator), keptBy(zooOperator))}, "", "echo"},
		"made for another ManagedOperator": {"echo", []client.Object{subscriptionOfSomebody("echo", "echo",
			labelled(zooOperator), keptBy(zooOperator))}, "", "echo"},
		"left by another ManagedOperator": {"echo", []client.Object{subscriptionOfSomebody("echo", "echo",
			labelled(zooOperator))}, "echo", "echo"},
		"two, and the one with the name counts": {"echo", []client.Object{
			subscriptionOfSomebody("echo", "a-copy", labelled(echoOperator)),
			subscriptionOfSomebody("echo", "echo", labelled(echoOperator))}, "echo", "echo"},
		"the agent's own, which people make": {own.AgentPackage, []client.Object{subscriptionOfSomebody(
			own.AgentPackage, own.AgentPackage)}, own.AgentPackage, own.AgentPackage},
		"an annotation that nobody can read": {"echo", []client.Object{subscriptionOfSomebody("echo", "my-echo",
			noted(v1alpha1.AnnotationAdopted, "rubbish"))}, "", "echo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := readerOf(t, admittedTo(test.pkg), test.subs...)
			if err := r.readSubscriptions(t.Context()); err != nil {
				t.Fatal(err)
			}
			ours := ""
			for _, s := range r.observation.Cluster.Subscriptions {
				if s.Ours {
					ours += s.Name
				}
			}
			if diff := cmp.Diff([]string{test.ours, test.applied},
				[]string{ours, r.observation.rendered[plan.KindSubscription].GetName()}); diff != "" {
				t.Errorf("ours, and what is applied (-want +got):\n%s", diff)
			}
		})
	}
}
