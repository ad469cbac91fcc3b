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
// not adopted.
func (w *world) stops(t *testing.T, because func(v1alpha1.OperatorRolloutStatus) bool) *v1alpha1.OperatorRollout {
	t.Helper()
	ro := &v1alpha1.OperatorRollout{}
	eventually(t, func() error {
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "echo-1"}, ro); err != nil {
			return err
		}
		if err := w.onlyAdopted(t); err != nil {
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

func (w *world) onlyAdopted(t *testing.T) error {
	t.Helper()
	var installs v1alpha1.OperatorInstallList
	if err := w.List(t.Context(), &installs); err != nil {
		return err
	}
	for _, o := range installs.Items {
		a := o.Spec.Admission
		if o.Spec.Operator.Namespace == w.namespace && a != nil && !a.Adopted {
			t.Fatalf("%s was admitted to %s by %s", o.Spec.Cluster, a.Release.Version, a.Rollout)
		}
	}
	return nil
}

// TestAdoption is a hub that has lost its objects. It admits no cluster before that has reported, adopts what one of
// them keeps, and then admits none before a person has resumed the operator. What the cluster holds is held.
func TestAdoption(t *testing.T) {
	t.Parallel()
	h := startWhole(t)
	for name, test := range map[string]adoption{
		"the newest version is held": {held: "1.2.0", then: "1.1.0", stops: halted,
			end: "3 of 3 clusters run 1.1.0; held after a rollback: 1.2.0", holds: 1},
		"an old version is held": {held: "0.9.0", then: "1.2.0", stops: heldBack(v1alpha1.ReasonAdopted, 3),
			end: "3 of 3 clusters run 1.2.0"}, // the hold has served
	} {
		t.Run(name, func(t *testing.T) { adopts(t, h, test) })
	}
}

// adoption is what one cluster holds, why the rollout then stops, which version is rolled out once a person has resumed
// the operator, and what its status says and how many holds it has at the end.
type adoption struct {
	held, then, end string
	stops           func(v1alpha1.OperatorRolloutStatus) bool
	holds           int
}

func adopts(t *testing.T, h *harness, test adoption) {
	t.Helper()
	w := newWorldOn(t, h, third, "a", "b", "c")
	w.operator.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "rest"}} // all of them are due from the start
	w.create()
	ro := w.stops(t, heldBack(v1alpha1.ReasonReportPending, 3))

	release := *ro.Spec.Release.DeepCopy()
	release.Version, release.Bundle = "1.0.0", "echo.v1.0.0"
	w.agents["a"].kept = &v1alpha1.KeptAdmission{
		Admission: v1alpha1.Admission{Rollout: "echo-7", RolloutUID: "lost", Revision: 7, Wave: "rest",
			Hash: release.Hash(), AdmittedAt: metav1.Unix(1700000000, 0), Release: release},
		Holds: []v1alpha1.VersionHold{{Version: test.held, Rollout: "echo-6", Reason: "it loses data"}},
	}
	w.agents["a"].work(t)
	w.reaches(t, w.operator, "Stalled Adopted", "found on 1 cluster", "1.0.0 on 1", "bellwether operator resume echo")
	w.agents["b"].work(t)
	w.agents["c"].work(t)
	w.stops(t, test.stops)
	w.adopted(t, release.Hash(), test.held)
	w.stops(t, test.stops)

	w.change(t, w.operator, func() { w.operator.Spec.Resume = w.operator.Status.Adoption.Request })
	w.reaches(t, w.operator, "True Succeeded", test.end)
	if holds := w.operator.Spec.Holds; len(holds) != test.holds {
		t.Errorf("holds at the end: %+v, want %d", holds, test.holds)
	}
	w.running(map[string]string{"a": test.then, "b": test.then, "c": test.then})
	a, err := w.installOn("a")
	must(t, err)
	if admission := a.Spec.Admission; admission.Revision != 8 || admission.Adopted || admission.Previous == nil ||
		admission.Previous.Version != "1.0.0" {
		t.Errorf("%+v", admission)
	}
}

// adopted waits until cluster a has what it kept, with its hold.
func (w *world) adopted(t *testing.T, hash, held string) {
	t.Helper()
	eventually(t, func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(w.operator), w.operator); err != nil {
			return err
		}
		a, err := w.installOn("a")
		if err != nil {
			return err
		}
		switch admission := a.Spec.Admission; {
		case admission == nil || !admission.Adopted || admission.Revision != 7 || admission.RolloutUID != "lost" ||
			admission.Hash != hash:
			return fmt.Errorf("admission %+v", admission)
		case a.Status.Kept != nil || len(a.Spec.Holds) != 1:
			return fmt.Errorf("kept %+v, holds %+v", a.Status.Kept, a.Spec.Holds)
		case len(w.operator.Spec.Holds) != 1 || w.operator.Spec.Holds[0].Version != held:
			return fmt.Errorf("holds %+v", w.operator.Spec.Holds)
		}
		return nil
	})
}

func (w *world) installOn(cluster string) (*v1alpha1.OperatorInstall, error) {
	o := &v1alpha1.OperatorInstall{}
	reference := v1alpha1.OperatorReference{Namespace: w.namespace, Name: "echo"}
	return o, w.Get(w.t.Context(), client.ObjectKey{
		Namespace: v1alpha1.ClusterNamespace(w.agents[cluster].cluster.Name), Name: reference.InstallName()}, o)
}
