// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/fleet"
)

// TestLeftBehind: all that the hub releases is recorded, and nothing that an agent
// still may carry out.
func TestLeftBehind(t *testing.T) {
	const echo = "team.echo: echo.v1.2.0, package echo, namespace echo-system"
	const byTimeout = "spec.offboardingTimeout (24h0m0s)"
	reported := now.Add(-time.Hour).Format(time.RFC3339)
	tests := map[string]struct {
		change     func(*fleet.Input)
		operators  []string
		why        string
		lastReport string
	}{
		"not leaving":                    {change: func(*fleet.Input) {}},
		"an online agent":                {change: leaving(v1alpha1.RemovalUninstall)},
		"an offline agent is waited for": {change: offline(leaving(v1alpha1.RemovalUninstall))},
		"the time is over": {overdue(offline(leaving(v1alpha1.RemovalUninstall))), []string{echo},
			"the cluster was unreachable until " + byTimeout, reported},
		"the time of an online agent is over": {overdue(leaving(v1alpha1.RemovalUninstall)), []string{echo},
			"did not release them within " + byTimeout, now.Format(time.RFC3339)},
		"Orphan does not wait": {offline(leaving(v1alpha1.RemovalOrphan)), []string{echo},
			"the cluster was unreachable, and spec.offboarding is Orphan", reported},
		"the namespace is gone": {func(in *fleet.Input) {
			leaving(v1alpha1.RemovalUninstall)(in)
			in.Namespace = fleet.NamespaceTerminating
		}, []string{echo}, "the namespace of the cluster on the hub was deleted", now.Format(time.RFC3339)},
		"two, of which one was never reported, and one that no agent took up": {overdue(func(in *fleet.Input) {
			leaving(v1alpha1.RemovalUninstall)(in)
			unknown, untouched := in.Operators[0], in.Operators[0]
			unknown.Name, unknown.Bundle, unknown.Package, unknown.Target = "team.alpha", "", "", ""
			untouched.Name, untouched.Held = "team.beta", false
			in.Operators = append(in.Operators, unknown, untouched)
		}), []string{"team.alpha: no installed version reported", echo}, "did not release",
			now.Format(time.RFC3339)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := healthy()
			in.Cluster.UID = "0a1b2c3d-ffff"
			o := &in.Operators[0]
			o.Bundle, o.Package, o.Target = "echo.v1.2.0", "echo", "echo-system"
			test.change(&in)
			got := fleet.Next(in).LeftBehind
			if test.operators == nil {
				if got != nil {
					t.Fatalf("recorded: %+v", got)
				}
				return
			}
			if got == nil {
				t.Fatal("nothing is recorded")
			}
			if diff := cmp.Diff(test.operators, got.Operators); diff != "" {
				t.Errorf("operators (-want +got):\n%s", diff)
			}
			if !strings.Contains(got.Why, test.why) || got.LastReport != test.lastReport {
				t.Errorf("why %q, last report %s; want %q, %s", got.Why, got.LastReport, test.why, test.lastReport)
			}
			if got.Name != "bellwether-left-behind-prod-0a1b2c3d" {
				t.Errorf("name %s", got.Name)
			}
		})
	}
}

// TestLeavingSaysWhatItWaitsFor reads the messages.
func TestLeavingSaysWhatItWaitsFor(t *testing.T) {
	tests := map[string]struct {
		change func(*fleet.Input)
		says   []string
	}{
		"an online agent": {leaving(v1alpha1.RemovalUninstall), []string{"waiting for the agent to release team.echo",
			"until 2026-11-22T10:00:00Z (spec.offboardingTimeout: 24h0m0s)"}},
		"an offline one": {offline(leaving(v1alpha1.RemovalUninstall)), []string{"the agent is offline",
			"until 2026-11-22T10:00:00Z", "operators stay installed"}},
		"nobody": {overdue(leaving(v1alpha1.RemovalUninstall)), []string{"the hub releases team.echo without the agent",
			"label bellwether.dev/left-behind=prod"}},
		"somebody else": {func(in *fleet.Input) {
			leaving(v1alpha1.RemovalOrphan)(in)
			in.Operators[0].Held, in.Operators[0].Deleting = false, true
			in.Operators[0].Finalizers = []string{"example.com/keep"}
		}, []string{"team.echo (finalizers: example.com/keep)"}},
		"what is in the namespace": {func(in *fleet.Input) {
			leaving(v1alpha1.RemovalOrphan)(in)
			in.Operators, in.Namespace = nil, fleet.NamespaceTerminating
			in.Remaining = "Some content in the namespace has finalizers remaining: example.com/keep in 1 resource"
		}, []string{"namespace bellwether-prod is being deleted: Some content", "example.com/keep"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := healthy()
			test.change(&in)
			message := conditions.Get(fleet.Next(in).Status.Conditions, v1alpha1.ConditionReady).Message
			for _, text := range test.says {
				if !strings.Contains(message, text) {
					t.Errorf("%q is not in: %s", text, message)
				}
			}
		})
	}
}

// TestDeadlineCountsFromTheDeletion checks that a restarted hub does not start the time again, and that a hub whose
// clock is behind the API server's clock waits longer, but not forever.
func TestDeadlineCountsFromTheDeletion(t *testing.T) {
	for age, released := range map[time.Duration]bool{
		-time.Minute: false, 0: false, time.Hour - time.Second: false, time.Hour: true, 100 * time.Hour: true,
	} {
		in := healthy()
		leaving(v1alpha1.RemovalUninstall)(&in)
		in.Cluster.DeletionTimestamp = &metav1.Time{Time: now.Add(-age)}
		in.Cluster.Spec.OffboardingTimeout = &metav1.Duration{Duration: time.Hour}
		got := fleet.Next(in)
		if (got.LeftBehind != nil) != released || got.Removals[0].Release != released {
			t.Errorf("after %s: left behind %v, removals %v", age, got.LeftBehind, got.Removals)
		}
	}
}
