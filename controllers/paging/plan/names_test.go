// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/paging/plan"
)

func TestNameOfADeletedFleetPolicy(t *testing.T) {
	w := newWorld(t)
	w.next()
	w.in.Policies = nil
	w.policy(hub, "platform", v1alpha1.PagingNamespace)
	w.policy("payments", "team", v1alpha1.PagingNamespace)
	w.next()
	w.wantReady(hub, "platform", v1alpha1.ReasonPolicyConflict, "another name")
	w.wantReady("payments", "team", v1alpha1.ReasonSucceeded)
	w.wantRouted(map[string]string{"tools/echo": toPlatform, "payments/echo": toTeam,
		"payments/ledger": "payments/team" + toCritical})
	w.policy(hub, "new", v1alpha1.PagingFleet)
	w.next()
	w.wantReady(hub, "platform", v1alpha1.ReasonSucceeded)
}

// TestFleetPolicyWithTheNameOfAnother is wrong, so that what was written of its name is
// not the fleet's.
func TestFleetPolicyWithTheNameOfAnother(t *testing.T) {
	w := newWorld(t)
	w.policy(hub, "other", v1alpha1.PagingNamespace)
	w.next()
	w.in.Policies = nil
	w.policy(hub, "other", v1alpha1.PagingFleet)
	w.in.Secrets[plan.SecretRef{Namespace: hub, Name: "pagerduty", Key: "key"}] = plan.Secret{Problem: "gone"}
	w.policy("payments", "team", v1alpha1.PagingNamespace)
	w.next()
	w.wantReady(hub, "other", v1alpha1.ReasonSecretUnavailable)
	w.wantReady("payments", "team", v1alpha1.ReasonSucceeded)
}

func TestNothingWasEverWritten(t *testing.T) {
	w := newWorld(t)
	w.in.Secrets[plan.SecretRef{Namespace: hub, Name: "pagerduty", Key: "key"}] = plan.Secret{Problem: "gone"}
	w.policy("payments", "team", v1alpha1.PagingNamespace)
	w.next()
	w.wantReady(hub, "platform", v1alpha1.ReasonSecretUnavailable, "nobody is notified")
	w.wantReady("payments", "team", v1alpha1.ReasonNoFleetPolicy, "nobody is notified")
}

// TestConflictMovesNoOperator has the team of an operator change, so that two policies
// select it: it stays where it was.
func TestConflictMovesNoOperator(t *testing.T) {
	w := newWorld(t)
	w.policy("payments", "first", v1alpha1.PagingNamespace).Spec.Teams = []string{"money"}
	w.policy("payments", "second", v1alpha1.PagingNamespace).Spec.Operators = []string{"ledger"}
	w.next()
	before := w.routed()
	for i := range w.in.SLOs {
		w.in.SLOs[i].Spec.Team = "money"
	}
	w.next()
	w.wantReady("payments", "first", v1alpha1.ReasonPolicyConflict, "ledger")
	w.wantReady("payments", "second", v1alpha1.ReasonPolicyConflict, "ledger")
	before["payments/echo"] = "payments/first/standard"
	w.wantRouted(before)
	w.next()
	w.wantRouted(before)
}
