// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// leavingCluster has an agent that reports two operators and never answers again.
func (h *harness) leavingCluster(t *testing.T, name string, timeout time.Duration) (*v1alpha1.FleetCluster, *agent) {
	t.Helper()
	cluster := fleetCluster(name)
	cluster.Spec.Offboarding = v1alpha1.RemovalUninstall
	cluster.Spec.OffboardingTimeout = &metav1.Duration{Duration: timeout}
	a := h.join(t, cluster)
	a.goes(t)
	for _, name := range []string{"echo", "silent"} {
		install := h.install(t, cluster.Name, v1alpha1.OperatorReference{Namespace: "team", Name: name})
		a.hold(t, install)
		if name == "echo" {
			h.changeStatus(t, install, func() {
				install.Status.Installed = &v1alpha1.InstalledVersion{Bundle: "echo-operator.v1.2.0", Version: "1.2.0"}
			})
		}
	}
	h.reaches(t, cluster, "Stalled AgentOffline")
	return cluster, a
}

// record returns the one record of a cluster that left.
func (h *harness) record(t *testing.T, cluster string) *corev1.ConfigMap {
	t.Helper()
	var records corev1.ConfigMapList
	must(t, h.List(t.Context(), &records, client.MatchingLabels{v1alpha1.LabelLeftBehind: cluster}))
	if len(records.Items) != 1 {
		t.Fatalf("%d records of cluster %s, want 1", len(records.Items), cluster)
	}
	return &records.Items[0]
}

// TestOffboardingEnds: an agent that never answers holds a cluster for no longer than
// the limit, also where the hub is restarted meanwhile; what it leaves is listed.
func TestOffboardingEnds(t *testing.T) {
	h := start(t)
	cluster, a := h.leavingCluster(t, "never-answers", time.Hour)
	must(t, h.Delete(t.Context(), cluster))
	h.reaches(t, cluster, "Stalled AgentOffline", "team.echo, team.silent cannot be uninstalled")
	until := cluster.DeletionTimestamp.Add(time.Hour).UTC().Format(time.RFC3339)
	h.restartHub(t)
	holds(t, 2*time.Second, func() error { return h.is(t, cluster, "Stalled AgentOffline", "until "+until) })

	h.change(t, cluster, func() {
		age := time.Since(cluster.DeletionTimestamp.Time) + 2*time.Second
		cluster.Spec.OffboardingTimeout.Duration = age.Truncate(time.Second)
	})
	h.gone(t, cluster)
	h.gone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}})

	record := h.record(t, cluster.Name)
	want := "team.echo: echo-operator.v1.2.0\nteam.silent: no installed version reported"
	if got := record.Data["operators"]; got != want || record.Namespace != hubNamespace || !ptr.Deref(record.Immutable,
		false) {
		t.Errorf("%s/%s lists %q, want %q", record.Namespace, record.Name, got, want)
	}
	if !strings.Contains(record.Data["why"], "unreachable") || record.Data["lastReport"] == "" {
		t.Errorf("the record says %v", record.Data)
	}
	eventually(t, func() error { return h.wantEvent(t, cluster.Name, "LeftBehind", record.Name) })
	// The API server takes a token for some seconds after its ServiceAccount is gone.
	eventually(t, func() error {
		if err := a.renew(t.Context()); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("%w: a cluster that comes back is answered %q", errNotYet, apierrors.ReasonForError(err))
		}
		return nil
	})
}

// wantEvent objects unless an Event on a FleetCluster says something.
func (h *harness) wantEvent(t *testing.T, cluster, reason, says string) error {
	var events eventsv1.EventList
	if err := h.List(t.Context(), &events, client.InNamespace("default")); err != nil {
		return err
	}
	for _, e := range events.Items {
		if e.Regarding.Name == cluster && e.Reason == reason && strings.Contains(e.Note, says) {
			return nil
		}
	}
	return fmt.Errorf("%w: no Event %s on %s says %q", errNotYet, reason, cluster, says)
}

// TestOffboardingWithoutWaiting: with a limit of 0s also an agent that does answer is
// not waited for.
func TestOffboardingWithoutWaiting(t *testing.T) {
	h := start(t)
	cluster := fleetCluster("not-waited-for")
	cluster.Spec.Offboarding = v1alpha1.RemovalUninstall
	cluster.Spec.OffboardingTimeout = &metav1.Duration{}
	a := h.join(t, cluster)
	die := a.live(t)
	h.reaches(t, cluster, "True Succeeded")
	a.hold(t, h.install(t, cluster.Name, v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}))
	die()
	must(t, h.Delete(t.Context(), cluster))
	h.gone(t, cluster)
	if got := h.record(t, cluster.Name).Data["operators"]; !strings.HasPrefix(got, "team.echo: ") {
		t.Errorf("recorded: %q", got)
	}
}

// TestOffboardingLeavesForeignFinalizers: the hub takes away no finalizer that is not
// the agent's, and says which ones it waits for.
func TestOffboardingLeavesForeignFinalizers(t *testing.T) {
	h := start(t)
	const keep = "example.com/keep"
	cluster, a := h.leavingCluster(t, "kept", 0)
	install := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "team.echo"}}
	h.change(t, install, func() { install.Finalizers = append(install.Finalizers, keep) })
	backup := &v1alpha1.OperatorBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "echo-1", Finalizers: []string{keep}},
		Spec:       v1alpha1.OperatorBackupSpec{Operator: v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}},
	}
	must(t, h.Create(t.Context(), backup))
	must(t, h.Delete(t.Context(), cluster))
	h.reaches(t, cluster, "False Deleting", "team.echo (finalizers: example.com/keep)")
	h.gone(t, &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "team.silent"}})

	h.change(t, install, func() { install.Finalizers = nil })
	h.reaches(t, cluster, "False Deleting", "namespace bellwether-kept is being deleted", keep)
	h.change(t, backup, func() { backup.Finalizers = nil })
	h.gone(t, cluster)
}

// TestAgentsAddNoFinalizers: what an agent could keep for ever is bounded to its own
// finalizer, which the hub removes.
func TestAgentsAddNoFinalizers(t *testing.T) {
	h := start(t)
	cluster := fleetCluster("holds-on")
	a := h.join(t, cluster)
	must(t, a.renew(t.Context()))
	meta := metav1.ObjectMeta{Namespace: a.namespace, Name: "agent-000", Finalizers: []string{"example.com/keep"}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: v1alpha1.LeaseName}}
	must(t, a.Get(t.Context(), client.ObjectKeyFromObject(lease), lease))
	lease.Finalizers = meta.Finalizers
	for what, err := range map[string]error{
		"an updated Lease": a.Update(t.Context(), lease),
		"an Event": a.Create(t.Context(), &eventsv1.Event{ObjectMeta: meta, EventTime: metav1.NowMicro(),
			ReportingController: "bellwether.dev/agent", ReportingInstance: "test", Action: "Test", Reason: "Test",
			Type: "Normal", Regarding: corev1.ObjectReference{Namespace: a.namespace}}),
		"an OperatorBackup": a.Create(t.Context(), &v1alpha1.OperatorBackup{ObjectMeta: meta,
			Spec: v1alpha1.OperatorBackupSpec{Operator: v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}}}),
	} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "finalizers") {
			t.Errorf("%s with a finalizer: %v", what, errors.Join(err))
		}
	}
}
