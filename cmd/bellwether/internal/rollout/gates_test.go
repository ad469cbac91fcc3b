// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

func TestGatesAreShown(t *testing.T) {
	at := metav1.NewTime(fixture.Ago(20 * time.Second).Time)
	measured := func(v v1alpha1.GateVerdict, evidence string) v1alpha1.GateStatus {
		m := &v1alpha1.GateMeasurement{At: at, Window: metav1.Duration{Duration: 10 * time.Minute}, Value: "30",
			Threshold: "14.4", Samples: 1000, Query: "sum(up)"}
		return v1alpha1.GateStatus{Name: "budget", Verdict: v, Evidence: evidence, Measurement: m}
	}
	fill := func(budget v1alpha1.GateStatus) *v1alpha1.OperatorRollout {
		r := fixture.HaltedRollout()
		r.Status.Phase, r.Status.Message = v1alpha1.RolloutProgressing, "wave prod waits for 2 gates"
		r.Spec.Strategy.Waves[1].Gates = []v1alpha1.Gate{{Name: "budget", SLO: &v1alpha1.SLOGate{}},
			{Name: "query", PromQL: &v1alpha1.PromQLGate{}}}
		r.Status.Waves[1] = v1alpha1.WaveStatus{Name: "prod", Phase: v1alpha1.WaveVerifying,
			WaveCounts: v1alpha1.WaveCounts{Total: 3, Succeeded: 3}, UpdatedAt: fixture.AgoPtr(11 * time.Minute),
			Gates: []v1alpha1.GateStatus{budget, {Name: "query", Verdict: v1alpha1.GateWaiting,
				Evidence:     "no measurement: query Prometheus at http://prometheus:9090: connection refused",
				WaitingSince: fixture.AgoPtr(time.Minute)}}}
		return r
	}
	failed := fill(measured(v1alpha1.GateFailed, "available: burn rate 30 within 10m0s, at most 14.4 passes; 300 "+
		"of 1000 "+
		"measurements are bad"))
	failed.Status.Phase = v1alpha1.RolloutHalted
	for name, r := range map[string]*v1alpha1.OperatorRollout{
		"verifying":   fill(measured(v1alpha1.GatePassed, "available: burn rate 0 within 10m0s")),
		"gate-failed": failed,
	} {
		t.Run(name, func(t *testing.T) {
			in := RolloutInput{Now: fixture.Noon, Rollout: r, Installs: fixture.Installs(),
				Clusters: fixture.FleetOfFour()}
			fixture.AssertGolden(t, "rollout-"+name, RenderRollout(in, term.Style{}))
		})
	}
}
