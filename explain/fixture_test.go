// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

func agoPtr(d time.Duration) *metav1.Time {
	t := ago(d)
	return &t
}

// set sets a condition that was observed with generation 1, two minutes ago.
func set(to *[]metav1.Condition, kind string, status bool, reason, message string) {
	conditions.Set(to, 1, kind, status, reason, message)
	for i := range *to {
		(*to)[i].LastTransitionTime = ago(2 * time.Minute)
	}
}

// stall makes an object stalled.
func stall(to *[]metav1.Condition, reason, message string) {
	conditions.Summarize(to, 1, conditions.Summary{State: conditions.Stalled, Reason: reason, Message: message})
	set(to, v1alpha1.ConditionReady, false, reason, message)
}

// notReady makes an object not Ready, and work on it.
func notReady(to *[]metav1.Condition, reason, message string) {
	conditions.Summarize(to, 1, conditions.Summary{State: conditions.InProgress, Reason: reason, Message: message})
	set(to, v1alpha1.ConditionReady, false, reason, message)
}

func release(version string) v1alpha1.Release {
	return v1alpha1.Release{Package: "echo-operator", Channel: "stable", Version: version,
		Bundle: "echo-operator.v" + version}
}

func cluster() *v1alpha1.FleetCluster {
	c := &v1alpha1.FleetCluster{}
	c.Name, c.Generation, c.Status.ObservedGeneration = "prod-1", 1, 1
	c.Labels = map[string]string{"env": "prod"}
	c.Status.Namespace = "bellwether-prod-1"
	c.Status.Versions = v1alpha1.ClusterVersions{Agent: "0.1.0", Kubernetes: "v1.36.3", OLM: "0.46.0"}
	set(&c.Status.Conditions, v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded, "the agent reports")
	set(&c.Status.Conditions, v1alpha1.ConditionOnline, true, v1alpha1.ReasonLeaseFresh, "the agent renews its Lease")
	set(&c.Status.Conditions, v1alpha1.ConditionAPIServerReachable, true, v1alpha1.ReasonAPIServerReachable, "")
	set(&c.Status.Conditions, v1alpha1.ConditionOLMAvailable, true, v1alpha1.ReasonSucceeded, "")
	return c
}

func operator() *v1alpha1.ManagedOperator {
	o := &v1alpha1.ManagedOperator{}
	o.Namespace, o.Name, o.Generation, o.Status.ObservedGeneration = "fleet", "echo", 1, 1
	o.Spec.Package, o.Spec.Catalog.Name = "echo-operator", "main"
	o.Spec.ClusterSelector = metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	o.Status.Target = &v1alpha1.TargetVersion{Version: "1.1.0", Bundle: "echo-operator.v1.1.0", Channel: "stable"}
	o.Status.Clusters = v1alpha1.ClusterCounts{Selected: 1, Updated: 1, Ready: 1}
	set(&o.Status.Conditions, v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded, "1 of 1 cluster runs 1.1.0")
	return o
}

func rollout() *v1alpha1.OperatorRollout {
	r := &v1alpha1.OperatorRollout{}
	r.Namespace, r.Name, r.UID, r.Generation, r.Status.ObservedGeneration = "fleet", "echo-2", "uid-2", 1, 1
	r.Spec = v1alpha1.OperatorRolloutSpec{Operator: v1alpha1.LocalReference{Name: "echo"}, Revision: 2,
		Release: release("1.1.0"), ClusterSelector: operator().Spec.ClusterSelector,
		Strategy: v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{{Name: "prod",
			Soak:     &metav1.Duration{Duration: 10 * time.Minute},
			Deadline: &metav1.Duration{Duration: 10 * time.Minute}}}}}
	r.Status.Phase, r.Status.PlanHash, r.Status.ReleaseHash = v1alpha1.RolloutSucceeded, "plan", release("1.1.0").Hash()
	r.Status.Message = "1 of 1 cluster updated"
	r.Status.Clusters = v1alpha1.WaveCounts{Total: 1, Succeeded: 1}
	r.Status.Waves = []v1alpha1.WaveStatus{{Name: "prod", Phase: v1alpha1.WaveVerified, VerifiedAt: agoPtr(time.Minute),
		UpdatedAt: agoPtr(2 * time.Minute), WaveCounts: r.Status.Clusters}}
	set(&r.Status.Conditions, v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded, "1 of 1 cluster updated")
	return r
}

func install() *v1alpha1.OperatorInstall {
	i := &v1alpha1.OperatorInstall{}
	i.Namespace, i.Name, i.Generation, i.Status.ObservedGeneration = "bellwether-prod-1", "fleet.echo", 1, 1
	i.Labels = map[string]string{v1alpha1.LabelRollout: "echo-2", v1alpha1.LabelWave: "prod"}
	i.Spec.Cluster, i.Spec.Operator = "prod-1", v1alpha1.OperatorReference{Namespace: "fleet", Name: "echo"}
	i.Spec.Admission = &v1alpha1.Admission{Rollout: "echo-2", RolloutUID: "uid-2", Revision: 2, Wave: "prod",
		Hash: release("1.1.0").Hash(), AdmittedAt: ago(4 * time.Minute), Release: release("1.1.0")}
	i.Status.ObservedRevision = 2
	i.Status.Installed = &v1alpha1.InstalledVersion{Bundle: "echo-operator.v1.1.0", Version: "1.1.0"}
	i.Status.SucceededHash, i.Status.SucceededAt = release("1.1.0").Hash(), agoPtr(2*time.Minute)
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionCatalogServed, v1alpha1.ConditionResolved,
		v1alpha1.ConditionPlanApproved, v1alpha1.ConditionInstalled} {
		set(&i.Status.Conditions, kind, true, v1alpha1.ReasonSucceeded, "")
	}
	set(&i.Status.Conditions, v1alpha1.ConditionDrifted, false, v1alpha1.ReasonInSync, "")
	return i
}

func catalog() *v1alpha1.OperatorCatalog {
	c := &v1alpha1.OperatorCatalog{}
	c.Namespace, c.Name, c.Generation, c.Status.ObservedGeneration = "fleet", "main", 1, 1
	c.Status.Digest, c.Status.PackageCount = "sha256:0123", 1
	set(&c.Status.Conditions, v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded, "")
	return c
}

func objectivesOf() *v1alpha1.OperatorSLO {
	s := &v1alpha1.OperatorSLO{}
	s.Namespace, s.Name, s.Generation, s.Status.ObservedGeneration = "fleet", "echo", 1, 1
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionFeasible, v1alpha1.ConditionRulesLoaded} {
		set(&s.Status.Conditions, kind, true, v1alpha1.ReasonSucceeded, "")
	}
	return s
}

// deployment with one replica that is available.
func deployment() Deployment {
	d := Deployment{Name: "echo-operator", Deployment: &appsv1.Deployment{}}
	d.Deployment.Namespace, d.Deployment.Name = "echo-operator", "echo-operator"
	d.Deployment.Status.AvailableReplicas = 1
	p := corev1.Pod{}
	p.Namespace, p.Name, p.Status.Phase = "echo-operator", "echo-operator-7d9", corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", Ready: true}}
	d.Pods = []corev1.Pod{p}
	return d
}

// unavailable makes a pod's container wait for a reason.
func unavailable(reason, message string) Deployment {
	d := deployment()
	d.Deployment.Status.AvailableReplicas = 0
	d.Pods[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse,
		LastTransitionTime: ago(time.Minute), Message: "containers with unready status: [manager]"}}
	d.Pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", RestartCount: 5,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1,
			Reason: "Error", Message: "cannot parse flag -greeting"}}}}
	return d
}

// healthyInstall is an install whose data is complete and that is as specified.
func healthyInstall() InstallInput {
	whole := 1.0
	probe := v1alpha1.EndpointProbe{}
	probe.Namespace, probe.Name = "echo-operator", "echo"
	set(&probe.Status.Conditions, v1alpha1.ConditionSuccess, true, v1alpha1.ReasonSucceeded, "")
	return InstallInput{Now: noon, Cluster: cluster(), Operator: operator(), Catalog: catalog(), Rollout: rollout(),
		Install: install(), Budgets: []Budget{{SLI: "available", Cluster: "prod-1", Left: &whole}},
		Downstream: &Downstream{Links: []Link{deployment().Link()}, Probes: []v1alpha1.EndpointProbe{probe}}}
}
