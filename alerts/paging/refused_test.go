// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging_test

import (
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
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
		for _, kind := range []paging.Kind{paging.KindSecret, paging.KindObject} {
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

// TestPagerDutyHosts has a policy with a URL of a host that the hub's administrator does not permit: Alertmanager
// and the hub would send its routing key, and requests that the policy's author chooses, to that host.
func TestPagerDutyHosts(t *testing.T) {
	for address, permitted := range map[string]bool{
		"": true,
		"https://events.eu.pagerduty.com/v2/enqueue": true,
		"http://proxy.internal:8080/v2/enqueue":      true,
		"https://collector.example.com/v2/enqueue":   false,
		"http://169.254.169.254/v2/enqueue":          false,
		"http://alertmanager:9093/v2/enqueue":        false,
	} {
		f := newFixture(t)
		f.in.PagerDuty = []string{"proxy.internal:8080"}
		f.policy("tools", "team", v1alpha1.PagingNamespace).Spec.Receivers[0].PagerDuty.URL = address
		f.next()
		if permitted {
			f.wantReady("tools", "team", v1alpha1.ReasonSucceeded)
		} else {
			f.wantReady("tools", "team", v1alpha1.ReasonInvalidSpec, "receivers[oncall].pagerDuty.url",
				"is no host of PagerDuty", "hub.paging.pagerDutyHosts")
		}
	}
}
