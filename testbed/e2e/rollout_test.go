// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

// TestSteering pauses, resumes, approves and aborts rollouts with the command
// line.
func TestSteering(t *testing.T) {
	o := manage(t, "echo-steer", func(s *v1alpha1.ManagedOperatorSpec) {
		s.Strategy.Waves[1].Gates = []v1alpha1.Gate{{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}}
	}, "1.0.0", "1.1.0")
	gated := func(ro *v1alpha1.OperatorRollout) bool {
		return len(ro.Status.Waves) > 1 && ro.Status.Waves[1].Phase == v1alpha1.WaveGated &&
			ro.Status.Waves[0].Phase == v1alpha1.WaveVerified
	}
	o.rollout(1, "gated", gated)
	if out, exit := o.bellwether("rollout", "status", "echo-steer"); exit != 5 {
		t.Errorf("status of a gated rollout: exit %d\n%s", exit, out)
	}
	if out, exit := o.bellwether("rollout", "approve", "echo-steer", "--reason", "the canary is fine"); exit != 0 {
		t.Fatalf("approve: exit %d\n%s", exit, out)
	}
	ro := o.everywhere(1)
	if len(ro.Spec.Approvals) != 1 || ro.Spec.Approvals[0].Reason != "the canary is fine" ||
		ro.Spec.Approvals[0].By == "" {
		t.Errorf("approvals %+v", ro.Spec.Approvals)
	}

	o.change(greeting("two"))
	o.rollout(2, "gated", gated)
	if out, exit := o.bellwether("rollout", "pause", "echo-steer", "--reason", "lunch"); exit != 0 {
		t.Fatalf("pause: exit %d\n%s", exit, out)
	}
	if paused := o.phase(2, v1alpha1.RolloutPaused); !strings.Contains(paused.Status.Message, "lunch") {
		t.Errorf("message of a paused rollout: %s", paused.Status.Message)
	}
	if out, exit := o.bellwether("rollout", "resume", "echo-steer"); exit != 0 {
		t.Fatalf("resume: exit %d\n%s", exit, out)
	}
	o.rollout(2, "gated", gated)
	if out, exit := o.bellwether("rollout", "abort", "echo-steer", "--reason", "not today"); exit != 0 {
		t.Fatalf("abort: exit %d\n%s", exit, out)
	}
	o.phase(2, v1alpha1.RolloutAborted)
	if out, exit := o.bellwether("rollout", "status", "echo-steer", "--wait"); exit != 3 {
		t.Errorf("status of an aborted rollout: exit %d\n%s", exit, out)
	}
	if a := o.install("prod-eu").Spec.Admission; a.Revision != 1 {
		t.Errorf("prod-eu was admitted to revision %d of an aborted rollout", a.Revision)
	}
	out, exit := o.bellwether("why", "prod-eu", "echo-steer", "--cluster-kubeconfig",
		shared.Fleet.Cluster("prod-eu").Kubeconfig())
	if exit != 0 || !strings.Contains(out, "echo-operator.v1.0.0") {
		t.Errorf("why: exit %d\n%s", exit, out)
	}
}

// scaleAgent stops or starts the agent of a cluster.
func scaleAgent(t *testing.T, cluster string, replicas int32) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	c, err := shared.Client(cluster, platform.Scheme())
	if err != nil {
		t.Fatal(err)
	}
	var list appsv1.DeploymentList
	if err := c.List(ctx, &list, client.MatchingLabels{"app.kubernetes.io/component": "agent"}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 {
		t.Fatalf("%d agents on %s", len(list.Items), cluster)
	}
	agent := &list.Items[0]
	patch := client.MergeFrom(agent.DeepCopy())
	agent.Spec.Replicas = ptr.To(replicas)
	if err := c.Patch(ctx, agent, patch); err != nil {
		t.Fatal(err)
	}
}

// TestOfflineClusterIsDeferred rolls out while a cluster is offline: it is
// passed over, named, and caught up with when it is back.
func TestOfflineClusterIsDeferred(t *testing.T) {
	o := manage(t, "echo-offline", nil, "1.0.0", "1.1.0")
	o.everywhere(1)
	scaleAgent(t, "prod-us", 0)
	o.online("prod-us", false)
	o.change(func(s *v1alpha1.ManagedOperatorSpec) { s.Version = "1.1.0" })
	o.rollout(2, "on two clusters, with the third one deferred", func(ro *v1alpha1.OperatorRollout) bool {
		of := ro.Status.Clusters
		return ro.Status.Phase == v1alpha1.RolloutSucceeded && of.Deferred == 1 && of.Succeeded == 2
	})
	if out, _ := o.bellwether("rollout", "get", "echo-offline"); !strings.Contains(out, "prod-us") {
		t.Errorf("the offline cluster is not named:\n%s", out)
	}
	scaleAgent(t, "prod-us", 1)
	o.everywhere(2)
}

// TestClusterComesAndGoes joins a cluster after a rollout ended, and removes it
// while the next one runs.
func TestClusterComesAndGoes(t *testing.T) {
	o := manage(t, "echo-late", func(s *v1alpha1.ManagedOperatorSpec) {
		s.Strategy.Waves[1].SortBy = "region" // the late one, of ap, comes first
	}, "1.0.0", "1.1.0")
	o.everywhere(1)
	if err := shared.Join(t.Context(), spare); err != nil {
		t.Fatal(err)
	}
	o.rollout(1, "joined by the late cluster",
		func(ro *v1alpha1.OperatorRollout) bool { return ro.Status.Clusters.Succeeded == 4 })

	scaleAgent(t, spare.Name, 0)
	o.change(func(s *v1alpha1.ManagedOperatorSpec) {
		s.Version = "1.1.0"
		s.Strategy.Waves[0].Soak = &metav1.Duration{Duration: 3 * time.Second}
	})
	o.rollout(2, "under way",
		func(ro *v1alpha1.OperatorRollout) bool { return ro.Status.Phase == v1alpha1.RolloutProgressing })
	out, exit := o.bellwether("fleet", "remove", spare.Name, "--yes", "--timeout", "5m")
	if exit != 0 {
		t.Fatalf("fleet remove: exit %d\n%s", exit, out)
	}
	o.rollout(2, "on the three that stay", func(ro *v1alpha1.OperatorRollout) bool {
		return ro.Status.Phase == v1alpha1.RolloutSucceeded && ro.Status.Clusters.Succeeded == 3
	})
}
