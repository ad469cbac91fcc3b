// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/paging/plan"
)

const hub = "bellwether-system"

// key is an integration key in form, and of no service.
const key = "0123456789abcdef0123456789ABCDEF"

// world is what a test observes and changes.
type world struct {
	t  *testing.T
	in plan.Input
}

func newWorld(t *testing.T) *world {
	t.Helper()
	rules, err := slo.Build(slo.Set{Default: slo.DefaultProfile()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t,
		in: plan.Input{Kind: plan.KindSecret, Namespace: hub, Folder: "/etc/alertmanager/config", Rules: rules,
			Secrets: map[plan.SecretRef]plan.Secret{}},
	}
	w.operator("tools", "echo", v1alpha1.CriticalityStandard)
	w.operator("payments", "ledger", v1alpha1.CriticalityCritical)
	w.operator("payments", "echo", v1alpha1.CriticalityStandard)
	w.policy(hub, "platform", v1alpha1.PagingFleet)
	return w
}

func (w *world) operator(namespace, name string, c v1alpha1.Criticality) {
	w.in.Operators = append(w.in.Operators, v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
		Name: name}})
	w.in.SLOs = append(w.in.SLOs, v1alpha1.OperatorSLO{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.OperatorSLOSpec{Operator: name, Criticality: c}})
}

// policy adds a policy that pages one service, with its Secret.
func (w *world) policy(namespace, name string, scope v1alpha1.PagingScope) *v1alpha1.PagingPolicy {
	w.in.Secrets[plan.SecretRef{Namespace: namespace, Name: "pagerduty", Key: "key"}] = plan.Secret{
		Value: []byte(key + "\n"),
	}
	w.in.Policies = append(w.in.Policies, v1alpha1.PagingPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1},
		Spec: v1alpha1.PagingPolicySpec{Scope: scope, SingleCluster: v1alpha1.SingleClusterCritical,
			Pages: v1alpha1.PageTarget{Receivers: []string{"oncall"}},
			Receivers: []v1alpha1.PagingReceiver{{Name: "oncall", PagerDuty: &v1alpha1.PagerDutyReceiver{
				RoutingKey: v1alpha1.SecretKey{Name: "pagerduty", Key: "key"}}}}}})
	return w.find(namespace, name)
}

func (w *world) find(namespace, name string) *v1alpha1.PagingPolicy {
	i := slices.IndexFunc(w.in.Policies, func(p v1alpha1.PagingPolicy) bool {
		return p.Namespace == namespace && p.Name == name
	})
	if i < 0 {
		w.t.Fatalf("there is no policy %s/%s", namespace, name)
	}
	return &w.in.Policies[i]
}

// edit changes a policy as a person does.
func (w *world) edit(namespace, name string, change func(*v1alpha1.PagingPolicySpec)) {
	p := w.find(namespace, name)
	change(&p.Spec)
	p.Generation++
}

// next decides, and writes what was decided.
func (w *world) next() plan.Decision {
	w.t.Helper()
	d := plan.Next(w.in)
	if d.Data != nil {
		w.in.Written = d.Data
	}
	for i := range w.in.Policies {
		p := &w.in.Policies[i]
		p.Status = d.Statuses[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]
	}
	return d
}

// routed are the receivers of the release alerts of operators, in what is written.
func (w *world) routed() map[string]string {
	w.t.Helper()
	router, err := paging.NewRouter(w.in.Written[plan.ConfigFile])
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]string{}
	for i := range w.in.Operators {
		o := &w.in.Operators[i]
		in := router.Incidents(map[string]string{"alertname": slo.AlertRelease, "severity": "page", "scope": "release",
			"operator_namespace": o.Namespace, "operator": o.Name, "version": "1.0.0"})
		for _, incident := range in {
			out[o.Namespace+"/"+o.Name] += incident.Receiver
		}
	}
	return out
}

// ready is the reason and the message of the condition Ready of a policy.
func (w *world) ready(namespace, name string) (status metav1.ConditionStatus, reason, message string) {
	c := conditions.Get(w.find(namespace, name).Status.Conditions, v1alpha1.ConditionReady)
	return c.Status, c.Reason, c.Message
}

func (w *world) wantReady(namespace, name, reason string, words ...string) {
	w.t.Helper()
	status, got, message := w.ready(namespace, name)
	if got != reason || (status == metav1.ConditionTrue) != (reason == v1alpha1.ReasonSucceeded) {
		w.t.Errorf("policy %s/%s is Ready=%s %s (%s), want %s", namespace, name, status, got, message, reason)
	}
	for _, word := range words {
		if !strings.Contains(message, word) {
			w.t.Errorf("policy %s/%s says %q, want %q in it", namespace, name, message, word)
		}
	}
}

func (w *world) wantRouted(want map[string]string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.routed()); diff != "" {
		w.t.Errorf("receivers (-want +got):\n%s", diff)
	}
}

const (
	toPlatform = "bellwether-system/platform/standard"
	toTeam     = "payments/team/standard"
	toCritical = "/pages"
)

func TestFleetPolicyTakesAll(t *testing.T) {
	w := newWorld(t)
	w.next()
	w.wantReady(hub, "platform", v1alpha1.ReasonSucceeded, "3 operators", "clusters and the fleet")
	w.wantRouted(map[string]string{"tools/echo": toPlatform, "payments/echo": toPlatform,
		"payments/ledger": "bellwether-system/platform" + toCritical})
	if got := string(w.in.Written["secret_bellwether-system_platform_oncall"]); got != key {
		t.Errorf("the key is written as %q, want it without the line break", got)
	}
}

func TestTenantsHaveTheirOwn(t *testing.T) {
	w := newWorld(t)
	w.policy("payments", "team", v1alpha1.PagingNamespace)
	w.next()
	w.wantReady("payments", "team", v1alpha1.ReasonSucceeded, "2 operators")
	w.wantReady(hub, "platform", v1alpha1.ReasonSucceeded, "1 operator ")
	w.wantRouted(map[string]string{"tools/echo": toPlatform, "payments/echo": toTeam,
		"payments/ledger": "payments/team" + toCritical})
}

// TestBrokenPolicyKeepsTheOldConfiguration breaks a policy that was applied, in every way.
func TestBrokenPolicyKeepsTheOldConfiguration(t *testing.T) {
	ref := plan.SecretRef{Namespace: "payments", Name: "pagerduty", Key: "key"}
	setSecret := func(s plan.Secret) func(*world) { return func(w *world) { w.in.Secrets[ref] = s } }
	for name, c := range map[string]struct {
		breaks func(*world)
		reason string
		words  []string
	}{
		"the Secret is gone": {setSecret(plan.Secret{Problem: "there is no such Secret"}),
			v1alpha1.ReasonSecretUnavailable, []string{"receivers[oncall]", "key of Secret pagerduty",
				"no such Secret"}},
		"the key is malformed": {setSecret(plan.Secret{Value: []byte("not-a-key")}),
			v1alpha1.ReasonSecretUnavailable, []string{"9 characters", "32"}},
		"the key has two lines": {setSecret(plan.Secret{Value: []byte(key + "\n" + key)}),
			v1alpha1.ReasonSecretUnavailable, []string{"several lines"}},
		"the key is empty": {setSecret(plan.Secret{Value: []byte(" \n")}),
			v1alpha1.ReasonSecretUnavailable, []string{"is empty"}},
		"the time zone is unknown": {func(w *world) {
			w.edit("payments", "team", func(s *v1alpha1.PagingPolicySpec) {
				s.Receivers = append(s.Receivers, v1alpha1.PagingReceiver{Name: "hook",
					Webhook: &v1alpha1.WebhookReceiver{
						URL: v1alpha1.SecretKey{Name: "hook", Key: "url"}}})
				s.Tickets = &v1alpha1.TicketTarget{Receivers: []string{"hook"}, Hours: &v1alpha1.TicketHours{
					TimeZone: "Atlantis/City", Start: "09:00", End: "17:00"}}
			})
		}, v1alpha1.ReasonInvalidSpec, []string{"Atlantis/City"}},
		"another policy selects the same operator": {func(w *world) {
			w.edit("payments", "team", func(s *v1alpha1.PagingPolicySpec) {
				s.SingleCluster = v1alpha1.SingleClusterNone
			})
			w.policy("payments", "second", v1alpha1.PagingNamespace).Spec.Operators = []string{"echo"}
		}, v1alpha1.ReasonPolicyConflict, []string{"second", "echo"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.policy("payments", "team", v1alpha1.PagingNamespace)
			w.next()
			before := w.routed()
			text := string(w.in.Written[plan.ConfigFile])
			c.breaks(w)
			w.next()
			w.wantReady("payments", "team", c.reason, append(c.words, "as it was in generation 1 stays in force")...)
			w.wantRouted(before)
			if got := string(w.in.Written[plan.ConfigFile]); got != text {
				t.Errorf("the configuration changed:\n%s", cmp.Diff(text, got))
			}
			if got := string(w.in.Written["secret_payments_team_oncall"]); got != key {
				t.Errorf("the key of the policy is %d bytes now, want the old one", len(got))
			}
			w.wantReady(hub, "platform", v1alpha1.ReasonSucceeded)
		})
	}
}

// TestOneBrokenPolicyDoesNotHoldUpOthers edits the fleet's policy meanwhile.
func TestOneBrokenPolicyDoesNotHoldUpOthers(t *testing.T) {
	w := newWorld(t)
	w.policy("payments", "team", v1alpha1.PagingNamespace)
	w.next()
	w.in.Secrets[plan.SecretRef{Namespace: "payments", Name: "pagerduty", Key: "key"}] = plan.Secret{Problem: "gone"}
	w.edit(hub, "platform", func(s *v1alpha1.PagingPolicySpec) { s.SingleCluster = v1alpha1.SingleClusterAll })
	w.next()
	w.wantRouted(map[string]string{"tools/echo": "bellwether-system/platform" + toCritical, "payments/echo": toTeam,
		"payments/ledger": "payments/team" + toCritical})
}

func TestPolicyThatWasNeverGood(t *testing.T) {
	w := newWorld(t)
	w.policy("payments", "team", v1alpha1.PagingNamespace)
	w.in.Secrets[plan.SecretRef{Namespace: "payments", Name: "pagerduty", Key: "key"}] = plan.Secret{Problem: "gone"}
	w.next()
	w.wantReady("payments", "team", v1alpha1.ReasonSecretUnavailable, "never applied")
	w.wantRouted(map[string]string{"tools/echo": toPlatform, "payments/echo": toPlatform,
		"payments/ledger": "bellwether-system/platform" + toCritical})
}

func TestNothingIsWrittenWithoutAFleetPolicy(t *testing.T) {
	w := newWorld(t)
	w.in.Policies = nil
	w.policy("payments", "team", v1alpha1.PagingNamespace)
	if d := w.next(); d.Data != nil || d.Objects != nil {
		t.Errorf("something is written: %v", slices.Sorted(maps.Keys(d.Data)))
	}
	w.wantReady("payments", "team", v1alpha1.ReasonNoFleetPolicy, "scope Fleet")
}

func TestFleetPolicyStaysAfterItsDeletion(t *testing.T) {
	w := newWorld(t)
	w.policy("payments", "team", v1alpha1.PagingNamespace)
	w.next()
	before := w.routed()
	w.in.Policies = slices.DeleteFunc(w.in.Policies, func(p v1alpha1.PagingPolicy) bool { return p.Namespace == hub })
	w.next()
	w.wantRouted(before)
	w.policy(hub, "new", v1alpha1.PagingFleet)
	w.next()
	w.wantReady(hub, "new", v1alpha1.ReasonSucceeded)
	if got := w.routed()["tools/echo"]; got != "bellwether-system/new/standard" {
		t.Errorf("tools/echo goes to %s, want the new policy", got)
	}
}

func TestFleetPolicyHasItsNamespace(t *testing.T) {
	w := newWorld(t)
	w.policy("payments", "takeover", v1alpha1.PagingFleet)
	w.next()
	w.wantReady("payments", "takeover", v1alpha1.ReasonInvalidSpec, hub)
	w.wantReady(hub, "platform", v1alpha1.ReasonSucceeded)
}

func TestTwoFleetPoliciesConflict(t *testing.T) {
	w := newWorld(t)
	w.next()
	w.policy(hub, "second", v1alpha1.PagingFleet)
	w.next()
	w.wantReady(hub, "platform", v1alpha1.ReasonPolicyConflict, "second", "as it was in generation 1 stays in force")
	w.wantReady(hub, "second", v1alpha1.ReasonPolicyConflict, "platform", "never applied")
}

func TestOperatorsThatDoNotExistAreSaid(t *testing.T) {
	w := newWorld(t)
	w.policy("payments", "team", v1alpha1.PagingNamespace).Spec.Operators = []string{"echo", "missing"}
	w.next()
	w.wantReady(
		"payments",
		"team",
		v1alpha1.ReasonSucceeded,
		"1 operator ",
		"no operator missing in namespace payments",
	)
}

func TestObjects(t *testing.T) {
	w := newWorld(t)
	w.in.Kind = plan.KindObject
	w.policy("payments", "team", v1alpha1.PagingNamespace)
	d := w.next()
	var got []string
	for policy := range d.Objects {
		got = append(got, policy.String())
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"bellwether-system/platform", "payments/team"}, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if keys := slices.Sorted(maps.Keys(d.Data)); !slices.Equal(keys, []string{plan.PoliciesFile}) {
		t.Errorf("the Secret has %v beside AlertmanagerConfigs, want the policies alone", keys)
	}
	want := &v1alpha1.PagingConfiguration{Kind: "AlertmanagerConfig", Namespace: "payments", Name: "bellwether-team",
		Generation: 1}
	if diff := cmp.Diff(want, w.find("payments", "team").Status.Configuration); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

// TestNoKeyIsShown looks for the keys wherever a person may look.
func TestNoKeyIsShown(t *testing.T) {
	for _, value := range []string{key, "short-and-secret", key + "\n" + key, "https://hooks.example.com/secret"} {
		w := newWorld(t)
		w.policy("payments", "team", v1alpha1.PagingNamespace)
		w.in.Secrets[plan.SecretRef{Namespace: "payments", Name: "pagerduty", Key: "key"}] = plan.Secret{
			Value: []byte(value),
		}
		d := w.next()
		shown := fmt.Sprintf("%+v %s %s", d.Statuses, d.Data[plan.ConfigFile], d.Data[plan.PoliciesFile])
		if strings.Contains(shown, strings.TrimSpace(value)) {
			t.Errorf("%q is in a status or in the configuration", value)
		}
	}
}

// TestSameInputSameResult holds that nothing depends on the order of objects.
func TestSameInputSameResult(t *testing.T) {
	w := newWorld(t)
	w.policy("payments", "team", v1alpha1.PagingNamespace)
	first := w.next()
	slices.Reverse(w.in.Policies)
	slices.Reverse(w.in.Operators)
	slices.Reverse(w.in.SLOs)
	if diff := cmp.Diff(first.Data, w.next().Data); diff != "" {
		t.Errorf("what is written differs (-first +second):\n%s", diff)
	}
}

// TestRefusedAgainStaysAsItWas holds that a policy which is refused each time keeps the time since when it is not
// Ready.
func TestRefusedAgainStaysAsItWas(t *testing.T) {
	w := newWorld(t)
	at := types.NamespacedName{Namespace: hub, Name: "platform"}
	w.next()
	w.in.Refused = map[types.NamespacedName]error{at: errors.New("forbidden")}
	w.next()
	w.wantReady(hub, "platform", v1alpha1.ReasonConfigurationInvalid, "forbidden")
	p := w.find(hub, "platform")
	long := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for i := range p.Status.Conditions {
		p.Status.Conditions[i].LastTransitionTime = long
	}
	before := *p.Status.DeepCopy()
	if diff := cmp.Diff(before, w.next().Statuses[at]); diff != "" {
		t.Errorf("status (-before +after):\n%s", diff)
	}
}

// TestAlertsOfARefusedPolicyReachTheFleets holds that a policy whose AlertmanagerConfig was never accepted has no
// operators: nobody else would route their alerts.
func TestAlertsOfARefusedPolicyReachTheFleets(t *testing.T) {
	w := newWorld(t)
	w.in.Kind = plan.KindObject
	w.policy("payments", "team", v1alpha1.PagingNamespace)
	at := types.NamespacedName{Namespace: "payments", Name: "team"}
	w.in.Refused = map[types.NamespacedName]error{at: errors.New("forbidden")}
	d := w.next()
	if d.Objects[at] != nil || d.Statuses[d.Fleet].Operators != 3 {
		t.Errorf("objects %v, and the fleet's policy has %d operators; want no object of the refused policy and 3",
			slices.Collect(maps.Keys(d.Objects)), d.Statuses[d.Fleet].Operators)
	}
	w.wantReady("payments", "team", v1alpha1.ReasonConfigurationInvalid, "never applied")
	w.in.Refused = nil
	if d := w.next(); d.Objects[at] == nil || d.Statuses[d.Fleet].Operators != 1 {
		t.Errorf("the policy is accepted now, and has no object, or no operators")
	}
}

// TestFullSecretRefusesNewPoliciesOnly fills the Secret, and then changes a policy that is in it.
func TestFullSecretRefusesNewPoliciesOnly(t *testing.T) {
	w := newWorld(t)
	w.next()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 110 {
		namespace := fmt.Sprintf("team-%03d", i)
		w.operator(namespace, "echo", v1alpha1.CriticalityStandard)
		p := w.policy(namespace, "team", v1alpha1.PagingNamespace)
		p.CreationTimestamp = metav1.NewTime(began.Add(time.Duration(i) * time.Minute))
		for more := range 3 {
			r := *p.Spec.Receivers[0].DeepCopy()
			r.Name = fmt.Sprintf("more-%d", more)
			p.Spec.Receivers = append(p.Spec.Receivers, r)
			p.Spec.Pages.Receivers = append(p.Spec.Pages.Receivers, r.Name)
		}
	}
	w.next()
	w.wantReady("team-000", "team", v1alpha1.ReasonSucceeded)
	w.wantReady("team-109", "team", v1alpha1.ReasonConfigurationInvalid, "there is no room for it in Secret")
	w.edit("team-000", "team", func(s *v1alpha1.PagingPolicySpec) { s.SingleCluster = v1alpha1.SingleClusterNone })
	w.next()
	w.wantReady("team-000", "team", v1alpha1.ReasonSucceeded)
	if got := w.find("team-000", "team").Status.Configuration.Generation; got != 2 {
		t.Errorf("generation %d is in force, want 2", got)
	}
}

// TestUnreadablePoliciesAreReported has somebody edit the Secret by hand.
func TestUnreadablePoliciesAreReported(t *testing.T) {
	w := newWorld(t)
	w.next()
	w.in.Written = maps.Clone(w.in.Written)
	w.in.Written[plan.PoliciesFile] = []byte("{")
	if d := w.next(); d.Data != nil {
		t.Error("the Secret is written, although what was in force is not known")
	}
	w.wantReady(hub, "platform", v1alpha1.ReasonConfigurationInvalid, "remove this key")
	delete(w.in.Written, plan.PoliciesFile)
	w.next()
	w.wantReady(hub, "platform", v1alpha1.ReasonSucceeded)
}

// TestSelfTests has two policies, one of which tests itself each hour.
func TestSelfTests(t *testing.T) {
	w := newWorld(t)
	w.in.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := types.NamespacedName{Namespace: "payments", Name: "team"}
	w.policy("payments", "team", v1alpha1.PagingNamespace).Spec.SelfTest = &v1alpha1.PagingSelfTest{
		Every: metav1.Duration{Duration: time.Hour}}
	due := func(want ...types.NamespacedName) {
		t.Helper()
		if got := w.next().Tests; !slices.Equal(got, want) {
			t.Errorf("tests %v are due, want %v", got, want)
		}
	}
	due(at)
	result := v1alpha1.PagingSelfTestStatus{At: metav1.NewTime(w.in.Now), Message: "nothing was accepted"}
	w.in.Tests = map[types.NamespacedName]v1alpha1.PagingSelfTestStatus{at: result}
	due()
	if got := w.find("payments", "team").Status.SelfTest; got == nil || *got != result {
		t.Errorf("the status has %v, want %v", got, result)
	}
	w.in.Tests = nil // the hub was restarted
	w.in.Now = w.in.Now.Add(59 * time.Minute)
	due()
	w.in.Now = w.in.Now.Add(time.Minute)
	due(at)
	w.edit("payments", "team", func(s *v1alpha1.PagingPolicySpec) { s.SelfTest = nil })
	due()
	if got := w.find("payments", "team").Status.SelfTest; got != nil {
		t.Errorf("the status still has %v", got)
	}
}
