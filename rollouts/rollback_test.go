// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

func before(version string) *v1alpha1.PreviousRelease {
	return &v1alpha1.PreviousRelease{Channel: "stable", Version: version, Bundle: "echo.v" + version,
		Install: &v1alpha1.InstallSettings{}}
}

func minutes(n time.Duration) *metav1.Duration { return &metav1.Duration{Duration: n * time.Minute} }

func TestPreviousOf(t *testing.T) {
	release := v1alpha1.Release{Package: "echo", Channel: "stable", Version: "1.1.0", Bundle: "echo.v1.1.0"}
	forward, back := &v1alpha1.OperatorRollout{}, &v1alpha1.OperatorRollout{}
	forward.UID, back.UID = "uid-3", "uid-4"
	back.Spec.Rollback = &v1alpha1.RolloutRollback{}
	for name, tc := range map[string]struct {
		rollout   *v1alpha1.OperatorRollout
		admission *v1alpha1.Admission
		succeeded string
		want      *v1alpha1.PreviousRelease
	}{
		"the first rollout": {rollout: forward},
		"what runs": {rollout: forward, admission: &v1alpha1.Admission{RolloutUID: "uid-2", Hash: "new",
			Release: release, Previous: before("1.0.0")}, succeeded: "new", want: before("1.1.0")},
		"what ran before what never succeeded": {rollout: forward, admission: &v1alpha1.Admission{RolloutUID: "uid-2",
			Hash: "new", Release: release, Previous: before("1.0.0")}, succeeded: "old", want: before("1.0.0")},
		"nothing before what never succeeded": {rollout: forward, admission: &v1alpha1.Admission{RolloutUID: "uid-2",
			Hash: "new", Release: release}},
		"the same when it is tried again": {rollout: forward, admission: &v1alpha1.Admission{RolloutUID: "uid-3",
			Hash: "new", Release: release, Previous: before("1.0.0")}, succeeded: "new", want: before("1.0.0")},
		"the same when it is gone back": {rollout: back, admission: &v1alpha1.Admission{RolloutUID: "uid-2",
			Hash: "new", Release: release, Previous: before("1.0.0")}, succeeded: "new", want: before("1.0.0")},
	} {
		t.Run(name, func(t *testing.T) {
			install := &v1alpha1.OperatorInstall{}
			install.Spec.Admission, install.Status.SucceededHash = tc.admission, tc.succeeded
			if diff := cmp.Diff(tc.want, rollouts.PreviousOf(tc.rollout, install)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewRollback(t *testing.T) {
	of := &v1alpha1.OperatorRollout{}
	of.Name, of.UID = "echo-4", "uid-4"
	of.Spec.Release = v1alpha1.Release{Package: "echo", Channel: "stable", Version: "1.2.0", Bundle: "echo.v1.2.0",
		Catalog: v1alpha1.CatalogPin{Digest: "sha256:4"}}
	of.Spec.Strategy = rollouts.Defaulted(v1alpha1.RolloutStrategy{
		Waves: []v1alpha1.Wave{{Name: "canary", Deadline: minutes(5), Soak: minutes(10)},
			{Name: "all", Deadline: minutes(8)}},
		Rollback: &v1alpha1.RollbackStrategy{MaxConcurrency: new(intstr.FromInt32(3))},
	})
	admitted := func(cluster string, previous *v1alpha1.PreviousRelease) rollouts.Install {
		return rollouts.Install{Cluster: cluster, Previous: previous, Stamp: rollouts.Stamp{RolloutUID: "uid-4"}}
	}
	spec, ok := rollouts.NewRollback(of, []rollouts.Install{admitted("a", before("1.0.0")),
		admitted("b", before("1.1.0")), admitted("c", before("1.1.0")), admitted("d", nil),
		{Cluster: "e", Previous: before("1.0.0"), Stamp: rollouts.Stamp{RolloutUID: "uid-3"}}})
	if !ok || spec.Release.Version != "1.1.0" || spec.Release.Bundle != "echo.v1.1.0" ||
		spec.Release.Catalog.Digest != "sha256:4" {
		t.Errorf("%t: %+v", ok, spec.Release)
	}
	wave := spec.Strategy.Waves[0]
	if len(spec.Strategy.Waves) != 1 || wave.Name != rollouts.RollbackWave || wave.MaxConcurrency.IntValue() != 3 ||
		wave.Deadline.Duration != 8*time.Minute || wave.Soak.Duration != 0 || len(wave.Gates) > 0 {
		t.Errorf("%+v", spec.Strategy.Waves)
	}
	if _, ok := rollouts.NewRollback(of, []rollouts.Install{admitted("d", nil)}); ok {
		t.Error("a rollback although no cluster ran anything before")
	}
}

// failing has cluster a updated and cluster b stalled, which ran something before.
func failing(policy v1alpha1.FailurePolicy) *fixture {
	f := newFixture()
	f.ro.Spec.Strategy.OnFailure = policy
	f.succeed(0)
	f.admit(time.Minute, 1)
	f.Installs[1].Stalled = true
	for i := range f.Installs {
		f.Installs[i].Previous = before("1.0.0")
	}
	return f
}

func TestRollbackIsDecided(t *testing.T) {
	for name, tc := range map[string]struct {
		policy v1alpha1.FailurePolicy
		change func(*fixture)
		want   v1alpha1.RolloutPhase
		says   string
	}{
		"by the policy": {policy: v1alpha1.FailureRollback, want: v1alpha1.RolloutRolledBack,
			says: "rolled back, as its failure policy says: wave one: 1 cluster failed, 0 allowed: b (Stalled)"},
		"not by another policy": {policy: v1alpha1.FailurePause, want: v1alpha1.RolloutHalted},
		"not while failures are allowed": {policy: v1alpha1.FailureRollback,
			change: func(f *fixture) { f.wave(0).MaxFailures = number(1) }, want: v1alpha1.RolloutProgressing},
		"not where nothing ran before": {policy: v1alpha1.FailureRollback, change: func(f *fixture) {
			for i := range f.Installs {
				f.Installs[i].Previous = nil
			}
		}, want: v1alpha1.RolloutHalted},
		"not for a cluster that comes late to a wave that is verified": {policy: v1alpha1.FailureRollback,
			change: func(f *fixture) { f.ro.Status.Waves[0].VerifiedAt = ago(time.Minute) },
			want:   v1alpha1.RolloutHalted},
		"for the first clusters of a wave that had none when it was verified": {policy: v1alpha1.FailureRollback,
			change: func(f *fixture) {
				f.ro.Status.Waves[0].VerifiedAt = ago(time.Minute)
				f.Installs[0].SucceededHash, f.Installs[0].Stalled = "", true
			}, want: v1alpha1.RolloutRolledBack},
		"while it is paused": {policy: v1alpha1.FailureRollback, change: func(f *fixture) { f.ro.Spec.Paused = true },
			want: v1alpha1.RolloutRolledBack},
		"not of a blocked version, whose clusters did not fail": {policy: v1alpha1.FailureRollback,
			change: func(f *fixture) { f.ro.Spec.Blocked = "it loses data" }, want: v1alpha1.RolloutHalted},
		"by a person": {policy: v1alpha1.FailurePause, change: func(f *fixture) {
			f.ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "users complain", Rollback: &v1alpha1.RollbackRequest{}}
		}, want: v1alpha1.RolloutRolledBack, says: "rolled back: users complain"},
		"by a person, of a rollout that succeeded": {policy: v1alpha1.FailurePause, change: func(f *fixture) {
			f.ro.Status.Phase = v1alpha1.RolloutSucceeded
			f.ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "users complain", Rollback: &v1alpha1.RollbackRequest{}}
		}, want: v1alpha1.RolloutRolledBack},
		"by a person, where nothing ran before": {policy: v1alpha1.FailurePause, change: func(f *fixture) {
			for i := range f.Installs {
				f.Installs[i].Previous = nil
			}
			f.ro.Spec.Abort = &v1alpha1.RolloutAbort{Reason: "users complain", Rollback: &v1alpha1.RollbackRequest{}}
		}, want: v1alpha1.RolloutAborted},
		"once, whatever becomes of the clusters": {policy: v1alpha1.FailureRollback, change: func(f *fixture) {
			f.succeed(0, 1)
			f.Installs[1].Stalled = false
			f.ro.Status.Phase, f.ro.Status.Message = v1alpha1.RolloutRolledBack, "it failed"
		}, want: v1alpha1.RolloutRolledBack, says: "it failed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := failing(tc.policy)
			if tc.change != nil {
				tc.change(f)
			}
			d := rollouts.Next(f.Input)
			if d.Status.Phase != tc.want || !strings.Contains(d.Status.Message, tc.says) {
				t.Errorf("%s: %s; want %s: %s", d.Status.Phase, d.Status.Message, tc.want, tc.says)
			}
			if ended := d.Status.Phase.Ended(); ended != (d.Status.EndedAt != nil) {
				t.Errorf("ended %t at %v", ended, d.Status.EndedAt)
			}
		})
	}
}

// goingBack is a rollback of a rollout that had admitted clusters a to c; a and b ran
// the same before, c another version.
func goingBack() *fixture {
	f := newFixture()
	f.ro.Spec.Rollback = &v1alpha1.RolloutRollback{Of: "echo-1", UID: "uid-1", Version: "1.2.0", Reason: "it is bad"}
	f.ro.Spec.Strategy = rollouts.Defaulted(v1alpha1.RolloutStrategy{
		Waves: []v1alpha1.Wave{{Name: rollouts.RollbackWave, MaxConcurrency: number(1)}}})
	f.ro.Spec.Release = v1alpha1.Release{Package: "echo", Channel: "stable", Version: "1.1.0", Bundle: "echo.v1.1.0"}
	f.ro.Status.ReleaseHash = f.ro.Spec.Release.Hash()
	f.ro.Status.Waves = []v1alpha1.WaveStatus{{Name: rollouts.RollbackWave, Phase: v1alpha1.WaveUpdating}}
	for i := range f.Installs {
		install := &f.Installs[i]
		install.Stamp = rollouts.Stamp{RolloutUID: "uid-1", Hash: "bad", AdmittedAt: noon.Add(-time.Minute)}
		install.Wave, install.Previous = rollouts.RollbackWave, before("1.1.0")
	}
	f.Installs[2].Previous = before("1.0.0")
	f.Installs[3].Stamp.RolloutUID, f.Installs[3].Rollout = "uid-0", "echo-0"
	return f
}

// done has the rollback of a cluster admitted a minute ago, and succeeded or not.
func (f *fixture) done(i int, succeeded bool) {
	hash := rollouts.ReleaseFor(f.ro, f.Installs[i].Previous).Hash()
	f.Installs[i].Stamp = rollouts.Stamp{RolloutUID: "uid-2", Hash: hash, AdmittedAt: noon.Add(-time.Minute)}
	f.Installs[i].SucceededHash = ""
	if f.Installs[i].Stalled = !succeeded; succeeded {
		f.Installs[i].SucceededHash, f.Installs[i].Ready = hash, true
	}
}

func TestRollback(t *testing.T) {
	for name, tc := range map[string]struct {
		given func(*fixture)
		want  string
	}{
		"only clusters that were admitted": {given: func(f *fixture) {
			f.ro.Status.PlanHash = ""
			for i := range f.Installs {
				f.Installs[i].Rollout = "echo-1"
			}
		}, want: "Assign a to rollback, Assign b to rollback, Assign c to rollback, Pending, rollback Updating: " +
			"freezing the membership: 0 of 3 clusters assigned to a wave"},
		"as many at a time as it may": {given: func(*fixture) {},
			want: "Progressing, rollback Updating, batch a: wave rollback: 0 of 3 clusters updated, 3 in progress"},
		"a failure holds up no other cluster": {given: func(f *fixture) { f.done(0, false) },
			want: "Progressing, rollback Updating, batch b: wave rollback: 0 of 3 clusters updated, 2 in progress"},
		"it halts when nothing else is left": {given: func(f *fixture) {
			f.done(0, false)
			f.done(1, true)
			f.done(2, true)
		}, want: "Halted, rollback Updating: wave rollback: 1 cluster failed, 0 allowed: a (Stalled); nothing more " +
			"is admitted until it recovers: repair, pause or retry it, or set another version"},
		"each to what it ran before": {given: func(f *fixture) {
			f.done(0, true)
			f.done(1, true)
			f.done(2, true)
		}, want: "Succeeded, rollback Verified: 3 of 3 clusters updated"},
		"those that are offline follow later": {given: func(f *fixture) {
			for i := range f.Clusters {
				f.Clusters[i].Online, f.Clusters[i].OfflineReason = false, v1alpha1.ReasonAgentOffline
			}
			f.Now = noon.Add(time.Hour)
		}, want: "Succeeded, rollback Verified: 0 of 3 clusters updated, 3 deferred"},
	} {
		t.Run(name, func(t *testing.T) {
			f := goingBack()
			tc.given(f)
			if got := summarize(rollouts.Next(f.Input)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestSettingsOfThePreviousReleaseAreKeptOnce has a cluster go from one release to the next with the same settings, and
// with others, and back by a rollout whose own release has other settings again.
func TestSettingsOfThePreviousReleaseAreKeptOnce(t *testing.T) {
	settings := v1alpha1.InstallSettings{Namespace: "tools", Mode: v1alpha1.InstallOwnNamespace}
	release := v1alpha1.Release{Package: "echo", Channel: "stable", Version: "1.1.0", Bundle: "echo.v1.1.0",
		Install: settings}
	back := &v1alpha1.OperatorRollout{}
	back.Spec.Rollback = &v1alpha1.RolloutRollback{}
	back.Spec.Release = v1alpha1.Release{Package: "echo", Install: v1alpha1.InstallSettings{Namespace: "elsewhere"}}
	for name, tc := range map[string]struct {
		before v1alpha1.InstallSettings
		kept   *v1alpha1.InstallSettings
	}{
		"the same settings": {before: settings},
		"other settings": {before: v1alpha1.InstallSettings{Namespace: "old"},
			kept: &v1alpha1.InstallSettings{Namespace: "old"}},
		"the defaults before": {kept: &v1alpha1.InstallSettings{}},
	} {
		t.Run(name, func(t *testing.T) {
			previous := before("1.0.0")
			previous.Install = &tc.before
			install := &v1alpha1.OperatorInstall{}
			install.Spec.Admission = &v1alpha1.Admission{Release: release}
			install.Spec.Admission.SetPrevious(previous)
			if diff := cmp.Diff(tc.kept, install.Spec.Admission.Previous.Install); diff != "" {
				t.Errorf("settings that are kept twice (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(previous, install.Spec.Admission.PreviousRelease()); diff != "" {
				t.Errorf("previous release (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(previous, rollouts.ObserveInstall(install).Previous); diff != "" {
				t.Errorf("what a rollout sees (-want +got):\n%s", diff)
			}
			got := rollouts.ReleaseFor(back, rollouts.PreviousOf(back, install))
			if got.Version != "1.0.0" || !cmp.Equal(got.Install, tc.before) {
				t.Errorf("it goes back to %+v", got)
			}
		})
	}
}
