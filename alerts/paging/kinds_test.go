// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestKindsOfPrometheusOperatorComeAndGo holds that an Alertmanager which reads the
// Secret does not lose what it reads.
func TestKindsOfPrometheusOperatorComeAndGo(t *testing.T) {
	f := newFixture(t)
	f.next()
	before := maps.Clone(f.in.Written)
	f.in.Kind = paging.KindObject
	d := f.next()
	if len(d.Objects) != 1 {
		t.Errorf("%d objects, want that of the policy", len(d.Objects))
	}
	if !maps.EqualFunc(before, f.in.Written, func(a, b []byte) bool { return string(a) == string(b) }) {
		t.Errorf("the Secret has %v now, want what it had", slices.Sorted(maps.Keys(f.in.Written)))
	}
	f.in.Kind = paging.KindSecret
	f.in.Secrets[paging.SecretRef{Namespace: hub, Name: "pagerduty", Key: "key"}] = paging.Secret{Problem: "gone"}
	f.next()
	if got := string(f.in.Written["secret_bellwether-system_platform_oncall"]); got != policyKey {
		t.Errorf("the key of the policy is %d bytes now, want the old one", len(got))
	}
}

// TestTimeZoneFromBeforeObjects has ticket hours that an AlertmanagerConfig cannot have.
func TestTimeZoneFromBeforeObjects(t *testing.T) {
	f := newFixture(t)
	f.in.Secrets[paging.SecretRef{Namespace: "tools", Name: "hook", Key: "url"}] = paging.Secret{
		Value: []byte("https://hook.example.com/")}
	spec := &f.policy("tools", "team", v1alpha1.PagingNamespace).Spec
	spec.Receivers = append(spec.Receivers, v1alpha1.PagingReceiver{Name: "hook", Webhook: &v1alpha1.WebhookReceiver{
		URL: v1alpha1.SecretKey{Name: "hook", Key: "url"}}})
	spec.Tickets = &v1alpha1.TicketTarget{Receivers: []string{"hook"}, Hours: &v1alpha1.TicketHours{
		TimeZone: "Europe/Berlin", Start: "09:00", End: "17:00", Days: []v1alpha1.Weekday{"Monday"}}}
	f.next()
	f.wantReady("tools", "team", v1alpha1.ReasonSucceeded)
	f.in.Kind = paging.KindObject
	f.policy("payments", "team", v1alpha1.PagingNamespace)
	if d := f.next(); len(d.Objects) != 3 {
		t.Errorf("%d objects, want those of 3 policies", len(d.Objects))
	}
	f.wantReady("tools", "team", v1alpha1.ReasonInvalidSpec, "time zone")
	f.wantReady("payments", "team", v1alpha1.ReasonSucceeded)
	f.wantReady(hub, "platform", v1alpha1.ReasonSucceeded)
}
