// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// askForChangeEvents has the policy of the fleet send them to a service.
func (f *fixture) askForChangeEvents(events *pagerduty.Server, service string) (key string) {
	f.t.Helper()
	key, err := events.RoutingKey(service)
	must(f.t, err)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: f.namespace, Name: name} }
	secret := &corev1.Secret{ObjectMeta: meta("pagerduty"), StringData: map[string]string{"key": key}}
	secret.Labels = map[string]string{v1alpha1.LabelPagingSecret: "true"}
	policy := &v1alpha1.PagingPolicy{ObjectMeta: meta("platform"), Spec: v1alpha1.PagingPolicySpec{
		Scope: v1alpha1.PagingFleet, Pages: v1alpha1.PageTarget{Receivers: []string{"oncall"}},
		ChangeEvents: &v1alpha1.ChangeEventTarget{Receivers: []string{"oncall"}},
		Receivers: []v1alpha1.PagingReceiver{{Name: "oncall", PagerDuty: &v1alpha1.PagerDutyReceiver{
			RoutingKey: v1alpha1.SecretKey{Name: "pagerduty", Key: "key"}, URL: events.URL() + pagerduty.EnqueuePath}}},
	}}
	for _, object := range []client.Object{
		secret, policy,
		&rbacv1.Role{ObjectMeta: meta("secrets"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""},
			Resources: []string{"secrets"}, Verbs: []string{"get", "create", "patch"}}}},
		&rbacv1.RoleBinding{ObjectMeta: meta("secrets"),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "secrets"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: hubUser}}},
	} {
		must(f.t, f.Create(f.t.Context(), object))
	}
	return key
}

// delivered waits until the change event of a transition is in one of these states.
func (f *fixture) delivered(ro *v1alpha1.OperatorRollout, transition string, states ...v1alpha1.ChangeEventState) {
	f.t.Helper()
	f.eventually(func() error {
		if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(ro), ro); err != nil {
			return err
		}
		for _, d := range ro.Status.ChangeEvents {
			if d.Transition == transition && slices.Contains(states, d.State) {
				return nil
			}
		}
		return fmt.Errorf("the change event %s is not %v: %+v", transition, states, ro.Status.ChangeEvents)
	})
}

// TestChangeEventsAreSentOnce has two hubs, of which one is replaced while events are sent, and a PagerDuty that is not
// available at first and slow then.
func TestChangeEventsAreSentOnce(t *testing.T) {
	f := newFixture(t)
	events, err := pagerduty.Start(t.Context(), pagerduty.Options{Services: []string{"operators"}})
	must(t, err)
	t.Cleanup(events.Close)
	f.changeEvents = []string{events.Host()}
	must(t, events.SetFaults(pagerduty.Faults{Unavailable: true}))
	key := f.askForChangeEvents(events, "operators")
	stop := f.startHub()
	defer f.startHub()()
	policy := &v1alpha1.PagingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "platform"}}
	f.eventually(func() error {
		must(t, f.Get(t.Context(), client.ObjectKeyFromObject(policy), policy))
		if len(policy.Status.ChangeEvents) != 1 {
			return fmt.Errorf("the policy is not in force: %+v", policy.Status)
		}
		return nil
	})
	f.enrollMany(3)

	ro := f.start(1, v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{sized(wave("canary", 1), 1), wave("rest", 2)}})
	f.delivered(ro, "started", v1alpha1.ChangeEventWaiting)
	f.delivered(ro, "wave/canary/started", v1alpha1.ChangeEventWaiting)
	must(t, events.SetFaults(pagerduty.Faults{Delay: time.Second}))
	f.change(ro, func() { ro.Spec.Paused, ro.Spec.PausedReason = true, "incident" })
	f.delivered(ro, "paused", v1alpha1.ChangeEventSending, v1alpha1.ChangeEventSent)
	stop()
	defer f.startHub()()
	f.delivered(ro, "paused", v1alpha1.ChangeEventSent)
	f.change(ro, func() { ro.Spec.Paused, ro.Spec.PausedReason = false, "" })
	f.delivered(ro, "resumed", v1alpha1.ChangeEventSent)
	must(t, events.SetFaults(pagerduty.Faults{}))
	f.runAgents()
	f.reaches(ro, v1alpha1.RolloutSucceeded)

	want := []string{"paused", "resumed", "started", "succeeded", "wave/canary/started", "wave/canary/verified",
		"wave/rest/started", "wave/rest/verified"}
	for _, transition := range want {
		f.delivered(ro, transition, v1alpha1.ChangeEventSent)
	}
	applied, err := testenv.AppliedFields(ro)
	must(t, err)
	const deliveries = `bellwether-change-events/status: status.changeEvents[].at
bellwether-change-events/status: status.changeEvents[].attempts
bellwether-change-events/status: status.changeEvents[].lastAttempt
bellwether-change-events/status: status.changeEvents[].receiver
bellwether-change-events/status: status.changeEvents[].state
bellwether-change-events/status: status.changeEvents[].transition
`
	if diff := cmp.Diff(deliveries, applied); diff != "" {
		t.Errorf("applied fields (-want +got):\n%s", diff)
	}
	var recorded []string
	for _, d := range ro.Status.ChangeEvents {
		recorded = append(recorded, d.Transition)
	}
	slices.Sort(recorded)
	if diff := cmp.Diff(want, recorded); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}

	echo := f.namespace + "/echo"
	summaries := []string{
		echo + " 1.1.0: rollout paused: incident; clusters that were already admitted finish their update",
		echo + " 1.1.0: rollout resumed: wave canary: 0 of 1 cluster updated, 1 in progress",
		echo + " 1.1.0: rollout succeeded: 3 of 3 clusters updated",
		echo + " 1.1.0: wave canary started on 1 cluster",
		echo + " 1.1.0: wave canary verified: 1 of 1 cluster updated, 0 failed",
		echo + " 1.1.0: wave rest started on 2 clusters",
		echo + " 1.1.0: wave rest verified: 2 of 2 clusters updated, 0 failed",
		echo + ": rollout of 1.1.0 started on 3 clusters in 2 waves",
	}
	// A hub ended while it sent this one: whether PagerDuty has it is not known.
	f.changeStatus(ro, func() { ro.Status.ChangeEvents[0].State = v1alpha1.ChangeEventSending })
	f.delivered(ro, ro.Status.ChangeEvents[0].Transition, v1alpha1.ChangeEventUnknown)
	f.eventually(func() error {
		var list eventsv1.EventList
		must(t, f.List(t.Context(), &list, client.InNamespace(f.namespace)))
		if !slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == "ChangeEventUnknown" && e.Type == corev1.EventTypeWarning && e.Regarding.Name == ro.Name
		}) {
			return errors.New("no Event says that a change event may not have been sent")
		}
		return nil
	})

	ledger := events.Ledger()
	var got []string
	for _, c := range ledger.Changes {
		got = append(got, c.Payload.Summary)
		if c.Payload.CustomDetails["look"] != "bellwether rollout get echo-1 -n "+f.namespace {
			t.Errorf("details are %v", c.Payload.CustomDetails)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(summaries, got); diff != "" {
		t.Errorf("PagerDuty has these change events (-want +got):\n%s", diff)
	}
	if len(ledger.Anomalies) > 0 || len(ledger.Incidents) > 0 {
		t.Errorf("anomalies %+v, incidents %+v", ledger.Anomalies, ledger.Incidents)
	}
	for _, object := range []any{ro, policy} {
		text, err := json.Marshal(object)
		must(t, err)
		if strings.Contains(string(text), key) {
			t.Errorf("the routing key is in %T", object)
		}
	}
}
