// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
	"github.com/bellwether-dev/bellwether/testbed/platform"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestObjectivesComeByThemselves manages an operator and nothing else: it has objectives, rules that are evaluated, a
// probe of its Service that succeeds, and good slices of every SLI. Then it breaks on one cluster, and that cluster
// alone has bad ones.
func TestObjectivesComeByThemselves(t *testing.T) {
	o := manage(t, "echo-slo", nil, "1.0.0")
	o.everywhere(1)
	for _, member := range platform.DefaultMembers() {
		o.greet(member.Name)
	}
	for _, member := range platform.DefaultMembers() {
		o.probed(member.Name, true)
	}
	o.rulesLoaded()
	good := map[string]bool{}
	for _, member := range platform.DefaultMembers() {
		for _, sli := range ofEcho() {
			good[member.Name+" "+sli] = false
		}
	}
	o.slices("all are good", func(bad map[string]bool) string { return cmp.Diff(good, bad) })
	o.sloGetShows("100 %")

	o.evict("canary")
	o.probed("canary", false)
	// A busy machine may give the others a bad slice for a moment. The canary's stay bad.
	o.slices("canary alone is bad", func(bad map[string]bool) string {
		for key, bad := range bad {
			if bad && !strings.HasPrefix(key, "canary ") {
				return key + " is bad, and nothing happened there"
			}
		}
		if bad["canary available"] && bad["canary probe:"+bundle.Service] {
			return ""
		}
		return fmt.Sprint("not yet: ", bad)
	})
	o.sloGetShows("canary") // the cluster that is bad
}

// sloGetShows waits until `bellwether slo get` shows a text. Budgets are recorded some time after the slices that they
// are made of.
func (o *operator) sloGetShows(text string) {
	o.t.Helper()
	testenv.Eventually(o.t, patience, "slo get shows "+text, func(context.Context) error {
		if out, exit := o.bellwether("slo", "get", "echo-slo"); exit != 0 || !strings.Contains(out, text) {
			return fmt.Errorf("exit %d\n%s", exit, out)
		}
		return nil
	})
}

// ofEcho are the SLIs that have slices for the sample operator: it has no webhook and no limits, and there are no
// kubelets.
func ofEcho() []string {
	slis := []string{slo.Probe + bundle.Service}
	for _, sli := range slo.SLIs() {
		if !slices.Contains([]string{slo.Probe, "webhook", slo.CustomResources, slo.Memory, slo.Throttling,
			slo.Storage},
			sli.Name) {
			slis = append(slis, sli.Name)
		}
	}
	return slis
}

// until polls, and fails the test with what check last said.
func (o *operator) until(what string, check func(context.Context) (done bool, state any)) {
	o.t.Helper()
	var last any
	defer testenv.Waited(o.t, what)()
	err := wait.PollUntilContextTimeout(o.t.Context(), look, patience, true, func(ctx context.Context) (bool, error) {
		done, state := check(ctx)
		if ctx.Err() == nil {
			last = state
		}
		return done, nil
	})
	if err != nil {
		o.t.Fatalf("%s: %v; last seen: %+v", what, err, last)
	}
}

func (o *operator) on(cluster string) client.Client {
	o.t.Helper()
	c, err := shared.Client(cluster, platform.Scheme())
	o.must(err)
	return c
}

// greet gives the operator something to reconcile.
func (o *operator) greet(cluster string) {
	o.t.Helper()
	c, es := o.on(cluster), o.greeter()
	o.must(c.Create(o.t.Context(), es))
	o.t.Cleanup(func() { o.remove(c, es) })
}

// greeter is what the operator reconciles.
func (o *operator) greeter() *echov1alpha1.EchoServer {
	return &echov1alpha1.EchoServer{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.key.Name, Name: "hello"},
		Spec:       echov1alpha1.EchoServerSpec{Message: "hello", Replicas: ptr.To(int32(1))},
	}
}

// probed waits until the probe of the operator's Service succeeds, or fails.
func (o *operator) probed(cluster string, want bool) {
	o.t.Helper()
	c := o.on(cluster)
	o.until(fmt.Sprintf("probe of %s on %s succeeds: %t", bundle.Service, cluster, want),
		func(ctx context.Context) (bool, any) {
			var probes v1alpha1.EndpointProbeList
			if err := c.List(ctx, &probes, client.InNamespace(o.key.Name)); err != nil || len(probes.Items) != 1 {
				return false, fmt.Sprintf("%d probes (%v)", len(probes.Items), err)
			}
			p := &probes.Items[0]
			success := conditions.Get(p.Status.Conditions, v1alpha1.ConditionSuccess).Status
			failed := success == metav1.ConditionFalse && p.Status.LastFailure != nil &&
				p.Status.LastFailure.Reason != ""
			return p.ProbeName() == bundle.Service && (want && success == metav1.ConditionTrue || !want && failed),
				p.Status
		})
}

// rulesLoaded waits until the hub has seen in Prometheus that the rules are evaluated.
func (o *operator) rulesLoaded() {
	o.t.Helper()
	o.until("rules are loaded", func(ctx context.Context) (bool, any) {
		s := &v1alpha1.OperatorSLO{}
		if err := o.hub.Get(ctx, o.key, s); err != nil {
			return false, err
		}
		return conditions.IsTrue(s.Status.Conditions, v1alpha1.ConditionRulesLoaded), s.Status
	})
}

// slices waits until the newest slice of each SLI is as wanted: whether it was bad, by "CLUSTER SLI". The answer of
// differs is what is wrong with them.
func (o *operator) slices(what string, differs func(bad map[string]bool) string) {
	o.t.Helper()
	o.until("slices: "+what, func(ctx context.Context) (bool, any) {
		found, err := shared.Prometheus().Query(ctx, fmt.Sprintf("%s{operator_namespace=%q,operator=%q}", series.SLIBad,
			o.key.Namespace, o.key.Name), time.Time{})
		if err != nil {
			return false, err
		}
		bad := map[string]bool{}
		for _, sample := range found {
			bad[string(sample.Metric[series.Cluster])+" "+string(sample.Metric[series.SLI])] = sample.Value != 0
		}
		difference := differs(bad)
		return difference == "", difference
	})
}

// evict takes the operator's pod away on a cluster and lets none come back, until the test ends.
func (o *operator) evict(cluster string) {
	o.t.Helper()
	c, quota := o.on(cluster), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.key.Name, Name: "no-pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}
	o.must(c.Create(o.t.Context(), quota))
	o.t.Cleanup(func() { o.remove(c, quota) })
	o.until("quota is in force", func(ctx context.Context) (bool, any) {
		err := refusesPods(ctx, c, o.key.Name)
		return err == nil, err
	})
	o.must(c.DeleteAllOf(o.t.Context(), &corev1.Pod{}, client.InNamespace(o.key.Name),
		client.MatchingLabels{"app.kubernetes.io/name": "echo-operator"}))
}
