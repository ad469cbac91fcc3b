// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

func TestPreflight(t *testing.T) {
	needs130 := &v1alpha1.ReleaseRequirements{MinKubeVersion: "1.30.0"}
	oldBudget := &v1alpha1.ReleaseRequirements{RemovedAPIs: []v1alpha1.RemovedAPI{{APIVersion: "policy/v1beta1",
		Kind: "PodDisruptionBudget", Name: "echo", RemovedIn: "1.25"}}}
	refused := &v1alpha1.ReleaseRequirements{RefusedUpgrades: []v1alpha1.RefusedUpgrade{{From: "echo.v1.0.0",
		Reason: "version v1alpha1 was removed"}}}
	upTo136 := &v1alpha1.ReleaseRequirements{SupportedKubernetes: &v1alpha1.KubernetesRange{Min: "1.32", Max: "1.36"}}
	tests := map[string]struct {
		needs         *v1alpha1.ReleaseRequirements
		kubernetes    string
		installed     string
		want          string // in the message; empty: not held
		wantsDeferred bool
	}{
		"not known":                   {},
		"nothing is needed":           {needs: &v1alpha1.ReleaseRequirements{}},
		"new enough":                  {needs: needs130, kubernetes: "v1.30.0"},
		"newer":                       {needs: needs130, kubernetes: "v1.31.2"},
		"a version of a distribution": {needs: needs130, kubernetes: "v1.30.0-eks-1a2b3c"},
		"another one":                 {needs: needs130, kubernetes: "v1.30.1+k3s1"},
		"without a patch":             {needs: needs130, kubernetes: "v1.30"},
		"too old": {needs: needs130, kubernetes: "v1.29.9+k3s1", wantsDeferred: true,
			want: "the cluster has Kubernetes 1.29.9, and bundle echo.v1.2.0 needs 1.30.0 or newer (minKubeVersion)"},
		"not reported": {needs: needs130, wantsDeferred: true,
			want: `the Kubernetes version of the cluster is not known ("")`},
		"reported, and no version": {needs: oldBudget, kubernetes: "latest", wantsDeferred: true,
			want: `is not known ("latest")`},
		"installed already": {needs: needs130, kubernetes: "v1.29.0", installed: "echo.v1.2.0"},
		"no version, so OLM refuses it everywhere": {kubernetes: "v1.35.0",
			needs: &v1alpha1.ReleaseRequirements{MinKubeVersion: "1.30"},
			want:  `minKubeVersion "1.30" of bundle echo.v1.2.0 is no version such as 1.30.0`},
		"the API is there": {needs: oldBudget, kubernetes: "v1.24.17"},
		"the API was removed": {needs: oldBudget, kubernetes: "v1.25.0", wantsDeferred: true,
			want: "uses policy/v1beta1 PodDisruptionBudget (echo), which Kubernetes 1.25 removed"},
		"supported": {needs: upTo136, kubernetes: "v1.36.9+k3s1"},
		"too new to be supported": {needs: upTo136, kubernetes: "v1.37.0", wantsDeferred: true,
			want: "the cluster has Kubernetes 1.37.0, and bundle echo.v1.2.0 is supported on Kubernetes 1.32 to 1.36 " +
				"(bellwether.dev/support)"},
		"too old to be supported": {needs: upTo136, kubernetes: "v1.31.0", wantsDeferred: true,
			want: "is supported on Kubernetes 1.32 to 1.36"},
		"supported where it is not known": {needs: upTo136, wantsDeferred: true,
			want: `the Kubernetes version of the cluster is not known ("")`},
		"the upgrade is refused": {needs: refused, installed: "echo.v1.0.0", wantsDeferred: true,
			want: "the API server refuses the upgrade from echo.v1.0.0: version v1alpha1 was removed"},
		"not from this version":    {needs: refused, installed: "echo.v1.1.0"},
		"not when it is the first": {needs: refused},
		"too large for every cluster": {needs: &v1alpha1.ReleaseRequirements{TooLarge: "bundle too large"},
			want: "bundle too large"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			clusters := []rollouts.Cluster{{Name: "a", Kubernetes: test.kubernetes}}
			holds.SetHolds(holds.Input{Now: noon, Operator: named("echo"), Requirements: test.needs,
				Release: "echo.v1.2.0", Installs: []rollouts.Install{{Cluster: "a", Bundle: test.installed}}}, clusters)
			got := clusters[0].Holds
			if test.want == "" {
				if len(got) > 0 {
					t.Errorf("held back: %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Reason != v1alpha1.ReasonPreflightFailed ||
				!strings.Contains(got[0].Message, test.want) || got[0].Defers != test.wantsDeferred {
				t.Errorf("%+v, want %q, deferred %t", got, test.want, test.wantsDeferred)
			}
		})
	}
}

func TestPreflightJob(t *testing.T) {
	wanted := &rollouts.PreflightJob{Name: "preflight-1", Timeout: 5 * time.Minute}
	asked := func(ago time.Duration, state v1alpha1.JobState) map[string]rollouts.Job {
		return map[string]rollouts.Job{"preflight-1": {RequestedAt: noon.Add(-ago), State: state, Message: "disk full"}}
	}
	pending := rollouts.Hold{Reason: v1alpha1.ReasonPreflightPending, Message: "the preflight Job has not run yet"}
	running, first := pending, pending
	running.Until, first.NeedsJob = noon.Add(6*time.Minute), true
	failed := func(message string) *rollouts.Hold {
		return &rollouts.Hold{Reason: v1alpha1.ReasonPreflightFailed, Message: message, Defers: true}
	}
	tests := map[string]struct {
		jobs map[string]rollouts.Job
		want *rollouts.Hold
	}{
		"not asked":           {want: &first},
		"another one was run": {jobs: map[string]rollouts.Job{"old": {State: v1alpha1.JobSucceeded}}, want: &first},
		"succeeded":           {jobs: asked(time.Hour, v1alpha1.JobSucceeded)},
		"running":             {jobs: asked(time.Minute, v1alpha1.JobRunning), want: &running},
		"nothing is reported": {jobs: asked(time.Minute, ""), want: &running},
		"failed": {jobs: asked(time.Minute, v1alpha1.JobFailed),
			want: failed("the preflight Job failed: disk full")},
		"refused": {jobs: asked(time.Minute, v1alpha1.JobRefused),
			want: failed("the preflight Job was refused: disk full")},
		"nothing is reported for too long": {jobs: asked(7*time.Minute, ""),
			want: failed("the agent reported no result of the preflight Job in 7m0s")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			clusters := []rollouts.Cluster{{Name: "a"}}
			holds.SetHolds(holds.Input{Now: noon, Operator: named("echo"), PreflightJob: wanted,
				Installs: []rollouts.Install{{Cluster: "a", Jobs: test.jobs}}}, clusters)
			var want []rollouts.Hold
			if test.want != nil {
				want = []rollouts.Hold{*test.want}
			}
			if diff := cmp.Diff(want, clusters[0].Holds); diff != "" {
				t.Errorf("holds (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSupportProblem(t *testing.T) {
	ended := &v1alpha1.ReleaseRequirements{EndOfSupport: noon.AddDate(0, 0, -1).Format(time.DateOnly)}
	want := "bundle echo.v1.0.0 has not been supported since " + ended.EndOfSupport + " (bellwether.dev/support)"
	if got := holds.ExplainSupportProblem(ended, "echo.v1.0.0", noon); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for name, needs := range map[string]*v1alpha1.ReleaseRequirements{
		"not known": nil, "no end": {}, "today": {EndOfSupport: noon.Format(time.DateOnly)},
	} {
		if got := holds.ExplainSupportProblem(needs, "echo.v1.0.0", noon); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
