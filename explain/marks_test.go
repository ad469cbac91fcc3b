// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/explain"
)

func cluster(name string, changes ...func(*v1alpha1.FleetCluster)) v1alpha1.FleetCluster {
	c := v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionOnline, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonLeaseFresh}}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func install(cluster, operator string, changes ...func(*v1alpha1.OperatorInstall)) v1alpha1.OperatorInstall {
	in := v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		v1alpha1.LabelRollout: operator + "-2"}}}
	in.Spec.Cluster, in.Spec.Operator = cluster, v1alpha1.OperatorReference{Namespace: "team", Name: operator}
	for _, change := range changes {
		change(&in)
	}
	return in
}

func offline(reason string) func(*v1alpha1.FleetCluster) {
	return func(c *v1alpha1.FleetCluster) {
		c.Status.Conditions[0].Status, c.Status.Conditions[0].Reason = metav1.ConditionFalse, reason
	}
}

func noAPIServer(c *v1alpha1.FleetCluster) {
	c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionAPIServerReachable,
		Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAPIServerUnreachable})
}

func paused(c *v1alpha1.FleetCluster) { c.Spec.Paused = true }

func frozen(c *v1alpha1.FleetCluster) { c.Status.Freeze = &v1alpha1.ClusterFreeze{Name: "incident"} }

func vetoed(operators ...string) func(*v1alpha1.FleetCluster) {
	return func(c *v1alpha1.FleetCluster) {
		c.Status.Veto = &v1alpha1.ClusterVeto{Reason: "x", Operators: operators}
	}
}

func drifted(in *v1alpha1.OperatorInstall) {
	in.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDrifted, Status: metav1.ConditionTrue}}
}

// fleet is one with a cluster for each mark, and one with all of them.
func fleet() ([]v1alpha1.FleetCluster, []v1alpha1.OperatorInstall) {
	return []v1alpha1.FleetCluster{
			cluster("all", offline(v1alpha1.ReasonLeaseExpired), paused, frozen, vetoed()),
			cluster("fine"),
			cluster("stale", offline(v1alpha1.ReasonLeaseExpired)), cluster("blind", noAPIServer),
			cluster("new", offline(v1alpha1.ReasonNeverJoined)), cluster("paused", paused), cluster("frozen", frozen),
			cluster("vetoed", vetoed("team/db")), cluster("drifted"),
			{ObjectMeta: metav1.ObjectMeta{Name: "nothing"}},
		}, []v1alpha1.OperatorInstall{
			install("all", "echo", drifted), install("all", "db", drifted), install("fine", "echo"),
			install("stale", "echo"), install("blind", "db"), install("vetoed", "echo"), install("vetoed", "db"),
			install("drifted", "echo", drifted), install("gone", "echo"),
		}
}

func TestStates(t *testing.T) {
	clusters, installs := fleet()
	f := explain.NewFleetMarks(clusters, installs)
	got := map[string]string{}
	for i := range clusters {
		got[clusters[i].Name] = f.Cluster(&clusters[i]).String()
	}
	want := map[string]string{"all": "stale, drifted (2), vetoed, paused, frozen", "fine": "", "stale": "stale",
		"blind": "stale", "new": "", "paused": "paused", "frozen": "frozen", "vetoed": "vetoed",
		"drifted": "drifted (1)", "nothing": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("marks of clusters (-want +got):\n%s", diff)
	}
	found, err := explain.ParseMarks([]string{"Stale", " frozen"}, explain.AllMarks())
	if diff := cmp.Diff([]explain.Mark{explain.MarkStale, explain.MarkFrozen}, found); diff != "" || err != nil {
		t.Errorf("%v, marks (-want +got):\n%s", err, diff)
	}
	_, err = explain.ParseMarks([]string{"stale", "old"}, explain.AllMarks())
	if !errors.Is(err, explain.ErrUnknownMark) {
		t.Errorf("a mark that is none gives %v", err)
	}
	for name, c := range map[string]struct {
		wanted []explain.Mark
		want   bool
	}{"no filter": {nil, true}, "one": {[]explain.Mark{explain.MarkPaused}, true},
		"one of two": {[]explain.Mark{explain.MarkStale, explain.MarkPaused}, true},
		"another":    {[]explain.Mark{explain.MarkStale}, false}} {
		if got := f.Cluster(&clusters[5]).HasAny(c.wanted); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestMarks(t *testing.T) {
	clusters, installs := fleet()
	f := explain.NewFleetMarks(clusters, installs)
	operator := func(name string, paused bool) *v1alpha1.ManagedOperator {
		o := &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		o.Spec.Paused = paused
		return o
	}
	rollout := func(operator, name string, phase v1alpha1.RolloutPhase, paused bool) *v1alpha1.OperatorRollout {
		r := &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		r.Spec.Operator.Name, r.Spec.Paused, r.Status.Phase = operator, paused, phase
		return r
	}
	for name, test := range map[string]struct {
		set           explain.MarkSet
		list, details string
	}{
		"an operator": {f.Operator(operator("echo", false)),
			"stale (2), drifted (2), vetoed (1), paused (1), frozen (1)",
			"stale (shown as last reported): all, stale; " +
				"drifted (changed on the cluster): all, drifted; " +
				"vetoed (the cluster's owner refuses changes): all; " +
				"paused (a person or the cluster's source wants no changes): all; " +
				"frozen (a FleetFreeze stops changes): all"},
		"another": {f.Operator(operator("db", false)), "stale (2), drifted (1), vetoed (2), paused (1), frozen (1)",
			"stale (shown as last reported): all, blind; " +
				"drifted (changed on the cluster): all; " +
				"vetoed (the cluster's owner refuses changes): all, vetoed; " +
				"paused (a person or the cluster's source wants no changes): all; " +
				"frozen (a FleetFreeze stops changes): all"},
		"one that is paused": {f.Operator(operator("other", true)), "paused",
			"paused (a person or the cluster's source wants no changes)"},
		"one without clusters": {f.Operator(operator("other", false)), "", ""},
		"a rollout": {f.Rollout(rollout("echo", "echo-2", v1alpha1.RolloutProgressing, false)),
			"stale (2), drifted (2), vetoed (1), paused (1), frozen (1)",
			"stale (shown as last reported): all, stale; " +
				"drifted (changed on the cluster): all, drifted; " +
				"vetoed (the cluster's owner refuses changes): all; " +
				"paused (a person or the cluster's source wants no changes): all; " +
				"frozen (a FleetFreeze stops changes): all"},
		"a rollout that is paused": {f.Rollout(rollout("other", "other-1", v1alpha1.RolloutPaused, true)), "paused",
			"paused (a person or the cluster's source wants no changes)"},
		"a rollout that has ended": {f.Rollout(rollout("echo", "echo-2", v1alpha1.RolloutSucceeded, true)), "", ""},
		"a rollout of other clusters": {f.Rollout(rollout("echo", "echo-1", v1alpha1.RolloutProgressing, false)), "",
			""},
		"an operator on a cluster": {explain.MarkInstall(&clusters[7], &installs[5]), "", ""},
		"one that a veto is about": {explain.MarkInstall(&clusters[7], &installs[6]), "vetoed",
			"vetoed (the cluster's owner refuses changes)"},
		"one that is not there": {explain.MarkInstall(nil, nil), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]string{test.list, test.details},
				[]string{test.set.String(), test.set.Details()}); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
		})
	}
}

// BenchmarkOperators has as many operators and clusters as a large fleet: each install is looked at once for its
// operator.
func BenchmarkOperators(b *testing.B) {
	var clusters []v1alpha1.FleetCluster
	var installs []v1alpha1.OperatorInstall
	var operators []v1alpha1.ManagedOperator
	for o := range 30 {
		operators = append(operators, v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: "team",
			Name: fmt.Sprint("o", o)}})
	}
	for c := range 1000 {
		clusters = append(clusters, cluster(fmt.Sprint("c", c), paused))
		for o := range operators {
			installs = append(installs, install(clusters[c].Name, operators[o].Name))
		}
	}
	for b.Loop() {
		f := explain.NewFleetMarks(clusters, installs)
		for o := range operators {
			f.Operator(&operators[o])
		}
	}
}
