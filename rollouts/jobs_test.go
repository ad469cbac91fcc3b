// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts"
)

func jobGate() v1alpha1.Gate {
	return v1alpha1.Gate{Name: "smoke", Job: &v1alpha1.JobGate{JobTemplate: v1alpha1.JobTemplate{Image: "smoke:1",
		Namespace: "checks"}}}
}

// requested returns the clusters from which the decision requests a Job, and the name of the Job.
func requested(d rollouts.Decision) (clusters []string, job string) {
	for _, a := range d.Actions {
		if a.Kind == rollouts.ActionRunJob {
			clusters, job = append(clusters, a.Cluster), a.Job
		}
	}
	return clusters, job
}

// reported requests the Job from the first clusters, with these results. An empty result means that the agent has
// not reported.
func (f *fixture) reported(job string, states ...v1alpha1.JobState) {
	for i, state := range states {
		f.Installs[i].Jobs = map[string]rollouts.Job{job: {RequestedAt: noon.Add(-time.Minute), State: state,
			Message: "disk full", EndedAt: noon}}
	}
}

func TestJobGate(t *testing.T) {
	t.Parallel()
	const over = 10 * time.Minute
	one := int32(1)
	tests := map[string]struct {
		clusters *int32
		states   []v1alpha1.JobState
		then     func(*fixture)
		want     string
		asked    []string
	}{
		"nobody was asked": {
			want: "Waiting: the Job succeeded on 0 of 2 clusters; no result of a: it was not asked to run yet, b: it " +
				"was not asked to run yet",
			asked: []string{"a", "b"},
		},
		"one was asked": {
			states: []v1alpha1.JobState{v1alpha1.JobRunning}, asked: []string{"b"},
			want: "Waiting: the Job succeeded on 0 of 2 clusters; no result of a: running, b: it was not asked to " +
				"run yet",
		},
		"it succeeded everywhere": {
			states: []v1alpha1.JobState{v1alpha1.JobSucceeded, v1alpha1.JobSucceeded},
			want:   "Passed: the Job succeeded on 2 of 2 clusters: a, b",
		},
		"it failed on one": {
			states: []v1alpha1.JobState{v1alpha1.JobSucceeded, v1alpha1.JobFailed},
			want:   "Failed: the Job succeeded on 1 of 2 clusters; it failed on b: disk full",
		},
		"a cluster refuses it": {
			states: []v1alpha1.JobState{v1alpha1.JobSucceeded, v1alpha1.JobRefused},
			want:   "Waiting: the Job succeeded on 1 of 2 clusters; no result of b: refused: disk full",
		},
		"a refusal, and a person's word": {
			states: []v1alpha1.JobState{v1alpha1.JobSucceeded, v1alpha1.JobRefused},
			then: func(f *fixture) {
				f.ro.Spec.Overrides = []v1alpha1.GateOverride{{Wave: "one", Gate: "smoke", By: "ann", Reason: "tested"}}
			},
			want: "Overridden: overridden by ann: tested; the gate had no verdict: the Job succeeded on 1 of 2 " +
				"clusters; no result of b: refused: disk full",
		},
		"an agent says nothing": {
			states: []v1alpha1.JobState{v1alpha1.JobSucceeded, ""},
			want: "Waiting: the Job succeeded on 1 of 2 clusters; no result of b: the agent has reported " +
				"nothing since " + noon.Add(-time.Minute).Format(time.RFC3339),
		},
		"some clusters are enough": {
			clusters: &one, asked: []string{"a"},
			want: "Waiting: the Job succeeded on 0 of 1 cluster; no result of a: it was not asked to run yet",
		},
		"those that were asked stay": {
			clusters: &one, states: []v1alpha1.JobState{v1alpha1.JobSucceeded},
			want: "Passed: the Job succeeded on 1 of 1 cluster: a",
		},
		"a failure on one that is not needed any more": {
			clusters: &one, states: []v1alpha1.JobState{v1alpha1.JobSucceeded, v1alpha1.JobFailed},
			want: "Failed: the Job succeeded on 1 of 1 cluster; it failed on b: disk full",
		},
		"a retry has it run again": {
			states: []v1alpha1.JobState{v1alpha1.JobSucceeded, v1alpha1.JobFailed},
			then:   func(f *fixture) { f.ro.Spec.Retries++ }, asked: []string{"a", "b"},
			want: "Waiting: the Job succeeded on 0 of 2 clusters; no result of a: it was not asked to run yet, b: it " +
				"was not asked to run yet",
		},
		"a paused rollout asks nobody": {
			then: func(f *fixture) { f.ro.Spec.Paused = true },
			want: "Waiting: the Job succeeded on 0 of 2 clusters; no result of a: it was not asked to run yet, b: it " +
				"was not asked to run yet",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			g := jobGate()
			g.Job.Clusters = test.clusters
			f.judged(over, g)
			_, job := requested(rollouts.Next(f.Input))
			f.reported(job, test.states...)
			if test.then != nil {
				test.then(f)
			}
			d := rollouts.Next(f.Input)
			if got := gateText(d); got != test.want {
				t.Errorf("gate %q\nwant %q", got, test.want)
			}
			asked, _ := requested(d)
			if diff := cmp.Diff(test.asked, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// TestJobGateIsAskedOnceTheWaveIsUpdated: its Job is about the new release.
func TestJobGateIsAskedOnceTheWaveIsUpdated(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.wave(0).Gates = []v1alpha1.Gate{jobGate()}
	f.admit(time.Minute, 0, 1)
	f.Installs[0].SucceededHash, f.Installs[0].Ready = "new", true
	if asked, _ := requested(rollouts.Next(f.Input)); len(asked) > 0 {
		t.Errorf("asked while the wave changes: %v", asked)
	}
}

func TestPreflightJobIsAskedOfClustersThatAreDue(t *testing.T) {
	t.Parallel()
	needsJob := rollouts.Hold{Reason: v1alpha1.ReasonPreflightPending, Message: "not run yet", NeedsJob: true}
	f := newFixture()
	f.ro.Spec.Strategy.Preflight = &v1alpha1.Preflight{Job: &v1alpha1.JobTemplate{Image: "disk:1", Namespace: "checks"}}
	for i := range f.Clusters {
		f.Clusters[i].Holds = append(f.Clusters[i].Holds, needsJob)
	}
	f.Clusters[1].Holds = append([]rollouts.Hold{{Reason: v1alpha1.ReasonWindowClosed, Message: "closed"}},
		f.Clusters[1].Holds...)
	d := rollouts.Next(f.Input)
	asked, job := requested(d)
	if diff := cmp.Diff([]string{"a"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if want := rollouts.PreflightJobOf(f.ro); job != want.Name || want.Timeout != 5*time.Minute {
		t.Errorf("asked for %s, want %+v", job, want)
	}
	if d.Status.Batch != nil {
		t.Errorf("chosen before the Job has run: %+v", d.Status.Batch)
	}
}

func TestJobsForAnInstall(t *testing.T) {
	t.Parallel()
	f := newFixture()
	template := &v1alpha1.JobTemplate{Image: "smoke:1", Namespace: "checks"}
	a := rollouts.Action{Kind: rollouts.ActionRunJob, Cluster: "a", Wave: "one", Gate: "smoke", Job: "gate-1",
		Template: template}
	jobs := rollouts.JobsFor(f.ro, a, []v1alpha1.RequestedJob{{Name: "gate-0", RolloutUID: "another"},
		{Name: "preflight-1", RolloutUID: "uid-2"}}, noon)
	var names []string
	for _, j := range jobs {
		names = append(names, j.Name)
	}
	if diff := cmp.Diff([]string{"preflight-1", "gate-1"}, names); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	last := jobs[len(jobs)-1]
	if last.Template.Image != "smoke:1" || !last.RequestedAt.Time.Equal(noon) {
		t.Errorf("%+v", last)
	}
	if again := rollouts.JobsFor(f.ro, a, jobs, noon.Add(time.Hour)); len(again) != 2 ||
		!again[1].RequestedAt.Time.Equal(noon) {
		t.Errorf("asked twice: %+v", again)
	}
	for i := range 20 {
		jobs = append(jobs, v1alpha1.RequestedJob{Name: strings.Repeat("x", i+1), RolloutUID: "uid-2",
			RequestedAt: metav1.NewTime(noon.Add(-time.Hour))})
	}
	a.Job = "gate-2"
	if got := rollouts.JobsFor(f.ro, a, jobs, noon); len(got) != 12 || got[11].Name != "gate-2" {
		t.Errorf("%d jobs, the last is %s", len(got), got[len(got)-1].Name)
	}
}

// TestJobGateOfAPolicy: the gate is in no strategy, and what it runs is.
func TestJobGateOfAPolicy(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.judged(10*time.Minute, jobGate())
	gates := f.wave(0).Gates
	f.wave(0).Gates = nil
	f.Policies = []v1alpha1.RolloutPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "platform"},
		Spec: v1alpha1.RolloutPolicySpec{Gates: gates}}}
	var images []string
	for _, a := range rollouts.Next(f.Input).Actions {
		if a.Kind == rollouts.ActionRunJob {
			images = append(images, a.Cluster+" "+a.Template.Image+" "+a.Template.Timeout.Duration.String())
		}
	}
	if diff := cmp.Diff([]string{"a smoke:1 5m0s", "b smoke:1 5m0s"}, images); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}
