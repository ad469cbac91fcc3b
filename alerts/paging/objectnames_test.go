// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging_test

import (
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func TestNameOfADeletedFleetPolicy(t *testing.T) {
	f := newFixture(t)
	f.next()
	f.in.Policies = nil
	f.policy(hub, "platform", v1alpha1.PagingNamespace)
	f.policy("payments", "team", v1alpha1.PagingNamespace)
	f.next()
	f.wantReady(hub, "platform", v1alpha1.ReasonPolicyConflict, "another name")
	f.wantReady("payments", "team", v1alpha1.ReasonSucceeded)
	f.wantRouted(map[string]string{"tools/echo": toPlatform, "payments/echo": toTeam,
		"payments/ledger": "payments/team" + toCritical})
	f.policy(hub, "new", v1alpha1.PagingFleet)
	f.next()
	f.wantReady(hub, "platform", v1alpha1.ReasonSucceeded)
}

// TestFleetPolicyWithTheNameOfAnother has an invalid fleet policy, so
// that the written policy with its name is not the fleet's policy.
func TestFleetPolicyWithTheNameOfAnother(t *testing.T) {
	f := newFixture(t)
	f.policy(hub, "other", v1alpha1.PagingNamespace)
	f.next()
	f.in.Policies = nil
	f.policy(hub, "other", v1alpha1.PagingFleet)
	f.in.Secrets[paging.SecretRef{Namespace: hub, Name: "pagerduty", Key: "key"}] = paging.Secret{Problem: "gone"}
	f.policy("payments", "team", v1alpha1.PagingNamespace)
	f.next()
	f.wantReady(hub, "other", v1alpha1.ReasonSecretUnavailable)
	f.wantReady("payments", "team", v1alpha1.ReasonSucceeded)
}

func TestNothingWasEverWritten(t *testing.T) {
	f := newFixture(t)
	f.in.Secrets[paging.SecretRef{Namespace: hub, Name: "pagerduty", Key: "key"}] = paging.Secret{Problem: "gone"}
	f.policy("payments", "team", v1alpha1.PagingNamespace)
	f.next()
	f.wantReady(hub, "platform", v1alpha1.ReasonSecretUnavailable, "no user is notified")
	f.wantReady("payments", "team", v1alpha1.ReasonNoFleetPolicy, "no user is notified")
}

// TestConflictMovesNoOperator has the team of an operator change, so that two policies
// select it: it stays where it was.
func TestConflictMovesNoOperator(t *testing.T) {
	f := newFixture(t)
	f.policy("payments", "first", v1alpha1.PagingNamespace).Spec.Teams = []string{"money"}
	f.policy("payments", "second", v1alpha1.PagingNamespace).Spec.Operators = []string{"ledger"}
	f.next()
	before := f.routed()
	for i := range f.in.SLOs {
		f.in.SLOs[i].Spec.Team = "money"
	}
	f.next()
	f.wantReady("payments", "first", v1alpha1.ReasonPolicyConflict, "ledger")
	f.wantReady("payments", "second", v1alpha1.ReasonPolicyConflict, "ledger")
	before["payments/echo"] = "payments/first/standard"
	f.wantRouted(before)
	f.next()
	f.wantRouted(before)
}
