// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"errors"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/explain/olmv0"
)

func crashing() *explain.Downstream {
	d := &olmv0.Objects{
		Namespace:     "echo",
		CatalogSource: &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Name: "echo-view"}},
		Subscription:  &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Name: "echo"}},
		InstallPlan:   &operatorsv1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Name: "install-x7"}},
		CSV: &operatorsv1alpha1.ClusterServiceVersion{
			ObjectMeta: metav1.ObjectMeta{Name: "echo-operator.v1.1.0"}},
	}
	d.CatalogSource.Spec.Address = "10.0.0.7:50100"
	d.CatalogSource.Status.GRPCConnectionState = &operatorsv1alpha1.GRPCConnectionState{LastObservedState: "READY"}
	d.Subscription.Status.State = operatorsv1alpha1.SubscriptionStateUpgradePending
	d.Subscription.Status.InstalledCSV = "echo-operator.v1.0.0"
	d.Subscription.Status.CurrentCSV = "echo-operator.v1.1.0"
	d.InstallPlan.Spec = operatorsv1alpha1.InstallPlanSpec{Approved: true,
		ClusterServiceVersionNames: []string{"echo-operator.v1.1.0"}}
	d.InstallPlan.Status.Phase = operatorsv1alpha1.InstallPlanPhaseComplete
	d.CSV.Status.Phase = operatorsv1alpha1.CSVPhaseFailed
	d.CSV.Status.Reason = operatorsv1alpha1.CSVReasonInstallCheckFailed
	d.CSV.Status.Message = "install timeout"
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "echo-operator-7d9",
		CreationTimestamp: fixture.Ago(4 * time.Minute)}}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse,
		Message: "containers with unready status: [manager]"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "manager", RestartCount: 5,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff",
			Message: "back-off 2m40s restarting failed container"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1,
			Message: "cannot parse flag -greeting"}},
	}}
	d.Deployments = []explain.Deployment{{
		Name: "echo-operator", Pods: []corev1.Pod{pod},
		Deployment: &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable",
			Message: "Deployment does not have minimum availability.",
		}}}},
	}, {Name: "echo-webhook"}}
	return &explain.Downstream{Links: d.Links()}
}

func TestWhy(t *testing.T) {
	clusters := fixture.FleetOfFour()
	healthy, failed, waiting := fixture.UpdatedInstall("prod-1", "prod"), fixture.FailingInstall("prod-2", "prod"),
		fixture.WaitingInstall("prod-3", "prod")
	done, ready := fixture.HaltedRollout(), fixture.Operator()
	done.Status.Phase, done.Status.Waves[1].Phase = v1alpha1.RolloutSucceeded, v1alpha1.WaveVerified
	done.Status.Conditions = []metav1.Condition{fixture.Condition(v1alpha1.ConditionReady, true,
		v1alpha1.ReasonSucceeded, "4 of 4 clusters updated")}
	ready.Status.Conditions = []metav1.Condition{fixture.Condition(v1alpha1.ConditionReady, true,
		v1alpha1.ReasonSucceeded, "4 of 4 clusters run 1.1.0")}
	gated := fixture.HaltedRollout()
	gated.Status.Phase, gated.Status.CurrentWave = v1alpha1.RolloutProgressing, "rest"
	gated.Status.Waves[2].Phase = v1alpha1.WaveGated
	gated.Status.Message = "wave rest waits for an approval"
	gated.Status.Conditions = []metav1.Condition{fixture.Condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonGated,
		"wave rest waits for an approval")}
	gatedInstall := fixture.WaitingInstall("prod-1", "rest")
	unknown := fixture.Operator()
	unknown.Status.Conditions = []metav1.Condition{
		fixture.Condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonUnknownVersion, "no such version 1.9.0"),
		fixture.Condition(v1alpha1.ConditionStalled, true, v1alpha1.ReasonUnknownVersion, "no such version 1.9.0"),
	}
	elsewhere := fixture.Operator()
	elsewhere.Spec.ClusterSelector = metav1.LabelSelector{MatchLabels: map[string]string{"region": "ap"}}
	slow := fixture.FailingInstall("prod-2", "prod")
	slow.Status.Conditions = []metav1.Condition{fixture.Condition(v1alpha1.ConditionReady, false,
		v1alpha1.ReasonProgressing,
		"echo-operator.v1.1.0 is Installing")}
	slow.Spec.Admission.AdmittedAt = fixture.Ago(11 * time.Minute)
	for name, test := range map[string]struct {
		in    explain.InstallInput
		style term.Style
	}{
		"healthy": {in: explain.InstallInput{Cluster: &clusters[1], Operator: ready, Rollout: done, Install: &healthy}},
		"updated and halted by others": {in: explain.InstallInput{Cluster: &clusters[1], Operator: fixture.Operator(),
			Rollout: fixture.HaltedRollout(), Install: &healthy}},
		"failed": {in: explain.InstallInput{Cluster: &clusters[2], Operator: fixture.Operator(),
			Rollout: fixture.HaltedRollout(), Install: &failed}},
		"crashing": {in: explain.InstallInput{Cluster: &clusters[2], Operator: fixture.Operator(),
			Rollout: fixture.HaltedRollout(), Install: &failed, Downstream: crashing()}, style: term.Style{Width: 100}},
		"late": {in: explain.InstallInput{Cluster: &clusters[2], Operator: fixture.Operator(),
			Rollout: fixture.HaltedRollout(), Install: &slow}, style: term.Style{Width: 80}},
		"unreadable": {in: explain.InstallInput{Cluster: &clusters[2], Operator: fixture.Operator(),
			Rollout: fixture.HaltedRollout(), Install: &failed,
			Downstream: &explain.Downstream{Err: errors.New("connection refused")}}},
		"offline": {in: explain.InstallInput{Cluster: &clusters[3], Operator: fixture.Operator(),
			Rollout: fixture.HaltedRollout(), Install: &waiting}},
		"gated": {in: explain.InstallInput{Cluster: &clusters[1], Operator: fixture.Operator(), Rollout: gated,
			Install: &gatedInstall}},
		"no version":   {in: explain.InstallInput{Cluster: &clusters[1], Operator: unknown}},
		"not selected": {in: explain.InstallInput{Cluster: &clusters[1], Operator: elsewhere}},
	} {
		t.Run(name, func(t *testing.T) {
			test.in.Now = fixture.Noon
			title := test.in.Operator.Name + " on " + test.in.Cluster.Name
			fixture.AssertGolden(t, "why-"+name,
				term.RenderExplanation(title, explain.Install(test.in), fixture.Noon, test.style))
		})
	}
}
