// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// runJobs plays what agents do with Jobs: by image and cluster, each ends as the
// function says.
func (f *fixture) runJobs(end func(image, cluster string) v1alpha1.JobState) {
	ctx, cancel := context.WithCancel(f.t.Context())
	var done sync.WaitGroup
	f.t.Cleanup(func() { cancel(); done.Wait() })
	done.Go(func() {
		ticker := time.NewTicker(look)
		defer ticker.Stop()
		for {
			var installs v1alpha1.OperatorInstallList
			if err := f.List(ctx, &installs); err == nil {
				for i := range installs.Items {
					f.reportJobs(ctx, &installs.Items[i], end)
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
}

// reportJobs leaves what fails to the next time.
func (f *fixture) reportJobs(ctx context.Context, o *v1alpha1.OperatorInstall,
	end func(image, cluster string) v1alpha1.JobState) {
	if o.Spec.Operator.Namespace != f.namespace || len(o.Spec.Jobs) == 0 {
		return
	}
	before := o.DeepCopy()
	o.Status.Jobs = nil
	for _, j := range o.Spec.Jobs {
		ended := metav1.NewTime(time.Unix(1700000000, 0))
		o.Status.Jobs = append(o.Status.Jobs, v1alpha1.JobResult{Name: j.Name, EndedAt: &ended,
			State: end(j.Template.Image, o.Spec.Cluster), Message: "as the test says"})
	}
	if cmp.Diff(before.Status.Jobs, o.Status.Jobs) != "" {
		_ = f.Status().Patch(ctx, o, client.MergeFrom(before))
	}
}

// TestJobsOfARollout has a preflight Job and a gate's. A cluster on which the preflight
// Job fails is deferred. The gate fails on the canary, and nobody else is touched; after
// a retry it passes.
func TestJobsOfARollout(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	names := f.enrollMany(3)
	var repaired sync.Map
	f.runJobs(func(image, cluster string) v1alpha1.JobState {
		_, isRepaired := repaired.Load(image)
		if !isRepaired && (image == "disk:1" && cluster == names[1] || image == "smoke:1") {
			return v1alpha1.JobFailed
		}
		return v1alpha1.JobSucceeded
	})
	f.runAgents()
	defer f.startHub()()
	canary := sized(wave("canary", 1), 1)
	canary.Gates = []v1alpha1.Gate{{Name: "smoke", Job: &v1alpha1.JobGate{JobTemplate: v1alpha1.JobTemplate{
		Image: "smoke:1", Namespace: "checks"}}}}
	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{canary, wave("prod", 2)},
		Preflight: &v1alpha1.Preflight{Job: &v1alpha1.JobTemplate{Image: "disk:1", Namespace: "checks"}}})
	f.reaches(ro, v1alpha1.RolloutHalted, "GateFailed", "gate smoke of wave canary failed: the Job succeeded on 0 of "+
		"1 cluster; it failed on "+names[0]+": as the test says")
	if diff := cmp.Diff(names[:1], f.recorder.admittedBy(ro.Name)); diff != "" {
		t.Errorf("admitted (-want +got):\n%s", diff)
	}
	repaired.Store("smoke:1", true)
	f.change(ro, func() { ro.Spec.Retries++ })
	f.reaches(ro, v1alpha1.RolloutSucceeded, "2 of 3 clusters updated, 1 deferred")
	f.gateSays(ro, v1alpha1.GatePassed, "the Job succeeded on 1 of 1 cluster: "+names[0])
	if g := ro.Status.HeldBack; len(g) != 1 || g[0].Reason != v1alpha1.ReasonPreflightFailed ||
		g[0].Message != "the preflight Job failed: as the test says" || !g[0].Deferred {
		t.Errorf("held back %+v", g)
	}
	repaired.Store("disk:1", true)
	f.change(ro, func() { ro.Spec.Retries++ })
	f.reaches(ro, v1alpha1.RolloutSucceeded, "3 of 3 clusters updated")
}
