// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/pagetest"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

// TestPageTest tests whom two policies notify, while PagerDuty works and while it refuses the key.
func TestPageTest(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	client, err := api.Endpoint{URL: f.managers[0].URL()}.Client()
	if err != nil {
		t.Fatal(err)
	}
	test := func(namespace, name, severity string) *pagetest.Result {
		result, err := pagetest.Run(
			t.Context(),
			client,
			pagetest.Test{Severity: severity, By: "anna", Patience: patience,
				Policy: types.NamespacedName{Namespace: namespace, Name: name}},
		)
		if err != nil {
			t.Fatalf("%v; result %+v; ledger %+v", err, result, f.events.Ledger())
		}
		return result
	}
	if r := test(platform, "platform", "page"); r.Problem() != "" || r.Notified["pagerduty"].Accepted != 1 {
		t.Errorf("result %+v, want a page that PagerDuty accepted", r)
	}
	if r := test(platform, "platform", "ticket"); r.Problem() != "" || r.Notified["webhook"].Accepted != 1 {
		t.Errorf("result %+v, want a ticket that the tracker accepted", r)
	}
	r := test(payments, "team", "page")
	l := f.events.Ledger()
	in, known := l.Incident(payments, r.DedupKey)
	if r.Problem() != "" || len(l.Incidents) != 2 || !known || in.State != pagerduty.Resolved || in.Opened != 1 {
		t.Errorf("result %+v and incidents %+v, want one of each policy, resolved", r, l.Incidents)
	}
	if err := f.events.SetFaults(pagerduty.Faults{Rejected: []string{payments}}); err != nil {
		t.Fatal(err)
	}
	if r := test(payments, "team", "page"); r.Problem() == "" || r.Notified["pagerduty"].Failed == 0 {
		t.Errorf("result %+v, want it failed: PagerDuty refuses the key", r)
	}
}
