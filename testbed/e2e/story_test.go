// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

const (
	hubNamespace = "bellwether-system"
	// failingReconciles is the share of reconciles that fail on the clusters of a wave. Every second one of version
	// 1.2.0 does.
	failingReconciles = `sum(rate(controller_runtime_reconcile_errors_total{cluster=~"${clusters}",` +
		`namespace="${namespace}"}[1m])) / sum(rate(controller_runtime_reconcile_total{cluster=~"${clusters}",` +
		`namespace="${namespace}"}[1m]))`
)

// TestStory is the main job on one fleet: an operator is installed, upgraded in waves, backed up and restored; a bad
// version stops in its first wave, is rolled back, and pages once.
func TestStory(t *testing.T) {
	const name = "echo-story"
	o := manage(t, name, nil, "1.0.0", "1.1.0", "1.2.0")
	o.page()
	o.runsEverywhere(1, "1.0.0")
	o.greet("canary")

	o.change(func(s *v1alpha1.ManagedOperatorSpec) { s.Version = "1.1.0" })
	ro := o.runsEverywhere(2, "1.1.0")
	for _, wave := range ro.Status.Waves {
		want := v1alpha1.WaveVerified
		if wave.Total == 0 {
			want = v1alpha1.WaveSkipped
		}
		if wave.Phase != want {
			t.Errorf("wave %s of a rollout that succeeded is %s, want %s", wave.Name, wave.Phase, want)
		}
	}
	o.saveAndRestore("canary")

	o.change(func(s *v1alpha1.ManagedOperatorSpec) {
		s.Strategy.OnFailure = v1alpha1.FailureRollback
		s.Strategy.Waves[0].Gates = []v1alpha1.Gate{{Name: "reconciles", PromQL: &v1alpha1.PromQLGate{
			Query: failingReconciles, Operator: v1alpha1.LessThan, Threshold: "0.1",
			Window: &metav1.Duration{Duration: time.Minute},
		}}}
	})
	o.change(func(s *v1alpha1.ManagedOperatorSpec) { s.Version = "1.2.0" })
	o.phase(3, v1alpha1.RolloutRolledBack)
	o.phase(4, v1alpha1.RolloutSucceeded)
	for _, member := range platform.DefaultMembers() {
		o.runs(member.Name, "1.1.0")
	}
	if a := o.install("prod-eu").Spec.Admission; a.Revision != 2 {
		t.Errorf("prod-eu was admitted to revision %d, although the first wave had failed", a.Revision)
	}
	o.pagedOnce("1.2.0")
}

// runsEverywhere waits until a rollout has brought a version to every cluster.
func (o *operator) runsEverywhere(revision int64, version string) *v1alpha1.OperatorRollout {
	o.t.Helper()
	ro := o.everywhere(revision)
	for _, member := range platform.DefaultMembers() {
		o.runs(member.Name, version)
	}
	return ro
}

// runs waits until a cluster runs a version.
func (o *operator) runs(cluster, version string) {
	o.t.Helper()
	o.until(fmt.Sprintf("%s runs %s", cluster, version), func(context.Context) (bool, any) {
		installed := o.install(cluster).Status.Installed
		return installed != nil && installed.Version == version, installed
	})
}

// page has pages about this fleet go to the Events API, until the test ends.
func (o *operator) page() {
	o.t.Helper()
	key, err := shared.Events().RoutingKey(platform.PagingService)
	o.must(err)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: platform.PagingSecret,
			Labels: map[string]string{v1alpha1.LabelPagingSecret: "true"}},
		StringData: map[string]string{"routing-key": key},
	}
	policy := &v1alpha1.PagingPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: o.key.Name},
		Spec: v1alpha1.PagingPolicySpec{
			Scope: v1alpha1.PagingFleet, Pages: v1alpha1.PageTarget{Receivers: []string{"oncall"}},
			Receivers: []v1alpha1.PagingReceiver{{Name: "oncall", PagerDuty: &v1alpha1.PagerDutyReceiver{
				RoutingKey: v1alpha1.SecretKey{Name: secret.Name, Key: "routing-key"},
				URL:        shared.Events().URL() + pagerduty.EnqueuePath,
			}}},
		},
	}
	o.must(o.hub.Create(o.t.Context(), secret))
	o.must(o.hub.Create(o.t.Context(), policy))
	o.t.Cleanup(func() { o.remove(o.hub, policy, secret) })
	o.until("pages are routed", func(ctx context.Context) (bool, any) {
		if err := o.hub.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
			return false, err
		}
		return conditions.IsTrue(policy.Status.Conditions, v1alpha1.ConditionReady) && shared.Alertmanager() != nil,
			policy.Status
	})
}

// pagedOnce waits until somebody is paged about a version, and wants that to be the only page.
func (o *operator) pagedOnce(version string) {
	o.t.Helper()
	o.until("somebody is paged", func(context.Context) (bool, any) {
		ledger := shared.Events().Ledger()
		return ledger.Pages() > 0, ledger
	})
	ledger := shared.Events().Ledger()
	if len(ledger.Incidents) != 1 || ledger.Pages() != 1 || len(ledger.Anomalies) != 0 {
		o.t.Fatalf("want one incident that pages once: %+v", ledger)
	}
	said := ledger.Incidents[0].Last.Payload.Summary + fmt.Sprint(ledger.Incidents[0].Last.Payload.CustomDetails)
	for _, want := range []string{version, "/runbooks/", o.key.Name} {
		if !strings.Contains(said, want) {
			o.t.Errorf("the page does not say %q:\n%s", want, said)
		}
	}
}

// saveAndRestore takes a backup of the custom resources on a cluster, deletes one, and restores it.
func (o *operator) saveAndRestore(cluster string) {
	o.t.Helper()
	if out, exit := o.bellwether("backup", "create", cluster, o.key.Name); exit != 0 {
		o.t.Fatalf("backup create: exit %d\n%s", exit, out)
	}
	backups := &v1alpha1.OperatorBackupList{}
	o.must(o.hub.List(o.t.Context(), backups, client.InNamespace(v1alpha1.ClusterNamespace(cluster))))
	if len(backups.Items) != 1 {
		o.t.Fatalf("%d backups on %s, want 1", len(backups.Items), cluster)
	}
	local, es := o.on(cluster), o.greeter()
	o.must(local.Get(o.t.Context(), client.ObjectKeyFromObject(es), es))
	before := es.Spec
	o.remove(local, es)
	if out, exit := o.bellwether("backup", "restore", cluster, backups.Items[0].Name, "--cluster-kubeconfig",
		shared.Fleet.Cluster(cluster).Kubeconfig()); exit != 0 {
		o.t.Fatalf("backup restore: exit %d\n%s", exit, out)
	}
	restored := o.greeter()
	if err := local.Get(o.t.Context(), client.ObjectKeyFromObject(restored), restored); apierrors.IsNotFound(err) {
		o.t.Fatalf("EchoServer %s was not restored", restored.Name)
	} else {
		o.must(err)
	}
	if restored.Spec.Message != before.Message {
		o.t.Errorf("the restored EchoServer says %q, want %q", restored.Spec.Message, before.Message)
	}
}
