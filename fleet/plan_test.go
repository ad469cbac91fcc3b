// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/fleet"
	"github.com/bellwether-dev/bellwether/rollouts/removal"
)

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// healthy is a cluster that has joined and runs one operator.
func healthy() fleet.Input {
	cluster := &v1alpha1.FleetCluster{}
	cluster.Name, cluster.Generation = "prod", 3
	cluster.Finalizers = []string{v1alpha1.FinalizerHub}
	return fleet.Input{
		Now: now, Cluster: cluster, Namespace: fleet.NamespaceOurs, AccessInSync: true, Account: "second",
		Lease: fleet.Lease{
			Found: true, SeenAt: now.Add(-10 * time.Second), Duration: 40 * time.Second,
			Account:   "second",
			Versions:  v1alpha1.ClusterVersions{Agent: "1", Kubernetes: "v1.37.0", OLM: "0.46.0"},
			APIServer: fleet.APIServer{Checked: true}, OLMChecked: true,
		},
		Operators: []fleet.Operator{{
			Install: removal.Install{Namespace: "bellwether-prod", Name: "team.echo", Cluster: "prod",
				Policy: v1alpha1.RemovalOrphan, Held: true},
			Ready: true,
		}},
	}
}

// TestReportsOfAgentsAreCut has an agent whose Lease has longer texts than a FleetCluster's status permits.
func TestReportsOfAgentsAreCut(t *testing.T) {
	long := strings.Repeat("many words\n", 20_000)
	in := healthy()
	in.Lease.Versions = v1alpha1.ClusterVersions{Agent: long, Kubernetes: long, OLM: long}
	in.Lease.APIServer = fleet.APIServer{Checked: true, UnreachableSince: long, Error: long}
	in.Operators[0].Finalizers = slices.Repeat([]string{"example.com/" + strings.Repeat("x", 60)}, 2000)
	for name, deleted := range map[string]*metav1.Time{"joined": nil, "leaving": {Time: now}} {
		in.Cluster.DeletionTimestamp = deleted
		status := fleet.Next(in).Status
		for _, text := range []string{status.Versions.Agent, status.Versions.Kubernetes, status.Versions.OLM} {
			if utf8.RuneCountInString(text) > 128 || !strings.HasPrefix(text, "many words many") {
				t.Errorf("%s: a version has %d characters: %.40q", name, len(text), text)
			}
		}
		for _, c := range status.Conditions {
			if utf8.RuneCountInString(c.Message) > 2048 {
				t.Errorf("%s: the message of %s has %d characters", name, c.Type, len(c.Message))
			}
		}
	}
}

func TestNext(t *testing.T) {
	const online, olm, ready, stalledType = v1alpha1.ConditionOnline, v1alpha1.ConditionOLMAvailable,
		v1alpha1.ConditionReady, v1alpha1.ConditionStalled
	const apiServer = v1alpha1.ConditionAPIServerReachable
	tests := map[string]struct {
		change   func(*fleet.Input)
		actions  []fleet.Action
		removals []removal.Step
		reasons  map[string]string // condition type: reason, with "+" when True and "?" when Unknown
		recheck  time.Duration
	}{
		"nothing to do": {
			change: func(*fleet.Input) {},
			reasons: map[string]string{online: "+LeaseFresh", apiServer: "+APIServerReachable", olm: "+Succeeded",
				ready: "+Succeeded"},
			recheck: 30 * time.Second,
		},
		"new cluster": {
			change: func(in *fleet.Input) {
				*in = fleet.Input{Now: now,
					Cluster: &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}}
			},
			actions: []fleet.Action{fleet.AddFinalizer, fleet.CreateNamespace, fleet.ApplyAccess, fleet.CreateAccount},
			reasons: map[string]string{online: "NeverJoined", olm: "NeverJoined", ready: "Progressing"},
		},
		"foreign namespace is not touched": {
			change:  func(in *fleet.Input) { in.Namespace, in.Operators = fleet.NamespaceForeign, nil },
			reasons: map[string]string{ready: "NamespaceConflict", stalledType: "+NamespaceConflict"},
			recheck: 30 * time.Second,
		},
		"a terminating namespace: finalizers are removed": {
			change: func(in *fleet.Input) {
				in.Namespace, in.Operators[0].Deleting = fleet.NamespaceTerminating, true
			},
			removals: []removal.Step{{Namespace: "bellwether-prod", Name: "team.echo", Release: true}},
			reasons:  map[string]string{ready: "NamespaceTerminating"},
			recheck:  30 * time.Second,
		},
		"access drifted": {
			change:  func(in *fleet.Input) { in.AccessInSync = false },
			actions: []fleet.Action{fleet.ApplyAccess},
			reasons: map[string]string{ready: "Progressing"},
			recheck: 30 * time.Second,
		},
		"revoked a moment ago: no ServiceAccount while the API server accepts the old one's tokens": {
			change: func(in *fleet.Input) { in.Account, in.AccountGoneAt = "", now.Add(-10*time.Second) },
			reasons: map[string]string{ready: "AccessRevoked", stalledType: "+AccessRevoked",
				online: "+LeaseFresh"},
			recheck: 20 * time.Second,
		},
		"revoked, and the old tokens have ended": {
			change:  func(in *fleet.Input) { in.Account, in.AccountGoneAt = "", now.Add(-fleet.AccountPause) },
			actions: []fleet.Action{fleet.CreateAccount},
			reasons: map[string]string{ready: "AccessRevoked", stalledType: "+AccessRevoked",
				online: "+LeaseFresh"},
			recheck: 30 * time.Second,
		},
		"revoked before an agent reported": {
			change: func(in *fleet.Input) {
				in.Account, in.AccountGoneAt, in.Lease = "", now.Add(-time.Second), fleet.Lease{}
			},
			reasons: map[string]string{ready: "Progressing", online: "NeverJoined", apiServer: "?NeverJoined",
				olm: "NeverJoined"},
			recheck: 29 * time.Second,
		},
		"the namespace was deleted a moment ago": {
			change: func(in *fleet.Input) {
				in.Namespace, in.Account, in.AccountGoneAt = fleet.NamespaceAbsent, "", now.Add(-time.Second)
				in.Lease, in.AccessInSync, in.Operators = fleet.Lease{}, false, nil
			},
			actions: []fleet.Action{fleet.CreateNamespace, fleet.ApplyAccess},
			reasons: map[string]string{ready: "Progressing", online: "NeverJoined", apiServer: "?NeverJoined",
				olm: "NeverJoined"},
			recheck: 29 * time.Second,
		},
		"revoked, and the last renewal still holds": {
			change: func(in *fleet.Input) { in.Lease.Account = "first" },
			reasons: map[string]string{ready: "AccessRevoked", stalledType: "+AccessRevoked",
				online: "+LeaseFresh"},
			recheck: 30 * time.Second,
		},
		"revoked": {
			change: func(in *fleet.Input) { in.Lease.Account, in.Lease.SeenAt = "first", now.Add(-40*time.Second) },
			reasons: map[string]string{ready: "AccessRevoked", stalledType: "+AccessRevoked",
				online: "AccessRevoked", apiServer: "?AgentOffline", olm: "?AgentOffline"},
		},
		"an agent that does not say which account it has": {
			change:  func(in *fleet.Input) { in.Lease.Account = "" },
			reasons: map[string]string{ready: "+Succeeded"},
			recheck: 30 * time.Second,
		},
		"agent has not joined": {
			change: func(in *fleet.Input) { in.Lease = fleet.Lease{} },
			reasons: map[string]string{ready: "NeverJoined", online: "NeverJoined", apiServer: "?NeverJoined",
				olm: "NeverJoined"},
		},
		"hibernates: not taken for dead": {
			change: func(in *fleet.Input) {
				in.Lease.SeenAt = now.Add(-time.Hour)
				in.Cluster.Status.Source = &v1alpha1.ClusterSource{State: v1alpha1.SourcePresent,
					PowerState: v1alpha1.PowerHibernating, PowerStateSince: &metav1.Time{Time: now.Add(-time.Hour)}}
			},
			reasons: map[string]string{ready: "Hibernating", online: "Hibernating", apiServer: "?Hibernating",
				olm: "?Hibernating"},
		},
		"lease expired": {
			change: func(in *fleet.Input) { in.Lease.SeenAt = now.Add(-40 * time.Second) },
			reasons: map[string]string{ready: "AgentOffline", online: "LeaseExpired", stalledType: "+AgentOffline",
				apiServer: "?AgentOffline", olm: "?AgentOffline"},
		},
		"never seen renewing since the hub started": {
			change:  func(in *fleet.Input) { in.Lease.SeenAt = time.Time{} },
			reasons: map[string]string{ready: "AgentOffline", online: "LeaseExpired"},
		},
		"API server does not answer": {
			change: func(in *fleet.Input) { in.Lease.APIServer = unreachable },
			reasons: map[string]string{ready: "APIServerUnreachable", stalledType: "+APIServerUnreachable",
				online: "+LeaseFresh", apiServer: "APIServerUnreachable", olm: "?APIServerUnreachable"},
			recheck: 30 * time.Second,
		},
		"API server not checked yet": {
			change: func(in *fleet.Input) { in.Lease.APIServer = fleet.APIServer{} },
			reasons: map[string]string{ready: "Waiting", online: "+LeaseFresh", apiServer: "?Waiting",
				olm: "?Waiting"},
			recheck: 30 * time.Second,
		},
		"OLM not looked for yet": {
			change:  func(in *fleet.Input) { in.Lease.Versions.OLM, in.Lease.OLMChecked = "", false },
			reasons: map[string]string{ready: "Waiting", apiServer: "+APIServerReachable", olm: "?Waiting"},
			recheck: 30 * time.Second,
		},
		"OLM missing": {
			change: func(in *fleet.Input) { in.Lease.Versions.OLM = "" },
			reasons: map[string]string{ready: "OLMMissing", online: "+LeaseFresh", olm: "OLMMissing",
				stalledType: "+OLMMissing"},
			recheck: 30 * time.Second,
		},
		"leaving, online": {
			change: leaving(v1alpha1.RemovalUninstall),
			removals: []removal.Step{{Namespace: "bellwether-prod", Name: "team.echo",
				SetPolicy: v1alpha1.RemovalUninstall, Delete: true}},
			reasons: map[string]string{ready: "Deleting"},
			recheck: 30 * time.Second,
		},
		"leaving, offline, Orphan": {
			change:   offline(leaving(v1alpha1.RemovalOrphan)),
			removals: []removal.Step{{Namespace: "bellwether-prod", Name: "team.echo", Delete: true, Release: true}},
			reasons:  map[string]string{ready: "Deleting"},
		},
		"leaving, offline, Uninstall": {
			change: offline(func(in *fleet.Input) {
				leaving(v1alpha1.RemovalUninstall)(in)
				in.Operators[0].Deleting, in.Operators[0].Policy = true, v1alpha1.RemovalUninstall
			}),
			reasons: map[string]string{ready: "AgentOffline", stalledType: "+AgentOffline"},
			recheck: 24 * time.Hour,
		},
		"leaving, API server does not answer, Uninstall": {
			change: func(in *fleet.Input) {
				leaving(v1alpha1.RemovalUninstall)(in)
				in.Lease.APIServer = unreachable
				in.Operators[0].Deleting, in.Operators[0].Policy = true, v1alpha1.RemovalUninstall
			},
			reasons: map[string]string{ready: "APIServerUnreachable", stalledType: "+APIServerUnreachable"},
			recheck: 30 * time.Second,
		},
		"leaving, online, the time is over": {
			change: overdue(leaving(v1alpha1.RemovalUninstall)),
			removals: []removal.Step{{Namespace: "bellwether-prod", Name: "team.echo",
				SetPolicy: v1alpha1.RemovalUninstall, Delete: true, Release: true}},
			reasons: map[string]string{ready: "Deleting"},
			recheck: 30 * time.Second,
		},
		"leaving, offline, Uninstall, the time is over": {
			change: overdue(offline(func(in *fleet.Input) {
				leaving(v1alpha1.RemovalUninstall)(in)
				in.Operators[0].Deleting, in.Operators[0].Policy = true, v1alpha1.RemovalUninstall
			})),
			removals: []removal.Step{{Namespace: "bellwether-prod", Name: "team.echo", Release: true}},
			reasons:  map[string]string{ready: "Deleting"},
		},
		"leaving and paused, Uninstall": {
			change: func(in *fleet.Input) {
				leaving(v1alpha1.RemovalUninstall)(in)
				in.Cluster.Spec.Paused = true
			},
			removals: []removal.Step{{Namespace: "bellwether-prod", Name: "team.echo",
				SetPolicy: v1alpha1.RemovalUninstall}},
			reasons: map[string]string{ready: "ClusterPaused"},
			recheck: 30 * time.Second,
		},
		"leaving, paused and offline, Uninstall": {
			change: offline(func(in *fleet.Input) {
				leaving(v1alpha1.RemovalUninstall)(in)
				in.Cluster.Spec.Paused, in.Operators[0].Policy = true, v1alpha1.RemovalUninstall
			}),
			reasons: map[string]string{ready: "ClusterPaused"},
			recheck: fleet.DefaultOffboardingTimeout,
		},
		"leaving and paused, Orphan": {
			change: func(in *fleet.Input) {
				leaving(v1alpha1.RemovalOrphan)(in)
				in.Cluster.Spec.Paused = true
			},
			removals: []removal.Step{{Namespace: "bellwether-prod", Name: "team.echo", Delete: true}},
			reasons:  map[string]string{ready: "Deleting"},
			recheck:  30 * time.Second,
		},
		"leaving and paused, the time is over": {
			change: overdue(func(in *fleet.Input) {
				leaving(v1alpha1.RemovalUninstall)(in)
				in.Cluster.Spec.Paused, in.Operators[0].Policy = true, v1alpha1.RemovalUninstall
			}),
			removals: []removal.Step{{Namespace: "bellwether-prod", Name: "team.echo",
				SetPolicy: v1alpha1.RemovalOrphan, Delete: true, Release: true}},
			reasons: map[string]string{ready: "Deleting"},
			recheck: 30 * time.Second,
		},
		"leaving, and the hub is not to wait": {
			change: func(in *fleet.Input) {
				leaving(v1alpha1.RemovalOrphan)(in)
				in.Cluster.Spec.OffboardingTimeout = &metav1.Duration{}
			},
			removals: []removal.Step{{Namespace: "bellwether-prod", Name: "team.echo", Delete: true, Release: true}},
			reasons:  map[string]string{ready: "Deleting"},
			recheck:  30 * time.Second,
		},
		"leaving, and the deadline comes before the Lease expires": {
			change: func(in *fleet.Input) {
				leaving(v1alpha1.RemovalOrphan)(in)
				in.Cluster.Spec.OffboardingTimeout = &metav1.Duration{Duration: 20 * time.Second}
			},
			removals: []removal.Step{{Namespace: "bellwether-prod", Name: "team.echo", Delete: true}},
			reasons:  map[string]string{ready: "Deleting"},
			recheck:  20 * time.Second,
		},
		"leaving, held by others after the time is over": {
			change: overdue(func(in *fleet.Input) {
				leaving(v1alpha1.RemovalOrphan)(in)
				o := &in.Operators[0]
				o.Held, o.Deleting, o.Finalizers = false, true, []string{"example.com/keep"}
			}),
			reasons: map[string]string{ready: "Deleting"},
			recheck: 30 * time.Second,
		},
		"leaving, installs gone": {
			change: func(in *fleet.Input) {
				leaving(v1alpha1.RemovalOrphan)(in)
				in.Operators = nil
			},
			actions: []fleet.Action{fleet.DeleteNamespace},
			reasons: map[string]string{ready: "Deleting"},
			recheck: 30 * time.Second,
		},
		"leaving, namespace going": {
			change: func(in *fleet.Input) {
				leaving(v1alpha1.RemovalOrphan)(in)
				in.Operators, in.Namespace = nil, fleet.NamespaceTerminating
			},
			reasons: map[string]string{ready: "Deleting"},
			recheck: 30 * time.Second,
		},
		"leaving, namespace gone": {
			change: func(in *fleet.Input) {
				leaving(v1alpha1.RemovalOrphan)(in)
				in.Operators, in.Lease, in.Namespace = nil, fleet.Lease{}, fleet.NamespaceAbsent
			},
			actions: []fleet.Action{fleet.RemoveFinalizer},
		},
		"leaving, foreign namespace stays": {
			change: func(in *fleet.Input) {
				leaving(v1alpha1.RemovalOrphan)(in)
				in.Operators, in.Namespace = nil, fleet.NamespaceForeign
			},
			actions: []fleet.Action{fleet.RemoveFinalizer},
			recheck: 30 * time.Second,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := healthy()
			test.change(&in)
			got := fleet.Next(in)
			if diff := cmp.Diff(test.actions, got.Actions); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.removals, got.Removals); diff != "" {
				t.Errorf("removals (-want +got):\n%s", diff)
			}
			for conditionType, want := range test.reasons {
				if reason := describe(got.Status.Conditions, conditionType); reason != want {
					t.Errorf("condition %s = %q, want %q", conditionType, reason, want)
				}
			}
			if got.RecheckAfter != test.recheck {
				t.Errorf("recheck after %s, want %s", got.RecheckAfter, test.recheck)
			}
		})
	}
}

var unreachable = fleet.APIServer{Checked: true, UnreachableSince: "2026-11-21T09:58:00Z",
	Error: "connection refused"}

// TestStaleSince checks since when the data of a cluster that does not report is marked as old.
func TestStaleSince(t *testing.T) {
	before := now.Add(-time.Hour)
	tests := map[string]struct {
		change func(*fleet.Input)
		want   time.Time
	}{
		"current":      {func(*fleet.Input) {}, time.Time{}},
		"never joined": {func(in *fleet.Input) { in.Lease = fleet.Lease{} }, time.Time{}},
		"not checked yet": {func(in *fleet.Input) { in.Lease.APIServer.Checked = false },
			time.Time{}},
		"offline":                              {func(in *fleet.Input) { in.Lease.SeenAt = before }, before},
		"offline since before the hub started": {func(in *fleet.Input) { in.Lease.SeenAt = time.Time{} }, now},
		"no API server, by the hub's clock":    {func(in *fleet.Input) { in.Lease.APIServer = unreachable }, now},
		"still no API server": {func(in *fleet.Input) {
			in.Lease.APIServer = unreachable
			in.Cluster.Status.StaleSince = &metav1.Time{Time: before}
		}, before},
		"current again": {func(in *fleet.Input) {
			in.Cluster.Status.StaleSince = &metav1.Time{Time: before}
		}, time.Time{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := healthy()
			test.change(&in)
			var got time.Time
			if since := fleet.Next(in).Status.StaleSince; since != nil {
				got = since.Time
			}
			if !got.Equal(test.want) {
				t.Errorf("stale since %s, want %s", got, test.want)
			}
		})
	}
}

func leaving(policy v1alpha1.RemovalPolicy) func(*fleet.Input) {
	return func(in *fleet.Input) {
		in.Cluster.DeletionTimestamp = &metav1.Time{Time: now}
		in.Cluster.Spec.Offboarding = policy
	}
}

func offline(then func(*fleet.Input)) func(*fleet.Input) {
	return func(in *fleet.Input) {
		then(in)
		in.Lease.SeenAt = now.Add(-time.Hour)
	}
}

// overdue is a minute after the default time has passed.
func overdue(then func(*fleet.Input)) func(*fleet.Input) {
	return func(in *fleet.Input) {
		then(in)
		in.Cluster.DeletionTimestamp = &metav1.Time{Time: now.Add(-fleet.DefaultOffboardingTimeout - time.Minute)}
	}
}

func describe(all []metav1.Condition, conditionType string) string {
	c := conditions.Get(all, conditionType)
	switch c.Status {
	case metav1.ConditionTrue:
		return "+" + c.Reason
	case metav1.ConditionUnknown:
		return "?" + c.Reason
	case metav1.ConditionFalse:
	}
	return c.Reason
}

// TestStatusNamesOnlyWhatIsThere keeps others from writing into a namespace that
// is gone.
func TestStatusNamesOnlyWhatIsThere(t *testing.T) {
	for state, want := range map[fleet.NamespaceState]string{
		fleet.NamespaceOurs: "bellwether-prod", fleet.NamespaceAbsent: "", fleet.NamespaceForeign: "",
		fleet.NamespaceTerminating: "",
	} {
		in := healthy()
		in.Cluster.Status.Namespace, in.Namespace = "bellwether-prod", state
		if got := fleet.Next(in).Status.Namespace; got != want {
			t.Errorf("state %v: namespace %q, want %q", state, got, want)
		}
	}
}

func TestCounts(t *testing.T) {
	in := healthy()
	in.Operators = append(in.Operators, fleet.Operator{}, fleet.Operator{Ready: true})
	want := v1alpha1.InstallCounts{Total: 3, Ready: 2, NotReady: 1}
	if diff := cmp.Diff(want, fleet.Next(in).Status.Operators); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}
