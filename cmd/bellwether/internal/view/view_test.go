// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with testdata/NAME.txt.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatalf("write golden file: %v", err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read golden file: %v", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); run with -update if it should:\n%s", path, diff)
	}
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

func agoPtr(d time.Duration) *metav1.Time {
	t := ago(d)
	return &t
}

func is(kind string, status bool, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		LastTransitionTime: ago(3 * time.Minute)}
	if status {
		c.Status = metav1.ConditionTrue
	}
	return c
}

func fleetCluster(name, region string, conditions ...metav1.Condition) v1alpha1.FleetCluster {
	return v1alpha1.FleetCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ago(49 * time.Hour),
			Labels: map[string]string{"region": region}},
		Status: v1alpha1.FleetClusterStatus{
			Namespace: "bellwether-" + name, Conditions: conditions,
			Versions:  v1alpha1.ClusterVersions{Agent: "0.1.0", Kubernetes: "v1.36.3", OLM: "0.46.0"},
			Operators: v1alpha1.InstallCounts{Total: 1, Ready: 1},
		},
	}
}

func onlineCluster(name, region string) v1alpha1.FleetCluster {
	return fleetCluster(name, region,
		is(v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded, "the agent reports and OLM is there"),
		is(v1alpha1.ConditionOnline, true, v1alpha1.ReasonLeaseFresh, "the agent renews its Lease"))
}

func fleetOfFour() []v1alpha1.FleetCluster {
	gone := fleetCluster("prod-3", "us",
		is(v1alpha1.ConditionReady, false, v1alpha1.ReasonAgentOffline, "the agent does not report"),
		is(v1alpha1.ConditionOnline, false, v1alpha1.ReasonLeaseExpired,
			"the agent renewed its Lease last at 11:57:00"))
	return []v1alpha1.FleetCluster{onlineCluster("canary-1", "eu"), onlineCluster("prod-1", "eu"),
		onlineCluster("prod-2", "us"), gone}
}

func release(version string) v1alpha1.Release {
	return v1alpha1.Release{Package: "echo-operator", Channel: "stable", Version: version, Bundle: "echo-operator.v" +
		version}
}

// rolloutAt is a rollout of 1.1.0 whose first wave soaked and whose second one
// runs into trouble.
func rolloutAt() *v1alpha1.OperatorRollout {
	wave := func(name string, soak time.Duration) v1alpha1.Wave {
		return v1alpha1.Wave{Name: name, Soak: &metav1.Duration{Duration: soak},
			Deadline: &metav1.Duration{Duration: 10 * time.Minute}}
	}
	rest := wave("rest", 0)
	rest.Gates = []v1alpha1.Gate{{Name: "sre", Approval: &v1alpha1.ApprovalGate{}}}
	return &v1alpha1.OperatorRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "echo-2", UID: "uid-2",
			CreationTimestamp: ago(20 * time.Minute)},
		Spec: v1alpha1.OperatorRolloutSpec{
			Operator: v1alpha1.LocalReference{Name: "echo"}, Revision: 2, Release: release("1.1.0"),
			Strategy: v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("canary", 5*time.Minute),
				wave("prod", 10*time.Minute), rest}},
		},
		Status: v1alpha1.OperatorRolloutStatus{
			Phase: v1alpha1.RolloutHalted, CurrentWave: "prod", StartedAt: agoPtr(19 * time.Minute),
			Message:  "wave prod has 1 failure, 0 are allowed: prod-2",
			Clusters: v1alpha1.WaveCounts{Total: 5, Succeeded: 2, Failed: 1, Deferred: 1, Pending: 1},
			Conditions: []metav1.Condition{
				is(v1alpha1.ConditionReady, false, v1alpha1.ReasonHalted, "wave prod has 1 failure"),
				is(v1alpha1.ConditionStalled, true, v1alpha1.ReasonHalted, "wave prod has 1 failure"),
			},
			Waves: []v1alpha1.WaveStatus{
				{Name: "canary", Phase: v1alpha1.WaveVerified, WaveCounts: v1alpha1.WaveCounts{Total: 1, Succeeded: 1},
					VerifiedAt: agoPtr(12 * time.Minute)},
				{Name: "prod", Phase: v1alpha1.WaveUpdating, MaxConcurrency: 1,
					WaveCounts: v1alpha1.WaveCounts{Total: 3, Succeeded: 1, Failed: 1, Deferred: 1}},
				{
					Name: "rest", Phase: v1alpha1.WaveWaiting, WaveCounts: v1alpha1.WaveCounts{Total: 1, Pending: 1},
					Gates: []v1alpha1.GateStatus{{Name: "sre", Verdict: v1alpha1.GateWaiting,
						Evidence: "not approved yet"}},
				},
			},
		},
	}
}

func install(cluster, wave string, conditions ...metav1.Condition) v1alpha1.OperatorInstall {
	return v1alpha1.OperatorInstall{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "bellwether-" + cluster, Name: "default.echo", Generation: 2,
			Labels: map[string]string{v1alpha1.LabelRollout: "echo-2", v1alpha1.LabelWave: wave},
		},
		Spec: v1alpha1.OperatorInstallSpec{
			Cluster: cluster, Operator: v1alpha1.OperatorReference{Namespace: "default", Name: "echo"},
			Admission: &v1alpha1.Admission{
				Rollout: "echo-2", RolloutUID: "uid-2", Revision: 2, Wave: wave, Hash: release("1.1.0").Hash(),
				AdmittedAt: ago(4 * time.Minute), Release: release("1.1.0"),
			},
		},
		Status: v1alpha1.OperatorInstallStatus{ObservedGeneration: 2, Conditions: conditions},
	}
}

func updated(cluster, wave string) v1alpha1.OperatorInstall {
	in := install(cluster, wave, is(v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded, "1.1.0 runs"),
		is(v1alpha1.ConditionCatalogServed, true, v1alpha1.ReasonSucceeded, ""),
		is(v1alpha1.ConditionResolved, true, v1alpha1.ReasonSucceeded, ""),
		is(v1alpha1.ConditionPlanApproved, true, v1alpha1.ReasonSucceeded, ""),
		is(v1alpha1.ConditionInstalled, true, v1alpha1.ReasonSucceeded, ""))
	in.Status.SucceededHash, in.Status.SucceededAt = release("1.1.0").Hash(), agoPtr(2*time.Minute)
	in.Status.Installed = &v1alpha1.InstalledVersion{Bundle: "echo-operator.v1.1.0", Version: "1.1.0",
		Phase: "Succeeded"}
	return in
}

func failing(cluster, wave string) v1alpha1.OperatorInstall {
	const text = "CSV echo-operator.v1.1.0 is Failed: deployment echo-operator is not available"
	in := install(cluster, wave,
		is(v1alpha1.ConditionReady, false, v1alpha1.ReasonCSVFailed, text),
		is(v1alpha1.ConditionStalled, true, v1alpha1.ReasonCSVFailed, text),
		is(v1alpha1.ConditionCatalogServed, true, v1alpha1.ReasonSucceeded, ""),
		is(v1alpha1.ConditionResolved, true, v1alpha1.ReasonSucceeded, ""),
		is(v1alpha1.ConditionPlanApproved, true, v1alpha1.ReasonSucceeded, ""),
		is(v1alpha1.ConditionInstalled, false, v1alpha1.ReasonCSVFailed, text))
	in.Status.Installed = &v1alpha1.InstalledVersion{Bundle: "echo-operator.v1.0.0", Version: "1.0.0",
		Phase: "Replacing"}
	in.Status.Path = []string{"echo-operator.v1.1.0"}
	in.Status.Objects = v1alpha1.InstallObjects{Namespace: "echo", CatalogSource: "echo-view", Subscription: "echo",
		InstallPlan: "install-x7"}
	return in
}

func waitingInstall(cluster, wave string) v1alpha1.OperatorInstall {
	in := install(cluster, wave, is(v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded, "1.0.0 runs"))
	in.Spec.Admission.RolloutUID, in.Spec.Admission.Rollout = "uid-1", "echo-1"
	in.Spec.Admission.Release = release("1.0.0")
	in.Status.Installed = &v1alpha1.InstalledVersion{Bundle: "echo-operator.v1.0.0", Version: "1.0.0",
		Phase: "Succeeded"}
	return in
}

func installs() []v1alpha1.OperatorInstall {
	return []v1alpha1.OperatorInstall{
		updated("canary-1", "canary"), updated("prod-1", "prod"), failing("prod-2", "prod"),
		waitingInstall("prod-3", "prod"),
	}
}

func operator() *v1alpha1.ManagedOperator {
	return &v1alpha1.ManagedOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "echo", CreationTimestamp: ago(49 * time.Hour)},
		Spec: v1alpha1.ManagedOperatorSpec{Package: "echo-operator",
			Catalog: v1alpha1.LocalReference{Name: "main"}, Version: "1.1.0"},
		Status: v1alpha1.ManagedOperatorStatus{
			Target: &v1alpha1.TargetVersion{Version: "1.1.0", Bundle: "echo-operator.v1.1.0", Channel: "stable",
				CatalogDigest: "sha256:abc"},
			Rollout:  &v1alpha1.RolloutSummary{Name: "echo-2", Revision: 2, Phase: v1alpha1.RolloutHalted},
			Clusters: v1alpha1.ClusterCounts{Selected: 4, Updated: 2, Ready: 3, Offline: 1},
			Conditions: []metav1.Condition{
				is(v1alpha1.ConditionReady, false, v1alpha1.ReasonHalted, "rollout echo-2 is halted"),
				is(v1alpha1.ConditionStalled, true, v1alpha1.ReasonHalted, "rollout echo-2 is halted"),
			},
		},
	}
}

func TestLists(t *testing.T) {
	catalogs := []v1alpha1.OperatorCatalog{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "main"},
		Spec:       v1alpha1.OperatorCatalogSpec{Source: v1alpha1.CatalogSource{Image: "registry.example.com/catalogs/main:latest"}},
		Status: v1alpha1.OperatorCatalogStatus{
			Digest: "sha256:0123456789abcdef0123456789abcdef", PackageCount: 2, LastReadTime: agoPtr(time.Hour),
			Conditions:      []metav1.Condition{is(v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded, "")},
			BlockedVersions: []v1alpha1.BlockedVersion{{Clusters: 2}, {Clusters: 1}, {}},
		},
	}}
	old := *rolloutAt()
	old.Name, old.Spec.Revision, old.Spec.Release = "echo-1", 1, release("1.0.0")
	old.Status = v1alpha1.OperatorRolloutStatus{
		Phase: v1alpha1.RolloutSucceeded, StartedAt: agoPtr(48 * time.Hour), EndedAt: agoPtr(47 * time.Hour),
		Clusters: v1alpha1.WaveCounts{Total: 5, Succeeded: 5},
	}
	rollouts := []v1alpha1.OperatorRollout{old, *rolloutAt()}
	brief, wide := Listing{Now: noon}, Listing{Now: noon, Wide: true, Namespaces: true}
	for name, table := range map[string]*Table{
		"clusters": Clusters(fleetOfFour(), brief), "clusters-wide": Clusters(fleetOfFour(), wide),
		"operators":      Operators([]v1alpha1.ManagedOperator{*operator()}, brief),
		"operators-wide": Operators([]v1alpha1.ManagedOperator{*operator()}, wide),
		"rollouts":       Rollouts(rollouts, brief), "rollouts-wide": Rollouts(rollouts, wide),
		"history": History(rollouts, brief), "catalogs": Catalogs(catalogs, brief),
		"versions":      Versions(VersionRows([]v1alpha1.ManagedOperator{*operator()}, installs()), brief),
		"versions-wide": Versions(VersionRows([]v1alpha1.ManagedOperator{*operator()}, installs()), wide),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, table.Render(Style{})) })
	}
}

func TestRollout(t *testing.T) {
	soaking := rolloutAt()
	soaking.Status.Phase, soaking.Status.Message = v1alpha1.RolloutProgressing, "wave prod soaks until 12:06:00"
	soaking.Status.Waves[1] = v1alpha1.WaveStatus{
		Name: "prod", Phase: v1alpha1.WaveSoaking, WaveCounts: v1alpha1.WaveCounts{Total: 3, Succeeded: 3},
		UpdatedAt: agoPtr(4 * time.Minute),
	}
	gated := rolloutAt()
	gated.Status.Phase, gated.Status.Message = v1alpha1.RolloutProgressing, "wave rest waits for an approval"
	gated.Status.Waves[1].Phase = v1alpha1.WaveVerified
	gated.Status.Waves[2].Phase = v1alpha1.WaveGated
	paused := rolloutAt()
	paused.Spec.Paused, paused.Spec.PausedReason, paused.Status.Phase = true, "incident 4711", v1alpha1.RolloutPaused
	pending := rolloutAt()
	pending.Status = v1alpha1.OperatorRolloutStatus{}
	for name, test := range map[string]struct {
		rollout *v1alpha1.OperatorRollout
		style   Style
	}{
		"halted":   {rollout: rolloutAt()},
		"coloured": {rollout: rolloutAt(), style: Style{Colour: true, Width: 100}},
		"narrow":   {rollout: rolloutAt(), style: Style{Width: 60}},
		"soaking":  {rollout: soaking},
		"gated":    {rollout: gated},
		"paused":   {rollout: paused},
		"pending":  {rollout: pending},
	} {
		t.Run(name, func(t *testing.T) {
			in := RolloutInput{Now: noon, Rollout: test.rollout, Installs: installs(), Clusters: fleetOfFour()}
			golden(t, "rollout-"+name, Rollout(in, test.style))
		})
	}
}

func TestBar(t *testing.T) {
	for name, test := range map[string]struct {
		counts v1alpha1.WaveCounts
		want   string
	}{
		"empty":    {want: "··········"},
		"none yet": {counts: v1alpha1.WaveCounts{Total: 4, Pending: 4}, want: "··········"},
		"all":      {counts: v1alpha1.WaveCounts{Total: 4, Succeeded: 4}, want: "██████████"},
		"nearly all": {counts: v1alpha1.WaveCounts{Total: 1000, Succeeded: 999, InProgress: 1},
			want: "█████████▒"},
		"one of many": {counts: v1alpha1.WaveCounts{Total: 1000, Failed: 1, Pending: 999}, want: "x·········"},
		"half and failed": {counts: v1alpha1.WaveCounts{Total: 4, Succeeded: 2, Failed: 1, InProgress: 1},
			want: "█████▒▒xxx"},
		"removed are gone": {counts: v1alpha1.WaveCounts{Total: 4, Succeeded: 2, Removed: 2}, want: "██████████"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, bar(test.counts, 10)); diff != "" {
				t.Errorf("bar (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRolloutChanges(t *testing.T) {
	look := func(change func(*v1alpha1.OperatorRollout)) RolloutInput {
		r := rolloutAt()
		change(r)
		return RolloutInput{Now: noon, Rollout: r, Clusters: fleetOfFour()}
	}
	same := look(func(*v1alpha1.OperatorRollout) {})
	withFailure := same
	withFailure.Installs = installs()[2:3]
	for name, test := range map[string]struct {
		before, after RolloutInput
		want          []string
	}{
		"the first look": {after: same, want: []string{
			"echo-2  Halted  wave prod has 1 failure, 0 are allowed: prod-2",
			"echo-2  wave canary  Verified: 1/1 updated",
			"echo-2  wave prod  Updating: 1/3 updated, 1 failed, 1 deferred",
		}},
		"nothing": {before: same, after: same},
		"a wave is gated": {
			before: same,
			after:  look(func(r *v1alpha1.OperatorRollout) { r.Status.Waves[2].Phase = v1alpha1.WaveGated }),
			want:   []string{"echo-2  wave rest  Gated: 0/1 updated"},
		},
		"a gate is passed": {
			before: look(func(r *v1alpha1.OperatorRollout) { r.Status.Waves[2].Phase = v1alpha1.WaveGated }),
			after: look(func(r *v1alpha1.OperatorRollout) {
				r.Status.Waves[2].Phase = v1alpha1.WaveGated
				r.Status.Waves[2].Gates[0] = v1alpha1.GateStatus{Name: "sre", Verdict: v1alpha1.GatePassed,
					Evidence: "approved by anna: fine"}
			}),
			want: []string{"echo-2  wave rest  gate sre passed: approved by anna: fine"},
		},
		"a cluster fails": {
			before: same, after: withFailure,
			want: []string{"echo-2  cluster prod-2  Failed CSVFailed: CSV echo-operator.v1.1.0 is Failed: deployment " +
				"echo-operator is not available"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, RolloutChanges(test.before, test.after)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDetails(t *testing.T) {
	cluster := fleetOfFour()[2]
	golden(t, "cluster", Cluster(&cluster, installs()[2:3], noon, Style{}))
	golden(t, "operator", Operator(OperatorInput{
		Now: noon, Operator: operator(), Rollouts: []v1alpha1.OperatorRollout{*rolloutAt()}, Installs: installs(),
	}, Style{}))
}

func TestHubCatalog(t *testing.T) {
	c := &v1alpha1.OperatorCatalog{}
	c.Name, c.Spec.Source.Image = "main", "registry.example.com/catalogs/main:latest"
	golden(t, "hubcatalog-new", HubCatalog(c, noon, Style{}))

	c.Spec.Verification = &v1alpha1.CatalogVerification{PublicKeys: []string{"one", "two"}}
	c.Status = v1alpha1.OperatorCatalogStatus{
		Digest: "sha256:0123456789abcdef", PackageCount: 12, LastReadTime: agoPtr(time.Hour),
		Conditions: []metav1.Condition{
			is(v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded,
				"12 packages at sha256:0123456789abcdef, signed by a trusted key"),
			is(v1alpha1.ConditionBlockedVersionInUse, true, v1alpha1.ReasonVersionBlocked,
				"1 cluster runs echo-operator 1.2.0, which is blocked (it loses data): canary-1; nothing newer is "+
					"good: wait for a newer version"),
		},
		BlockedVersions: []v1alpha1.BlockedVersion{{
			VersionBlock: v1alpha1.VersionBlock{Package: "echo-operator", Version: "1.2.0", Reason: "it loses data"},
			Origin:       v1alpha1.BlockFromSpec, Clusters: 1, ClusterNames: []string{"canary-1"},
			Proposal: "nothing newer is good: wait for a newer version, or go back to echo-operator.v1.1.0 " +
				"(in-place): no stored object changes",
		}, {
			VersionBlock: v1alpha1.VersionBlock{Package: "echo-operator", Version: "1.0.1", Reason: "CVE",
				Expires: "2026-01-31"},
			Origin: v1alpha1.BlockFromSpec, Expired: true, Proposal: "go on to 1.1.0",
		}},
		Packages: []v1alpha1.CatalogPackage{{Name: "another"}, {
			Name: "echo-operator", DefaultChannel: "stable", OmittedVersions: 7,
			Channels: []v1alpha1.CatalogChannel{{Name: "candidate", Head: "1.1.0"}, {Name: "stable", Head: "1.1.0"}},
			Versions: []v1alpha1.CatalogVersion{
				{Bundle: "echo-operator.v1.2.0", Version: "1.2.0", Clusters: 1, Blocked: "it loses data",
					Rollbacks: []v1alpha1.CatalogRollback{{From: "echo-operator.v1.1.0", Class: "in-place"}}},
				{Bundle: "echo-operator.v1.1.0", Version: "1.1.0", Clusters: 2,
					Rollbacks: []v1alpha1.CatalogRollback{{From: "echo-operator.v1.0.0", Class: "needs-backup"}}},
				{Bundle: "echo-operator.v1.0.0", Version: "1.0.0", Deprecated: "use 1.1"},
				{Bundle: "echo-operator.v0.9.0", Version: "0.9.0", Clusters: 1, Absent: true},
			},
		}},
	}
	golden(t, "hubcatalog", HubCatalog(c, noon, Style{Width: 140}))
}

func TestLines(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		width int
		want  int
	}{
		"one":               {text: "a\n", width: 10, want: 1},
		"two":               {text: "a\nb\n", width: 10, want: 2},
		"wrapped":           {text: "aaaaaaaaaaa\n", width: 10, want: 2},
		"exactly full":      {text: "aaaaaaaaaa\n", width: 10, want: 1},
		"colour is nothing": {text: Style{Colour: true}.Paint(Bad, "aaaaaaaaaa") + "\n", width: 10, want: 1},
		"unknown width":     {text: "aaaaaaaaaaaaaaaaaaaaaa\n", want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Lines(test.text, test.width); got != test.want {
				t.Errorf("%d lines, want %d", got, test.want)
			}
		})
	}
}
