// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/hub/rollout"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

func TestWavesGateAndLateJoiner(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runAgents()
	defer f.startHub()()
	canary := f.enroll("zz", map[string]string{"stage": "canary"})
	f.enrollMany(4)
	first := wave("canary", 1)
	first.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "canary"}}
	second := wave("prod", 2)
	second.Gates = []v1alpha1.Gate{{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}}
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{first, second}})

	f.reaches(ro, v1alpha1.RolloutProgressing, "Gated", "wave prod waits for gate sre")
	if diff := cmp.Diff([]string{canary}, f.recorder.admittedBy(ro.Name)); diff != "" {
		t.Errorf("admitted before the approval (-want +got):\n%s", diff)
	}
	f.change(ro, func() {
		ro.Spec.Approvals = []v1alpha1.Approval{{Wave: "prod", Gate: "sre", By: "ann", Reason: "canary is fine",
			At: metav1.Now()}}
	})
	f.reaches(ro, v1alpha1.RolloutSucceeded, "True", "5 of 5 clusters updated")
	if peak := f.recorder.peakOf("echo-1/prod"); peak > 2 {
		t.Errorf("%d clusters of wave prod were in progress at a time, 2 may", peak)
	}
	if gate := ro.Status.Waves[1].Gates[0]; gate.Verdict != v1alpha1.GatePassed ||
		gate.Evidence != "approved by ann: canary is fine" {
		t.Errorf("gate %+v", gate)
	}
	late := f.enroll("late", nil)
	f.reaches(ro, v1alpha1.RolloutSucceeded, "6 of 6 clusters updated")
	at := &v1alpha1.OperatorInstall{}
	must(t, f.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(late), Name: f.namespace +
		".echo"}, at))
	if got := at.Labels[v1alpha1.LabelWave]; got != "prod" {
		t.Errorf("the late joiner is in wave %s", got)
	}
	f.hasMetrics(map[string]float64{
		series.RolloutAdmissionsTotal: 6, series.RolloutPhase + " Succeeded": 1,
		series.RolloutClusters + " succeeded": 6, series.RolloutClusters + " failed": 0,
	})
	f.hasEvents(ro, "Planned", "WaveStarted", "WaveVerified", "Gated", "Succeeded")
}

// hasMetrics waits for the hub's metrics, named with the value of their last label: they are of its cache, which may
// lag behind.
func (f *fixture) hasMetrics(want map[string]float64) {
	f.t.Helper()
	f.eventually(func() error {
		if diff := cmp.Diff(want, f.metricsOf(want)); diff != "" {
			return errors.New("metrics (-want +got):\n" + diff)
		}
		return nil
	})
}

func (f *fixture) metricsOf(want map[string]float64) map[string]float64 {
	f.t.Helper()
	families, err := f.metrics.Gather()
	must(f.t, err)
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				if label.GetName() == "phase" || label.GetName() == "state" {
					name += " " + label.GetValue()
				}
			}
			if _, asked := want[name]; asked {
				got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return got
}

// hasEvents waits for an Event of each reason.
func (f *fixture) hasEvents(ro *v1alpha1.OperatorRollout, reasons ...string) {
	f.t.Helper()
	for _, reason := range reasons {
		f.hasEvent(ro, reason, "")
	}
}

// hasEvent waits for an Event of a reason that says something.
func (f *fixture) hasEvent(ro *v1alpha1.OperatorRollout, reason, says string) {
	f.t.Helper()
	f.eventually(func() error {
		var all corev1.EventList
		if err := f.List(f.t.Context(), &all, client.InNamespace(ro.Namespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(all.Items, func(e corev1.Event) bool {
			return e.Reason == reason && e.InvolvedObject.Name == ro.Name && strings.Contains(e.Message, says)
		}) {
			return fmt.Errorf("no Event %s says %q", reason, says)
		}
		return nil
	})
}

func TestHaltRecoverSupersede(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	names := f.enrollMany(4)
	f.runAgents(names[0])
	defer f.startHub()()
	strategy := v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{sized(wave("canary", 1), 1), wave("rest", 4)}}
	ro := f.start(1, strategy)
	f.reaches(ro, v1alpha1.RolloutHalted, "False Halted",
		"wave canary: 1 cluster failed, 0 allowed: "+names[0]+" (Stalled)")
	if diff := cmp.Diff(names[:1], f.recorder.admittedBy(ro.Name)); diff != "" {
		t.Errorf("admitted (-want +got):\n%s", diff)
	}

	f.change(ro, func() { ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "1.2.0 is out", Superseded: true} })
	f.reaches(ro, v1alpha1.RolloutSuperseded, "Superseded 1.2.0 is out")
	next := f.start(2, strategy)
	f.reaches(next, v1alpha1.RolloutHalted, "wave canary")
	at := &v1alpha1.OperatorInstall{}
	key := client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(names[0]), Name: f.namespace + ".echo"}
	must(t, f.Get(t.Context(), key, at))
	if a := at.Spec.Admission; a.Revision != 2 || a.Release.Version != "1.2.0" ||
		at.Labels[v1alpha1.LabelRollout] != next.Name {
		t.Errorf("the newer rollout did not take over: %+v %v", a, at.Labels)
	}
	// The agent recovers: the rollout goes on by itself.
	f.report(t.Context(), at, true)
	f.reaches(next, v1alpha1.RolloutSucceeded, "4 of 4")
	f.reaches(ro, v1alpha1.RolloutSuperseded)
}

// TestSoakJudges takes the pods of a canary away in the soak, as a quota would:
// production is not admitted, and the rollout goes on once they are back.
func TestSoakJudges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	names := f.enrollMany(3)
	f.runAgents()
	defer f.startHub()()
	canary := sized(wave("canary", 1), 1)
	canary.Soak, canary.UnreadyGrace = &metav1.Duration{Duration: time.Hour},
		&metav1.Duration{Duration: 5 * time.Second}
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{canary, wave("prod", 2)}})
	f.reaches(ro, v1alpha1.RolloutProgressing, "Soaking", "1 of 1 cluster updated")
	f.setReady(names[0], false)
	f.reaches(ro, v1alpha1.RolloutHalted, "False Halted", "1 cluster failed, 0 allowed: "+names[0]+" (NotReady)")
	if diff := cmp.Diff(names[:1], f.recorder.admittedBy(ro.Name)); diff != "" {
		t.Errorf("admitted (-want +got):\n%s", diff)
	}
	f.setReady(names[0], true)
	f.reaches(ro, v1alpha1.RolloutProgressing, "Soaking", "1 of 1 cluster updated")
	f.hasEvents(ro, "WaveInterrupted", "Halted")
	f.hasEvent(ro, "WaveInterrupted", "1 cluster is not Ready ("+names[0]+")") // the status says so for a moment only
}

// TestRetry admits a cluster that failed once more, with a higher attempt.
func TestRetry(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	names := f.enrollMany(2)
	defer f.startHub()()
	short := sized(wave("canary", 1), 1)
	short.Deadline = &metav1.Duration{Duration: 2 * time.Second}
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{short, wave("rest", 1)}})
	f.reaches(ro, v1alpha1.RolloutHalted, names[0]+" (DeadlineExceeded)")
	f.change(ro, func() { ro.Spec.Retries = 1 })
	f.eventually(func() error {
		if a := f.install(names[0]).Spec.Admission; a.Attempt != 1 {
			return fmt.Errorf("attempt %d", a.Attempt)
		}
		return nil
	})
	f.reaches(ro, v1alpha1.RolloutHalted, names[0]+" (DeadlineExceeded)")
	f.runAgents()
	f.reaches(ro, v1alpha1.RolloutSucceeded, "2 of 2")
	err := f.Patch(t.Context(), ro, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"retries":0}}`)))
	if !apierrors.IsInvalid(err) {
		t.Errorf("retries were lowered: %v", err)
	}
}

// TestUnreachableAPIServer: an agent that does not reach its own cluster is
// passed over like one that is offline.
func TestUnreachableAPIServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	names := f.enrollMany(2)
	fc := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: names[0]}}
	reachable := func(reachable bool) {
		f.changeStatus(fc, func() {
			conditions.Set(&fc.Status.Conditions, fc.Generation, v1alpha1.ConditionAPIServerReachable, reachable,
				v1alpha1.ReasonAPIServerUnreachable, "as the test says")
		})
	}
	reachable(false)
	f.runAgents()
	defer f.startHub()()
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 1)}})
	f.reaches(ro, v1alpha1.RolloutSucceeded, "1 of 2 clusters updated, 1 deferred")
	reachable(true)
	f.reaches(ro, v1alpha1.RolloutSucceeded, "2 of 2")
}

func TestPauseAbortAndOffline(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	names := f.enrollMany(3)
	f.online(names[1], false)
	f.runAgents()
	defer f.startHub()()
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 1)}})
	f.reaches(ro, v1alpha1.RolloutSucceeded, "2 of 3 clusters updated, 1 deferred")
	f.online(names[1], true)
	f.reaches(ro, v1alpha1.RolloutSucceeded, "3 of 3")

	paused := f.start(2, v1alpha1.RolloutStrategy{})
	f.change(paused, func() { paused.Spec.Paused, paused.Spec.PausedReason = true, "lunch" })
	f.reaches(paused, v1alpha1.RolloutPaused, "paused: lunch")
	admitted := f.admittedTo(paused.Name)
	f.change(paused, func() { paused.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "no"} })
	f.reaches(paused, v1alpha1.RolloutAborted, "aborted: no")
	if now := f.admittedTo(paused.Name); now != admitted {
		t.Errorf("%d clusters were admitted after the pause", now-admitted)
	}
	err := f.Patch(t.Context(), paused, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"abort":null}}`)))
	if !apierrors.IsInvalid(err) {
		t.Errorf("an abort could be taken back: %v", err)
	}
}

// admittedTo counts the clusters that a rollout has admitted, as the API server has them now.
func (f *fixture) admittedTo(rollout string) int {
	f.t.Helper()
	var all v1alpha1.OperatorInstallList
	must(f.t, f.List(f.t.Context(), &all))
	n := 0
	for _, at := range all.Items {
		if a := at.Spec.Admission; at.Spec.Operator.Namespace == f.namespace && a != nil && a.Rollout == rollout {
			n++
		}
	}
	return n
}

func TestNothingSelected(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runAgents()
	defer f.startHub()()
	ro := f.start(1, v1alpha1.RolloutStrategy{})
	f.reaches(ro, v1alpha1.RolloutPending, "NoClusters", "label a FleetCluster")
	f.enrollMany(2)
	f.reaches(ro, v1alpha1.RolloutSucceeded, "2 of 2")
	if got := len(ro.Status.Waves); got != 3 {
		t.Errorf("%d default waves", got)
	}
}

// TestHubsComeAndGo runs two hubs without leader election and stops and starts
// them all the time: no more clusters than allowed are ever in progress.
func TestHubsComeAndGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.enrollMany(16)
	f.runAgents()
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{sized(wave("canary", 1), 2), wave("rest", 3)}})
	defer f.startHub()()
	lives := 0
	f.eventually(func() error {
		stop := f.startHub()
		lives++
		seen := len(f.recorder.admittedBy(ro.Name))
		life := time.After(time.Duration(100+50*(lives%7)) * time.Millisecond)
		<-life
		stop()
		must(t, f.Get(t.Context(), client.ObjectKeyFromObject(ro), ro))
		if ro.Status.Phase != v1alpha1.RolloutSucceeded {
			return fmt.Errorf("%s after %d lives: %s", ro.Status.Phase, lives, ro.Status.Message)
		}
		t.Logf("%d lives of the second hub, %d admissions before the last", lives, seen)
		return nil
	})
	for key, limit := range map[string]int{"echo-1/canary": 1, "echo-1/rest": 3} {
		if peak := f.recorder.peakOf(key); peak > limit || peak == 0 {
			t.Errorf("%d clusters of %s were in progress at a time, %d may", peak, key, limit)
		}
	}
	if admitted := f.recorder.admittedBy(ro.Name); len(admitted) != 16 {
		t.Errorf("%d admissions of 16 clusters: %v", len(admitted), admitted)
	}
}

// frozen is a client whose cache stands still: it reads rollouts as they are,
// and everything else as it was at the first look.
type frozen struct {
	client.Client
	installs *v1alpha1.OperatorInstallList
}

func (f *frozen) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	installs, ok := list.(*v1alpha1.OperatorInstallList)
	if !ok {
		// What a cache finds by an index, the API server does not.
		opts = slices.DeleteFunc(slices.Clone(opts), func(o client.ListOption) bool {
			_, byIndex := o.(client.MatchingFields)
			return byIndex
		})
		return f.Client.List(ctx, list, opts...)
	}
	f.installs.DeepCopyInto(installs)
	return nil
}

// TestStaleCache takes passes by hand with a cache that does not see a single
// admission: the hub still never admits more than it may.
func TestStaleCache(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.enrollMany(6)
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 2)}})
	hub, err := client.New(f.hub, client.Options{Scheme: f.scheme})
	must(t, err)
	cached := &frozen{Client: hub, installs: &v1alpha1.OperatorInstallList{}}
	pass := func() {
		t.Helper()
		r := &rollout.Reconciler{Client: cached, Live: hub, Events: discard{}, Now: time.Now, Admitted: func() {}}
		_, err := kit.WrapReconciler(hub, discard{}, r).Reconcile(t.Context(),
			ctrl.Request{NamespacedName: client.ObjectKeyFromObject(ro)})
		must(t, err)
	}
	for ro.Status.PlanHash == "" {
		pass()
		must(t, f.Get(t.Context(), client.ObjectKeyFromObject(ro), ro))
	}
	must(t, hub.List(t.Context(), cached.installs,
		client.MatchingLabels{v1alpha1.LabelRollout: ro.Name, v1alpha1.LabelOperatorNamespace: f.namespace}))
	if got := len(cached.installs.Items); got != 6 {
		t.Fatalf("the membership of %d clusters is frozen", got)
	}
	for range 10 {
		pass()
	}
	f.eventually(func() error {
		if n := len(f.recorder.admittedBy(ro.Name)); n < 2 {
			return fmt.Errorf("%d admitted", n)
		}
		return nil
	})
	if peak := f.recorder.peakOf("echo-1/all"); peak != 2 {
		t.Errorf("%d clusters were in progress at a time, 2 may", peak)
	}
	// All succeed, and the cache still shows none of it: the rollout ends by
	// the live views that it asks for.
	f.runAgents()
	f.eventually(func() error {
		pass()
		must(t, f.Get(t.Context(), client.ObjectKeyFromObject(ro), ro))
		if ro.Status.Phase != v1alpha1.RolloutSucceeded {
			return errors.New(ro.Status.Message)
		}
		return nil
	})
	if peak := f.recorder.peakOf("echo-1/all"); peak != 2 {
		t.Errorf("%d clusters were in progress at a time, 2 may", peak)
	}
}

// TestFence changes the rollout between the decision and the admission.
func TestFence(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.enrollMany(3)
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 3)}})
	hub, err := client.New(f.hub, client.Options{Scheme: f.scheme})
	must(t, err)
	cached := &frozen{Client: hub, installs: &v1alpha1.OperatorInstallList{}}
	meddler := &meddler{Reader: hub}
	r := &rollout.Reconciler{Client: cached, Live: meddler, Events: discard{}, Now: time.Now, Admitted: func() {}}
	shell := kit.WrapReconciler(hub, discard{}, r)
	pass := func() {
		t.Helper()
		_, err := shell.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(ro)})
		must(t, err)
		must(t, f.Get(t.Context(), client.ObjectKeyFromObject(ro), ro))
	}
	for ro.Status.Batch == nil {
		pass()
	}
	meddler.before = func() {
		f.change(ro, func() { ro.Spec.Paused = true })
	}
	pass()
	pass()
	if ro.Status.Phase != v1alpha1.RolloutPaused {
		t.Errorf("%s: %s", ro.Status.Phase, ro.Status.Message)
	}
	var all v1alpha1.OperatorInstallList
	must(t, f.List(t.Context(), &all, client.MatchingLabels{v1alpha1.LabelOperatorNamespace: f.namespace}))
	for _, at := range all.Items {
		if at.Spec.Admission != nil {
			t.Errorf("%s was admitted after the pause", at.Spec.Cluster)
		}
	}
	f.change(ro, func() { ro.Spec.Paused = false })
	f.runAgents()
	f.eventually(func() error {
		pass()
		if ro.Status.Phase != v1alpha1.RolloutSucceeded {
			return errors.New(ro.Status.Message)
		}
		return nil
	})
}

// meddler does something once, right before the hub looks at the rollout.
type meddler struct {
	client.Reader
	mu     sync.Mutex
	before func()
}

func (m *meddler) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	m.mu.Lock()
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok && m.before != nil {
		m.before()
		m.before = nil
	}
	m.mu.Unlock()
	return m.Reader.Get(ctx, key, obj, opts...)
}

// discard is an event recorder for passes that are taken by hand.
type discard struct{ events.EventRecorder }

func (discard) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}
