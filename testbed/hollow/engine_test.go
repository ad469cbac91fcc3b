// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/load"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/controllers/agent/install"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// agent is one hollow agent without a hub: the test writes admissions and reads statuses, and moves the clock.
type agent struct {
	client.Client
	t          *testing.T
	pin        v1alpha1.CatalogPin
	key        client.ObjectKey
	reconciler *install.Reconciler[*observation, plan.Action]

	mu    sync.Mutex
	clock time.Time
}

func newAgent(t *testing.T, b Behaviour) *agent {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, v1alpha1.AddToScheme(scheme))
	a := &agent{t: t, key: client.ObjectKey{Namespace: "bellwether-c", Name: "op"},
		clock:  time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC),
		Client: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.OperatorInstall{}).Build(),
	}
	source := v1alpha1.CatalogSource{Directory: t.TempDir()}
	must(t, catalogtest.WriteDir(source.Directory, catalogtest.Options{Packages: 1, Versions: 4}))
	loader := load.New(oci.NewClient(oci.Options{}), load.Options{})
	digest, err := loader.Resolve(t.Context(), oci.NewSource(source))
	must(t, err)
	a.pin = v1alpha1.CatalogPin{Source: source, Digest: digest}
	one := &operator{behaviour: b, cluster: "c", now: a.now, changed: func() {}, ended: func(Installation) {}}
	engine := &engine{operator: func(*v1alpha1.OperatorInstall) *operator { return one },
		forget: func(*v1alpha1.OperatorInstall) {}, catalogs: loader, now: a.now}
	a.reconciler = &install.Reconciler[*observation, plan.Action]{Hub: a.Client, Engine: engine,
		Events: events.NewFakeRecorder(100), Now: a.now, Veto: noVeto}
	must(t, a.Create(t.Context(), &v1alpha1.OperatorInstall{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.key.Namespace, Name: a.key.Name},
		Spec:       v1alpha1.OperatorInstallSpec{Cluster: "c", RemovalPolicy: v1alpha1.RemovalUninstall},
	}))
	return a
}

func (a *agent) now() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.clock
}

// pass lets the agent reconcile once, and a second go by.
func (a *agent) pass() (*v1alpha1.OperatorInstall, error) {
	at := &v1alpha1.OperatorInstall{}
	if err := a.Get(a.t.Context(), a.key, at); err != nil {
		return at, err
	}
	_, err := a.reconciler.Reconcile(a.t.Context(), at)
	must(a.t, err)
	err = a.Status().Update(a.t.Context(), at)
	a.mu.Lock()
	a.clock = a.clock.Add(time.Second)
	a.mu.Unlock()
	return at, err
}

func (a *agent) admit(version int) {
	a.t.Helper()
	at := &v1alpha1.OperatorInstall{}
	must(a.t, a.Get(a.t.Context(), a.key, at))
	release := v1alpha1.Release{Package: catalogtest.PackageName(0), Channel: "stable",
		Version: catalogtest.Version(version), Bundle: catalogtest.BundleName(0, version), Catalog: a.pin}
	at.Spec.Admission = &v1alpha1.Admission{Revision: int64(version + 1), Hash: release.Hash(), Release: release,
		AdmittedAt: metav1.NewTime(a.now())}
	must(a.t, a.Update(a.t.Context(), at))
}

// reaches lets the agent work until its status is as wanted: Ready's status and reason, and the installed version.
func (a *agent) reaches(want string) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 5*time.Minute)
	defer cancel()
	said := ""
	for ctx.Err() == nil {
		at, err := a.pass()
		must(a.t, err)
		ready := conditions.Get(at.Status.Conditions, v1alpha1.ConditionReady)
		version := "nothing"
		if at.Status.Installed != nil {
			version = at.Status.Installed.Version
		}
		if said = fmt.Sprintf("%s %s %s", ready.Status, ready.Reason, version); said == want {
			return
		}
	}
	a.t.Fatalf("the install is %q, want %q", said, want)
}

// TestHollowAgentInstallsAndUpgrades goes to a version, and on to another one that the catalog has a path to.
func TestHollowAgentInstallsAndUpgrades(t *testing.T) {
	a := newAgent(t, Behaviour{})
	at, err := a.pass()
	must(t, err)
	ready := conditions.Get(at.Status.Conditions, v1alpha1.ConditionReady)
	if ready.Reason != v1alpha1.ReasonNotAdmitted {
		t.Errorf("before an admission: %+v", ready)
	}
	for version := range 3 {
		a.admit(version)
		a.reaches("True Succeeded " + catalogtest.Version(version))
	}
	a.eventually(func(at *v1alpha1.OperatorInstall) error {
		for _, c := range []string{v1alpha1.ConditionCatalogServed, v1alpha1.ConditionResolved,
			v1alpha1.ConditionPlanApproved, v1alpha1.ConditionInstalled} {
			if !conditions.IsTrue(at.Status.Conditions, c) {
				return fmt.Errorf("%s is not true: %+v", c, at.Status.Conditions)
			}
		}
		if o := at.Status.OLM; o == nil || o.CSVPhase != "Succeeded" || !strings.HasPrefix(o.InstallPlan, "install-") {
			return fmt.Errorf("OLM's objects: %+v", o)
		}
		return nil
	})
}

// TestHollowAgentFailsAndGoesOn stalls at a version that fails, and goes on to the next one.
func TestHollowAgentFailsAndGoesOn(t *testing.T) {
	a := newAgent(t, Behaviour{Bad: []string{catalogtest.BundleName(0, 1)}})
	a.admit(0)
	a.reaches("True Succeeded " + catalogtest.Version(0))
	a.admit(1)
	a.reaches("False PlanFailed " + catalogtest.Version(0))
	a.admit(2)
	a.reaches("True Succeeded " + catalogtest.Version(2))
}

// TestHollowAgentAdopts takes over what others have installed, as it is, and goes on from there. Where nothing is there
// it installs nothing.
func TestHollowAgentAdopts(t *testing.T) {
	asInstalled := func(a *agent) {
		a.admit(2)
		at := &v1alpha1.OperatorInstall{}
		must(t, a.Get(t.Context(), a.key, at))
		at.Spec.Admission.Release.Adopt, at.Spec.Admission.Release.AsInstalled = &v1alpha1.OperatorAdoption{}, true
		at.Spec.Admission.Hash = at.Spec.Admission.Release.Hash()
		must(t, a.Update(t.Context(), at))
	}
	a := newAgent(t, Behaviour{Existing: []string{catalogtest.BundleName(0, 1)}})
	a.admit(2)
	a.reaches("False SubscriptionConflict nothing")
	asInstalled(a)
	a.reaches("True Succeeded " + catalogtest.Version(1))
	a.admit(3)
	a.reaches("True Succeeded " + catalogtest.Version(3))

	a = newAgent(t, Behaviour{})
	asInstalled(a)
	a.reaches("True Succeeded nothing")
}

// TestHollowAgentUninstalls carries out the removal policy, and lets the install go.
func TestHollowAgentUninstalls(t *testing.T) {
	a := newAgent(t, Behaviour{})
	a.admit(0)
	a.reaches("True Succeeded " + catalogtest.Version(0))
	at := &v1alpha1.OperatorInstall{}
	must(t, a.Get(t.Context(), a.key, at))
	must(t, a.Delete(t.Context(), at))
	for range 60 {
		if _, err := a.pass(); err != nil {
			must(t, client.IgnoreNotFound(err))
			return
		}
	}
	t.Error("the install is still there")
}

func (a *agent) eventually(objection func(*v1alpha1.OperatorInstall) error) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 5*time.Minute)
	defer cancel()
	for {
		at, err := a.pass()
		must(a.t, err)
		if err = objection(at); err == nil {
			return
		}
		if ctx.Err() != nil {
			a.t.Fatal(err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
