// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging_test

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
)

const hub = "bellwether-system"

// policyKey is an integration key in form, and of no service.
const policyKey = "0123456789abcdef0123456789ABCDEF"

// fixture is what a test observes and changes.
type fixture struct {
	t  *testing.T
	in paging.Input
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	rules, err := slo.Build(slo.Set{Default: slo.DefaultProfile()})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		t: t,
		in: paging.Input{Kind: paging.KindSecret, Namespace: hub, Folder: "/etc/alertmanager/config", Rules: rules,
			Secrets: map[paging.SecretRef]paging.Secret{}},
	}
	f.operator("tools", "echo", v1alpha1.CriticalityStandard)
	f.operator("payments", "ledger", v1alpha1.CriticalityCritical)
	f.operator("payments", "echo", v1alpha1.CriticalityStandard)
	f.policy(hub, "platform", v1alpha1.PagingFleet)
	return f
}

func (f *fixture) operator(namespace, name string, c v1alpha1.Criticality) {
	f.in.Operators = append(f.in.Operators, v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
		Name: name}})
	f.in.SLOs = append(f.in.SLOs, v1alpha1.OperatorSLO{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.OperatorSLOSpec{Operator: name, Criticality: c}})
}

// policy adds a policy that pages one service, with its Secret.
func (f *fixture) policy(namespace, name string, scope v1alpha1.PagingScope) *v1alpha1.PagingPolicy {
	f.in.Secrets[paging.SecretRef{Namespace: namespace, Name: "pagerduty", Key: "key"}] = paging.Secret{
		Value: []byte(policyKey + "\n"),
	}
	f.in.Policies = append(f.in.Policies, v1alpha1.PagingPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1},
		Spec: v1alpha1.PagingPolicySpec{Scope: scope, SingleCluster: v1alpha1.SingleClusterCritical,
			Pages: v1alpha1.PageTarget{Receivers: []string{"oncall"}},
			Receivers: []v1alpha1.PagingReceiver{{Name: "oncall", PagerDuty: &v1alpha1.PagerDutyReceiver{
				RoutingKey: v1alpha1.SecretKey{Name: "pagerduty", Key: "key"}}}}}})
	return f.find(namespace, name)
}

func (f *fixture) find(namespace, name string) *v1alpha1.PagingPolicy {
	i := slices.IndexFunc(f.in.Policies, func(p v1alpha1.PagingPolicy) bool {
		return p.Namespace == namespace && p.Name == name
	})
	if i < 0 {
		f.t.Fatalf("there is no policy %s/%s", namespace, name)
	}
	return &f.in.Policies[i]
}

// edit changes a policy as a person does.
func (f *fixture) edit(namespace, name string, change func(*v1alpha1.PagingPolicySpec)) {
	p := f.find(namespace, name)
	change(&p.Spec)
	p.Generation++
}

// next calls paging.Next and stores the result.
func (f *fixture) next() paging.Decision {
	f.t.Helper()
	d := paging.Next(f.in)
	if d.Data != nil {
		f.in.Written = d.Data
	}
	for i := range f.in.Policies {
		p := &f.in.Policies[i]
		p.Status = d.Statuses[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]
	}
	return d
}

// routed returns the receivers of the release alerts of operators in the written configuration.
func (f *fixture) routed() map[string]string {
	f.t.Helper()
	router, err := paging.NewRouter(f.in.Written[paging.ConfigFile])
	if err != nil {
		f.t.Fatal(err)
	}
	out := map[string]string{}
	for i := range f.in.Operators {
		o := &f.in.Operators[i]
		in := router.Incidents(map[string]string{"alertname": slo.AlertRelease, "severity": "page", "scope": "release",
			"operator_namespace": o.Namespace, "operator": o.Name, "version": "1.0.0"})
		for _, incident := range in {
			out[o.Namespace+"/"+o.Name] += incident.Receiver
		}
	}
	return out
}

// ready is the reason and the message of the condition Ready of a policy.
func (f *fixture) ready(namespace, name string) (status metav1.ConditionStatus, reason, message string) {
	c := conditions.Get(f.find(namespace, name).Status.Conditions, v1alpha1.ConditionReady)
	return c.Status, c.Reason, c.Message
}

func (f *fixture) wantReady(namespace, name, reason string, words ...string) {
	f.t.Helper()
	status, got, message := f.ready(namespace, name)
	if got != reason || (status == metav1.ConditionTrue) != (reason == v1alpha1.ReasonSucceeded) {
		f.t.Errorf("policy %s/%s is Ready=%s %s (%s), want %s", namespace, name, status, got, message, reason)
	}
	for _, word := range words {
		if !strings.Contains(message, word) {
			f.t.Errorf("policy %s/%s says %q, want %q in it", namespace, name, message, word)
		}
	}
}

func (f *fixture) wantRouted(want map[string]string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.routed()); diff != "" {
		f.t.Errorf("receivers (-want +got):\n%s", diff)
	}
}

const (
	toPlatform = "bellwether-system/platform/standard"
	toTeam     = "payments/team/standard"
	toCritical = "/pages"
)

func TestFleetPolicyTakesAll(t *testing.T) {
	f := newFixture(t)
	f.next()
	f.wantReady(hub, "platform", v1alpha1.ReasonSucceeded, "3 operators", "clusters and the fleet")
	f.wantRouted(map[string]string{"tools/echo": toPlatform, "payments/echo": toPlatform,
		"payments/ledger": "bellwether-system/platform" + toCritical})
	if got := string(f.in.Written["secret_bellwether-system_platform_oncall"]); got != policyKey {
		t.Errorf("the key is written as %q, want it without the line break", got)
	}
}

func TestTenantsHaveTheirOwn(t *testing.T) {
	f := newFixture(t)
	f.policy("payments", "team", v1alpha1.PagingNamespace)
	f.next()
	f.wantReady("payments", "team", v1alpha1.ReasonSucceeded, "2 operators")
	f.wantReady(hub, "platform", v1alpha1.ReasonSucceeded, "1 operator ")
	f.wantRouted(map[string]string{"tools/echo": toPlatform, "payments/echo": toTeam,
		"payments/ledger": "payments/team" + toCritical})
}

// TestBrokenPolicyKeepsTheOldConfiguration breaks a policy that was applied, in every way.
func TestBrokenPolicyKeepsTheOldConfiguration(t *testing.T) {
	ref := paging.SecretRef{Namespace: "payments", Name: "pagerduty", Key: "key"}
	setSecret := func(s paging.Secret) func(*fixture) { return func(f *fixture) { f.in.Secrets[ref] = s } }
	for name, c := range map[string]struct {
		breaks func(*fixture)
		reason string
		words  []string
	}{
		"the Secret is gone": {setSecret(paging.Secret{Problem: "there is no such Secret"}),
			v1alpha1.ReasonSecretUnavailable, []string{"receivers[oncall]", "key of Secret pagerduty",
				"no such Secret"}},
		"the key is malformed": {setSecret(paging.Secret{Value: []byte("not-a-key")}),
			v1alpha1.ReasonSecretUnavailable, []string{"9 characters", "32"}},
		"the key has two lines": {setSecret(paging.Secret{Value: []byte(policyKey + "\n" + policyKey)}),
			v1alpha1.ReasonSecretUnavailable, []string{"several lines"}},
		"the key is empty": {setSecret(paging.Secret{Value: []byte(" \n")}),
			v1alpha1.ReasonSecretUnavailable, []string{"is empty"}},
		"the time zone is unknown": {func(f *fixture) {
			f.edit("payments", "team", func(s *v1alpha1.PagingPolicySpec) {
				s.Receivers = append(s.Receivers, v1alpha1.PagingReceiver{Name: "hook",
					Webhook: &v1alpha1.WebhookReceiver{
						URL: v1alpha1.SecretKey{Name: "hook", Key: "url"}}})
				s.Tickets = &v1alpha1.TicketTarget{Receivers: []string{"hook"}, Hours: &v1alpha1.TicketHours{
					TimeZone: "Atlantis/City", Start: "09:00", End: "17:00"}}
			})
		}, v1alpha1.ReasonInvalidSpec, []string{"Atlantis/City"}},
		"another policy selects the same operator": {func(f *fixture) {
			f.edit("payments", "team", func(s *v1alpha1.PagingPolicySpec) {
				s.SingleCluster = v1alpha1.SingleClusterNone
			})
			f.policy("payments", "second", v1alpha1.PagingNamespace).Spec.Operators = []string{"echo"}
		}, v1alpha1.ReasonPolicyConflict, []string{"second", "echo"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.policy("payments", "team", v1alpha1.PagingNamespace)
			f.next()
			before := f.routed()
			text := string(f.in.Written[paging.ConfigFile])
			c.breaks(f)
			f.next()
			f.wantReady("payments", "team", c.reason, append(c.words, "as it was in generation 1 stays in force")...)
			f.wantRouted(before)
			if got := string(f.in.Written[paging.ConfigFile]); got != text {
				t.Errorf("the configuration changed:\n%s", cmp.Diff(text, got))
			}
			if got := string(f.in.Written["secret_payments_team_oncall"]); got != policyKey {
				t.Errorf("the key of the policy is %d bytes now, want the old one", len(got))
			}
			f.wantReady(hub, "platform", v1alpha1.ReasonSucceeded)
		})
	}
}

// TestOneBrokenPolicyDoesNotHoldUpOthers edits the fleet's policy while another policy is invalid.
func TestOneBrokenPolicyDoesNotHoldUpOthers(t *testing.T) {
	f := newFixture(t)
	f.policy("payments", "team", v1alpha1.PagingNamespace)
	f.next()
	f.in.Secrets[paging.SecretRef{Namespace: "payments", Name: "pagerduty",
		Key: "key"}] = paging.Secret{Problem: "gone"}
	f.edit(hub, "platform", func(s *v1alpha1.PagingPolicySpec) { s.SingleCluster = v1alpha1.SingleClusterAll })
	f.next()
	f.wantRouted(map[string]string{"tools/echo": "bellwether-system/platform" + toCritical, "payments/echo": toTeam,
		"payments/ledger": "payments/team" + toCritical})
}

func TestPolicyThatWasNeverGood(t *testing.T) {
	f := newFixture(t)
	f.policy("payments", "team", v1alpha1.PagingNamespace)
	f.in.Secrets[paging.SecretRef{Namespace: "payments", Name: "pagerduty",
		Key: "key"}] = paging.Secret{Problem: "gone"}
	f.next()
	f.wantReady("payments", "team", v1alpha1.ReasonSecretUnavailable, "never applied")
	f.wantRouted(map[string]string{"tools/echo": toPlatform, "payments/echo": toPlatform,
		"payments/ledger": "bellwether-system/platform" + toCritical})
}

func TestNothingIsWrittenWithoutAFleetPolicy(t *testing.T) {
	f := newFixture(t)
	f.in.Policies = nil
	f.policy("payments", "team", v1alpha1.PagingNamespace)
	if d := f.next(); d.Data != nil || d.Objects != nil {
		t.Errorf("something is written: %v", slices.Sorted(maps.Keys(d.Data)))
	}
	f.wantReady("payments", "team", v1alpha1.ReasonNoFleetPolicy, "scope Fleet")
}

func TestFleetPolicyStaysAfterItsDeletion(t *testing.T) {
	f := newFixture(t)
	f.policy("payments", "team", v1alpha1.PagingNamespace)
	f.next()
	before := f.routed()
	f.in.Policies = slices.DeleteFunc(f.in.Policies, func(p v1alpha1.PagingPolicy) bool { return p.Namespace == hub })
	f.next()
	f.wantRouted(before)
	f.policy(hub, "new", v1alpha1.PagingFleet)
	f.next()
	f.wantReady(hub, "new", v1alpha1.ReasonSucceeded)
	if got := f.routed()["tools/echo"]; got != "bellwether-system/new/standard" {
		t.Errorf("tools/echo goes to %s, want the new policy", got)
	}
}

func TestFleetPolicyHasItsNamespace(t *testing.T) {
	f := newFixture(t)
	f.policy("payments", "takeover", v1alpha1.PagingFleet)
	f.next()
	f.wantReady("payments", "takeover", v1alpha1.ReasonInvalidSpec, hub)
	f.wantReady(hub, "platform", v1alpha1.ReasonSucceeded)
}

func TestTwoFleetPoliciesConflict(t *testing.T) {
	f := newFixture(t)
	f.next()
	f.policy(hub, "second", v1alpha1.PagingFleet)
	f.next()
	f.wantReady(hub, "platform", v1alpha1.ReasonPolicyConflict, "second", "as it was in generation 1 stays in force")
	f.wantReady(hub, "second", v1alpha1.ReasonPolicyConflict, "platform", "never applied")
}

func TestOperatorsThatDoNotExistAreSaid(t *testing.T) {
	f := newFixture(t)
	f.policy("payments", "team", v1alpha1.PagingNamespace).Spec.Operators = []string{"echo", "missing"}
	f.next()
	f.wantReady(
		"payments",
		"team",
		v1alpha1.ReasonSucceeded,
		"1 operator ",
		"no operator missing in namespace payments",
	)
}

func TestObjects(t *testing.T) {
	f := newFixture(t)
	f.in.Kind = paging.KindObject
	f.policy("payments", "team", v1alpha1.PagingNamespace)
	d := f.next()
	var got []string
	for policy := range d.Objects {
		got = append(got, policy.String())
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"bellwether-system/platform", "payments/team"}, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if keys := slices.Sorted(maps.Keys(d.Data)); !slices.Equal(keys, []string{paging.PoliciesFile}) {
		t.Errorf("the Secret has %v beside AlertmanagerConfigs, want the policies alone", keys)
	}
	want := &v1alpha1.PagingConfiguration{Kind: "AlertmanagerConfig", Namespace: "payments", Name: "bellwether-team",
		Generation: 1}
	if diff := cmp.Diff(want, f.find("payments", "team").Status.Configuration); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

// TestNoKeyIsShown searches for the keys in all outputs that a person can read.
func TestNoKeyIsShown(t *testing.T) {
	for _, value := range []string{policyKey, "short-and-secret", policyKey + "\n" + policyKey,
		"https://hooks.example.com/secret"} {
		f := newFixture(t)
		f.policy("payments", "team", v1alpha1.PagingNamespace)
		f.in.Secrets[paging.SecretRef{Namespace: "payments", Name: "pagerduty", Key: "key"}] = paging.Secret{
			Value: []byte(value),
		}
		d := f.next()
		shown := fmt.Sprintf("%+v %s %s", d.Statuses, d.Data[paging.ConfigFile], d.Data[paging.PoliciesFile])
		if strings.Contains(shown, strings.TrimSpace(value)) {
			t.Errorf("%q is in a status or in the configuration", value)
		}
	}
}

// TestSameInputSameResult holds that nothing depends on the order of objects.
func TestSameInputSameResult(t *testing.T) {
	f := newFixture(t)
	f.policy("payments", "team", v1alpha1.PagingNamespace)
	first := f.next()
	slices.Reverse(f.in.Policies)
	slices.Reverse(f.in.Operators)
	slices.Reverse(f.in.SLOs)
	if diff := cmp.Diff(first.Data, f.next().Data); diff != "" {
		t.Errorf("what is written differs (-first +second):\n%s", diff)
	}
}

// TestRefusedAgainStaysAsItWas holds that a policy which is refused each time keeps the time since when it is not
// Ready.
func TestRefusedAgainStaysAsItWas(t *testing.T) {
	f := newFixture(t)
	at := types.NamespacedName{Namespace: hub, Name: "platform"}
	f.next()
	f.in.Refused = map[types.NamespacedName]error{at: errors.New("forbidden")}
	f.next()
	f.wantReady(hub, "platform", v1alpha1.ReasonConfigurationInvalid, "forbidden")
	p := f.find(hub, "platform")
	long := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for i := range p.Status.Conditions {
		p.Status.Conditions[i].LastTransitionTime = long
	}
	before := *p.Status.DeepCopy()
	if diff := cmp.Diff(before, f.next().Statuses[at]); diff != "" {
		t.Errorf("status (-before +after):\n%s", diff)
	}
}

// TestAlertsOfARefusedPolicyReachTheFleets checks that a policy whose AlertmanagerConfig
// was never accepted has no operators: no other policy would route their alerts.
func TestAlertsOfARefusedPolicyReachTheFleets(t *testing.T) {
	f := newFixture(t)
	f.in.Kind = paging.KindObject
	f.policy("payments", "team", v1alpha1.PagingNamespace)
	at := types.NamespacedName{Namespace: "payments", Name: "team"}
	f.in.Refused = map[types.NamespacedName]error{at: errors.New("forbidden")}
	d := f.next()
	if d.Objects[at] != nil || d.Statuses[d.Fleet].Operators != 3 {
		t.Errorf("objects %v, and the fleet's policy has %d operators; want no object of the refused policy and 3",
			slices.Collect(maps.Keys(d.Objects)), d.Statuses[d.Fleet].Operators)
	}
	f.wantReady("payments", "team", v1alpha1.ReasonConfigurationInvalid, "never applied")
	f.in.Refused = nil
	if d := f.next(); d.Objects[at] == nil || d.Statuses[d.Fleet].Operators != 1 {
		t.Errorf("the policy is accepted now, and has no object, or no operators")
	}
}

// TestFullSecretRefusesNewPoliciesOnly fills the Secret, and then changes a policy that is in it.
func TestFullSecretRefusesNewPoliciesOnly(t *testing.T) {
	f := newFixture(t)
	f.next()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 110 {
		namespace := fmt.Sprintf("team-%03d", i)
		f.operator(namespace, "echo", v1alpha1.CriticalityStandard)
		p := f.policy(namespace, "team", v1alpha1.PagingNamespace)
		p.CreationTimestamp = metav1.NewTime(began.Add(time.Duration(i) * time.Minute))
		for more := range 15 {
			r := *p.Spec.Receivers[0].DeepCopy()
			r.Name = fmt.Sprintf("more-%d", more)
			p.Spec.Receivers = append(p.Spec.Receivers, r)
			p.Spec.Pages.Receivers = append(p.Spec.Pages.Receivers, r.Name)
		}
	}
	f.next()
	f.wantReady("team-000", "team", v1alpha1.ReasonSucceeded)
	f.wantReady("team-109", "team", v1alpha1.ReasonConfigurationInvalid, "there is no room for it in Secret")
	f.edit("team-000", "team", func(s *v1alpha1.PagingPolicySpec) { s.SingleCluster = v1alpha1.SingleClusterNone })
	f.next()
	f.wantReady("team-000", "team", v1alpha1.ReasonSucceeded)
	if got := f.find("team-000", "team").Status.Configuration.Generation; got != 2 {
		t.Errorf("generation %d is in force, want 2", got)
	}
}

// TestUnreadablePoliciesAreReported changes the Secret as a user would do by hand.
func TestUnreadablePoliciesAreReported(t *testing.T) {
	f := newFixture(t)
	f.next()
	f.in.Written = maps.Clone(f.in.Written)
	f.in.Written[paging.PoliciesFile] = []byte("{")
	if d := f.next(); d.Data != nil {
		t.Error("the Secret is written, although what was in force is not known")
	}
	f.wantReady(hub, "platform", v1alpha1.ReasonConfigurationInvalid, "remove this key")
	delete(f.in.Written, paging.PoliciesFile)
	f.next()
	f.wantReady(hub, "platform", v1alpha1.ReasonSucceeded)
}

// TestSelfTests has two policies, one of which tests itself each hour.
func TestSelfTests(t *testing.T) {
	f := newFixture(t)
	f.in.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := types.NamespacedName{Namespace: "payments", Name: "team"}
	f.policy("payments", "team", v1alpha1.PagingNamespace).Spec.SelfTest = &v1alpha1.PagingSelfTest{
		Every: metav1.Duration{Duration: time.Hour}}
	due := func(want ...types.NamespacedName) {
		t.Helper()
		if got := f.next().Tests; !slices.Equal(got, want) {
			t.Errorf("tests %v are due, want %v", got, want)
		}
	}
	due(at)
	result := v1alpha1.PagingSelfTestStatus{At: metav1.NewTime(f.in.Now), Message: "nothing was accepted"}
	f.in.Tests = map[types.NamespacedName]v1alpha1.PagingSelfTestStatus{at: result}
	due()
	if got := f.find("payments", "team").Status.SelfTest; got == nil || *got != result {
		t.Errorf("the status has %v, want %v", got, result)
	}
	f.in.Tests = nil // the hub was restarted
	f.in.Now = f.in.Now.Add(59 * time.Minute)
	due()
	f.in.Now = f.in.Now.Add(time.Minute)
	due(at)
	f.edit("payments", "team", func(s *v1alpha1.PagingPolicySpec) { s.SelfTest = nil })
	due()
	if got := f.find("payments", "team").Status.SelfTest; got != nil {
		t.Errorf("the status still has %v", got)
	}
}
