// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
)

const fromExec = `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
	"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
	"users": [{"name": "u", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh"}}}],
	"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`

// ofHive is a cluster that was discovered, and is not online.
func ofHive(name string) *v1alpha1.FleetCluster {
	c := clitest.Cluster(name, map[string]string{"env": "prod"})
	c.Spec.SourceRef = &v1alpha1.SourceReference{APIVersion: "hive.openshift.io/v1", Kind: "ClusterDeployment",
		Namespace: "hive", Name: name}
	c.Status.Conditions[0].Status = metav1.ConditionFalse
	c.Status.Source = &v1alpha1.ClusterSource{State: v1alpha1.SourcePresent, PowerState: v1alpha1.PowerRunning}
	return c
}

func deployment(name string) client.Object {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterMetadata": map[string]any{
		"adminKubeconfigSecretRef": map[string]any{"name": name + "-admin"}}}}}
	u.SetAPIVersion("hive.openshift.io/v1")
	u.SetKind("ClusterDeployment")
	u.SetNamespace("hive")
	u.SetName(name)
	return u
}

func secret(name, kubeconfig string) client.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hive", Name: name + "-admin"},
		Data: map[string][]byte{"kubeconfig": []byte(kubeconfig)}}
}

// TestJoinDiscoveredRefuses has one cluster for each reason why a cluster cannot be joined.
func TestJoinDiscoveredRefuses(t *testing.T) {
	odd, profile := ofHive("odd"), ofHive("profile")
	odd.Spec.SourceRef.Kind = "ClusterPool"
	profile.Spec.SourceRef.APIVersion, profile.Spec.SourceRef.Kind = "multicluster.x-k8s.io/v1alpha1", "ClusterProfile"
	inventory := &unstructured.Unstructured{}
	inventory.SetAPIVersion(profile.Spec.SourceRef.APIVersion)
	inventory.SetKind("ClusterProfile")
	inventory.SetNamespace("hive")
	inventory.SetName("profile")
	h := clitest.NewHub(clitest.Cluster("by-hand", nil), odd, profile, inventory, ofHive("gone"),
		ofHive("new"), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "hive.openshift.io/v1",
			"kind": "ClusterDeployment", "metadata": map[string]any{"namespace": "hive", "name": "new"}}},
		ofHive("no-secret"), deployment("no-secret"),
		ofHive("empty"), deployment("empty"), secret("empty", ""),
		ofHive("exec"), deployment("exec"), secret("exec", fromExec),
		ofHive("rubbish"), deployment("rubbish"), secret("rubbish", "{token: hunter2"))
	for name, want := range map[string]string{
		"by-hand":   "was not discovered",
		"odd":       "no kubeconfig that is known",
		"profile":   "bellwether runs no programs",
		"gone":      "get ClusterDeployment hive/gone",
		"new":       "adminKubeconfigSecretRef is not set",
		"no-secret": "Secret hive/no-secret-admin",
		"empty":     `has no "kubeconfig"`,
		"exec":      `the kubeconfig is refused: user "u": exec would run a program`,
		"rubbish":   "it is no kubeconfig",
		"nobody":    `there is no cluster "nobody"`,
	} {
		t.Run(name, func(t *testing.T) {
			got := h.Run(t, "fleet", "join-discovered", name)
			if got.Code == 0 || !strings.Contains(got.Err, want) || strings.Contains(got.Err, "hunter2") {
				t.Errorf("%d %q, want %q", got.Code, got.Err, want)
			}
		})
	}
}

func TestJoinDiscoveredTogether(t *testing.T) {
	online, asleep, moving := ofHive("online"), ofHive("asleep"), ofHive("moving")
	online.Status.Conditions[0].Status = metav1.ConditionTrue
	asleep.Status.Source.PowerState = v1alpha1.PowerHibernating
	asleep.Status.Conditions = append(asleep.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionHibernating,
		Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonHibernating})
	moving.Status.Source.State = v1alpha1.SourceRelocating
	objects := []client.Object{clitest.Cluster("by-hand", nil), online, asleep, moving}
	h := clitest.NewHub(objects...)
	got := h.Run(t, "fleet", "join-discovered", "--all")
	for _, want := range []string{"1 discovered cluster already online: left alone", "1 discovered cluster hibernating",
		"whose source is relocating", "There is no discovered cluster to join"} {
		if got.Code != 0 || !strings.Contains(got.Out, want) {
			t.Errorf("%d %q, want %q", got.Code, got.Out, want)
		}
	}
	h = clitest.NewHub(append(objects, ofHive("exec"), deployment("exec"), secret("exec", fromExec),
		ofHive("gone"))...)
	got = h.Run(t, "fleet", "join-discovered", "--all", "--parallel", "2")
	for _, want := range []string{"✗ exec: ", "✗ gone: ", "of 2)"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("%q, want %q", got.Out, want)
		}
	}
	if got.Code == 0 || !strings.Contains(got.Err, "2 of 2 clusters were not joined: exec, gone") {
		t.Errorf("%d %q", got.Code, got.Err)
	}
	for _, args := range [][]string{{}, {"--all", "a"}, {"a", "-l", "x=y"}, {"a", "--parallel", "0"}} {
		if got := h.Run(t, append([]string{"fleet", "join-discovered"}, args...)...); got.Code == 0 {
			t.Errorf("%v is accepted: %s", args, got.Out)
		}
	}
}

// TestPowerStateThatIsNotBelieved checks the text about a running cluster whose source reports that it does not run.
func TestPowerStateThatIsNotBelieved(t *testing.T) {
	c := ofHive("stuck")
	c.Status.Source.PowerState = v1alpha1.PowerResuming
	hibernating := metav1.Condition{Type: v1alpha1.ConditionHibernating, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonPowerUnknown}
	c.Status.Conditions = append(c.Status.Conditions, hibernating)
	got := clitest.NewHub(c).Run(t, "fleet", "get", "stuck")
	want := "Resuming (not believed, because it has lasted for more than 30 minutes: the cluster counts as running)"
	if !strings.Contains(got.Out, want) {
		t.Errorf("%q is not in\n%s", want, got.Out)
	}
	if got := clitest.NewHub(c).Run(t, "fleet", "list"); strings.Contains(got.Out, "Resuming") {
		t.Errorf("the list takes the cluster for one that does not run:\n%s", got.Out)
	}
	hibernating.Status, hibernating.Reason = metav1.ConditionTrue, v1alpha1.ReasonHibernating
	c.Status.Conditions[len(c.Status.Conditions)-1] = hibernating
	if got := clitest.NewHub(c).Run(t, "fleet", "list"); !strings.Contains(got.Out, "Resuming") {
		t.Errorf("the list does not tell that the cluster is resumed:\n%s", got.Out)
	}
}
