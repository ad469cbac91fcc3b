// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
	"github.com/bellwether-dev/bellwether/engines/olmv0/templates"
)

var (
	echoOperator = v1alpha1.OperatorReference{Namespace: "fleet", Name: "echo"}
	zooOperator  = v1alpha1.OperatorReference{Namespace: "fleet", Name: "zoo"}
)

// admittedTo returns an install that was admitted to a package with the same name.
func admittedTo(pkg string) *v1alpha1.OperatorInstall {
	return &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-prod", Name: "fleet.echo"},
		Spec: v1alpha1.OperatorInstallSpec{Operator: echoOperator, Cluster: "prod",
			Admission: &v1alpha1.Admission{Rollout: "echo-1", Revision: 1, Hash: "hash",
				Release: v1alpha1.Release{Package: pkg, Channel: "stable", Version: "1.0.0", Bundle: pkg + ".v1.0.0"}}}}
}

// subscriptionOfSomebody returns a Subscription of another owner to a package, in the package's namespace.
func subscriptionOfSomebody(pkg, name string, change ...func(*operatorsv1alpha1.Subscription)) client.Object {
	sub := &operatorsv1alpha1.Subscription{ObjectMeta: named(pkg, name),
		Spec: &operatorsv1alpha1.SubscriptionSpec{Package: pkg, Channel: "stable", CatalogSource: "community",
			CatalogSourceNamespace: "olm"}}
	for _, c := range change {
		c(sub)
	}
	return sub
}

// labelled adds the labels of objects that Bellwether manages for an operator.
func labelled(by v1alpha1.OperatorReference) func(*operatorsv1alpha1.Subscription) {
	return func(s *operatorsv1alpha1.Subscription) { s.Labels = by.ManagedLabels() }
}

// noted adds an annotation with JSON.
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

// clusterOf returns a cluster with these objects.
func clusterOf(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := operatorsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// observeSubscriptions observes the Subscriptions of an install on a cluster.
func observeSubscriptions(t *testing.T, install *v1alpha1.OperatorInstall, local client.Client) *Observation {
	t.Helper()
	set, err := templates.Load("")
	if err != nil {
		t.Fatal(err)
	}
	o := &Observation{Observed: plan.Observed{OLM: true, View: plan.View{Address: "127.0.0.1:50100"}}}
	o.Subscriptions, err = listAs[operatorsv1alpha1.Subscription](t.Context(), local, plan.KindSubscription,
		client.InNamespace(install.Spec.Admission.Release.TargetNamespace()))
	if err != nil {
		t.Fatal(err)
	}
	o.facts = plan.NewFacts(install, &o.Observed, set, now)
	return o
}

// TestOursIsWhatWeMadeOrAdopted checks that the name of a Subscription does not decide who owns it.
func TestOursIsWhatWeMadeOrAdopted(t *testing.T) {
	t.Parallel()
	adoptedBy := func(by v1alpha1.OperatorReference) func(*operatorsv1alpha1.Subscription) {
		return noted(v1alpha1.AnnotationAdopted, plan.Original{Operator: by, Spec: map[string]any{"name": "echo"}})
	}
	keptBy := func(by v1alpha1.OperatorReference) func(*operatorsv1alpha1.Subscription) {
		r := plan.RecordOf(admittedTo("echo"))
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
		"the agent's own, which people make": {v1alpha1.AgentPackage, []client.Object{subscriptionOfSomebody(
			v1alpha1.AgentPackage, v1alpha1.AgentPackage)}, v1alpha1.AgentPackage, v1alpha1.AgentPackage},
		"an annotation that nobody can read": {"echo", []client.Object{subscriptionOfSomebody("echo", "my-echo",
			noted(v1alpha1.AnnotationAdopted, "rubbish"))}, "", "echo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := observeSubscriptions(t, admittedTo(test.pkg), clusterOf(t, test.subs...)).facts
			ours := ""
			for _, s := range facts.Cluster.Subscriptions {
				if s.IsOwn {
					ours += s.Name
				}
			}
			if diff := cmp.Diff([]string{test.ours, test.applied},
				[]string{ours, facts.Rendered[plan.KindSubscription].GetName()}); diff != "" {
				t.Errorf("ours, and what is applied (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTakenOverAndGivenBack: the write that takes a Subscription over changes its approval and adds the record of it,
// and giving it back leaves what was there, and what others have added since.
func TestTakenOverAndGivenBack(t *testing.T) {
	t.Parallel()
	before := subscriptionOfSomebody("echo", "my-echo", func(s *operatorsv1alpha1.Subscription) {
		s.Labels = map[string]string{"team": "blue", v1alpha1.LabelManaged: "no"}
		s.Annotations = map[string]string{"note": "1"}
		s.Spec.StartingCSV = "echo.v0.9.0"
		s.Status.InstalledCSV = "echo.v1.0.0"
	})
	install := admittedTo("echo")
	local := clusterOf(t, before)
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	e := &Engine{Options: Options{Local: local, Now: func() time.Time { return at }}}
	observe := func() (*Observation, plan.Subscription) {
		t.Helper()
		o := observeSubscriptions(t, install, local)
		return o, o.facts.Cluster.Subscriptions[0]
	}
	do := func(o *Observation, verb plan.Verb, s plan.Subscription) error {
		return e.Apply(t.Context(), install, o, []plan.Action{{Verb: verb, Kind: plan.KindSubscription,
			Name: s.Name, Object: s.Object}})
	}
	current := func() *operatorsv1alpha1.Subscription {
		t.Helper()
		now := &operatorsv1alpha1.Subscription{}
		if err := local.Get(t.Context(), client.ObjectKeyFromObject(before), now); err != nil {
			t.Fatal(err)
		}
		return now
	}
	was := current()

	o, s := observe()
	if s.IsOwn || s.Adopted != nil {
		t.Fatalf("somebody's: %+v", s)
	}
	if err := do(o, plan.TakeOver, s); err != nil {
		t.Fatal(err)
	}
	if err := do(o, plan.TakeOver, s); !apierrors.IsConflict(err) {
		t.Errorf("what was changed since is taken over again: %v", err)
	}
	stale, staleSub := o, s
	staleSub.ResourceVersion = "1"
	if err := do(stale, plan.TakeOver, staleSub); !errors.Is(err, errNotAsObserved) {
		t.Errorf("what was not observed so is taken over: %v", err)
	}
	_, s = observe()
	want := &v1alpha1.AdoptedSubscription{Name: "my-echo", Since: metav1.NewTime(at), Bundle: "echo.v1.0.0",
		Channel: "stable", Source: "community", SourceNamespace: "olm", Approval: "Automatic"}
	if diff := cmp.Diff(want, s.Adopted); diff != "" || !s.IsOwn || !s.AwaitsView || !s.Keeps || s.Outdated {
		t.Errorf("taken over: %+v (-want +got):\n%s", s, diff)
	}
	taken, expected := current(), was.DeepCopy()
	expected.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual
	if diff := cmp.Diff(expected.Spec, taken.Spec); diff != "" {
		t.Errorf("more than the approval changed (-want +got):\n%s", diff)
	}

	taken.Spec.CatalogSource, taken.Spec.Config = "bellwether-echo", &operatorsv1alpha1.SubscriptionConfig{
		NodeSelector: map[string]string{"a": "b"}}
	taken.Annotations["since"], taken.Labels["olm"] = "then", "x"
	taken.Annotations[v1alpha1.AnnotationSpecHash] = "hash"
	if err := local.Update(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	o, s = observe()
	if err := do(o, plan.GiveBack, s); err != nil {
		t.Fatal(err)
	}
	given := current()
	was.Annotations["since"], was.Labels["olm"] = "then", "x"
	was.ResourceVersion, given.ResourceVersion = "", ""
	if diff := cmp.Diff(was, given); diff != "" {
		t.Errorf("given back (-want +got):\n%s", diff)
	}
	if _, s = observe(); s.IsOwn {
		t.Error("it is the operator's still")
	}
}

// TestRequestToAdopt: the route and the view of an adoption begin with what others have installed.
func TestRequestToAdopt(t *testing.T) {
	t.Parallel()
	csv := plan.CSV{Name: "echo.v1.0.0", Version: "1.0.0", IsOfPackage: true, Phase: "Succeeded"}
	theirs := plan.Cluster{CSVs: []plan.CSV{csv}, Subscriptions: []plan.Subscription{{Name: "my-echo", Package: "echo",
		InstalledCSV: csv.Name}}}
	orphan := plan.Cluster{CSVs: []plan.CSV{csv}}
	for name, test := range map[string]struct {
		cluster     plan.Cluster
		adopt       *v1alpha1.OperatorAdoption
		asInstalled bool
		installed   string
		target      string
	}{
		"as it is":                       {theirs, &v1alpha1.OperatorAdoption{}, true, csv.Name, csv.Name},
		"and on":                         {theirs, &v1alpha1.OperatorAdoption{}, false, csv.Name, "echo.v1.1.0"},
		"not asked for":                  {theirs, nil, false, "", "echo.v1.1.0"},
		"a CSV without a Subscription":   {orphan, &v1alpha1.OperatorAdoption{}, true, csv.Name, csv.Name},
		"nothing":                        {plan.Cluster{}, &v1alpha1.OperatorAdoption{}, true, "", ""},
		"nothing, and a release goes on": {plan.Cluster{}, &v1alpha1.OperatorAdoption{}, false, "", "echo.v1.1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			install := admittedTo("echo")
			release := &install.Spec.Admission.Release
			release.Bundle, release.Version = "echo.v1.1.0", "1.1.0"
			release.Adopt, release.AsInstalled = test.adopt, test.asInstalled
			r := plan.RequestFor(install, test.cluster, nil, now)
			if r.Installed.Name != test.installed || r.Release.Bundle != test.target {
				t.Errorf("from %q to %q, want from %q to %q", r.Installed.Name, r.Release.Bundle, test.installed,
					test.target)
			}
		})
	}
}

// TestOfferToAdopt checks that an adoption is offered no other version, and that the package is known even without an
// upgrade path.
func TestOfferToAdopt(t *testing.T) {
	t.Parallel()
	installed := func(version string) catalogs.Installed {
		return catalogs.Installed{Name: "echo.v" + version, Version: version}
	}
	for name, test := range map[string]struct {
		installed   catalogs.Installed
		asInstalled bool
		view        string
		problem     string
	}{
		"as it is":                           {installed("1.0.0"), true, "view of ", ""},
		"of a version that is not there":     {installed("0.5.0"), true, "", v1alpha1.ReasonNotAdoptable},
		"of nothing":                         {catalogs.Installed{}, true, "", ""},
		"and on":                             {installed("1.0.0"), false, "view of echo.v1.1.0", ""},
		"and on, from where no way leads on": {installed("0.5.0"), false, "", v1alpha1.ReasonNoUpgradePath},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r := requestOf("a.example.com", "1.1.0")
			r.Release.Adopt, r.Release.AsInstalled, r.Installed = &v1alpha1.OperatorAdoption{}, test.asInstalled,
				test.installed
			if test.asInstalled {
				r.Release.Bundle, r.Release.Version = r.Installed.Name, r.Installed.Version
			}
			f.getOrRead(keyOf("a"), r, "")
			f.waitFor(keyOf("a"))
			offer := f.getOrRead(keyOf("a"), r, "").offer
			problem := ""
			if offer.Problem != nil {
				problem = offer.Problem.Reason
			}
			if offer.ViewHash != test.view || problem != test.problem || offer.Package == nil ||
				len(offer.Package.Bundles) != 2 || test.asInstalled && (offer.Next != "" || len(offer.Path) > 0) {
				t.Errorf("view %q, problem %q, want %q, %q; offer %+v", offer.ViewHash, problem, test.view,
					test.problem, offer)
			}
		})
	}
}
