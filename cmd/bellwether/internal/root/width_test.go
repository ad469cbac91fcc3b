// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
)

const longText = "the owner of the cluster refuses changes until the quarter is closed: see " +
	"https://tickets.example.com/browse/FINANCE-12345 and ask team-payments-platform before anything is changed there"

// realisticFleet returns a hub with names as long as in real fleets, and with long messages.
func realisticFleet(t *testing.T) *clitest.Hub {
	t.Helper()
	r, o := fixture.HaltedRollout(), fixture.Operator()
	r.Spec.WindowOverride = &v1alpha1.WindowOverride{By: "system:serviceaccount:team:bot", Reason: longText}
	r.Status.Policies = []v1alpha1.AppliedPolicy{{Name: "production-clusters-soak-for-a-day",
		Waves: []string{"canary", "prod", "rest"}, Added: []string{"soak of 24h0m0s", longText}}}
	r.Status.HeldBack = []v1alpha1.HeldBackClusters{{Reason: v1alpha1.ReasonClusterBusy, Count: 12, Message: longText,
		Clusters: []string{"prod-1", "prod-2", "prod-3", "canary-1", "prod-1", "prod-2"},
		Until:    &metav1.Time{Time: fixture.Noon.Add(20 * time.Hour)}}}
	r.Status.Message += ": " + longText
	before := clitest.Rollout("echo", "echo-1", 1, v1alpha1.RolloutAborted)
	before.Spec.Abort = &v1alpha1.RolloutAbort{Reason: longText}
	before.Status.StartedAt, before.Status.EndedAt = fixture.AgoPtr(300*time.Hour), fixture.AgoPtr(299*time.Hour)
	o.Spec.Holds = []v1alpha1.VersionHold{{Version: "1.1.0", Rollout: r.Name, Reason: longText,
		Changes: []string{longText}}}
	o.Spec.ClusterSelector = metav1.LabelSelector{MatchLabels: map[string]string{
		"example.com/team": "payments", "example.com/stage": "production", "region": "eu", "tier": "one",
		"topology.example.com/availability-zone": "eu-central-1"}}
	o.Status.Decisions = &v1alpha1.DecisionLog{Entries: []v1alpha1.Decision{{At: fixture.Ago(30 * time.Hour),
		By: "system:serviceaccount:bellwether-system:bellwether-hub", What: v1alpha1.DecisionRollbackStarted,
		Rollout: r.Name, On: "gate availability-of-issuers of wave prod", Reason: longText}}}
	o.Status.Conditions[1].Message += ": " + longText
	objects := []client.Object{lease("hub", 7*time.Minute), before, r, o, longCatalog(), longSilence(), longBackup()}
	for _, c := range fixture.FleetOfFour() {
		c.Labels = o.Spec.ClusterSelector.MatchLabels
		for i := range c.Status.Conditions {
			c.Status.Conditions[i].Message += ": " + longText
		}
		c.Status.Veto = &v1alpha1.ClusterVeto{Reason: longText, Since: fixture.Ago(time.Hour)}
		objects = append(objects, &c)
	}
	for _, in := range fixture.Installs() {
		maps.Copy(in.Labels, in.Spec.Operator.Labels())
		for i := range in.Status.Conditions {
			in.Status.Conditions[i].Message += ": " + longText
		}
		objects = append(objects, &in)
	}
	for i := range objects {
		objects[i] = fixture.WithRealisticNames(t, objects[i])
	}
	return clitest.NewHub(objects...)
}

func longCatalog() *v1alpha1.OperatorCatalog {
	c := &v1alpha1.OperatorCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "main"}}
	c.Spec.Source.Image = "registry.internal.example.com/mirror/redhat/redhat-operator-index:v4.16"
	c.Status.Digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	c.Status.LastReadTime, c.Status.PackageCount = fixture.AgoPtr(13*time.Minute), 240
	c.Status.Conditions = []metav1.Condition{fixture.Condition(v1alpha1.ConditionReady, false,
		v1alpha1.ReasonVersionBlocked, longText)}
	c.Status.BlockedVersions = []v1alpha1.BlockedVersion{{Clusters: 3, Expired: true, Proposal: longText,
		VersionBlock: v1alpha1.VersionBlock{Package: "echo-operator", Version: "1.1.0", Reason: longText,
			Expires: "2026-01-31"}}}
	c.Status.Packages = []v1alpha1.CatalogPackage{{Name: "echo-operator", OmittedVersions: 40,
		Channels: []v1alpha1.CatalogChannel{{Name: "stable-v1", Head: "1.1.0"}, {Name: "stable-v1.13", Head: "1.1.0"}},
		Versions: []v1alpha1.CatalogVersion{{Version: "1.1.0", Blocked: longText, Clusters: 3,
			Rollbacks: []v1alpha1.CatalogRollback{{From: "echo-operator.v1.0.0", Class: "needs-backup"}}}}}}
	return c
}

func longSilence() *v1alpha1.AlertSilence {
	s := &v1alpha1.AlertSilence{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
		Name: "network-upgrade-of-eu-central-1"}}
	s.Spec.Owner, s.Spec.Reason = "team-payments-platform", longText
	s.Spec.End = metav1.NewTime(fixture.Noon.Add(time.Hour))
	return s
}

func longBackup() *v1alpha1.OperatorBackup {
	b := &v1alpha1.OperatorBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-prod-1",
		Name:   "openshift-cert-manager-operator-20261121-030000",
		Labels: map[string]string{v1alpha1.LabelCluster: "prod-1"}}}
	b.Spec.Operator = v1alpha1.OperatorReference{Namespace: "default", Name: "echo"}
	b.Status.Location = "s3://backups-of-the-fleet/prod-1/default/echo/20261121-030000.tar"
	b.Status.Conditions = []metav1.Condition{fixture.Condition(v1alpha1.ConditionReady, false, "StoreUnreachable",
		longText)}
	return b
}

// TestOutputFitsAScreen: by default, a command that reads the hub prints no line that is wider than 120 columns, with
// names as long as in real fleets, on every kind of output.
func TestOutputFitsAScreen(t *testing.T) {
	const operator, cluster = " openshift-cert-manager-operator", " prod-us-east-2-b12"
	for _, args := range []string{
		"operator list", "operator list -A", "operator get" + operator, "versions", "versions -A",
		"rollout get", "rollout get -A", "rollout get" + operator, "rollout history" + operator,
		"rollout get" + operator + "-11", "rollout plan" + operator,
		"fleet list", "fleet get" + cluster, "fleet get prod-ap-southeast-1-c03",
		"fleet compatibility --kubernetes 1.37", "why" + cluster + operator,
		"why prod-ap-southeast-1-c03" + operator, "why canary-eu-central-1-a01" + operator,
		"oncall handover", "catalog list", "catalog list -A", "catalog get redhat-operators", "silence list",
		"silence list -A", "backup list",
		"backup show prod-eu-central-1-a07 openshift-cert-manager-operator-20261121-030000", "doctor",
	} {
		t.Run(args, func(t *testing.T) {
			got := realisticFleet(t).Run(t, append(strings.Fields(args), "-n", "cert-manager-operator")...)
			if strings.Count(got.Out, "\n") < 2 {
				t.Errorf("it prints nothing: %s", got.Err)
			}
			fixture.AssertWidth(t, args, got.Out)
		})
	}
}

// TestWideOutputHasAll: -o wide cuts and breaks nothing.
func TestWideOutputHasAll(t *testing.T) {
	const operator, cluster = " openshift-cert-manager-operator", " prod-us-east-2-b12"
	for _, args := range []string{"operator list", "operator get" + operator, "rollout get", "rollout get" + operator,
		"rollout history" + operator, "fleet list", "fleet get" + cluster, "why" + cluster + operator, "catalog list",
		"catalog get redhat-operators", "silence list", "backup list"} {
		got := realisticFleet(t).MustRun(t,
			append(strings.Fields(args), "-n", "cert-manager-operator", "-o", "wide")...)
		if !strings.Contains(got.Out, longText) || strings.Contains(got.Out, "…\n") {
			t.Errorf("%s -o wide does not have all:\n%s", args, got.Out)
		}
	}
}
