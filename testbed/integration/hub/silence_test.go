// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/silences"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/hub/silence"
	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const goodSilence = `
apiVersion: bellwether.dev/v1alpha1
kind: AlertSilence
metadata: {name: work}
spec: {owner: anna, reason: disk is replaced, operators: [echo], start: "2026-01-05T22:00:00Z",` +
	` end: "2026-01-05T23:00:00Z"}`

// anAlertmanager notifies nobody.
func anAlertmanager(t *testing.T) *alertmanager.Server {
	t.Helper()
	paths, err := build.Ensure(t.Context(), t.Output(), build.Alertmanager)
	must(t, err)
	s, err := alertmanager.Start(t.Context(), alertmanager.Options{Dir: t.TempDir(), Binary: paths[build.Alertmanager],
		Config: []byte("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")})
	must(t, err)
	t.Cleanup(func() { s.Stop(context.Background()) })
	return s
}

// TestSilences has silences of a person and of the hub's own, with the permissions that the chart gives the hub.
func TestSilences(t *testing.T) {
	t.Parallel()
	server := anAlertmanager(t)
	h := &harness{scheme: runtime.NewScheme(), whole: true,
		silence: silence.Options{Alertmanager: api.Endpoint{URL: server.URL()}, Max: 12 * time.Hour}}
	h.prepare(t, testenv.Cluster(t, cluster.Options{}))
	h.startHub(t)
	t.Cleanup(func() { h.stop() })
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "payments")
	h.longSilencesAreRefused(t, namespace)
	t.Run("validation", func(t *testing.T) { h.silenceValidation(t, namespace) })

	of := &v1alpha1.AlertSilence{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "work"},
		Spec: v1alpha1.AlertSilenceSpec{Owner: "anna", Reason: "disk is replaced", Operators: []string{"echo"},
			End: metav1.NewTime(time.Now().Add(13 * time.Hour))}}
	must(t, h.Create(t.Context(), of))
	h.reaches(t, of, "Stalled EndTooLate", "--max-silence")
	h.change(t, of, func() { of.Spec.End = metav1.NewTime(time.Now().Add(time.Hour)) })
	h.reaches(t, of, "True InForce", "no user is notified until")
	eventually(t, func() error {
		return silenced(t, server, `bellwether: anna`, `disk is replaced (AlertSilence `+namespace+`/work)`)
	})
	server.Stop(t.Context())
	h.reaches(t, of, "False AlertmanagerUnreachable", "Alertmanager at")
	h.timeIsExcluded(t, namespace)
	must(t, server.Restart(t.Context()))
	h.reaches(t, of, "True InForce")

	elsewhere := &v1alpha1.AlertSilence{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "elsewhere"},
		Spec: v1alpha1.AlertSilenceSpec{Owner: "anna", Reason: "move", Scope: v1alpha1.SilenceFleet,
			End: metav1.NewTime(time.Now().Add(time.Hour)), Clusters: &v1alpha1.SilencedClusters{Names: []string{"a"}}}}
	must(t, h.Create(t.Context(), elsewhere))
	h.reaches(t, elsewhere, "Stalled InvalidSpec", "must be in namespace "+hubNamespace)

	must(t, h.Delete(t.Context(), of))
	eventually(t, func() error {
		if err := silenced(t, server, "anna", ""); err == nil {
			return errNotYet
		}
		return nil
	})
	h.removalIsSilenced(t)
}

// timeIsExcluded has a silence that excludes time from error budgets, without an Alertmanager, until it is ended.
func (h *harness) timeIsExcluded(t *testing.T, namespace string) {
	const metric = "bellwether_slo_budget_excluded"
	maintained := fleetCluster("maintained")
	h.join(t, maintained)
	h.install(t, maintained.Name, v1alpha1.OperatorReference{Namespace: namespace, Name: "ledger"})
	h.install(t, maintained.Name, v1alpha1.OperatorReference{Namespace: namespace, Name: "other"})
	if n, err := testutil.GatherAndCount(h.metrics, metric); n != 0 || err != nil {
		t.Errorf("%d series before there is such a silence, %v", n, err)
	}
	excluding := &v1alpha1.AlertSilence{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "excluding"},
		Spec: v1alpha1.AlertSilenceSpec{Owner: "anna", Reason: "storage\nis moved", Operators: []string{"ledger"},
			Clusters: &v1alpha1.SilencedClusters{Names: []string{maintained.Name}}, ExcludeFromBudgets: true,
			End: metav1.NewTime(time.Now().Add(time.Hour))}}
	must(t, h.Create(t.Context(), excluding))
	want := fmt.Sprintf("# HELP %[1]s 1 while a silence excludes time in which an operator is bad on a cluster from "+
		"its error budgets.\n# TYPE %[1]s gauge\n%[1]s{cluster=\"maintained\",namespace=%[2]q,operator=\"ledger\","+
		"operator_namespace=%[2]q,owner=\"anna\",reason=\"storage is moved\",silence=\"excluding\"} 1\n", metric,
		namespace)
	eventually(t, func() error { return testutil.GatherAndCompare(h.metrics, strings.NewReader(want), metric) })

	for name, change := range map[string]func(*v1alpha1.AlertSilenceSpec){
		"the reason":   func(s *v1alpha1.AlertSilenceSpec) { s.Reason = "something else" },
		"the owner":    func(s *v1alpha1.AlertSilenceSpec) { s.Owner = "otto" },
		"a later end":  func(s *v1alpha1.AlertSilenceSpec) { s.End = metav1.NewTime(s.End.Add(time.Hour)) },
		"operators":    func(s *v1alpha1.AlertSilenceSpec) { s.Operators = append(s.Operators, "other") },
		"all clusters": func(s *v1alpha1.AlertSilenceSpec) { s.Clusters = nil },
		"no exclusion": func(s *v1alpha1.AlertSilenceSpec) { s.ExcludeFromBudgets = false },
	} {
		must(t, h.Get(t.Context(), client.ObjectKeyFromObject(excluding), excluding))
		changed := excluding.DeepCopy()
		change(&changed.Spec)
		expect(t, h.Patch(t.Context(), changed, client.MergeFrom(excluding), client.DryRunAll),
			"make another AlertSilence")
		if t.Failed() {
			t.Fatalf("%s could be changed", name)
		}
	}
	h.change(t, excluding, func() { excluding.Spec.End = metav1.NewTime(time.Now().Add(-time.Second)) })
	eventually(t, func() error {
		if n, err := testutil.GatherAndCount(h.metrics, metric); n != 0 || err != nil {
			return errors.Join(fmt.Errorf("%w: %d series after the end", errNotYet, n), err)
		}
		return nil
	})
	h.reaches(t, excluding, "True Ended")
	if got := conditions.Get(excluding.Status.Conditions, v1alpha1.ConditionBudgetsExcluded); got.Reason !=
		v1alpha1.ReasonEnded {
		t.Errorf("the condition says %s (%s) after the end", got.Reason, got.Message)
	}
}

// removalIsSilenced has a cluster that is being removed.
func (h *harness) removalIsSilenced(t *testing.T) {
	leaving := fleetCluster("leaving")
	leaving.Spec.Offboarding = v1alpha1.RemovalUninstall // its agent, which never answers, is waited for
	a := h.join(t, leaving)
	install := h.install(t, leaving.Name, v1alpha1.OperatorReference{Namespace: "team", Name: "echo"})
	a.hold(t, install)
	must(t, h.Delete(t.Context(), leaving))
	own := &v1alpha1.AlertSilence{}
	eventually(t, func() error {
		var all v1alpha1.AlertSilenceList
		if err := h.List(t.Context(), &all, client.InNamespace(hubNamespace),
			client.MatchingLabels{v1alpha1.LabelAutomaticSilence: silences.CauseRemoval}); err != nil {
			return err
		}
		if len(all.Items) != 1 {
			return fmt.Errorf("%d silences of removed clusters, want 1", len(all.Items))
		}
		all.Items[0].DeepCopyInto(own)
		return nil
	})
	h.reaches(t, own, "True InForce")
	checkApplied(t, "silence", own)
	h.sweep(leaving)
	h.gone(t, own)
}

// silenced objects unless a silence is in force whose creator and comment begin so.
func silenced(t *testing.T, server *alertmanager.Server, by, comment string) error {
	c, err := api.Endpoint{URL: server.URL()}.Client()
	must(t, err)
	all, err := c.Silences(t.Context())
	if err != nil {
		return err
	}
	for _, s := range all {
		if strings.Contains(s.By, by) && strings.HasPrefix(s.Comment, comment) && s.Ends.After(time.Now()) {
			return nil
		}
	}
	return fmt.Errorf("silences %+v, want one by %s", all, by)
}

// longSilencesAreRefused waits until the chart's policy is in force. The hub of this test permits less than it.
func (h *harness) longSilencesAreRefused(t *testing.T, namespace string) {
	t.Helper()
	long := &v1alpha1.AlertSilence{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "long"},
		Spec: v1alpha1.AlertSilenceSpec{Owner: "anna", Reason: "weekend", Operators: []string{"echo"},
			End: metav1.NewTime(time.Now().Add(25 * time.Hour))}}
	eventually(t, func() error {
		err := h.Create(t.Context(), long.DeepCopy(), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "a silence may last 24h at most") {
			return fmt.Errorf("a silence of 25 hours: %w", cmp.Or(err, errNotYet))
		}
		return nil
	})
	long.Spec.End = metav1.NewTime(time.Now().Add(24 * time.Hour))
	if err := h.Create(t.Context(), long, client.DryRunAll); err != nil {
		t.Errorf("a silence of 24 hours: %v", err)
	}
}

func (h *harness) silenceValidation(t *testing.T, namespace string) {
	for name, test := range map[string]struct{ path, value, want string }{
		"good":              {"spec.alerts", "Tickets", ""},
		"clusters":          {"spec.clusters", "{names: [a], selector: {matchLabels: {site: eu}}}", ""},
		"no owner":          {"spec.owner", `" "`, "owner must not be empty"},
		"no reason":         {"spec.reason", `" "`, "reason must not be empty"},
		"ends before start": {"spec.end", `"2026-01-05T21:00:00Z"`, "end must be after start"},
		"fleet, operators":  {"spec.scope", "Fleet", "it has no operators"},
		"other alerts":      {"spec.alerts", "Pages", "Unsupported value"},
		"no clusters":       {"spec.clusters", "{}", "set names, selector or both"},
		"about nothing":     {"spec.operators", "null", "set operators, clusters or both"},
	} {
		object := parse(t, goodSilence, namespace)
		set(t, object, test.path, test.value)
		t.Run(name, func(t *testing.T) { expect(t, h.Create(t.Context(), object, client.DryRunAll), test.want) })
	}
}
