// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// stops waits until the newest rollout admits nobody, for a reason that it states. It objects to any admission that is
// not recovered.
func (f *fixture) stops(t *testing.T, because func(v1alpha1.OperatorRolloutStatus) bool) *v1alpha1.OperatorRollout {
	t.Helper()
	ro := &v1alpha1.OperatorRollout{}
	eventually(t, func() error {
		if err := f.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "echo-1"}, ro); err != nil {
			return err
		}
		if err := f.onlyRecovered(t); err != nil {
			return err
		}
		if !because(ro.Status) {
			return fmt.Errorf("%s: %s; held back: %+v", ro.Status.Phase, ro.Status.Message, ro.Status.HeldBack)
		}
		return nil
	})
	return ro
}

func heldBack(reason string, clusters int32) func(v1alpha1.OperatorRolloutStatus) bool {
	return func(s v1alpha1.OperatorRolloutStatus) bool {
		return slices.ContainsFunc(s.HeldBack, func(g v1alpha1.HeldBackClusters) bool {
			return g.Reason == reason && g.Count == clusters
		})
	}
}

func halted(s v1alpha1.OperatorRolloutStatus) bool {
	return s.Phase == v1alpha1.RolloutHalted && strings.Contains(s.Message, "it loses data")
}

func (f *fixture) onlyRecovered(t *testing.T) error {
	t.Helper()
	var installs v1alpha1.OperatorInstallList
	if err := f.List(t.Context(), &installs); err != nil {
		return err
	}
	for _, o := range installs.Items {
		a := o.Spec.Admission
		if o.Spec.Operator.Namespace == f.namespace && a != nil && !a.Recovered {
			t.Fatalf("%s was admitted to %s by %s", o.Spec.Cluster, a.Release.Version, a.Rollout)
		}
	}
	return nil
}

// TestRecovery is a hub that has lost its objects. It admits no cluster before that has reported, recovers what one of
// them keeps, and then admits none before a person has resumed the operator. What the cluster holds is held.
func TestRecovery(t *testing.T) {
	t.Parallel()
	h := startWhole(t)
	for name, test := range map[string]recovery{
		"the newest version is held": {held: "1.2.0", then: "1.1.0", stops: halted,
			end: "3 of 3 clusters run 1.1.0; held after a rollback: 1.2.0", holds: 1},
		"an old version is held": {held: "0.9.0", then: "1.2.0", stops: heldBack(v1alpha1.ReasonRecovered, 3),
			end: "3 of 3 clusters run 1.2.0"}, // the hold has served
	} {
		t.Run(name, func(t *testing.T) { recovers(t, h, test) })
	}
}

// recovery is what one cluster holds, why the rollout then stops, which version is rolled out once a person has resumed
// the operator, and what its status says and how many holds it has at the end.
type recovery struct {
	held, then, end string
	stops           func(v1alpha1.OperatorRolloutStatus) bool
	holds           int
}

func recovers(t *testing.T, h *harness, test recovery) {
	t.Helper()
	f := newFixtureOn(t, h, third, "a", "b", "c")
	f.operator.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "rest"}} // all of them are due from the start
	f.create()
	ro := f.stops(t, heldBack(v1alpha1.ReasonReportPending, 3))

	release := *ro.Spec.Release.DeepCopy()
	release.Version, release.Bundle = "1.0.0", "echo.v1.0.0"
	f.agents["a"].kept = &v1alpha1.KeptAdmission{
		Admission: v1alpha1.Admission{Rollout: "echo-7", RolloutUID: "lost", Revision: 7, Wave: "rest",
			Hash: release.Hash(), AdmittedAt: metav1.Unix(1700000000, 0), Release: release},
		Holds: []v1alpha1.VersionHold{{Version: test.held, Rollout: "echo-6", Reason: "it loses data"}},
	}
	f.agents["a"].work(t)
	f.reaches(t, f.operator, "Stalled Recovered", "found on 1 cluster", "1.0.0 on 1", "bellwether operator resume echo")
	f.agents["b"].work(t)
	f.agents["c"].work(t)
	f.stops(t, test.stops)
	f.recovered(t, release.Hash(), test.held)
	f.stops(t, test.stops)

	f.change(t, f.operator, func() { f.operator.Spec.Resume = f.operator.Status.Recovery.Request })
	f.reaches(t, f.operator, "True Succeeded", test.end)
	if holds := f.operator.Spec.Holds; len(holds) != test.holds {
		t.Errorf("holds at the end: %+v, want %d", holds, test.holds)
	}
	f.running(map[string]string{"a": test.then, "b": test.then, "c": test.then})
	a, err := f.installOn("a")
	must(t, err)
	if admission := a.Spec.Admission; admission.Revision != 8 || admission.Recovered || admission.Previous == nil ||
		admission.Previous.Version != "1.0.0" {
		t.Errorf("%+v", admission)
	}
}

// recovered waits until cluster a has what it kept, with its hold.
func (f *fixture) recovered(t *testing.T, hash, held string) {
	t.Helper()
	eventually(t, func() error {
		if err := f.Get(t.Context(), client.ObjectKeyFromObject(f.operator), f.operator); err != nil {
			return err
		}
		a, err := f.installOn("a")
		if err != nil {
			return err
		}
		switch admission := a.Spec.Admission; {
		case admission == nil || !admission.Recovered || admission.Revision != 7 || admission.RolloutUID != "lost" ||
			admission.Hash != hash:
			return fmt.Errorf("admission %+v", admission)
		case a.Status.Kept != nil || len(a.Spec.Holds) != 1:
			return fmt.Errorf("kept %+v, holds %+v", a.Status.Kept, a.Spec.Holds)
		case len(f.operator.Spec.Holds) != 1 || f.operator.Spec.Holds[0].Version != held:
			return fmt.Errorf("holds %+v", f.operator.Spec.Holds)
		}
		return nil
	})
}

func (f *fixture) installOn(cluster string) (*v1alpha1.OperatorInstall, error) {
	o := &v1alpha1.OperatorInstall{}
	reference := v1alpha1.OperatorReference{Namespace: f.namespace, Name: "echo"}
	return o, f.Get(f.t.Context(), client.ObjectKey{
		Namespace: v1alpha1.ClusterNamespace(f.agents[cluster].cluster.Name), Name: reference.InstallName()}, o)
}

// TestTakeOverOfLostHub is a hub that was lost while it took over what others had installed. What was taken over stays
// so, and nothing else is touched before a person has resumed the operator. Then the rest is taken over in the versions
// that it has, before any version is rolled out.
func TestTakeOverOfLostHub(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, startWhole(t), third, "a", "b", "c")
	for name, version := range map[string]string{"a": "1.0.0", "b": "1.1.0", "c": ""} {
		f.agents[name].found = version
	}
	f.operator.Spec.Adopt = &v1alpha1.OperatorAdoption{}
	f.operator.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "rest"}} // all of them are due from the start
	f.create()
	ro := f.stops(t, heldBack(v1alpha1.ReasonReportPending, 3))
	release := ro.Spec.Release
	if !release.AsInstalled || release.Version != "" {
		t.Fatalf("the first rollout of the new hub: %+v", release)
	}

	// The lost hub's rollout was its first one too.
	f.agents["a"].kept = &v1alpha1.KeptAdmission{Admission: v1alpha1.Admission{Rollout: "echo-1", RolloutUID: "lost",
		Revision: 1, Wave: "rest", Hash: release.Hash(), AdmittedAt: metav1.Unix(1700000000, 0), Release: release}}
	f.agents["a"].work(t)
	f.reaches(t, f.operator, "Stalled Recovered", "found on 1 cluster",
		"what is installed is then taken over, before version 1.2.0 is rolled out")
	f.agents["b"].work(t)
	f.agents["c"].work(t)
	f.stops(t, heldBack(v1alpha1.ReasonRecovered, 2)) // a has what this hub wants it to have
	eventually(t, func() error {
		a, err := f.installOn("a")
		if err != nil {
			return err
		}
		if ad := a.Spec.Admission; ad == nil || !ad.Recovered || ad.RolloutUID != "lost" || !ad.Release.AsInstalled ||
			a.Status.SucceededHash != release.Hash() {
			return fmt.Errorf("admission %+v, succeeded %q", ad, a.Status.SucceededHash)
		}
		return nil
	})
	f.running(map[string]string{"a": "1.0.0", "b": "nothing", "c": "nothing"}) // as far as agents have reported

	f.change(t, f.operator, func() { f.operator.Spec.Resume = f.operator.Status.Recovery.Request })
	f.reaches(t, f.operator, "True Succeeded", "3 of 3 clusters run 1.2.0")
	all := f.rollouts("echo-1", "echo-2", "echo-3")
	if second := all["echo-2"]; !second.Spec.Release.AsInstalled || second.Status.Clusters.Succeeded != 3 ||
		second.Status.Phase != v1alpha1.RolloutSucceeded {
		t.Errorf("what follows the recovery: %+v (%s)", second.Spec.Release, second.Status.Phase)
	}
	if a := f.operator.Status.Adoption; a == nil || a.Rollout != "echo-2" || a.Clusters != 3 {
		t.Errorf("adoption %+v", a)
	}
	for name, before := range map[string]string{"a": "1.0.0", "b": "1.1.0", "c": ""} {
		install, err := f.installOn(name)
		must(t, err)
		previous := ""
		if p := install.Spec.Admission.Previous; p != nil {
			previous = p.Version
		}
		if previous != before {
			t.Errorf("cluster %s goes back to %q, want %q", name, previous, before)
		}
	}
}
