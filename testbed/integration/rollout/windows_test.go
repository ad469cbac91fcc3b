// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// windowTime is how spec.start of a ChangeWindow is written.
const windowTime = "2006-01-02T15:04:05"

// window makes a ChangeWindow for the fleet of the test.
func (f *fixture) window(kind v1alpha1.ChangeWindowType, start time.Time, duration time.Duration,
	clusters map[string]string) *v1alpha1.ChangeWindow {
	f.t.Helper()
	labels := map[string]string{"fleet": f.tag}
	for k, v := range clusters {
		labels[k] = v
	}
	cw := &v1alpha1.ChangeWindow{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Spec: v1alpha1.ChangeWindowSpec{
			Type: kind, Reason: "as the test says", Start: start.UTC().Format(windowTime),
			Duration:        metav1.Duration{Duration: duration},
			ClusterSelector: &metav1.LabelSelector{MatchLabels: labels},
		},
	}
	must(f.t, f.Create(f.t.Context(), cw))
	return cw
}

func TestChangeWindows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runAgents()
	defer f.startHub()()
	open := f.enroll("open", nil)
	frozen := f.enroll("frozen", map[string]string{"region": "eu"})
	// A freeze of an hour, of which nobody waits for the end.
	freeze := f.window(v1alpha1.WindowDeny, time.Now().Add(-time.Minute), time.Hour, map[string]string{"region": "eu"})
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 2)}})

	f.reaches(ro, v1alpha1.RolloutProgressing, "WindowClosed", "1 of 2 clusters updated", freeze.Name,
		"as the test says")
	if diff := cmp.Diff([]string{open}, f.recorder.admittedBy(ro.Name)); diff != "" {
		t.Errorf("admitted during the freeze (-want +got):\n%s", diff)
	}
	start, err := time.Parse(windowTime, freeze.Spec.Start)
	must(t, err)
	end := metav1.NewTime(start.Add(time.Hour))
	want := []v1alpha1.HeldBackClusters{{Reason: v1alpha1.ReasonWindowClosed, Count: 1, Clusters: []string{frozen},
		Message: ro.Status.HeldBack[0].Message, Until: &end}}
	if diff := cmp.Diff(want, ro.Status.HeldBack); diff != "" {
		t.Errorf("held back (-want +got):\n%s", diff)
	}
	must(t, f.Delete(t.Context(), freeze))
	f.reaches(ro, v1alpha1.RolloutSucceeded, "2 of 2 clusters updated")
}

// The hub wakes up by itself when a window opens.
func TestWindowOpens(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runAgents()
	defer f.startHub()()
	f.enrollMany(2)
	window := f.window(v1alpha1.WindowAllow, time.Now().Add(time.Hour), time.Hour, nil)
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 2)}})
	f.reaches(ro, v1alpha1.RolloutProgressing, "WindowClosed")
	opens := time.Now().Add(8 * time.Second).Truncate(time.Second) // impatient: it is a start, which nothing misses
	f.change(window, func() { window.Spec.Start = opens.UTC().Format(windowTime) })
	f.reaches(ro, v1alpha1.RolloutSucceeded, "2 of 2 clusters updated")
	if at := ro.Status.Waves[0].StartedAt; at == nil || at.Time.Before(opens) {
		t.Errorf("the wave started at %s, the window opened at %s", at, opens)
	}
}

func TestWindowsAreOverridden(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runAgents()
	defer f.startHub()()
	names := f.enrollMany(2)
	f.window(v1alpha1.WindowAllow, time.Now().Add(time.Hour), time.Hour, nil)
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("all", 2)}})
	f.reaches(ro, v1alpha1.RolloutProgressing, "WindowClosed")
	f.change(ro, func() {
		ro.Spec.WindowOverride = &v1alpha1.WindowOverride{By: "ann", Reason: "emergency", At: metav1.Now()}
	})
	f.reaches(ro, v1alpha1.RolloutSucceeded, "2 of 2 clusters updated")
	if got := slices.Sorted(slices.Values(f.recorder.admittedBy(ro.Name))); !slices.Equal(got, names) {
		t.Errorf("admitted %v", got)
	}
	f.hasEvents(ro, "WindowsOverridden")
}
