// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package silence

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bellwether-dev/bellwether/alerts/silences"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const operators, clusters = 8, 12

// fleet has operators on clusters. Most were upgraded a day ago; some are being upgraded, or were a little while ago.
func fleet(random *rand.Rand) []client.Object {
	var objects []client.Object
	for c := range clusters {
		o := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", c)}}
		if random.IntN(6) == 0 {
			o.Status.Veto = &v1alpha1.ClusterVeto{Reason: "freeze", Since: metav1.NewTime(noon.Add(-time.Hour))}
		}
		objects = append(objects, o)
	}
	for i := range operators {
		name := fmt.Sprintf("op%d", i)
		ro := &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name + "-2"}}
		ro.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "all", Deadline: &metav1.Duration{Duration: 30 * time.Minute}}}
		objects = append(objects, ro)
		began := 24 * time.Hour
		if random.IntN(4) == 0 {
			began = time.Duration(random.IntN(40)) * time.Minute
		}
		for c := range clusters {
			objects = append(objects, install(random, name, fmt.Sprintf("c%d", c), noon.Add(-began)))
		}
	}
	return objects
}

func install(random *rand.Rand, name, cluster string, admitted time.Time) *v1alpha1.OperatorInstall {
	operator := v1alpha1.OperatorReference{Namespace: "ops", Name: name}
	admitted = admitted.Add(time.Duration(random.IntN(10)) * time.Minute)
	o := &v1alpha1.OperatorInstall{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(cluster), Name: operator.InstallName()},
		Spec: v1alpha1.OperatorInstallSpec{Operator: operator, Cluster: cluster, Admission: &v1alpha1.Admission{
			Rollout: name + "-2", Wave: "all", Hash: "new", AdmittedAt: metav1.NewTime(admitted),
			Release: v1alpha1.Release{Version: "1.1.0"}, Previous: &v1alpha1.PreviousRelease{Version: "1.0.0"}}},
	}
	if random.IntN(5) == 0 {
		o.Spec.Admission.Previous = nil
	}
	if done := admitted.Add(time.Duration(random.IntN(20)-2) * time.Minute); done.Before(noon) {
		o.Status.SucceededHash, o.Status.SucceededAt = "new", &metav1.Time{Time: done}
	}
	return o
}

// TestOnlyOperatorsThatChangeAreLookedAt compares the silences from the data that a pass reads
// with the silences from the whole fleet.
func TestOnlyOperatorsThatChangeAreLookedAt(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	made, looked := 0, 0
	const worlds = 20
	for seed := range uint64(worlds) {
		builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(fleet(rand.New(rand.NewPCG(seed, 1)))...)
		for _, index := range kit.Indexes() {
			builder = builder.WithIndex(index.Object, index.Field, index.Keys)
		}
		r := &Reconciler{Client: builder.Build()}
		in := observation{Input: silences.Input{Now: noon, Namespace: "hub", Max: silences.DefaultMax}}
		var all v1alpha1.OperatorInstallList
		var members v1alpha1.FleetClusterList
		for _, list := range []client.ObjectList{&all, &members} {
			if err := r.Client.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
		}
		in.Clusters = members.Items
		found, err := r.observeFleet(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		whole := found
		whole.Installs = all.Items
		want := silences.BuildAutomatic(whole)
		if diff := cmp.Diff(want, silences.BuildAutomatic(found)); diff != "" {
			t.Fatalf("seed %d: silences (-of all installs +of those that were looked at):\n%s", seed, diff)
		}
		made += len(want)
		looked += len(found.Installs)
	}
	if most := worlds * operators * clusters * 2 / 3; made < worlds || looked > most {
		t.Errorf("%d silences of %d installs, want at least %d of at most %d", made, looked, worlds, most)
	}
}
