// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

var (
	noon  = metav1.NewTime(time.Date(2026, 11, 24, 12, 0, 0, 0, time.FixedZone("CET", 3600)))
	ready = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Succeeded",
		Message: "all is well"}}
)

// format returns the rows of facts: the table, and each column that is not NULL.
func format(t *testing.T, all []Facts) string {
	t.Helper()
	var b strings.Builder
	for _, f := range all {
		if err := f.Check(); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(&b, "%s of %s:", f.Table.Name, strings.Join(f.Owner, "/"))
		for _, row := range f.Rows {
			fmt.Fprintf(&b, "\n  %s:", strings.Join(row.Key, "/"))
			for i, value := range row.Values {
				if value != nil {
					fmt.Fprintf(&b, "\n    %s=%v", f.Table.Values[i].Name, value)
				}
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestFactsOfObjects shows what is recorded of each kind.
func TestFactsOfObjects(t *testing.T) {
	name := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	cluster := &v1alpha1.FleetCluster{ObjectMeta: name("", "prod-1"),
		Spec: v1alpha1.FleetClusterSpec{Paused: true, SourceRef: &v1alpha1.SourceReference{Kind: "ClusterDeployment",
			Namespace: "hive", Name: "prod-1"}},
		Status: v1alpha1.FleetClusterStatus{StaleSince: &noon, Conditions: slices.Clone(ready),
			Versions: v1alpha1.ClusterVersions{Agent: "v1.0.0", Kubernetes: "v1.34.1", OLM: "0.46.0"},
			Freeze:   &v1alpha1.ClusterFreeze{Name: "holidays"}, Veto: &v1alpha1.ClusterVeto{Reason: "audit"}}}
	cluster.Labels = map[string]string{"region": "eu", "env": "prod"}
	conditions.Set(&cluster.Status.Conditions, 1, v1alpha1.ConditionOnline, false, "Offline", "no report")
	operator := &v1alpha1.ManagedOperator{ObjectMeta: name("team-a", "echo"),
		Spec: v1alpha1.ManagedOperatorSpec{Package: "echo-operator", Catalog: v1alpha1.LocalReference{Name: "main"},
			Version: ">=1.0.0"},
		Status: v1alpha1.ManagedOperatorStatus{Conditions: ready,
			Target:    &v1alpha1.TargetVersion{Version: "1.2.0", Channel: "stable"},
			Available: &v1alpha1.AvailableVersion{Version: "2.0.0"},
			Clusters:  v1alpha1.ClusterCounts{Selected: 3, Updated: 2, Ready: 1},
			Decisions: &v1alpha1.DecisionLog{Entries: []v1alpha1.Decision{
				{
					At:      noon,
					By:      "anna",
					What:    v1alpha1.DecisionApproved,
					Rollout: "echo-2",
					On:      "canary/people",
					Reason:  "tested",
				},
				{At: noon, What: v1alpha1.DecisionPaused}}}}}
	install := &v1alpha1.OperatorInstall{ObjectMeta: name("bellwether-prod-1", "team-a.echo"),
		Spec: v1alpha1.OperatorInstallSpec{Cluster: "prod-1",
			Operator: v1alpha1.OperatorReference{Namespace: "team-a", Name: "echo"},
			Admission: &v1alpha1.Admission{Rollout: "echo-2", Wave: "canary",
				Release: v1alpha1.Release{Version: "1.2.0"}}},
		Status: v1alpha1.OperatorInstallStatus{
			Installed: &v1alpha1.InstalledVersion{Bundle: "echo.v1.1.0", Version: "1.1.0"},
		}}
	conditions.Set(&install.Status.Conditions, 1, v1alpha1.ConditionReady, false, "Progressing", "upgrading")
	conditions.Set(&install.Status.Conditions, 1, v1alpha1.ConditionDrifted, true, "Drifted", "replicas 3 instead of 1")
	catalog := &v1alpha1.OperatorCatalog{ObjectMeta: name("team-a", "main"),
		Status: v1alpha1.OperatorCatalogStatus{Packages: []v1alpha1.CatalogPackage{{Name: "echo-operator",
			Versions: []v1alpha1.CatalogVersion{{Bundle: "echo.v1.2.0", Version: "1.2.0", Blocked: "loses data",
				EndOfSupport: "2027-01-31"}},
			Channels: []v1alpha1.CatalogChannel{{Name: "stable", Head: "1.2.0", Versions: 4}}}}}}
	rollout := &v1alpha1.OperatorRollout{ObjectMeta: name("team-a", "echo-2"),
		Spec: v1alpha1.OperatorRolloutSpec{Operator: v1alpha1.LocalReference{Name: "echo"}, Revision: 2,
			Release:  v1alpha1.Release{Version: "1.1.0"},
			Rollback: &v1alpha1.RolloutRollback{Of: "echo-1", Reason: "too many failures"}},
		Status: v1alpha1.OperatorRolloutStatus{
			Phase:       v1alpha1.RolloutHalted,
			Message:     "a gate failed",
			StartedAt:   &noon,
			CurrentWave: "canary",
			Clusters:    v1alpha1.WaveCounts{Total: 3, Succeeded: 1, Failed: 1},
			Waves: []v1alpha1.WaveStatus{{Name: "canary", Phase: v1alpha1.WaveVerifying, StartedAt: &noon,
				WaveCounts: v1alpha1.WaveCounts{Total: 2, Succeeded: 1, Failed: 1},
				Gates: []v1alpha1.GateStatus{{Name: "budget", Verdict: v1alpha1.GateFailed, DecidedAt: &noon,
					Evidence: "burn rate 20", Measurement: &v1alpha1.GateMeasurement{Value: "20", Threshold: "14.4"}}}},
				{Name: "rest", Phase: v1alpha1.WaveWaiting, WaveCounts: v1alpha1.WaveCounts{Total: 1}}},
		}}

	got := format(t, slices.Concat(OfCluster(cluster), OfOperator(operator), OfInstall(install), OfCatalog(catalog),
		OfRollout(rollout)))
	want := `clusters of prod-1:
  prod-1:
    labels={"env":"prod","region":"eu"}
    online=False
    stale_since=2026-11-24T11:00:00Z
    ready=True
    reason=Succeeded
    message=all is well
    agent=v1.0.0
    kubernetes=v1.34.1
    olm=0.46.0
    paused=1
    freeze=holidays
    veto=audit
    source=ClusterDeployment hive/prod-1
operators of team-a/echo:
  team-a/echo:
    package=echo-operator
    catalog=main
    wanted=>=1.0.0
    target=1.2.0
    channel=stable
    waiting_version=2.0.0
    paused=0
    ready=True
    reason=Succeeded
    message=all is well
    selected=3
    updated=2
    ready_clusters=1
decisions of team-a/echo:
  team-a/echo/2026-11-24T11:00:00Z/Approved/echo-2/canary/people/anna:
    reason=tested
  team-a/echo/2026-11-24T11:00:00Z/Paused///:
installs of team-a/echo/prod-1:
  team-a/echo/prod-1:
    version=1.1.0
    admitted_version=1.2.0
    rollout=echo-2
    wave=canary
    ready=False
    reason=Progressing
    message=upgrading
drift of team-a/echo/prod-1:
  team-a/echo/prod-1:
    reason=Drifted
    message=replicas 3 instead of 1
versions of team-a/main:
  team-a/main/echo-operator/echo.v1.2.0:
    version=1.2.0
    blocked=loses data
    end_of_support=2027-01-31
    absent=0
channels of team-a/main:
  team-a/main/echo-operator/stable:
    head=1.2.0
    versions=4
rollouts of team-a/echo-2:
  team-a/echo-2:
    operator=echo
    revision=2
    version=1.1.0
    phase=Halted
    current_wave=canary
    started_at=2026-11-24T11:00:00Z
    rollback_of=echo-1
    rollback_reason=too many failures
    paused=0
    message=a gate failed
    total=3
    succeeded=1
    failed=1
waves of team-a/echo-2:
  team-a/echo-2/canary:
    position=1
    phase=Verifying
    started_at=2026-11-24T11:00:00Z
    total=2
    succeeded=1
    failed=1
    deferred=0
  team-a/echo-2/rest:
    position=2
    phase=Waiting
    total=1
    succeeded=0
    failed=0
    deferred=0
gates of team-a/echo-2:
  team-a/echo-2/canary/budget:
    verdict=Failed
    approval=0
    decided_at=2026-11-24T11:00:00Z
    evidence=burn rate 20
    value=20
    threshold=14.4
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFactsOfNewObjects are objects without a status.
func TestFactsOfNewObjects(t *testing.T) {
	got := format(t, slices.Concat(OfCluster(&v1alpha1.FleetCluster{}), OfOperator(&v1alpha1.ManagedOperator{}),
		OfInstall(&v1alpha1.OperatorInstall{}), OfCatalog(&v1alpha1.OperatorCatalog{}),
		OfRollout(&v1alpha1.OperatorRollout{})))
	if !strings.Contains(got, "installs of") {
		t.Error(got)
	}
}

// TestDecideVisible decides what users with several rights see.
func TestDecideVisible(t *testing.T) {
	clusters := []v1alpha1.FleetCluster{
		{ObjectMeta: metav1.ObjectMeta{Name: "eu-1", Labels: map[string]string{"region": "eu"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "us-1", Labels: map[string]string{"region": "us"}}},
	}
	access := []v1alpha1.FleetAccess{{Spec: v1alpha1.FleetAccessSpec{Namespaces: []string{"team-*"},
		ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}}}}
	for name, c := range map[string]struct {
		rights Rights
		access []v1alpha1.FleetAccess
		want   Visible
	}{
		"an administrator": {Rights{ListsClusters: true, ListsOperators: true}, access,
			Visible{AllClusters: true, AllNamespaces: true}},
		"a team": {Rights{Namespaces: []string{"team-a"}}, access,
			Visible{Clusters: []string{"eu-1"}, Namespaces: []string{"team-a"}}},
		"a team without access": {Rights{Namespaces: []string{"other"}}, access,
			Visible{Namespaces: []string{"other"}}},
		"a team, without FleetAccess": {Rights{Namespaces: []string{"team-a"}}, nil,
			Visible{Namespaces: []string{"team-a"}}},
		"a team that lists clusters": {Rights{ListsClusters: true, Namespaces: []string{"team-a"}}, nil,
			Visible{AllClusters: true, Namespaces: []string{"team-a"}}},
		"nobody": {Rights{}, access, Visible{}},
	} {
		if diff := cmp.Diff(c.want, DecideVisible(c.rights, c.access, clusters)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestParseTime reads the times that people write.
func TestParseTime(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2026-11-20": "2026-11-20T00:00:00Z", "2026-11-20T10:00": "2026-11-20T10:00:00Z",
		"2026-11-20T10:00Z": "2026-11-20T10:00:00Z", "2026-11-20T10:00:05+01:00": "2026-11-20T09:00:05Z",
		"2026-11-20 10:00": "2026-11-20T10:00:00Z", "-2h": "2026-11-24T10:00:00Z", "-7d": "2026-11-17T12:00:00Z",
		"-1w": "2026-11-17T12:00:00Z", " -90m ": "2026-11-24T10:30:00Z",
	} {
		if got, err := ParseTime(text, now); err != nil || FormatTime(got) != want {
			t.Errorf("%q is %s, error %v, want %s", text, FormatTime(got), err, want)
		}
	}
	for _, text := range []string{"", "now", "yesterday", "-1 day", "7d", "--2h", "-99999999999999d", "2026"} {
		if got, err := ParseTime(text, now); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}
