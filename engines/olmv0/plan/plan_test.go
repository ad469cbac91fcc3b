// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	v1 = "echo.v1.0.0"
	v2 = "echo.v1.1.0"
)

// fresh is an install that was admitted to v1 on a cluster that has only OLM.
func fresh() Input {
	release := v1alpha1.Release{Package: "echo", Channel: "stable", Version: "1.0.0", Bundle: v1}
	return Input{
		Now: now,
		Install: &v1alpha1.OperatorInstall{
			ObjectMeta: metav1.ObjectMeta{Name: "fleet.echo", Generation: 3,
				Finalizers: []string{v1alpha1.FinalizerAgent}},
			Spec: v1alpha1.OperatorInstallSpec{Admission: &v1alpha1.Admission{
				Rollout: "echo-1", Revision: 1, Hash: "hash-1", Release: release,
				AdmittedAt: metav1.NewTime(now.Add(-time.Minute)),
			}},
		},
		Offer: Offer{
			Path: []string{v1}, Next: v1, Admitted: []string{v1}, ViewHash: "view-1", Route: v1alpha1.RouteInline,
			Versions: map[string]string{v1: "1.0.0", v2: "1.1.0"},
		},
		Cluster: Cluster{OLM: true},
	}
}

// served has everything up to the Subscription.
func served() Input {
	in := fresh()
	in.View = View{Hash: "view-1", Address: "127.0.0.1:50100"}
	in.Cluster.Namespace = Namespace{Exists: true, Managed: true, InSync: true}
	in.Cluster.OperatorGroups = []OperatorGroup{{Name: "bellwether", Managed: true, InSync: true}}
	in.Cluster.CatalogSource = &CatalogSource{Name: "bellwether-echo", Managed: true, InSync: true, State: "READY"}
	in.Cluster.Subscriptions = []Subscription{{Name: "echo", Package: "echo", IsOwn: true, InSync: true}}
	return in
}

// planned has an InstallPlan in a phase.
func planned(phase string, csvs ...string) Input {
	in := served()
	in.Cluster.Subscriptions[0].CurrentCSV = v1
	in.Cluster.InstallPlans = []InstallPlan{{Name: "install-1", Phase: phase, CSVs: csvs, Compared: true,
		Created: now.Add(-10 * time.Second)}}
	return in
}

// running has v1 installed in a phase.
func running(phase string) Input {
	in := planned("Complete", v1)
	in.Cluster.InstallPlans[0].Approved = true
	in.Cluster.Subscriptions[0].InstalledCSV = v1
	in.Cluster.CSVs = []CSV{{Name: v1, Version: "1.0.0", Phase: phase, Created: now.Add(-time.Minute),
		Since: now.Add(-10 * time.Second), IsOfPackage: true}}
	in.Cluster.Deployments = []Deployment{{Name: "echo", Configured: true, Replicas: 1}}
	in.Offer.Path, in.Offer.Next = nil, ""
	return in
}

// upgrading runs v1 and was admitted to v2.
func upgrading() Input {
	in := running("Succeeded")
	in.Install.Spec.Admission.Revision, in.Install.Spec.Admission.Hash = 2, "hash-2"
	in.Install.Spec.Admission.Release.Version, in.Install.Spec.Admission.Release.Bundle = "1.1.0", v2
	in.Offer.Path, in.Offer.Next, in.Offer.Admitted = []string{v2}, v2, []string{v2}
	return in
}

// heldUp is an upgrade that waits for the CSV that it replaces: OLM began to install that CSV again, and it has
// missed a definition for this long.
func heldUp(since time.Duration) Input {
	in := upgrading()
	in.Cluster.Subscriptions[0].InstalledCSV, in.Cluster.Subscriptions[0].CurrentCSV = v2, v2
	before := &in.Cluster.CSVs[0]
	before.Phase, before.Reason, before.Since = "Pending", "RequirementsNotMet", now.Add(-since)
	before.Missing = []string{"things.example.com"}
	in.Cluster.CSVs = append(in.Cluster.CSVs, CSV{Name: v2, Replaces: v1, Phase: "Pending", IsOfPackage: true,
		Created: now.Add(-since), Since: now.Add(-since)})
	return in
}

// servedSince is the status after the view was connected to.
func servedSince(since time.Time) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionCatalogServed, Status: metav1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(since)}}
}

// resolvedSince is the status after OLM had resolved.
func resolvedSince(since time.Time) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionResolved, Status: metav1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(since)}}
}

func with(in Input, change func(*Input)) Input {
	change(&in)
	return in
}

// want is what a case expects. The reason of the Ready condition is the verdict.
type want struct {
	Actions []Action
	Reason  string
	Stalled bool
	// Failing is the first condition that is False, Ready apart.
	Failing string
}

// decide makes the next decision, and the status after it.
func decide(in Input) (engines.Plan[Action], v1alpha1.OperatorInstallStatus) {
	p := Next(in)
	return p, engines.Status(in.Install, p.Report, in.Now)
}

func got(p engines.Plan[Action], status v1alpha1.OperatorInstallStatus) want {
	w := want{
		Actions: p.Actions,
		Reason:  conditions.Get(status.Conditions, v1alpha1.ConditionReady).Reason,
		Stalled: conditions.IsTrue(status.Conditions, v1alpha1.ConditionStalled),
	}
	for _, s := range listAllStages() {
		if c := conditions.Get(status.Conditions, s.condition); c.Status == metav1.ConditionFalse && w.Failing == "" {
			w.Failing = s.condition
		}
	}
	return w
}

// act is an action on an object without a UID.
func act(verb Verb, kind, name string) Action { return Action{Verb: verb, Kind: kind, Name: name} }

func adopt(csv string) Action {
	return Action{Verb: Adopt, Kind: KindSubscription, Name: "echo", Value: csv}
}

func TestNext(t *testing.T) {
	apply := func(kinds ...string) []Action {
		var actions []Action
		for _, kind := range kinds {
			name := ""
			if kind == KindNamespace {
				name = "echo"
			}
			actions = append(actions, act(Apply, kind, name))
		}
		return actions
	}
	tests := map[string]struct {
		in   Input
		want want
	}{
		"no OLM": {
			with(fresh(), func(in *Input) { in.Cluster.OLM = false }),
			want{Reason: v1alpha1.ReasonOLMMissing, Stalled: true, Failing: v1alpha1.ConditionCatalogServed},
		},
		"a catalog that cannot be read": {
			with(fresh(),
				func(in *Input) { in.Offer = Offer{Problem: &Problem{Reason: v1alpha1.ReasonDigestMismatch}} }),
			want{Reason: v1alpha1.ReasonDigestMismatch, Stalled: true, Failing: v1alpha1.ConditionCatalogServed},
		},
		"blocked, and nothing is installed: nothing is served or made": {
			with(fresh(), func(in *Input) { in.Offer = Offer{Blocked: "it loses data"} }),
			want{Reason: v1alpha1.ReasonVersionBlocked, Stalled: true, Failing: v1alpha1.ConditionCatalogServed},
		},
		"blocked, and nothing is installed: what was served is hidden": {
			with(served(), func(in *Input) { in.Offer = Offer{Blocked: "it loses data"} }),
			want{Actions: []Action{{Verb: StopServing}}, Reason: v1alpha1.ReasonVersionBlocked, Stalled: true,
				Failing: v1alpha1.ConditionCatalogServed},
		},
		"blocked before the upgrade began: the view without it is served": {
			with(upgrading(), func(in *Input) {
				in.Offer.Blocked, in.Offer.Path, in.Offer.Next, in.Offer.ViewHash = "it loses data", nil, "", "view-2"
			}),
			want{Actions: []Action{{Verb: Serve}}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionCatalogServed},
		},
		"blocked before the upgrade began: its plan is not approved but deleted": {
			with(upgrading(), func(in *Input) {
				in.Offer.Blocked, in.Offer.Path, in.Offer.Next, in.Offer.Admitted = "it loses data", nil, "", nil
				in.Cluster.InstallPlans = append(in.Cluster.InstallPlans,
					InstallPlan{Name: "install-2", Compared: true, Phase: "RequiresApproval", CSVs: []string{v2},
						Created: now})
			}),
			want{Actions: []Action{act(Delete, KindInstallPlan, "install-2")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionResolved},
		},
		"blocked before the upgrade began": {
			with(upgrading(), func(in *Input) {
				in.Offer.Blocked, in.Offer.Path, in.Offer.Next, in.Offer.Admitted = "it loses data", nil, "", nil
			}),
			want{Reason: v1alpha1.ReasonVersionBlocked, Stalled: true, Failing: v1alpha1.ConditionResolved},
		},
		"blocked while it is being installed: it finishes": {
			with(running("Installing"), func(in *Input) { in.Offer.Blocked = "it loses data" }),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionInstalled},
		},
		"blocked while it runs: it runs on": {
			with(running("Succeeded"), func(in *Input) { in.Offer.Blocked = "it loses data" }),
			want{Reason: v1alpha1.ReasonSucceeded, Failing: v1alpha1.ConditionResolved},
		},
		"the view is served before anything names its address": {
			fresh(),
			want{Actions: []Action{{Verb: Serve}}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionCatalogServed},
		},
		"everything is created (fact 1)": {
			with(fresh(), func(in *Input) { in.View.Hash = "view-1" }),
			want{Actions: apply(KindNamespace, KindOperatorGroup, KindCatalogSource),
				Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionCatalogServed},
		},
		"a namespace on its way out is waited for": {
			with(served(), func(in *Input) { in.Cluster.Namespace.Terminating = true }),
			want{Reason: v1alpha1.ReasonNamespaceTerminating, Failing: v1alpha1.ConditionCatalogServed},
		},
		"drift is corrected": {
			with(running("Succeeded"), func(in *Input) {
				in.Cluster.Namespace.InSync, in.Cluster.OperatorGroups[0].InSync = false, false
			}),
			want{Actions: []Action{act(Apply, KindNamespace, "echo"), act(Apply, KindOperatorGroup, "bellwether")},
				Reason: v1alpha1.ReasonSucceeded},
		},
		"a foreign namespace is left as it is": {
			with(served(), func(in *Input) { in.Cluster.Namespace = Namespace{Exists: true} }),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionResolved},
		},
		"a fitting OperatorGroup is accepted (fact 13)": {
			with(served(), func(in *Input) { in.Cluster.OperatorGroups = []OperatorGroup{{Name: "theirs"}} }),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionResolved},
		},
		"an unfit OperatorGroup is reported (fact 13)": {
			with(served(), func(in *Input) {
				in.Cluster.OperatorGroups = []OperatorGroup{{Name: "theirs", Targets: []string{"other"}}}
			}),
			want{Reason: v1alpha1.ReasonOperatorGroupConflict, Stalled: true, Failing: v1alpha1.ConditionCatalogServed},
		},
		"two OperatorGroups are reported (fact 13)": {
			with(served(), func(in *Input) {
				in.Cluster.OperatorGroups = append(in.Cluster.OperatorGroups, OperatorGroup{Name: "theirs"})
			}),
			want{Reason: v1alpha1.ReasonOperatorGroupConflict, Stalled: true, Failing: v1alpha1.ConditionCatalogServed},
		},
		"own namespace needs a group that selects it": {
			with(served(), func(in *Input) {
				in.Install.Spec.Admission.Release.Install.Mode = v1alpha1.InstallOwnNamespace
				in.Cluster.OperatorGroups = []OperatorGroup{{Name: "theirs", Targets: []string{"echo"}}}
			}),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionResolved},
		},
		"installed elsewhere for all namespaces (fact 14)": {
			with(fresh(), func(in *Input) { in.Cluster.OtherNamespaces = []string{"other/" + v1} }),
			want{Reason: v1alpha1.ReasonInstalledElsewhere, Stalled: true, Failing: v1alpha1.ConditionCatalogServed},
		},
		"OLM is not connected yet": {
			with(served(), func(in *Input) { in.Cluster.CatalogSource.State = "TRANSIENT_FAILURE" }),
			want{Reason: v1alpha1.ReasonCatalogNotReady, Failing: v1alpha1.ConditionCatalogServed},
		},
		"OLM cannot connect, and nobody has been connected for long": {
			with(served(), viewUnreachable),
			want{Reason: v1alpha1.ReasonViewUnreachable, Stalled: true, Failing: v1alpha1.ConditionCatalogServed},
		},
		"OLM cannot connect, and the view has not been there for long": {
			with(with(served(), viewUnreachable), func(in *Input) { in.View.Idle = time.Minute }),
			want{Reason: v1alpha1.ReasonCatalogNotReady, Failing: v1alpha1.ConditionCatalogServed},
		},
		"OLM could not connect to the view that was there before": {
			with(with(served(), viewUnreachable), func(in *Input) {
				in.Cluster.CatalogSource.StateAt = now.Add(-in.View.Idle - time.Second)
			}),
			want{Reason: v1alpha1.ReasonCatalogNotReady, Failing: v1alpha1.ConditionCatalogServed},
		},
		"somebody is connected, and OLM has not said so yet": {
			with(with(served(), viewUnreachable), func(in *Input) { in.View.Idle = 0 }),
			want{Reason: v1alpha1.ReasonCatalogNotReady, Failing: v1alpha1.ConditionCatalogServed},
		},
		"OLM has not tried": {
			with(with(served(), viewUnreachable), func(in *Input) { in.Cluster.CatalogSource.State = "IDLE" }),
			want{Reason: v1alpha1.ReasonCatalogNotReady, Failing: v1alpha1.ConditionCatalogServed},
		},
		"a foreign Subscription for the package": {
			with(served(), func(in *Input) {
				in.Cluster.Subscriptions = append(in.Cluster.Subscriptions,
					Subscription{Name: "theirs", Package: "echo"})
			}),
			want{Reason: v1alpha1.ReasonSubscriptionConflict, Stalled: true, Failing: v1alpha1.ConditionResolved},
		},
		"a foreign Subscription with the package's name": {
			with(served(), func(in *Input) { in.Cluster.Subscriptions[0].IsOwn = false }),
			want{Reason: v1alpha1.ReasonSubscriptionConflict, Stalled: true, Failing: v1alpha1.ConditionResolved},
		},
		"a foreign Subscription with the package's name, for another package": {
			with(served(), func(in *Input) {
				in.Cluster.Subscriptions[0].IsOwn, in.Cluster.Subscriptions[0].Package = false, "other"
			}),
			want{Reason: v1alpha1.ReasonSubscriptionConflict, Stalled: true, Failing: v1alpha1.ConditionResolved},
		},
		"a foreign Subscription of another package": {
			with(served(), func(in *Input) {
				in.Cluster.Subscriptions = append(in.Cluster.Subscriptions,
					Subscription{Name: "other", Package: "other"})
			}),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionResolved},
		},
		"waiting for OLM to resolve": {
			served(),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionResolved},
		},
		"resolution failed": {
			with(served(), func(in *Input) {
				in.Cluster.Subscriptions[0].ResolutionFailed = "constraints not satisfiable"
				in.Cluster.Subscriptions[0].LastUpdated = now
				in.Install.Status.Conditions = servedSince(now.Add(-time.Minute))
			}),
			want{Reason: v1alpha1.ReasonResolutionFailed, Stalled: true, Failing: v1alpha1.ConditionResolved},
		},
		"OLM waits for a plan that was deleted": {
			with(served(), func(in *Input) { in.Cluster.Subscriptions[0].Awaits = "install-0" }),
			want{Actions: []Action{act(Reset, KindSubscription, "echo")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionResolved},
		},
		"OLM takes for planned what has no plan": {
			with(served(), func(in *Input) { in.Cluster.Subscriptions[0].CurrentCSV = v1 }),
			want{Actions: []Action{act(Reset, KindSubscription, "echo")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionResolved},
		},
		"OLM waits for a plan that is Complete": {
			with(running("Succeeded"), func(in *Input) {
				in.Cluster.Subscriptions[0].Awaits = "install-1"
				in.Install.Spec.Admission.Release.Bundle, in.Offer.Next = v2, v2
			}),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionResolved},
		},
		"resolution failed for the view before": {
			with(served(), func(in *Input) {
				in.Cluster.Subscriptions[0].ResolutionFailed = "constraints not satisfiable"
				in.Cluster.Subscriptions[0].LastUpdated = now
				in.Install.Status.Conditions = servedSince(now.Add(-time.Second))
			}),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionResolved},
		},
		"a bundle is being unpacked": {
			with(served(), func(in *Input) { in.Offer.Route = v1alpha1.RouteUnpack }),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionResolved},
		},
		"a bundle cannot be unpacked": {
			with(served(), func(in *Input) {
				in.Offer.Route, in.Cluster.Subscriptions[0].UnpackFailed = v1alpha1.RouteUnpack, "deadline exceeded"
			}),
			want{Reason: v1alpha1.ReasonUnpackFailed, Stalled: true, Failing: v1alpha1.ConditionResolved},
		},
		"an orphan CSV (fact 12)": {
			with(served(), func(in *Input) { in.Cluster.CSVs = []CSV{{Name: "left.v0.1.0", Phase: "Succeeded"}} }),
			want{Reason: v1alpha1.ReasonOrphanCSV, Stalled: true, Failing: v1alpha1.ConditionResolved},
		},
		"a CSV that is being replaced is no orphan": {
			with(upgrading(), func(in *Input) {
				in.Cluster.Subscriptions[0].InstalledCSV, in.Cluster.Subscriptions[0].CurrentCSV = v2, v2
				in.Cluster.CSVs = append(in.Cluster.CSVs, CSV{Name: v2, Replaces: v1, Phase: "Installing"})
				in.Offer.Path, in.Offer.Next = nil, ""
			}),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionInstalled},
		},
		"a CSV that somebody deleted comes back": {
			with(running("Succeeded"), func(in *Input) {
				in.Cluster.CSVs, in.Cluster.Subscriptions[0].CurrentCSV = nil, v1
				in.Offer.Path, in.Offer.Next = []string{v1}, v1
			}),
			want{Actions: []Action{act(Delete, KindSubscription, "echo")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionResolved},
		},
		"an operator that was there before is taken up": {
			with(served(), func(in *Input) { in.Cluster.CSVs = []CSV{{Name: v1, Phase: "Succeeded"}} }),
			want{Actions: []Action{adopt(v1)}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionResolved},
		},
		"one whose Subscription names a CSV that is gone, once OLM cannot resolve": {
			with(running("Succeeded"), func(in *Input) {
				in.Cluster.Subscriptions[0].InstalledCSV, in.Cluster.Subscriptions[0].CurrentCSV = v2, ""
				in.Cluster.Subscriptions[0].ResolutionFailed = "exists and is not referenced by a subscription"
				in.Offer.Path, in.Offer.Next = []string{v2}, v2
			}),
			want{Actions: []Action{adopt(v1)}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionResolved},
		},
		"one that OLM has just installed is left to OLM": {
			with(running("Succeeded"), func(in *Input) {
				in.Cluster.Subscriptions[0].InstalledCSV, in.Cluster.Subscriptions[0].CurrentCSV = "", ""
			}),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionInstalled},
		},
		"but not one that never came up": {
			with(served(), func(in *Input) { in.Cluster.CSVs = []CSV{{Name: v1, Phase: "Pending"}} }),
			want{Reason: v1alpha1.ReasonOrphanCSV, Stalled: true, Failing: v1alpha1.ConditionResolved},
		},
		"an upgrade that somebody deleted half way": {
			with(upgrading(), func(in *Input) {
				in.Cluster.Subscriptions[0].InstalledCSV, in.Cluster.Subscriptions[0].CurrentCSV = v2, v2
				in.Cluster.CSVs[0].Phase = "Replacing"
			}),
			want{Actions: []Action{act(Reprocess, KindCSV, v1), adopt(v1)}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionResolved},
		},
		"an upgrade waits for a CSV that stays Pending (fact 27)": {
			heldUp(2 * time.Minute),
			want{Actions: []Action{act(SetReplacing, KindCSV, v1)}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionInstalled},
		},
		"but OLM is given time to notice a definition": {
			heldUp(10 * time.Second),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionInstalled},
		},
		"one that is installed again is waited for": {
			with(heldUp(2*time.Minute), func(in *Input) { in.Cluster.CSVs[0].Missing = nil }),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionInstalled},
		},
		"a CSV that was replaced is not lost": {
			with(running("Succeeded"), func(in *Input) {
				in.Cluster.Subscriptions[0].CurrentCSV = v2
				in.Cluster.CSVs = []CSV{{Name: v2, Replaces: v1, Phase: "Succeeded"}}
				in.Offer.Path, in.Offer.Next = []string{v1}, v1
			}),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionResolved},
		},
		"a plan is not approved before OLM asks (fact 4)": {
			planned("", v1),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionPlanApproved},
		},
		"nor while OLM is planning": {
			planned("Planning", v1),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionPlanApproved},
		},
		"a plan that was approved too early is given up (fact 4)": {
			with(planned("", v1), func(in *Input) {
				in.Cluster.InstallPlans[0].Approved, in.Cluster.InstallPlans[0].Created = true, now.Add(-2*time.Minute)
			}),
			want{Actions: []Action{act(Delete, KindInstallPlan, "install-1")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionResolved},
		},
		"the admitted plan is approved": {
			planned("RequiresApproval", v1),
			want{Actions: []Action{act(Approve, KindInstallPlan, "install-1")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionPlanApproved},
		},
		"with its dependencies (fact 20)": {
			with(planned("RequiresApproval", v1, "dep.v1"),
				func(in *Input) { in.Offer.Admitted = []string{"dep.v1", v1} }),
			want{Actions: []Action{act(Approve, KindInstallPlan, "install-1")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionPlanApproved},
		},
		"a plan for another version is deleted (fact 5)": {
			planned("RequiresApproval", v2),
			want{Actions: []Action{act(Delete, KindInstallPlan, "install-1")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionResolved},
		},
		"a plan with a CSV that nobody admitted, and its Subscription is gone": {
			planned("RequiresApproval", v1, "stranger.v9"),
			want{Actions: []Action{act(Delete, KindInstallPlan, "install-1")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionResolved},
		},
		"a new plan with a CSV that nobody admitted waits: OLM notes later whose it is": {
			with(planned("RequiresApproval", v1, "stranger.v9"), func(in *Input) {
				in.Cluster.InstallPlans[0].Created = now.Add(-time.Second)
			}),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionPlanApproved},
		},
		"a dependency that nobody admitted is neither approved nor deleted": {
			with(planned("RequiresApproval", v1, "stranger.v9"),
				func(in *Input) { in.Cluster.InstallPlans[0].Subscribes = []string{"stranger.v9"} }),
			want{Reason: v1alpha1.ReasonUnadmittedPlan, Stalled: true, Failing: v1alpha1.ConditionPlanApproved},
		},
		"a plan with a CSV that nobody admitted is neither approved nor deleted": {
			with(planned("RequiresApproval", v1, "stranger.v9"), func(in *Input) {
				in.Cluster.Subscriptions = append(in.Cluster.Subscriptions,
					Subscription{Name: "stranger", Package: "stranger", CurrentCSV: "stranger.v9"})
			}),
			want{Reason: v1alpha1.ReasonUnadmittedPlan, Stalled: true, Failing: v1alpha1.ConditionPlanApproved},
		},
		"a plan whose steps come from the view is approved": {
			with(planned("RequiresApproval", v1), func(in *Input) {
				in.Cluster.InstallPlans[0].Sources = []StepSource{{CSV: v1, Namespace: "echo", Name: "bellwether-echo"}}
			}),
			want{Actions: []Action{act(Approve, KindInstallPlan, "install-1")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionPlanApproved},
		},
		"a plan for the admitted version from another catalog is deleted": {
			with(planned("RequiresApproval", v1), func(in *Input) {
				in.Cluster.InstallPlans[0].Sources = []StepSource{{CSV: v1, Namespace: "echo", Name: "stranger"}}
			}),
			want{Actions: []Action{act(Delete, KindInstallPlan, "install-1")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionResolved},
		},
		"a plan from the catalog of the same name in another namespace is deleted": {
			with(planned("RequiresApproval", v1), func(in *Input) {
				in.Cluster.InstallPlans[0].Sources = []StepSource{{CSV: v1, Namespace: "olm", Name: "bellwether-echo"}}
			}),
			want{Actions: []Action{act(Delete, KindInstallPlan, "install-1")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionResolved},
		},
		"a plan with an admitted dependency from another catalog is neither approved nor deleted": {
			with(planned("RequiresApproval", v1, "lib.v1"), func(in *Input) {
				in.Offer.Admitted = append(in.Offer.Admitted, "lib.v1")
				in.Cluster.InstallPlans[0].Subscribes = []string{"lib.v1"}
				in.Cluster.InstallPlans[0].Sources = []StepSource{
					{CSV: v1, Namespace: "echo", Name: "bellwether-echo"},
					{CSV: "lib.v1", Namespace: "olm", Name: "stranger"}}
			}),
			want{Reason: v1alpha1.ReasonUnadmittedPlan, Stalled: true, Failing: v1alpha1.ConditionPlanApproved},
		},
		"a plan that differs from the view is deleted": {
			with(planned("RequiresApproval", v1), func(in *Input) {
				in.Cluster.InstallPlans[0].Difference = "it differs"
			}),
			want{Actions: []Action{act(Delete, KindInstallPlan, "install-1")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionResolved},
		},
		"a plan that OLM makes again though it differs is neither approved nor deleted": {
			with(planned("RequiresApproval", v1), func(in *Input) {
				in.Cluster.InstallPlans[0].Difference, in.Cluster.InstallPlans[0].IsRepeated = "it differs", true
			}),
			want{Reason: v1alpha1.ReasonUnadmittedPlan, Stalled: true, Failing: v1alpha1.ConditionPlanApproved},
		},
		"after a while it is deleted again": {
			with(planned("RequiresApproval", v1), func(in *Input) {
				in.Cluster.InstallPlans[0].Difference, in.Cluster.InstallPlans[0].IsRepeated = "it differs", true
				in.Cluster.InstallPlans[0].Created = now.Add(-replanAfter)
			}),
			want{Actions: []Action{act(Delete, KindInstallPlan, "install-1")}, Reason: v1alpha1.ReasonUnadmittedPlan,
				Stalled: true, Failing: v1alpha1.ConditionResolved},
		},
		"a plan that failed on the way, differs, and has its CSV there is kept": {
			with(running("Pending"), func(in *Input) {
				in.Offer.Next = v1
				in.Cluster.InstallPlans[0].Phase, in.Cluster.InstallPlans[0].Difference = "Failed", "it differs"
				in.Cluster.InstallPlans[0].Failure = "at the CustomResourceDefinition things"
			}),
			want{Reason: v1alpha1.ReasonUnadmittedPlan, Stalled: true, Failing: v1alpha1.ConditionPlanApproved},
		},
		"a plan that differs and needs what is there is deleted": {
			with(planned("RequiresApproval", v1), func(in *Input) {
				in.Cluster.InstallPlans[0].Difference = "it differs"
				in.Cluster.InstallPlans[0].CSVs = append(in.Cluster.InstallPlans[0].CSVs, "lib.v1")
				in.Offer.Admitted = append(in.Offer.Admitted, "lib.v1")
				in.Cluster.InstallPlans[0].Subscribes = []string{"lib.v1"}
				in.Cluster.CSVs = append(in.Cluster.CSVs, CSV{Name: "lib.v1", Phase: "Succeeded"})
				in.Cluster.Subscriptions = append(in.Cluster.Subscriptions, Subscription{Name: "lib",
					CurrentCSV: "lib.v1", InstalledCSV: "lib.v1"})
			}),
			want{Actions: []Action{act(Delete, KindInstallPlan, "install-1")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionResolved},
		},
		"no backup is taken for a plan that differs": {
			with(planned("RequiresApproval", v2), func(in *Input) {
				*in = with(upgrading(), func(in *Input) { in.Install.Spec.Backup = &v1alpha1.BackupPolicy{} })
				in.Cluster.InstallPlans = append(in.Cluster.InstallPlans, InstallPlan{Name: "install-2", Compared: true,
					Phase: "RequiresApproval", CSVs: []string{v2}, Created: now, Difference: "it differs"})
			}),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionPlanApproved},
		},
		"a plan that was not compared is not approved": {
			with(planned("RequiresApproval", v1), func(in *Input) { in.Cluster.InstallPlans[0].Compared = false }),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionPlanApproved},
		},
		"a new plan that differs from the view waits: the view may be the newer one": {
			with(planned("RequiresApproval", v1), func(in *Input) {
				in.Cluster.InstallPlans[0].Difference = "it differs"
				in.Cluster.InstallPlans[0].Created = now.Add(-time.Second)
			}),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionPlanApproved},
		},
		"a plan that failed half way and differs from the view is not tried again": {
			with(running("Pending"), func(in *Input) {
				in.Cluster.InstallPlans[0].Phase, in.Cluster.InstallPlans[0].Difference = "Failed", "it differs"
			}),
			want{Reason: v1alpha1.ReasonUnadmittedPlan, Stalled: true, Failing: v1alpha1.ConditionPlanApproved},
		},
		"a plan under way is left to finish (fact 5)": {
			with(planned("Installing", v2), func(in *Input) { in.Cluster.InstallPlans[0].Approved = true }),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionPlanApproved},
		},
		"a failed plan is reported and kept for a while (fact 17)": {
			with(planned("Failed", v1),
				func(in *Input) { in.Cluster.InstallPlans[0].FailedAt = now.Add(-10 * time.Second) }),
			want{Reason: v1alpha1.ReasonPlanFailed, Stalled: true, Failing: v1alpha1.ConditionPlanApproved},
		},
		"then OLM tries it again (fact 17)": {
			with(planned("Failed", v1),
				func(in *Input) { in.Cluster.InstallPlans[0].FailedAt = now.Add(-40 * time.Second) }),
			want{Actions: []Action{act(Retry, KindInstallPlan, "install-1")}, Reason: v1alpha1.ReasonPlanFailed,
				Stalled: true, Failing: v1alpha1.ConditionPlanApproved},
		},
		"a plan that failed after its CSV was made is tried again, too": {
			with(running("Pending"), func(in *Input) {
				in.Cluster.InstallPlans[0].Phase, in.Cluster.InstallPlans[0].FailedAt = "Failed",
					now.Add(-40*time.Second)
			}),
			want{Actions: []Action{act(Retry, KindInstallPlan, "install-1")}, Reason: v1alpha1.ReasonPlanFailed,
				Stalled: true, Failing: v1alpha1.ConditionPlanApproved},
		},
		"unless another version was admitted": {
			with(upgrading(), func(in *Input) {
				in.Cluster.CSVs[0].Phase = "Failed"
				in.Cluster.InstallPlans[0].Phase, in.Cluster.InstallPlans[0].FailedAt = "Failed",
					now.Add(-40*time.Second)
			}),
			want{Actions: []Action{act(Delete, KindInstallPlan, "install-1")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionResolved},
		},
		"only Succeeded is installed (fact 10)": {
			running("Installing"),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionInstalled},
		},
		"OLM passes through Failed": {
			running("Failed"),
			want{Reason: v1alpha1.ReasonCSVFailed, Failing: v1alpha1.ConditionInstalled},
		},
		"a CSV that stays Failed needs a person": {
			with(running("Failed"), func(in *Input) {
				in.Cluster.CSVs[0].Since = now.Add(-2 * time.Minute)
				in.Install.Spec.Admission.AdmittedAt = metav1.NewTime(now.Add(-time.Hour))
			}),
			want{Reason: v1alpha1.ReasonCSVFailed, Stalled: true, Failing: v1alpha1.ConditionInstalled},
		},
		"settings were corrected while OLM waits for the old ones (fact 24)": {
			with(running("Installing"), func(in *Input) { in.Cluster.CSVs[0].Since = now.Add(-2 * time.Minute) }),
			want{Actions: []Action{act(Reprocess, KindCSV, v1)}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionInstalled},
		},
		"settings were corrected after OLM gave up (fact 24)": {
			with(running("Failed"), func(in *Input) { in.Cluster.CSVs[0].Since = now.Add(-2 * time.Minute) }),
			want{Actions: []Action{act(Reprocess, KindCSV, v1)}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionInstalled},
		},
		"OLM failed it for OperatorGroups, and one of them was deleted": {
			with(running("Failed"), func(in *Input) {
				in.Cluster.CSVs[0].Reason, in.Cluster.CSVs[0].Since = "TooManyOperatorGroups", now.Add(-40*time.Second)
				in.Install.Spec.Admission.AdmittedAt = metav1.NewTime(now.Add(-time.Hour))
			}),
			want{Actions: []Action{act(Reprocess, KindCSV, v1)}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionInstalled},
		},
		"OLM failed it for OperatorGroups a moment ago": {
			with(running("Failed"), func(in *Input) {
				in.Cluster.CSVs[0].Reason, in.Cluster.CSVs[0].Since = "TooManyOperatorGroups", now.Add(-20*time.Second)
				in.Install.Spec.Admission.AdmittedAt = metav1.NewTime(now.Add(-time.Hour))
			}),
			want{Reason: v1alpha1.ReasonCSVFailed, Failing: v1alpha1.ConditionInstalled},
		},
		"OLM began without the settings (fact 24)": {
			with(running("Installing"), func(in *Input) {
				in.Cluster.CSVs[0].Since, in.Cluster.Deployments[0].Configured = now.Add(-40*time.Second), false
			}),
			want{Actions: []Action{act(Reprocess, KindCSV, v1)}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionInstalled},
		},
		"OLM began a moment ago": {
			with(running("Installing"), func(in *Input) { in.Cluster.Deployments[0].Configured = false }),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionInstalled},
		},
		"the Subscription comes first": {
			with(running("Installing"), func(in *Input) {
				in.Cluster.CSVs[0].Since, in.Cluster.Subscriptions[0].InSync = now.Add(-2*time.Minute), false
			}),
			want{Actions: []Action{act(Apply, KindSubscription, "")}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionInstalled},
		},
		"the operator holds its upgrade (fact 16)": {
			with(running("Pending"), func(in *Input) { in.Cluster.CSVs[0].Reason = "OperatorConditionNotUpgradeable" }),
			want{Reason: v1alpha1.ReasonNotUpgradeable, Stalled: true, Failing: v1alpha1.ConditionInstalled},
		},
		"a requirement is missing": {
			with(running("Pending"), func(in *Input) {
				in.Cluster.CSVs[0].Missing, in.Cluster.CSVs[0].Since = []string{"CustomResourceDefinition a"},
					now.Add(-2*time.Minute)
			}),
			want{Reason: v1alpha1.ReasonRequirementsNotMet, Stalled: true, Failing: v1alpha1.ConditionInstalled},
		},
		"a requirement was missing a moment ago": {
			with(running("Pending"), func(in *Input) {
				in.Cluster.CSVs[0].Missing, in.Cluster.CSVs[0].Since = []string{"CustomResourceDefinition a"},
					now.Add(-time.Second)
			}),
			want{Reason: v1alpha1.ReasonRequirementsNotMet, Failing: v1alpha1.ConditionInstalled},
		},
		"an unfinished version is abandoned before its fix is offered": {
			with(upgrading(), func(in *Input) { in.Cluster.CSVs[0].Phase = "Pending" }),
			want{Actions: []Action{act(Abandon, KindCSV, v1)}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionCatalogServed},
		},
		"so is one that OLM does not name as installed yet": {
			with(upgrading(), func(in *Input) {
				in.Cluster.Subscriptions[0].InstalledCSV = ""
				in.Cluster.CSVs[0].Phase, in.Cluster.InstallPlans[0].Phase = "Pending", "Failed"
			}),
			want{Actions: []Action{act(Abandon, KindCSV, v1)}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionCatalogServed},
		},
		"what failed is replaced as it is": {
			with(upgrading(), func(in *Input) { in.Cluster.CSVs[0].Phase = "Failed" }),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionResolved},
		},
		"it runs": {
			running("Succeeded"),
			want{Reason: v1alpha1.ReasonSucceeded},
		},
		"it runs although its catalog cannot be read": {
			with(running("Succeeded"),
				func(in *Input) { in.Offer = Offer{Problem: &Problem{Reason: v1alpha1.ReasonCatalogUnreachable}} }),
			want{Reason: v1alpha1.ReasonSucceeded, Failing: v1alpha1.ConditionCatalogServed},
		},
		"a replica is missing": {
			with(running("Succeeded"), func(in *Input) { in.Cluster.Deployments[0].Unavailable = 1 }),
			want{Reason: v1alpha1.ReasonPodsUnavailable},
		},
		"a definition was deleted": {
			with(running("Succeeded"), func(in *Input) {
				in.Install.Status.SucceededHash = in.Install.Spec.Admission.Hash
				in.Cluster.MissingDefinitions = []string{"things.example.com"}
			}),
			want{Reason: v1alpha1.ReasonObjectsLost, Stalled: true, Failing: v1alpha1.ConditionInstalled},
		},
		"a definition was deleted while the catalog cannot be read": {
			with(running("Succeeded"), func(in *Input) {
				in.Install.Status.SucceededHash = in.Install.Spec.Admission.Hash
				in.Cluster.MissingDefinitions = []string{"things.example.com"}
				in.Offer = Offer{Problem: &Problem{Reason: v1alpha1.ReasonCatalogUnreachable}}
			}),
			want{Reason: v1alpha1.ReasonObjectsLost, Stalled: true, Failing: v1alpha1.ConditionCatalogServed},
		},
		"a Service was deleted": {
			with(running("Succeeded"), func(in *Input) {
				in.Install.Status.SucceededHash = in.Install.Spec.Admission.Hash
				in.Cluster.MissingServices = []string{"echo"}
			}),
			want{Reason: v1alpha1.ReasonObjectsLost, Stalled: true, Failing: v1alpha1.ConditionInstalled},
		},
		"a definition is not there yet": {
			with(running("Installing"),
				func(in *Input) { in.Cluster.MissingDefinitions = []string{"things.example.com"} }),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionInstalled},
		},
		"its account was deleted just now": {
			with(running("Pending"), func(in *Input) {
				in.Install.Status.SucceededHash = in.Install.Spec.Admission.Hash
				in.Cluster.CSVs[0].Missing = []string{"ServiceAccount echo (NotPresent)"}
				in.Cluster.CSVs[0].Lost = in.Cluster.CSVs[0].Missing
			}),
			want{Reason: v1alpha1.ReasonObjectsLost, Failing: v1alpha1.ConditionInstalled},
		},
		"its account was deleted": {
			with(running("Pending"), func(in *Input) {
				in.Install.Status.SucceededHash = in.Install.Spec.Admission.Hash
				in.Cluster.CSVs[0].Since = now.Add(-2 * time.Minute)
				in.Cluster.CSVs[0].Missing = []string{"ServiceAccount echo (NotPresent)"}
				in.Cluster.CSVs[0].Lost = in.Cluster.CSVs[0].Missing
			}),
			want{Reason: v1alpha1.ReasonObjectsLost, Stalled: true, Failing: v1alpha1.ConditionInstalled},
		},
		"OLM waits for the pods of a release that has succeeded": {
			with(running("Installing"), func(in *Input) {
				in.Install.Status.SucceededHash = in.Install.Spec.Admission.Hash
				in.Cluster.Deployments[0].Unavailable = 1
			}),
			want{Reason: v1alpha1.ReasonPodsUnavailable, Failing: v1alpha1.ConditionInstalled},
		},
		"OLM waits for the pods of a release that has not succeeded yet": {
			with(running("Installing"), func(in *Input) { in.Cluster.Deployments[0].Unavailable = 1 }),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionInstalled},
		},
		"what kept OLM from resolving is gone (fact 22)": {
			with(running("Succeeded"), func(in *Input) {
				in.Cluster.Subscriptions[0].ResolutionFailed = "subscription foreign exists"
				in.Cluster.Subscriptions[0].LastUpdated = now.Add(-time.Minute)
				in.Install.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionResolved,
					Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSubscriptionConflict}}
			}),
			want{Actions: []Action{adopt(v1)}, Reason: v1alpha1.ReasonSucceeded},
		},
		"OLM could not resolve a while ago, and nothing is to be resolved (fact 22)": {
			with(running("Succeeded"), func(in *Input) {
				in.Cluster.Subscriptions[0].ResolutionFailed = "exists and is not referenced by a subscription"
				in.Cluster.Subscriptions[0].LastUpdated = now.Add(-time.Minute)
				in.Install.Status.Conditions = resolvedSince(now.Add(-time.Hour))
			}),
			want{Reason: v1alpha1.ReasonSucceeded},
		},
		"OLM could not resolve long ago, and nothing is to be resolved (fact 22)": {
			with(running("Succeeded"), func(in *Input) {
				in.Cluster.Subscriptions[0].ResolutionFailed = "exists and is not referenced by a subscription"
				in.Cluster.Subscriptions[0].LastUpdated = now.Add(-10 * time.Minute)
				in.Install.Status.Conditions = resolvedSince(now.Add(-time.Hour))
			}),
			want{Actions: []Action{adopt(v1)}, Reason: v1alpha1.ReasonSucceeded},
		},
		"scaled to zero": {
			with(running("Succeeded"), func(in *Input) { in.Cluster.Deployments[0].Replicas = 0 }),
			want{Reason: v1alpha1.ReasonScaledToZero, Stalled: true},
		},
		"scaled to zero, as the bundle asks": {
			with(running("Succeeded"), func(in *Input) {
				in.Cluster.Deployments[0].Replicas = 0
				in.Offer.Expected = &ExpectedFields{Bundle: v1, Replicas: map[string]int32{"echo": 0}}
			}),
			want{Reason: v1alpha1.ReasonSucceeded},
		},
		"a Deployment is missing": {
			with(running("Succeeded"), func(in *Input) {
				in.Offer.Expected = &ExpectedFields{Bundle: v1, Replicas: map[string]int32{"echo": 1, "webhook": 1}}
			}),
			want{Reason: v1alpha1.ReasonPodsUnavailable},
		},
		"settings have not arrived": {
			with(running("Succeeded"), func(in *Input) { in.Cluster.Deployments[0].Configured = false }),
			want{Reason: v1alpha1.ReasonProgressing},
		},
		"an upgrade serves its view first (fact 3)": {
			with(upgrading(), func(in *Input) { in.Offer.ViewHash = "view-2" }),
			want{Actions: []Action{{Verb: Serve}}, Reason: v1alpha1.ReasonProgressing,
				Failing: v1alpha1.ConditionCatalogServed},
		},
		"an upgrade waits for its plan": {
			upgrading(),
			want{Reason: v1alpha1.ReasonProgressing, Failing: v1alpha1.ConditionResolved},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := test.in.Install.DeepCopy()
			d, status := decide(test.in)
			if diff := cmp.Diff(test.want, got(d, status)); diff != "" {
				t.Errorf("Next (-want +got):\n%s\nReady: %+v", diff,
					conditions.Get(status.Conditions, v1alpha1.ConditionReady))
			}
			if diff := cmp.Diff(before, test.in.Install); diff != "" {
				t.Errorf("Next changed its input:\n%s", diff)
			}
			checkDecision(t, test.in, d, status)
		})
	}
}

// checkDecision holds for every decision.
func checkDecision(t *testing.T, in Input, d engines.Plan[Action], status v1alpha1.OperatorInstallStatus) {
	t.Helper()
	for _, c := range status.Conditions {
		if c.Message == "" && c.Type != v1alpha1.ConditionInstalled && in.Offer.Problem == nil {
			t.Errorf("condition %s has no message", c.Type)
		}
	}
	again := in
	again.Install = in.Install.DeepCopy()
	again.Install.Status = status
	second, secondStatus := decide(again)
	if diff := cmp.Diff(d.Actions, second.Actions); diff != "" {
		t.Errorf("deciding again on the same world differs (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(status, secondStatus); diff != "" {
		t.Errorf("the status flaps (-first +second):\n%s", diff)
	}
}

func TestResolutionMessageDoesNotFlap(t *testing.T) {
	in := served()
	in.Install.Status.Conditions = servedSince(now.Add(-time.Minute))
	in.Cluster.Subscriptions[0].ResolutionFailed = "a is not b"
	_, first := decide(in)
	in.Install.Status = first
	in.Cluster.Subscriptions[0].ResolutionFailed = "b is not a"
	_, second := decide(in)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the status follows OLM's wording (-first +second):\n%s", diff)
	}
}

func TestPlanRetriesBackOff(t *testing.T) {
	for tried, wait := range map[time.Duration]time.Duration{
		5 * time.Second:  30 * time.Second,
		4 * time.Minute:  4 * time.Minute,
		10 * time.Hour:   15 * time.Minute,
		-1 * time.Minute: 30 * time.Second,
	} {
		in := planned("Failed", v1)
		in.Cluster.InstallPlans[0].FailedAt = in.Install.Spec.Admission.AdmittedAt.Add(tried)
		in.Now = in.Cluster.InstallPlans[0].FailedAt.Add(wait - time.Second)
		if actions := Next(in).Actions; len(actions) != 0 {
			t.Errorf("tried for %s: retried before %s", tried, wait)
		}
		in.Now = in.Now.Add(time.Second)
		if actions := Next(in).Actions; len(actions) != 1 {
			t.Errorf("tried for %s: not retried after %s", tried, wait)
		}
	}
}

func TestMayAdvance(t *testing.T) {
	tests := map[string]struct {
		csv CSV
		// approved is the revision under which the CSV's plan was approved; the
		// admission has revision 2.
		approved int64
		want     bool
	}{
		"succeeded":                    {CSV{Phase: "Succeeded"}, 2, true},
		"failed":                       {CSV{Phase: "Failed"}, 2, false},
		"failed before":                {CSV{Phase: "Failed"}, 1, true},
		"failed, installed by another": {CSV{Phase: "Failed"}, 0, true},
		"installing":                   {CSV{Phase: "Installing", Created: now.Add(-time.Hour)}, 2, false},
		"installing since a moment":    {CSV{Phase: "Installing", Created: now.Add(-time.Minute)}, 1, false},
		"never came up":                {CSV{Phase: "Installing", Created: now.Add(-time.Hour)}, 1, true},
		"is starting anew": {CSV{Phase: "Installing", Created: now.Add(-time.Hour),
			Since: now.Add(-time.Second)}, 1, false},
		"misses something": {CSV{Phase: "Pending", Reason: "RequirementsNotMet"}, 2, false},
		"missed something": {CSV{Phase: "Pending", Reason: "RequirementsNotMet"}, 1, true},
		"missed something for a moment": {CSV{Phase: "Pending", Reason: "RequirementsNotMet",
			Since: now.Add(-time.Second)}, 1, false},
		"its predecessor holds it (16)":   {CSV{Phase: "Pending", Reason: "OperatorConditionNotUpgradeable"}, 2, false},
		"its predecessor held it (16)":    {CSV{Phase: "Pending", Reason: "OperatorConditionNotUpgradeable"}, 1, false},
		"pending and nobody knows why":    {CSV{Phase: "Pending", Created: now.Add(-time.Minute)}, 1, false},
		"pending for long, unknown cause": {CSV{Phase: "Pending", Created: now.Add(-time.Hour)}, 1, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := running(test.csv.Phase)
			test.csv.Name = v1
			in.Cluster.CSVs, in.Cluster.InstallPlans[0].Revision = []CSV{test.csv}, test.approved
			if got := in.Cluster.MayAdvance(now, 2); got != test.want {
				t.Errorf("MayAdvance = %v, want %v", got, test.want)
			}
		})
	}
	if !fresh().Cluster.MayAdvance(now, 1) {
		t.Error("a fresh install may not start")
	}
}

// TestRecord: the admission is recorded as soon as it is acted on, in one apply of the
// Subscription, whatever keeps the install from going on.
func TestRecord(t *testing.T) {
	apply := act(Apply, KindSubscription, "")
	for name, test := range map[string]struct {
		in   Input
		want []Action
	}{
		"recorded": {running("Succeeded"), nil},
		"another admission": {with(running("Succeeded"), func(in *Input) {
			in.Cluster.Subscriptions[0].Outdated = true
		}), []Action{apply}},
		"the catalog cannot be read": {with(upgrading(), func(in *Input) {
			in.Cluster.Subscriptions[0].Outdated, in.Offer.Pending = true, "The catalog is being read."
		}), []Action{apply}},
		"the Subscription changes too": {with(running("Succeeded"), func(in *Input) {
			in.Cluster.Subscriptions[0].Outdated, in.Cluster.Subscriptions[0].InSync = true, false
		}), []Action{apply}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Next(test.in).Actions); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestForeignSubscription: the message says what can be done, and adoption only where that helps.
func TestForeignSubscription(t *testing.T) {
	for name, test := range map[string]struct {
		own   bool
		sub   Subscription
		says  []string
		never string
	}{
		"alone": {false, Subscription{Name: "theirs", Package: "echo"}, []string{"spec.adopt", "echo/theirs"},
			""},
		"beside ours":  {true, Subscription{Name: "theirs", Package: "echo"}, []string{"Delete it"}, "spec.adopt"},
		"another's":    {false, Subscription{Name: "echo", Package: "other"}, []string{"package other"}, "spec.adopt"},
		"our own name": {false, Subscription{Name: "echo", Package: "echo"}, []string{"spec.adopt"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := served()
			if !test.own {
				in.Cluster.Subscriptions = nil
			}
			in.Cluster.Subscriptions = append(in.Cluster.Subscriptions, test.sub)
			_, status := decide(in)
			message := conditions.Get(status.Conditions, v1alpha1.ConditionReady).Message
			for _, text := range test.says {
				if !strings.Contains(message, text) {
					t.Errorf("%q does not say %q", message, text)
				}
			}
			if test.never != "" && strings.Contains(message, test.never) {
				t.Errorf("%q says %q", message, test.never)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	going := func(policy v1alpha1.RemovalPolicy, change func(*Input)) Input {
		in := running("Succeeded")
		in.Install.DeletionTimestamp = &metav1.Time{Time: now}
		in.Install.Spec.RemovalPolicy = policy
		change(&in)
		return in
	}
	nothing := func(*Input) {}
	stop := []Action{{Verb: StopServing}}
	tests := map[string]struct {
		in      Input
		want    []Action
		message string
	}{
		"orphan leaves everything": {going(v1alpha1.RemovalOrphan, nothing), stop, ""},
		"and forgets the admission": {
			going(v1alpha1.RemovalOrphan, func(in *Input) { in.Cluster.Subscriptions[0].Keeps = true }),
			append([]Action{act(Forget, KindSubscription, "echo")}, stop...), "",
		},
		"never admitted, nothing to do": {going(v1alpha1.RemovalUninstall,
			func(in *Input) { in.Install.Spec.Admission = nil }), stop, ""},
		"the Subscription goes first": {going(v1alpha1.RemovalUninstall, nothing),
			[]Action{act(Delete, KindSubscription, "echo")}, "Subscription"},
		"a namespace in use is marked first": {
			going(v1alpha1.RemovalUninstall, func(in *Input) { in.Cluster.Namespace.Occupied = "EchoServer hello" }),
			[]Action{{Verb: Keep, Kind: KindNamespace, Name: "echo", Value: "EchoServer hello"}}, "EchoServer hello",
		},
		"then the CSVs of the package (fact 21)": {
			going(v1alpha1.RemovalUninstall, func(in *Input) {
				in.Cluster.Subscriptions = nil
				in.Cluster.CSVs = append(in.Cluster.CSVs, CSV{Name: "stranger.v1"})
			}),
			[]Action{act(Delete, KindCSV, v1)}, v1,
		},
		"which are waited for": {
			going(v1alpha1.RemovalUninstall, func(in *Input) {
				in.Cluster.Subscriptions,
					in.Cluster.CSVs[0].Deleting = nil, true
			}),
			nil, v1,
		},
		"then what Bellwether made": {
			going(v1alpha1.RemovalUninstall, func(in *Input) { in.Cluster.Subscriptions, in.Cluster.CSVs = nil, nil }),
			append([]Action{act(Delete, KindCatalogSource, "bellwether-echo"),
				act(Delete, KindOperatorGroup, "bellwether"),
				act(Delete, KindNamespace, "echo")}, stop...), "",
		},
		"but not what it did not make, nor a kept namespace": {
			going(v1alpha1.RemovalUninstall, func(in *Input) {
				in.Cluster.Subscriptions, in.Cluster.CSVs = nil, nil
				in.Cluster.OperatorGroups[0].Managed, in.Cluster.CatalogSource.Managed,
					in.Cluster.Namespace.Kept = false, false, true
			}),
			stop, "",
		},
		"OLM is gone": {going(v1alpha1.RemovalUninstall, func(in *Input) { in.Cluster = Cluster{} }), stop, ""},
		"the agent does not uninstall itself": {
			going(v1alpha1.RemovalUninstall, func(in *Input) {
				in.Install.Spec.Admission.Release.Package = v1alpha1.AgentPackage
			}),
			stop, "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, status := decide(test.in)
			if diff := cmp.Diff(test.want, d.Actions); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if ready := conditions.Get(status.Conditions, v1alpha1.ConditionReady); !strings.Contains(ready.Message,
				test.message) {
				t.Errorf("message %q does not name %q", ready.Message, test.message)
			}
		})
	}
}

// TestDriftOfReleaseThatSucceeded: a change by hand is named also while OLM installs
// the release again because of it, but not before the release has succeeded.
func TestDriftOfReleaseThatSucceeded(t *testing.T) {
	for name, test := range map[string]struct {
		phase, succeeded string
		want             metav1.ConditionStatus
	}{
		"runs":                     {"Succeeded", "hash-1", metav1.ConditionTrue},
		"is installed again":       {"Installing", "hash-1", metav1.ConditionTrue},
		"is installed first":       {"Installing", "", ""},
		"replaces another release": {"Installing", "hash-0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := running(test.phase)
			in.Install.Status.SucceededHash = test.succeeded
			in.Cluster.Compared, in.Cluster.Drifted = true, []DriftField{{Kind: KindCSV, Name: v1,
				Path: "spec.install"}}
			_, status := decide(in)
			drifted := conditions.Get(status.Conditions, v1alpha1.ConditionDrifted)
			if drifted.Status != test.want {
				t.Errorf("Drifted is %+v, want status %q", drifted, test.want)
			}
		})
	}
}

// TestAForeignImageIsNoSuccess has an image that was changed in the ClusterServiceVersion while a release
// is installed.
func TestAForeignImageIsNoSuccess(t *testing.T) {
	for name, test := range map[string]struct {
		field     DriftField
		policy    v1alpha1.DriftPolicy
		succeeded bool
		want      want
	}{
		"in the ClusterServiceVersion": {DriftField{Kind: KindCSV, Name: v1,
			Path: "spec.install.spec.deployments[echo].spec.template.spec.containers[manager].image"}, "", false,
			want{Reason: v1alpha1.ReasonDrifted, Stalled: true}},
		"and the agent puts it back": {DriftField{Kind: KindCSV, Name: v1,
			Path: "spec.install.spec.deployments[echo].spec.template.spec.containers[manager].image"},
			v1alpha1.DriftCorrect, false,
			want{Actions: []Action{act(Correct, KindCSV, v1)}, Reason: v1alpha1.ReasonDrifted}},
		"another field": {DriftField{Kind: KindCSV, Name: v1,
			Path: "spec.install.spec.deployments[echo].spec.replicas"},
			"", true, want{Reason: v1alpha1.ReasonSucceeded}},
		"a webhook of the cluster changes the Deployment": {DriftField{Kind: KindDeployment, Name: "echo",
			Path: "spec.template.spec.containers[manager].image"}, "", true, want{Reason: v1alpha1.ReasonSucceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			in := running("Succeeded")
			in.Install.Spec.Drift = test.policy
			in.Cluster.Compared, in.Cluster.Drifted = true, []DriftField{test.field}
			p, status := decide(in)
			if diff := cmp.Diff(test.want, got(p, status)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if succeeded := status.SucceededHash != ""; succeeded != test.succeeded {
				t.Errorf("counts as success: %v, want %v", succeeded, test.succeeded)
			}
			if !conditions.IsTrue(status.Conditions, v1alpha1.ConditionDrifted) {
				t.Error("the drift is not reported")
			}
		})
	}
}

// TestReportedProblems: why pods are not available is in the status, and the first cause in the message.
func TestReportedProblems(t *testing.T) {
	for name, phase := range map[string]string{"runs": "Succeeded", "is installed": "Installing"} {
		t.Run(name, func(t *testing.T) {
			in := running(phase)
			in.Cluster.Deployments[0].Unavailable = 1
			in.Cluster.Deployments[0].Problems = []v1alpha1.WorkloadProblem{{Deployment: "echo", Container: "manager",
				Reason: "ImagePull", Message: "the image example.com/echo:v9 cannot be pulled", Pods: 1}}
			_, status := decide(in)
			if diff := cmp.Diff(in.Cluster.Deployments[0].Problems, status.Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			const want = "ImagePull of container manager: the image example.com/echo:v9 cannot be pulled."
			ready := conditions.Get(status.Conditions, v1alpha1.ConditionReady)
			if !strings.HasSuffix(ready.Message, want) {
				t.Errorf("%q does not end with %q", ready.Message, want)
			}
			in.Cluster.Deployments[0].Problems = nil
			in.Install.Status = status
			if _, status := decide(in); len(status.Problems) > 0 {
				t.Errorf("problems that are over stay: %+v", status.Problems)
			}
		})
	}
}

// viewUnreachable sets the states of both ends when OLM cannot connect to the view.
func viewUnreachable(in *Input) {
	in.View.Address = "views.example.com:50100"
	in.View.Idle = viewGrace + time.Second
	source := in.Cluster.CatalogSource
	source.Address, source.State, source.StateAt = in.View.Address, "TRANSIENT_FAILURE", now.Add(-time.Minute)
}

// TestUnreachableViewFromItsFirstSecond has OLM fail only in the second in which the view was created, which OLM
// records without its fraction. A state from the second before is about an earlier view.
func TestUnreachableViewFromItsFirstSecond(t *testing.T) {
	for name, c := range map[string]struct {
		failed time.Duration // after the second in which the view was made began
		want   bool
	}{
		"in that second": {0, true},
		"before":         {-time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := running("Succeeded")
			viewUnreachable(&in)
			in.Now = in.Now.Truncate(time.Second)
			in.View.Idle = viewGrace + 700*time.Millisecond // it was made 300 ms after the second began
			second := in.Now.Add(-in.View.Idle).Truncate(time.Second)
			in.Cluster.CatalogSource.StateAt = second.Add(c.failed)
			if got := in.isViewUnreachable(); got != c.want {
				t.Errorf("unreachable: %t, want %t", got, c.want)
			}
		})
	}
}

// TestUnreachableViewOfARunningOperator checks that the operator stays Ready and that the message reports the view.
func TestUnreachableViewOfARunningOperator(t *testing.T) {
	in := running("Succeeded")
	viewUnreachable(&in)
	got := Next(in)
	if !got.Report.Complete || got.Report.Progress == nil ||
		got.Report.Progress.Reason != v1alpha1.ReasonViewUnreachable {
		t.Errorf("report %+v", got.Report)
	}
}

// TestManyLostDefinitions: the message has room for what to do about it.
func TestManyLostDefinitions(t *testing.T) {
	in := running("Succeeded")
	in.Install.Status.SucceededHash = in.Install.Spec.Admission.Hash
	for i := range 30 {
		in.Cluster.MissingDefinitions = append(in.Cluster.MissingDefinitions,
			fmt.Sprintf("configurations%02d.networking.internal.knative.example.com", i))
	}
	_, status := decide(in)
	got := conditions.Get(status.Conditions, v1alpha1.ConditionReady).Message
	for _, want := range []string{"configurations07.", "; and 22 more. ", in.Install.RepairAdvice()} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in: %s", want, got)
		}
	}
}
