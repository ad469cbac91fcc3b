// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/paging/plan"
)

// TestPolicyThatAlertmanagerRefusesIsAlone has policies that the API accepts, and that
// Alertmanager's loader, or its notifier, does not.
func TestPolicyThatAlertmanagerRefusesIsAlone(t *testing.T) {
	mail := func(to, from, host string) func(*v1alpha1.PagingReceiver) {
		return func(r *v1alpha1.PagingReceiver) {
			r.PagerDuty, r.Email = nil, &v1alpha1.EmailReceiver{To: to, From: from, Smarthost: host}
		}
	}
	for name, change := range map[string]func(*v1alpha1.PagingReceiver){
		"URL without a host": func(r *v1alpha1.PagingReceiver) { r.PagerDuty.URL = "https:///v2/enqueue" },
		"smarthost":          mail("a@example.com", "b@example.com", "mail]:25"),
		"recipient":          mail("@", "b@example.com", "mail:25"),
		"sender":             mail("a@example.com", "b@example.com, c@example.com", "mail:25"),
	} {
		for _, kind := range []plan.Kind{plan.KindSecret, plan.KindObject} {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				f := newFixture(t)
				f.in.Kind = kind
				change(&f.policy("tools", "wrong", v1alpha1.PagingNamespace).Spec.Receivers[0])
				f.policy("payments", "team", v1alpha1.PagingNamespace)
				f.next()
				f.wantReady("tools", "wrong", v1alpha1.ReasonInvalidSpec, "receivers[oncall]")
				f.wantReady("payments", "team", v1alpha1.ReasonSucceeded)
				f.wantReady(hub, "platform", v1alpha1.ReasonSucceeded)
			})
		}
	}
}
