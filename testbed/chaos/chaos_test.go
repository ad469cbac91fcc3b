// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/chaos"
)

const longest = 20 * time.Second

func deal(seed uint64, n int) []chaos.Disturbance {
	deck := chaos.NewDeck(seed, []string{"a", "b"}, longest)
	var dealt []chaos.Disturbance
	for range n {
		d, _ := deck.Deal(nil)
		dealt = append(dealt, d)
	}
	return dealt
}

func TestDeckDealsEverything(t *testing.T) {
	t.Parallel()
	kinds := len(chaos.All())
	dealt := deal(7, 2*kinds)
	for _, half := range [][]chaos.Disturbance{dealt[:kinds], dealt[kinds:]} {
		var names []string
		for _, d := range half {
			names = append(names, d.What())
			if d.Lasts < time.Second || d.Lasts > longest || d.After > 3*time.Second {
				t.Errorf("%s after %s", d, d.After)
			}
		}
		want := chaos.All()
		slices.Sort(want)
		slices.Sort(names)
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("not each once (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(dealt, deal(7, 2*kinds)); diff != "" {
		t.Errorf("the same seed deals something else:\n%s", diff)
	}
	if cmp.Equal(dealt, deal(8, 2*kinds)) {
		t.Error("another seed deals the same")
	}
}

func TestDeckSparesWhatIsBusy(t *testing.T) {
	t.Parallel()
	first := deal(7, 1)[0]
	deck := chaos.NewDeck(7, []string{"a", "b"}, longest)
	busy := map[string]bool{first.Target(): true}
	for range 2 * len(chaos.All()) {
		d, ok := deck.Deal(busy)
		if ok && d.Target() == first.Target() {
			t.Fatalf("%s is dealt while %s is busy", d, d.Target())
		}
	}
	if _, ok := deck.Deal(busy); ok {
		t.Error("something is dealt though only what is busy is left")
	}
	if d, ok := deck.Deal(nil); !ok || d.Target() != first.Target() {
		t.Errorf("then %s is dealt", d)
	}
	clock := chaos.Disturbance{Part: chaos.Clock, Cluster: "a"}
	agent := chaos.Disturbance{Part: chaos.Agent, Cluster: "a"}
	if clock.Target() != agent.Target() {
		t.Error("the clock of an agent may be changed while the agent is stopped")
	}
}

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// install is an OperatorInstall in its own wave.
func install(cluster, wave string, revision int64, hash string, change ...func(*v1alpha1.OperatorInstall),
) *v1alpha1.OperatorInstall {
	oi := &v1alpha1.OperatorInstall{}
	oi.Generation = 3
	oi.Labels = map[string]string{v1alpha1.LabelWave: wave}
	oi.Spec.Cluster = cluster
	oi.Spec.Admission = &v1alpha1.Admission{Wave: wave, Revision: revision, Hash: hash,
		AdmittedAt: metav1.Time{Time: began}}
	oi.Spec.Admission.Release.Bundle = "echo." + hash
	for _, c := range change {
		c(oi)
	}
	return oi
}

func succeeded(oi *v1alpha1.OperatorInstall) { oi.Status.SucceededHash = oi.Spec.Admission.Hash }

func stalled(generation int64) func(*v1alpha1.OperatorInstall) {
	return func(oi *v1alpha1.OperatorInstall) {
		oi.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue,
			ObservedGeneration: generation}}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seen  []*v1alpha1.OperatorInstall
		after time.Duration
		want  string // empty: no fault
	}{
		"one after the other": {seen: []*v1alpha1.OperatorInstall{
			install("c", "canary", 2, "new", succeeded), install("x", "prod", 2, "new", succeeded),
			install("y", "prod", 2, "new")}},
		"two at a time": {seen: []*v1alpha1.OperatorInstall{
			install("c", "canary", 2, "new", succeeded), install("x", "prod", 2, "new"),
			install("y", "prod", 2, "new")}, want: "2 clusters of wave prod are changed at a time"},
		"two at a time are taken back": {seen: []*v1alpha1.OperatorInstall{
			install("x", "rollback", 3, "old"), install("y", "rollback", 3, "old")},
			want: "2 clusters of wave rollback"},
		"the second after the first has stalled": {seen: []*v1alpha1.OperatorInstall{
			install("x", "rollback", 3, "old", stalled(3)), install("y", "rollback", 3, "old")}},
		"the second when the first had stalled before": {seen: []*v1alpha1.OperatorInstall{
			install("x", "rollback", 3, "old", stalled(2)), install("y", "rollback", 3, "old")},
			want: "2 clusters of wave rollback"},
		"the second after the deadline of the first": {after: time.Hour, seen: []*v1alpha1.OperatorInstall{
			install("x", "rollback", 3, "old"), install("y", "rollback", 3, "old", func(oi *v1alpha1.OperatorInstall) {
				oi.Spec.Admission.AdmittedAt.Time = began.Add(time.Hour)
			})}},
		"production before the canary": {seen: []*v1alpha1.OperatorInstall{
			install("c", "canary", 1, "old", succeeded), install("x", "prod", 2, "new")},
			want: "x (wave prod) was admitted to revision 2 before c ran it"},
		"production while the canary is updated": {seen: []*v1alpha1.OperatorInstall{
			install("c", "canary", 2, "new"), install("x", "prod", 2, "new")}, want: "before c ran it"},
		"a canary without anything": {seen: []*v1alpha1.OperatorInstall{
			install("c", "canary", 0, "", func(oi *v1alpha1.OperatorInstall) { oi.Spec.Admission = nil }),
			install("x", "prod", 2, "new")}, want: "before c ran it"},
		"the bad release on the canary": {seen: []*v1alpha1.OperatorInstall{
			install("c", "canary", 2, "bad", succeeded)}},
		"the bad release in production": {seen: []*v1alpha1.OperatorInstall{
			install("c", "canary", 2, "bad", succeeded), install("x", "prod", 2, "bad")},
			want: "x was admitted to echo.bad in wave prod"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := chaos.Judge{Waves: []string{"canary", "prod"}, Deadline: time.Minute, Confined: []string{"echo.bad"},
				Limits: map[string]int{"canary": 1, "prod": 1, "rollback": 1}}
			for _, oi := range c.seen {
				j.See(began.Add(c.after), oi)
			}
			faults := strings.Join(j.Faults(), "\n")
			if c.want == "" && faults != "" || !strings.Contains(faults, c.want) {
				t.Errorf("faults %q, want %q", faults, c.want)
			}
			if last := c.seen[len(c.seen)-1]; !j.Admitted(last.Spec.Cluster, last.Spec.Admission.Release.Bundle) ||
				j.Admitted(last.Spec.Cluster, "echo.other") {
				t.Error("what was admitted is not remembered")
			}
		})
	}
}

func object(change func(o *unstructured.Unstructured)) chaos.Objects {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "echo.bellwether.dev/v1alpha1", "kind": "EchoServer",
		"metadata": map[string]any{"name": "a", "namespace": "data", "uid": "1", "resourceVersion": "5",
			"generation": int64(2), "labels": map[string]any{"x": "y"}, "finalizers": []any{"keep"},
			"managedFields": []any{map[string]any{"manager": "test"}}},
		"spec":   map[string]any{"message": "hello", "uppercase": true, "replicas": int64(0)},
		"status": map[string]any{"readyReplicas": int64(0)},
	}}
	if change != nil {
		change(o)
	}
	return chaos.Objects{"data/a": o}
}

func TestLost(t *testing.T) {
	t.Parallel()
	set := func(value any, path ...string) func(o *unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
				panic(err)
			}
		}
	}
	remove := func(path ...string) func(o *unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, path...) }
	}
	for name, c := range map[string]struct {
		got  chaos.Objects
		want []string
	}{
		"the same":        {got: object(nil)},
		"another version": {got: object(set("6", "metadata", "resourceVersion"))},
		"another status":  {got: object(set(int64(1), "status", "readyReplicas"))},
		"gone":            {got: nil, want: []string{"data/a is gone"}},
		"created again": {got: object(set("2", "metadata", "uid")),
			want: []string{"data/a: .metadata.uid is 2, it was 1"}},
		"a value": {got: object(set("bye", "spec", "message")),
			want: []string{"data/a: .spec.message is bye, it was hello"}},
		"a field": {got: object(remove("spec", "uppercase")),
			want: []string{"data/a: .spec.uppercase is gone, it was true"}},
		"a new field": {got: object(set("z", "spec", "w")), want: []string{"data/a: .spec.w is new: z"}},
		"a label": {got: object(remove("metadata", "labels", "x")),
			want: []string{"data/a: .metadata.labels.x is gone, it was y"}},
		"a finalizer": {got: object(set([]any{}, "metadata", "finalizers")),
			want: []string{"data/a: .metadata.finalizers is [], it was [keep]"}},
		"another finalizer": {got: object(set([]any{"x"}, "metadata", "finalizers")),
			want: []string{"data/a: .metadata.finalizers[0] is x, it was keep"}},
		"being deleted": {got: object(set("now", "metadata", "deletionTimestamp")),
			want: []string{"data/a: .metadata.deletionTimestamp is new: now"}},
		"changed and changed back": {got: object(set(int64(4), "metadata", "generation")),
			want: []string{"data/a: .metadata.generation is 4, it was 2"}},
		"one more": {got: chaos.Objects{"data/a": object(nil)["data/a"], "data/b": object(nil)["data/a"]},
			want: []string{"data/b was created by somebody else"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, chaos.Lost(object(nil), c.got)); diff != "" {
				t.Errorf("lost (-want +got):\n%s", diff)
			}
		})
	}
}
