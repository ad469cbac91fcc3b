// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit/kittest"
)

func TestMetricsAreOfTheNewestRollout(t *testing.T) {
	at := func(second int64) *metav1.Time { t := metav1.NewTime(time.Unix(second, 0)); return &t }
	rollout := func(name string, revision int64, version string) *v1alpha1.OperatorRollout {
		ro := &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name}}
		ro.Spec.Operator.Name, ro.Spec.Revision, ro.Spec.Release.Version = "echo", revision, version
		return ro
	}
	older, newest := rollout("echo-1", 1, "1.0.0"), rollout("echo-2", 2, "1.1.0")
	older.Status.Phase, older.Status.EndedAt = v1alpha1.RolloutSucceeded, at(50)
	newest.Status = v1alpha1.OperatorRolloutStatus{
		Phase: v1alpha1.RolloutProgressing, StartedAt: at(100), Clusters: v1alpha1.WaveCounts{Succeeded: 1, Failed: 2},
		Waves: []v1alpha1.WaveStatus{
			{Name: "canary", Phase: v1alpha1.WaveVerified, WaveCounts: v1alpha1.WaveCounts{Succeeded: 1},
				StartedAt: at(110), VerifiedAt: at(120)},
			{Name: "rest", Phase: v1alpha1.WaveWaiting, Gates: []v1alpha1.GateStatus{
				{Name: "earlier", Verdict: v1alpha1.GatePassed}, {Name: "later", Verdict: v1alpha1.GateFailed},
				{Name: "sre", Verdict: v1alpha1.GateWaiting, WaitingSince: at(130)}}},
		},
	}
	gauges := kittest.NewGauges(t, collect, older, newest)
	want := `
# HELP bellwether_rollout_gate_waiting_since_timestamp_seconds Since when a gate without a verdict holds a wave of the newest rollout back; absent where none does.
# TYPE bellwether_rollout_gate_waiting_since_timestamp_seconds gauge
bellwether_rollout_gate_waiting_since_timestamp_seconds{gate="sre",operator="echo",operator_namespace="ops",wave="rest"} 130
# HELP bellwether_rollout_info 1 for the newest rollout of a managed operator, with the version and the release that it brings.
# TYPE bellwether_rollout_info gauge
bellwether_rollout_info{operator="echo",operator_namespace="ops",release="2d8b7bc124e4",rollout="echo-2",version="1.1.0"} 1
# HELP bellwether_rollout_start_timestamp_seconds When the newest rollout of a managed operator started.
# TYPE bellwether_rollout_start_timestamp_seconds gauge
bellwether_rollout_start_timestamp_seconds{operator="echo",operator_namespace="ops"} 100
# HELP bellwether_rollout_wave_failed 1 for each wave that was judged failed, of the newest rollout of each version of a managed operator.
# TYPE bellwether_rollout_wave_failed gauge
bellwether_rollout_wave_failed{operator="echo",operator_namespace="ops",release="2d8b7bc124e4",version="1.1.0",wave="rest"} 1
# HELP bellwether_rollout_wave_phase Phase of each wave of the newest rollout: 1 for the phase it is in.
# TYPE bellwether_rollout_wave_phase gauge
bellwether_rollout_wave_phase{operator="echo",operator_namespace="ops",phase="Verified",wave="canary"} 1
bellwether_rollout_wave_phase{operator="echo",operator_namespace="ops",phase="Waiting",wave="rest"} 1
# HELP bellwether_rollout_wave_start_timestamp_seconds When the first cluster of a wave of the newest rollout was admitted.
# TYPE bellwether_rollout_wave_start_timestamp_seconds gauge
bellwether_rollout_wave_start_timestamp_seconds{operator="echo",operator_namespace="ops",wave="canary"} 110
# HELP bellwether_rollout_wave_verified_timestamp_seconds When a wave of the newest rollout was verified.
# TYPE bellwether_rollout_wave_verified_timestamp_seconds gauge
bellwether_rollout_wave_verified_timestamp_seconds{operator="echo",operator_namespace="ops",wave="canary"} 120
`
	gauges.Compare(t, want, "bellwether_rollout_info", "bellwether_rollout_gate_waiting_since_timestamp_seconds",
		"bellwether_rollout_start_timestamp_seconds",
		"bellwether_rollout_end_timestamp_seconds", "bellwether_rollout_wave_phase",
		"bellwether_rollout_wave_failed",
		"bellwether_rollout_wave_start_timestamp_seconds", "bellwether_rollout_wave_verified_timestamp_seconds")
	if n := testutil.CollectAndCount(gauges, "bellwether_rollout_wave_clusters"); n != 12 {
		t.Errorf("%d counts of clusters in two waves, want one for each of six states", n)
	}
}

// TestTakeOversBlameNoVersion verifies the series that are used for pages about releases. A
// rollout that takes over an installed operator changes no version.
func TestTakeOversBlameNoVersion(t *testing.T) {
	ro := &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "echo-1"}}
	ro.Spec.Operator.Name, ro.Spec.Revision, ro.Spec.Release.AsInstalled = "echo", 1, true
	started := metav1.NewTime(time.Unix(100, 0))
	ro.Status = v1alpha1.OperatorRolloutStatus{Phase: v1alpha1.RolloutHalted, StartedAt: &started,
		Waves: []v1alpha1.WaveStatus{{Name: "canary", Phase: v1alpha1.WaveUpdating, FailedAt: &started,
			WaveCounts: v1alpha1.WaveCounts{Total: 1, Failed: 1}}}}
	gauges := kittest.NewGauges(t, collect, ro)
	for series, want := range map[string]int{"bellwether_rollout_wave_failed": 0,
		"bellwether_rollout_change_start_timestamp_seconds": 0, "bellwether_rollout_phase": 1,
		"bellwether_rollout_info": 1} {
		if n := testutil.CollectAndCount(gauges, series); n != want {
			t.Errorf("%d of %s, want %d", n, series, want)
		}
	}
}
