// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
)

// verifying returns a rollout whose wave prod has two gates that measure it, and an approval.
func verifying(budget, query v1alpha1.GateStatus) *v1alpha1.OperatorRollout {
	r := clitest.Rollout("echo", "echo-2", 2, v1alpha1.RolloutProgressing)
	r.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "prod", Gates: []v1alpha1.Gate{
		{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}, {Name: "budget", SLO: &v1alpha1.SLOGate{}},
		{Name: "query", PromQL: &v1alpha1.PromQLGate{Query: "up", Operator: "<", Threshold: "1"}}}}}
	budget.Name, query.Name = "budget", "query"
	r.Status.Waves = []v1alpha1.WaveStatus{{Name: "prod", Phase: v1alpha1.WaveVerifying,
		Gates: []v1alpha1.GateStatus{{Name: "sre", Verdict: v1alpha1.GatePassed}, budget, query}}}
	return r
}

func TestOverride(t *testing.T) {
	failed := v1alpha1.GateStatus{Verdict: v1alpha1.GateFailed}
	waits := v1alpha1.GateStatus{Verdict: v1alpha1.GateWaiting, WaitingSince: fixture.AgoPtr(time.Hour)}
	soaks := v1alpha1.GateStatus{Verdict: v1alpha1.GateWaiting}
	passed := v1alpha1.GateStatus{Verdict: v1alpha1.GatePassed}
	override := func(gate string) []v1alpha1.GateOverride {
		return []v1alpha1.GateOverride{{Wave: "prod", Gate: gate, By: "anna", Reason: "known noise",
			At: metav1.NewTime(fixture.Noon)}}
	}
	ended := verifying(failed, passed)
	ended.Status.Phase = v1alpha1.RolloutAborted
	for name, test := range map[string]struct {
		args []string
		from *v1alpha1.OperatorRollout
		want []v1alpha1.GateOverride
		err  string
	}{
		"what failed":         {from: verifying(failed, soaks), want: override("budget")},
		"what waits for data": {from: verifying(passed, waits), want: override("query")},
		"several":             {from: verifying(failed, waits), err: "several gates can be overridden"},
		"one of several": {from: verifying(failed, waits), args: []string{"--gate", "query"},
			want: override("query")},
		"before it has " +
			"verdicts": {from: verifying(soaks, soaks), args: []string{"--gate", "budget"},
			want: override("budget")},
		"nothing waits": {from: verifying(soaks, passed), err: "no gate of rollout echo-2 failed or waits " +
			"for data"},
		"an approval": {from: verifying(failed, passed), args: []string{"--gate", "sre"},
			err: "has no gate with this name that can be overridden"},
		"ended": {from: ended, err: "has already ended"},
	} {
		t.Run(name, func(t *testing.T) {
			h := clitest.NewHub(clitest.Operator("echo", "1.1.0"), test.from)
			got := h.Run(t, append([]string{"rollout", "override", "echo", "--reason", "known noise"}, test.args...)...)
			if !strings.Contains(got.Err, test.err) || (got.Code == exit.OK) != (test.err == "") {
				t.Errorf("exit code %d, error %q, want an error with %q", got.Code, got.Err, test.err)
			}
			if diff := cmp.Diff(test.want, h.Rollout(t, "echo-2").Spec.Overrides); diff != "" {
				t.Errorf("overrides (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("without a reason", func(t *testing.T) {
		h := clitest.NewHub(clitest.Operator("echo", "1.1.0"), verifying(failed, passed))
		if got := h.Run(t, "rollout", "override", "echo"); got.Code == exit.OK {
			t.Error("the gate is overridden")
		}
	})
}

// TestGateOfAVerifiedWave: a wave that is verified is not judged again, even if its gates fail later.
func TestGateOfAVerifiedWave(t *testing.T) {
	r := verifying(v1alpha1.GateStatus{Verdict: v1alpha1.GateFailed}, v1alpha1.GateStatus{Verdict: v1alpha1.GatePassed})
	r.Status.Waves[0].Phase, r.Status.Waves[0].VerifiedAt = v1alpha1.WaveVerified, fixture.AgoPtr(time.Minute)
	h := clitest.NewHub(clitest.Operator("echo", "1.1.0"), r)
	for command, want := range map[string]string{"retry": "no cluster of rollout echo-2 has failed",
		"override": "no gate of rollout echo-2 failed or waits for data"} {
		args := []string{"rollout", command, "echo"}
		if command == "override" {
			args = append(args, "--reason", "known noise")
		}
		if got := h.Run(t, args...); got.Code == exit.OK || !strings.Contains(got.Err, want) {
			t.Errorf("%s: exit code %d: %s%s", command, got.Code, got.Out, got.Err)
		}
	}
}

func TestRetryAfterAFailedGate(t *testing.T) {
	r := verifying(v1alpha1.GateStatus{Verdict: v1alpha1.GateFailed}, v1alpha1.GateStatus{Verdict: v1alpha1.GatePassed})
	h := clitest.NewHub(clitest.Operator("echo", "1.1.0"), r)
	got := h.Run(t, "rollout", "retry", "echo")
	if !strings.Contains(got.Out, "soaks and is judged again") || h.Rollout(t, "echo-2").Spec.Retries != 1 {
		t.Errorf("exit code %d: %s%s", got.Code, got.Out, got.Err)
	}
}
