// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/hub/fleet"
)

func fleetCluster(name string) *v1alpha1.FleetCluster {
	return &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestClusterJoinsAndIsMissed(t *testing.T) {
	h := start(t)
	cluster := fleetCluster("joins")
	a := h.join(t, cluster)
	a.lease = shortLease
	if diff := cmp.Diff("bellwether-joins", cluster.Status.Namespace); diff != "" {
		t.Errorf("namespace (-want +got):\n%s", diff)
	}
	die := a.live(t)
	h.reaches(t, cluster, "True Succeeded")
	want := v1alpha1.ClusterVersions{Agent: "test", Kubernetes: "v1.37.0", OLM: "0.46.0"}
	if diff := cmp.Diff(want, cluster.Status.Versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	holds(t, shortLease+time.Second, func() error { return h.is(t, cluster, "True Succeeded") })

	a.setOLM("")
	h.reaches(t, cluster, "Stalled OLMMissing", "install OLM")
	a.setOLM("0.47.0")
	h.reaches(t, cluster, "True Succeeded")

	a.loseAPIServer("2026-11-22T02:00:00Z")
	h.reaches(t, cluster, "Stalled APIServerUnreachable", "since 2026-11-22T02:00:00Z")
	a.loseAPIServer("")
	h.reaches(t, cluster, "True Succeeded")

	die()
	h.reaches(t, cluster, "Stalled AgentOffline", "has not renewed its Lease since")
	if conditions.IsTrue(cluster.Status.Conditions, v1alpha1.ConditionOnline) {
		t.Error("an offline cluster is Online")
	}
	die = a.live(t)
	defer die()
	h.reaches(t, cluster, "True Succeeded")
}

// TestHubThatWasBlind takes the API server away for longer than a Lease lasts.
func TestHubThatWasBlind(t *testing.T) {
	h := start(t)
	cluster := fleetCluster("blind")
	a := h.join(t, cluster)
	a.lease = shortLease
	defer a.live(t)()
	h.reaches(t, cluster, "True Succeeded")
	since := conditions.Get(cluster.Status.Conditions, v1alpha1.ConditionOnline).LastTransitionTime
	h.cluster.KillAPIServer()
	<-time.After(shortLease + time.Second) // impatient: the API server is away for so long
	must(t, h.cluster.RestartAPIServer(t.Context()))
	holds(t, shortLease+2*time.Second, func() error {
		if err := h.is(t, cluster, "True Succeeded"); err != nil {
			return err
		}
		if now := conditions.Get(cluster.Status.Conditions,
			v1alpha1.ConditionOnline).LastTransitionTime; !now.Equal(&since) {
			return fmt.Errorf("was offline between %s and %s", since, now)
		}
		return nil
	})
}

func TestTransitionsAreTold(t *testing.T) {
	h := start(t)
	cluster := fleetCluster("told")
	a := h.join(t, cluster)
	must(t, a.renew(t.Context()))
	h.reaches(t, cluster, "True Succeeded")
	a.loseAPIServer("2026-11-22T02:00:00Z")
	must(t, a.renew(t.Context()))
	h.reaches(t, cluster, "Stalled APIServerUnreachable")
	a.goes(t)
	h.reaches(t, cluster, "Stalled AgentOffline")
	want := []string{"Normal NeverJoined", "Normal Succeeded", "Warning APIServerUnreachable", "Warning AgentOffline"}
	eventually(t, func() error {
		var events eventsv1.EventList
		if err := h.List(t.Context(), &events, client.InNamespace("default")); err != nil {
			return err
		}
		text := map[string]bool{}
		for _, e := range events.Items {
			if e.Regarding.Kind == "FleetCluster" && e.Regarding.Name == cluster.Name {
				text[e.Type+" "+e.Reason] = true
			}
		}
		for _, event := range want {
			if !text[event] {
				return fmt.Errorf("%w: no Event %q among %v", errNotYet, event, text)
			}
		}
		return nil
	})
}

// TestVersionSkewIsTold: an agent more than one minor version away from the hub is a warning, until it is upgraded.
func TestVersionSkewIsTold(t *testing.T) {
	h := start(t)
	cluster := fleetCluster("skewed")
	a := h.join(t, cluster)
	defer a.live(t)()
	for _, step := range []struct{ agent, want string }{
		{"0.1.4", "AgentTooOld"}, {"0.2.0", v1alpha1.ReasonSucceeded}, {"0.5.0", "HubTooOld"}, {"devel", ""},
	} {
		a.setVersion(step.agent)
		eventually(t, func() error {
			if err := h.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
				return err
			}
			got := conditions.Get(cluster.Status.Conditions, v1alpha1.ConditionVersionSupported)
			if got.Reason != step.want || cluster.Status.Versions.Agent != step.agent {
				return fmt.Errorf("%w: with agent %s the reason is %q, want %q", errNotYet, step.agent, got.Reason,
					step.want)
			}
			return nil
		})
	}
	h.reaches(t, cluster, "True Succeeded")
	eventually(t, func() error { return h.wantEvent(t, cluster.Name, "AgentTooOld", "0.1.4") })
	eventually(t, func() error { return h.wantEvent(t, cluster.Name, "HubTooOld", "0.5.0") })
}

func TestRestartedHubKeepsWhatItKnew(t *testing.T) {
	h := start(t)
	online, offline := fleetCluster("restart-online"), fleetCluster("restart-offline")
	alive, dead := h.join(t, online), h.join(t, offline)
	alive.lease = shortLease
	defer alive.live(t)()
	dead.goes(t)
	h.reaches(t, online, "True Succeeded")
	h.reaches(t, offline, "Stalled AgentOffline")
	h.restartHub(t)
	holds(t, shortLease+time.Second, func() error {
		return errors.Join(h.is(t, online, "True Succeeded"), h.is(t, offline, "Stalled AgentOffline"))
	})
	dead.lease = longLease
	must(t, dead.renew(t.Context()))
	h.reaches(t, offline, "True Succeeded")
	dead.goes(t)
	h.reaches(t, offline, "Stalled AgentOffline")
}

func TestAccessIsRestored(t *testing.T) {
	h := start(t)
	cluster := fleetCluster("drifts")
	defer h.join(t, cluster).live(t)()
	h.reaches(t, cluster, "True Succeeded")
	key := client.ObjectKey{Namespace: cluster.Status.Namespace, Name: v1alpha1.AgentServiceAccount}
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}

	role := &rbacv1.Role{ObjectMeta: meta}
	h.change(t, role, func() {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"},
			Verbs: []string{"get"}})
	})
	eventually(t, func() error {
		if err := h.Get(t.Context(), key, role); err != nil {
			return err
		}
		if diff := cmp.Diff(fleet.AgentRules(), role.Rules); diff != "" {
			return fmt.Errorf("rules (-want +got):\n%s", diff)
		}
		return nil
	})
	must(t, h.Delete(t.Context(), role))
	eventually(t, func() error { return h.Get(t.Context(), key, &rbacv1.Role{}) })

	binding := &rbacv1.RoleBinding{ObjectMeta: meta}
	must(t, h.Delete(t.Context(), binding))
	binding = &rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}}
	if err := h.Create(t.Context(), binding); err == nil {
		t.Log("a foreign binding took the name")
	}
	eventually(t, func() error {
		if err := h.Get(t.Context(), key, binding); err != nil {
			return err
		}
		if binding.RoleRef.Name != v1alpha1.AgentServiceAccount || len(binding.Subjects) != 1 {
			return fmt.Errorf("%w: bound to %s for %d subjects", errNotYet, binding.RoleRef.Name, len(binding.Subjects))
		}
		return nil
	})
	h.reaches(t, cluster, "True Succeeded")
}

func TestForeignNamespaceIsLeftAlone(t *testing.T) {
	h := start(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bellwether-foreign"}}
	must(t, h.Create(t.Context(), namespace))
	cluster := fleetCluster("foreign")
	must(t, h.Create(t.Context(), cluster))
	t.Cleanup(func() { h.sweep(cluster) })
	h.reaches(t, cluster, "Stalled NamespaceConflict", "delete that namespace, or give the cluster another name")
	var accounts corev1.ServiceAccountList
	must(t, h.List(t.Context(), &accounts, client.InNamespace(namespace.Name)))
	for _, account := range accounts.Items {
		if account.Name == v1alpha1.AgentServiceAccount {
			t.Error("the hub wrote into a namespace that is not its own")
		}
	}
	must(t, h.Delete(t.Context(), namespace))
	h.reaches(t, cluster, "False NeverJoined")
}

func TestForeignNamespaceSurvivesTheCluster(t *testing.T) {
	h := start(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bellwether-survives"}}
	must(t, h.Create(t.Context(), namespace))
	cluster := fleetCluster("survives")
	must(t, h.Create(t.Context(), cluster))
	h.reaches(t, cluster, "Stalled NamespaceConflict")
	must(t, h.Delete(t.Context(), cluster))
	h.gone(t, cluster)
	must(t, h.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
	if namespace.DeletionTimestamp != nil {
		t.Error("the hub deleted a namespace that it did not make")
	}
}

func TestDeletedNamespaceIsMadeAnew(t *testing.T) {
	h := start(t)
	cluster := fleetCluster("renamespaced")
	a := h.join(t, cluster)
	die := a.live(t)
	h.reaches(t, cluster, "True Succeeded")
	a.hold(t, h.install(t, cluster.Name, v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}))
	// An API server takes a token for some seconds after it is gone: the agent could renew in the new namespace once.
	die()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Status.Namespace}}
	must(t, h.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
	old := namespace.UID
	must(t, h.Delete(t.Context(), namespace))
	eventually(t, func() error {
		var now corev1.Namespace
		if err := h.Get(t.Context(), client.ObjectKeyFromObject(namespace), &now); err != nil {
			return err
		}
		if now.UID == old {
			return fmt.Errorf("%w: the old namespace is still there", errNotYet)
		}
		return nil
	})
	h.reaches(t, cluster, "False NeverJoined")
}

func TestOffboarding(t *testing.T) {
	h := start(t)
	operator := v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}
	namespaceOf := func(c *v1alpha1.FleetCluster) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterNamespace(c.Name)}}
	}
	t.Run("an online agent carries the policy out", func(t *testing.T) {
		cluster := fleetCluster("leaves-online")
		cluster.Spec.Offboarding = v1alpha1.RemovalUninstall
		a := h.join(t, cluster)
		defer a.live(t)()
		h.reaches(t, cluster, "True Succeeded")
		install := h.install(t, cluster.Name, operator)
		a.hold(t, install)
		must(t, h.Delete(t.Context(), cluster))
		if policy := a.deleted(t, install).Spec.RemovalPolicy; policy != v1alpha1.RemovalUninstall {
			t.Errorf("the agent finds policy %s", policy)
		}
		h.reaches(t, cluster, "False Deleting", "team.echo")
		a.letGo(t, install)
		h.gone(t, cluster)
		h.gone(t, namespaceOf(cluster))
	})
	t.Run("an offline one is not waited for with Orphan", func(t *testing.T) {
		cluster := fleetCluster("leaves-offline")
		a := h.join(t, cluster)
		a.goes(t)
		a.hold(t, h.install(t, cluster.Name, operator))
		h.reaches(t, cluster, "Stalled AgentOffline")
		must(t, h.Delete(t.Context(), cluster))
		h.gone(t, cluster)
		h.gone(t, namespaceOf(cluster))
	})
	t.Run("an offline one is waited for with Uninstall", func(t *testing.T) {
		cluster := fleetCluster("leaves-waiting")
		cluster.Spec.Offboarding = v1alpha1.RemovalUninstall
		a := h.join(t, cluster)
		a.goes(t)
		a.hold(t, h.install(t, cluster.Name, operator))
		h.reaches(t, cluster, "Stalled AgentOffline")
		must(t, h.Delete(t.Context(), cluster))
		h.reaches(t, cluster, "Stalled AgentOffline", "team.echo cannot be uninstalled",
			"set spec.offboarding to Orphan")
		h.change(t, cluster, func() { cluster.Spec.Offboarding = v1alpha1.RemovalOrphan })
		h.gone(t, cluster)
		h.gone(t, namespaceOf(cluster))
	})
}

func TestOperatorCounts(t *testing.T) {
	h := start(t)
	cluster := fleetCluster("counts")
	a := h.join(t, cluster)
	defer a.live(t)()
	for i := range 3 {
		install := h.install(t, cluster.Name, v1alpha1.OperatorReference{Namespace: "team",
			Name: fmt.Sprintf("o%d", i)})
		if i > 0 {
			conditions.Summarize(&install.Status.Conditions, 1,
				conditions.Summary{State: conditions.Current, Reason: "Succeeded"})
			must(t, a.Status().Update(t.Context(), install))
		}
	}
	eventually(t, func() error {
		if err := h.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		want := v1alpha1.InstallCounts{Total: 3, Ready: 2, NotReady: 1}
		if diff := cmp.Diff(want, cluster.Status.Operators); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// TestPowerStateOfASource plays the discovery controller: the hub believes a source that a cluster is resumed, and no
// longer than 30 minutes.
func TestPowerStateOfASource(t *testing.T) {
	h := start(t)
	cluster := fleetCluster("resumed")
	a := h.join(t, cluster)
	must(t, a.renew(t.Context()))
	h.reaches(t, cluster, "True Succeeded")
	says := func(since time.Duration) {
		h.changeStatus(t, cluster, func() {
			cluster.Status.Source = &v1alpha1.ClusterSource{State: v1alpha1.SourcePresent,
				PowerState:      v1alpha1.PowerResuming,
				PowerStateSince: &metav1.Time{Time: time.Now().Add(-since).Truncate(time.Second)}}
		})
	}
	hibernating := func(want string) {
		t.Helper()
		eventually(t, func() error {
			if err := h.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
				return err
			}
			c := conditions.Get(cluster.Status.Conditions, v1alpha1.ConditionHibernating)
			if got := string(c.Status) + " " + c.Reason; got != want {
				return fmt.Errorf("condition Hibernating is %s, want %s", got, want)
			}
			return nil
		})
	}
	says(time.Minute)
	hibernating("True Hibernating")
	h.reaches(t, cluster, "True Succeeded", "rollouts skip this cluster")
	says(31 * time.Minute)
	hibernating("False PowerUnknown")
}
