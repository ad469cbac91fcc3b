// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hollow_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	gocmp "github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/hollow"
	"github.com/bellwether-dev/bellwether/testbed/hollow/stage"
	"github.com/bellwether-dev/bellwether/testbed/poll"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

const patience = 8 * time.Minute

// fixture is a hub and a fleet of hollow agents of the test's own.
type fixture struct {
	*stage.Stage
	t     *testing.T
	ctx   context.Context
	fleet *hollow.Fleet
	names []string
}

const fleetName = "prod-eu-central-1"

// start starts a hub and n hollow agents, and waits until all of them are online.
func start(t *testing.T, n int, o hollow.Options) *fixture {
	t.Helper()
	api, binary := testenv.Cluster(t, cluster.Options{APIServerOnly: true}), testenv.Binary(t, build.Hub)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	s, err := stage.Prepare(ctx, api, t.TempDir(), binary)
	must(t, err)
	hub, err := s.StartHub(ctx, "hub")
	must(t, err)
	t.Cleanup(func() { hub.Stop(context.WithoutCancel(ctx)) })
	f := &fixture{Stage: s, t: t, ctx: ctx, names: stage.ClusterNames(fleetName, n)}
	must(t, s.Register(ctx, fleetName, f.names))
	must(t, s.Publish(ctx, catalogtest.Options{Packages: 1, Versions: 3}))
	o.Config, o.Scheme, o.Clusters = api.RESTConfig(), stage.Scheme(), f.names
	o.LeaseEvery, o.LeaseFor = time.Second, cmp.Or(o.LeaseFor, time.Minute)
	f.fleet, err = hollow.Start(ctx, o)
	must(t, err)
	t.Cleanup(func() { must(t, f.fleet.Stop()) })
	must(t, s.UntilOnline(ctx, fleetName, n))
	return f
}

// rollOut sets a version, and waits until its rollout is in the phase.
func (f *fixture) rollOut(version int, phase v1alpha1.RolloutPhase, waves int) stage.Reached {
	f.t.Helper()
	selector := map[string]string{stage.LabelFleet: fleetName}
	must(f.t, f.Set(f.ctx, stage.Operator(0, version, selector, stage.Waves(waves, len(f.names)))))
	found, err := f.UntilRolledOut(f.ctx, catalogtest.Version(version), 1, phase)
	must(f.t, err)
	return found[catalogtest.PackageName(0)]
}

func (f *fixture) installs() []v1alpha1.OperatorInstall {
	f.t.Helper()
	var all v1alpha1.OperatorInstallList
	must(f.t, f.List(f.ctx, &all))
	return all.Items
}

// TestARolloutConverges brings hollow clusters to one version and on to another, each in several waves. What the agents
// write is what real agents write: conditions, versions and OLM's objects.
func TestARolloutConverges(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]bool{"one watch": false, "a watch per agent": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, 6, hollow.Options{OwnWatches: own, Behaviour: hollow.Behaviour{Seed: 1,
				Resolve: hollow.Delay{Median: 10 * time.Millisecond, Spread: 0.5},
				Install: hollow.Delay{Median: 50 * time.Millisecond, Spread: 0.5}}})
			for version := range 2 {
				f.rollOut(version, v1alpha1.RolloutSucceeded, 3)
				for _, install := range f.installs() {
					if err := runs(&install, version); err != nil {
						t.Error(err)
					}
				}
			}
			if n := len(f.fleet.Ended()); n != 12 {
				t.Errorf("%d installations ended, want 12", n)
			}
			f.eventually(f.hasEvents)
			if refusals := f.fleet.Refusals(); len(refusals) > 0 {
				t.Errorf("the hub refused Leases: %v", refusals)
			}
			for _, c := range f.fleet.Changes() {
				if c.Ready.IsZero() || c.Ready.Before(c.Admitted) {
					t.Errorf("%s was admitted at %s and ready at %s", c.Cluster, c.Admitted, c.Ready)
				}
			}
		})
	}
}

// hasEvents objects to a cluster without an Event of its agent. The hub permits Events with few names only.
func (f *fixture) hasEvents() error {
	var all eventsv1.EventList
	if err := f.List(f.ctx, &all); err != nil {
		return err
	}
	for _, name := range f.names {
		if !slices.ContainsFunc(all.Items, func(e eventsv1.Event) bool {
			return e.Namespace == v1alpha1.ClusterNamespace(name) && e.ReportingController == "bellwether-agent"
		}) {
			return fmt.Errorf("no Event of the agent of %s", name)
		}
	}
	return nil
}

// runs objects to an install that is not what a real agent reports of an operator that runs.
func runs(install *v1alpha1.OperatorInstall, version int) error {
	at, bundle := install.Status, catalogtest.BundleName(0, version)
	var conditionTypes []string
	for _, c := range at.Conditions {
		conditionTypes = append(conditionTypes, fmt.Sprint(c.Type, "=", c.Status))
	}
	slices.Sort(conditionTypes)
	want := "Installed=True PlanApproved=True Ready=True Resolved=True"
	switch {
	case at.Installed == nil || at.Installed.Bundle != bundle || at.SucceededHash != install.Spec.Admission.Hash:
		return fmt.Errorf("%s: installed %v, want %s", install.Namespace, at.Installed, bundle)
	case at.OLM == nil || at.OLM.Subscription == "" || at.OLM.InstallPlan == "" || at.OLM.CSVPhase != "Succeeded":
		return fmt.Errorf("%s: OLM's objects are %+v", install.Namespace, at.OLM)
	case !slices.Contains(install.Finalizers, v1alpha1.FinalizerAgent):
		return fmt.Errorf("%s has no finalizer of the agent", install.Namespace)
	case conditions.IsTrue(at.Conditions, v1alpha1.ConditionReconciling),
		conditions.IsTrue(at.Conditions, v1alpha1.ConditionStalled):
		return fmt.Errorf("%s: conditions %v of an operator that runs", install.Namespace, conditionTypes)
	}
	for _, part := range strings.Fields(want) {
		// CatalogServed is not among them: OLM is offered another view once the release runs.
		if !slices.Contains(conditionTypes, part) {
			return fmt.Errorf("%s: conditions %v, want %s", install.Namespace, conditionTypes, part)
		}
	}
	return nil
}

// TestAFailedVersionStopsInTheFirstWave installs a bundle that fails everywhere.
func TestAFailedVersionStopsInTheFirstWave(t *testing.T) {
	t.Parallel()
	f := start(t, 6, hollow.Options{Behaviour: hollow.Behaviour{Bad: []string{catalogtest.BundleName(0, 1)}}})
	f.rollOut(0, v1alpha1.RolloutSucceeded, 1)
	rollout := f.rollOut(1, v1alpha1.RolloutHalted, 3)
	if c := rollout.Status.Clusters; c.Failed == 0 || c.Failed > 2 || c.Pending < 4 {
		t.Errorf("clusters of the failed rollout: %+v", c)
	}
	for _, install := range f.installs() {
		if got := install.Status.Installed; got == nil || got.Bundle != catalogtest.BundleName(0, 0) {
			t.Errorf("%s has %v", install.Namespace, got)
		}
	}
	f.rollOut(2, v1alpha1.RolloutSucceeded, 3)
}

// TestWhatHappensIsWhatWasDrawn compares the installations of a fleet with what its seed says of them.
func TestWhatHappensIsWhatWasDrawn(t *testing.T) {
	t.Parallel()
	b := hollow.Behaviour{Seed: 7, FailureShare: 0.4, Install: hollow.Delay{Median: 20 * time.Millisecond, Spread: 1},
		Latency: hollow.Delay{Median: time.Millisecond, Spread: 0.5}}
	f := start(t, 10, hollow.Options{Behaviour: b})
	strategy, all := stage.Waves(1, len(f.names)), intstr.FromString("100%")
	strategy.Waves[0].MaxFailures = &all // the first failures keep no cluster from being admitted
	must(t, f.Set(f.ctx, stage.Operator(0, 0, map[string]string{stage.LabelFleet: fleetName}, strategy)))
	var want []hollow.Installation
	failed := int32(0)
	for _, name := range f.names {
		drawn := b.Of(name, catalogtest.BundleName(0, 0))
		if want = append(want, drawn); drawn.Fails {
			failed++
		}
	}
	must(t, f.UntilRollout(f.ctx, catalogtest.Version(0), func(ro *v1alpha1.OperatorRollout) bool {
		of := ro.Status.Clusters
		return of.Failed == failed && of.Succeeded == int32(len(f.names))-failed
	}))
	f.eventually(func() error {
		byCluster := func(a, b hollow.Installation) int { return strings.Compare(a.Cluster, b.Cluster) }
		got := slices.SortedFunc(slices.Values(f.fleet.Ended()), byCluster)
		// A step that failed is tried again.
		got = slices.CompactFunc(got, func(a, b hollow.Installation) bool { return a == b })
		if diff := gocmp.Diff(want, got); diff != "" {
			return errors.New("installations (-want +got):\n" + diff)
		}
		return nil
	})
}

// TestAClusterThatIsCutOffComesBack has clusters fall silent, and finds them at the version that they missed once they
// are connected again.
func TestAClusterThatIsCutOffComesBack(t *testing.T) {
	t.Parallel()
	f := start(t, 6, hollow.Options{LeaseFor: 15 * time.Second})
	f.rollOut(0, v1alpha1.RolloutSucceeded, 1)
	outage, end := context.WithCancel(f.ctx)
	hit := f.fleet.Disturb(outage, hollow.Trouble{Share: 0.5})
	if len(hit) != 3 {
		t.Fatalf("cut off: %v", hit)
	}
	f.eventually(func() error { return f.online(hit, metav1.ConditionFalse) })
	f.rollOut(1, v1alpha1.RolloutSucceeded, 1)
	f.eventually(func() error {
		for _, install := range f.installs() {
			installed := install.Status.Installed
			if installed == nil {
				return fmt.Errorf("%s has nothing", install.Spec.Cluster)
			}
			behind := installed.Bundle == catalogtest.BundleName(0, 0)
			if behind != slices.Contains(hit, install.Spec.Cluster) {
				return fmt.Errorf("%s has %s", install.Spec.Cluster, installed.Bundle)
			}
		}
		return nil
	})
	end()
	f.eventually(func() error { return f.online(hit, metav1.ConditionTrue) })
	f.eventually(func() error {
		for _, install := range f.installs() {
			if err := runs(&install, 1); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *fixture) online(names []string, want metav1.ConditionStatus) error {
	for _, name := range names {
		c := &v1alpha1.FleetCluster{}
		if err := f.Get(f.ctx, client.ObjectKey{Name: name}, c); err != nil {
			return err
		}
		if got := conditions.Get(c.Status.Conditions, v1alpha1.ConditionOnline); got.Status != want {
			return fmt.Errorf("%s is %s %s, want %s", name, got.Status, got.Reason, want)
		}
	}
	return nil
}

func (f *fixture) eventually(objection func() error) {
	f.t.Helper()
	must(f.t, poll.Until(f.ctx, 50*time.Millisecond, objection))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
