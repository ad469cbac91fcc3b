// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// goingBack runs v2, which replaced v1, and is admitted to go back to v1.
func goingBack(phase string) Input {
	in := running("Succeeded")
	in.Install.Spec.Admission.Revision, in.Install.Spec.Admission.Hash = 3, "hash-3"
	in.Install.Spec.Admission.Rollback = &v1alpha1.AdmissionRollback{}
	in.Cluster.Subscriptions[0].InstalledCSV, in.Cluster.Subscriptions[0].CurrentCSV = v2, v2
	in.Cluster.Subscriptions[0].Plan = "uid-2"
	in.Cluster.InstallPlans = append(in.Cluster.InstallPlans, InstallPlan{Name: "install-2", Phase: "Complete",
		Approved: true, CSVs: []string{v2}, Created: now.Add(-time.Minute), Revision: 2, Object: Object{UID: "uid-2"}})
	in.Cluster.CSVs = []CSV{{Name: v2, Version: "1.1.0", Phase: phase, Replaces: v1, IsOfPackage: true,
		Created: now.Add(-time.Minute), Since: now.Add(-30 * time.Second)}}
	in.Offer.Path, in.Offer.Next, in.Offer.Admitted = []string{v1}, v1, []string{v1}
	in.Offer.ViewHash = "view-back"
	return in
}

// halfway has v1 still installed, which v2 was about to replace.
func halfway(phase string) Input {
	in := goingBack(phase)
	in.Cluster.CSVs = append(in.Cluster.CSVs, CSV{Name: v1, Version: "1.0.0", Phase: "Replacing", IsOfPackage: true})
	in.Offer.Next, in.Offer.Path, in.Offer.ViewHash = "", []string{v1}, "view-rest"
	in.Cluster.InstallPlans[0].Completed = now // once more, after it was of v2
	return in
}

// shared has a plan of v2 that OLM carried out after the plan of v1, so that the common objects belong to v2 alone.
func shared() Input {
	in := halfway("Pending")
	in.Cluster.InstallPlans[0].Completed = now.Add(-time.Hour)
	in.Cluster.InstallPlans[1].Completed = now.Add(-time.Minute)
	return in
}

// backPlanned has a view with the older version, and OLM's plan for it next to an old plan for the same CSV.
func backPlanned() Input {
	in := goingBack("Succeeded")
	in.Cluster.CSVs[0].Replaces = ""
	in.View.Hash = "view-back"
	in.Cluster.Subscriptions[0].CurrentCSV, in.Cluster.Subscriptions[0].Plan = v1, "uid-3"
	in.Cluster.InstallPlans = append(in.Cluster.InstallPlans, InstallPlan{Name: "install-3", Compared: true,
		Phase: "RequiresApproval", CSVs: []string{v1}, Created: now, Object: Object{UID: "uid-3"}})
	return in
}

// lost has v1, which v2 was about to replace, while v2 was deleted. The plans of both exist, and the Subscription
// names the given CSVs.
func lost(installed, current string) Input {
	in := halfway("Pending")
	in.Cluster.CSVs = in.Cluster.CSVs[1:]
	in.Cluster.CSVs[0].Phase = "Succeeded"
	in.Cluster.Subscriptions[0].InstalledCSV, in.Cluster.Subscriptions[0].CurrentCSV = installed, current
	return in
}

func TestGoingBack(t *testing.T) {
	deleteCSV := Action{Verb: Delete, Kind: KindCSV, Name: v2}
	reprocess := Action{Verb: Reprocess, Kind: KindCSV, Name: v1}
	adopt := Action{Verb: Adopt, Kind: KindSubscription, Name: "echo", Value: v1}
	serve := Action{Verb: Serve}
	redo := Action{Verb: Redo, Kind: KindInstallPlan, Name: "install-1", Value: v1}
	deletePlan := Action{Verb: Delete, Kind: KindInstallPlan, Name: "install-1"}
	for name, tc := range map[string]struct {
		in   Input
		want []Action
	}{
		"spec.replaces is removed before the view is served": {in: goingBack("Succeeded"),
			want: []Action{{Verb: Detach, Kind: KindCSV, Name: v2}}},
		"then the view is served": {in: with(goingBack("Succeeded"),
			func(in *Input) { in.Cluster.CSVs[0].Replaces = "" }), want: []Action{serve}},
		"a CSV that Failed is replaced as it is": {in: goingBack("Failed"),
			want: []Action{{Verb: Detach, Kind: KindCSV, Name: v2}}},
		"one that OLM installs again is abandoned first": {in: goingBack("Installing"),
			want: []Action{{Verb: Abandon, Kind: KindCSV, Name: v2}}},
		"an old CSV of the name goes first": {in: with(goingBack("Succeeded"), func(in *Input) {
			in.Cluster.CSVs = append(in.Cluster.CSVs,
				CSV{Name: v1, Phase: "Deleting", Deleting: true, IsOfPackage: true})
		})},
		"the plan that OLM waits for is approved": {in: backPlanned(), want: []Action{
			{Verb: Approve, Kind: KindInstallPlan, Name: "install-3", Object: Object{UID: "uid-3"}}}},
		"an old plan for the name is not": {in: with(backPlanned(),
			func(in *Input) { in.Cluster.Subscriptions[0].Plan = "uid-2" })},
		"nothing is done during the hop": {in: with(backPlanned(), func(in *Input) {
			in.Cluster.InstallPlans[2].Phase, in.Cluster.InstallPlans[2].Approved = "Complete", true
			in.Cluster.CSVs[0].Phase = "Replacing"
			in.Cluster.CSVs = append(in.Cluster.CSVs,
				CSV{Name: v1, Phase: "Installing", Replaces: v2, IsOfPackage: true})
		})},

		"an upgrade that is Pending is withdrawn": {in: halfway("Pending"), want: []Action{deleteCSV}},
		"one that Failed too":                     {in: halfway("Failed"), want: []Action{deleteCSV}},
		"and its failed plan with it": {in: with(halfway("Pending"), func(in *Input) {
			in.Cluster.InstallPlans[1].Phase = "Failed"
		}), want: []Action{{Verb: Delete, Kind: KindInstallPlan, Name: "install-2", Object: Object{UID: "uid-2"}},
			deleteCSV}},
		"what both versions bring is given back first": {in: shared(), want: []Action{redo}},
		"after the unfinished plan of the upgrade is gone": {in: with(shared(), func(in *Input) {
			in.Cluster.InstallPlans[1].Phase, in.Cluster.InstallPlans[1].Completed = "Installing", time.Time{}
		}), want: []Action{{Verb: Delete, Kind: KindInstallPlan, Name: "install-2", Object: Object{UID: "uid-2"}}}},
		"also where its plan is gone": {in: with(shared(), func(in *Input) {
			in.Cluster.InstallPlans = in.Cluster.InstallPlans[:1]
		}), want: []Action{redo}},
		"again where both plans were completed in one second": {in: with(shared(), func(in *Input) {
			in.Cluster.InstallPlans[0].Completed = in.Cluster.InstallPlans[1].Completed
		}), want: []Action{redo}},
		"while OLM does that it is waited for": {in: with(shared(), func(in *Input) {
			in.Cluster.InstallPlans[0].Phase, in.Cluster.InstallPlans[0].Completed = "Installing", time.Time{}
			in.Cluster.InstallPlans[0].Started = now.Add(-time.Minute)
		})},
		"and before OLM begins": {in: with(shared(), func(in *Input) {
			in.Cluster.InstallPlans[0].Phase, in.Cluster.InstallPlans[0].Completed = "Installing", time.Time{}
		})},
		"not for ever": {in: with(shared(), func(in *Input) {
			in.Cluster.InstallPlans[0].Phase, in.Cluster.InstallPlans[0].Completed = "Installing", time.Time{}
			in.Cluster.InstallPlans[0].Started = now.Add(-redoPatience)
		}), want: []Action{deletePlan, deleteCSV}},
		"nor where OLM cannot": {in: with(shared(), func(in *Input) {
			in.Cluster.InstallPlans[0].Phase, in.Cluster.InstallPlans[0].Completed = "Failed", time.Time{}
		}), want: []Action{deletePlan, deleteCSV}},
		"nor where the plan is gone": {in: with(shared(), func(in *Input) {
			in.Cluster.InstallPlans = in.Cluster.InstallPlans[1:]
		}), want: []Action{deleteCSV}},
		"one that the Subscription does not name yet": {in: with(halfway(""), func(in *Input) {
			in.Cluster.Subscriptions[0].InstalledCSV = v1
		}), want: []Action{deleteCSV}},
		"one that is being deleted is waited for": {in: with(halfway("Pending"),
			func(in *Input) { in.Cluster.CSVs[0].Deleting = true })},
		"what it was to replace is taken up again": {in: with(halfway("Pending"),
			func(in *Input) { in.Cluster.CSVs = in.Cluster.CSVs[1:] }), want: []Action{reprocess, adopt}},
		"also where OLM has not touched it": {in: with(halfway("Pending"), func(in *Input) {
			in.Cluster.CSVs = in.Cluster.CSVs[1:]
			in.Cluster.CSVs[0].Phase = "Succeeded"
		}), want: []Action{adopt}},
		"while OLM takes it up": {in: with(halfway("Pending"), func(in *Input) {
			in.Cluster.CSVs = in.Cluster.CSVs[1:]
			in.Cluster.CSVs[0].Phase = "Pending"
		}), want: []Action{adopt}},
		"where the Subscription was set back and names a CSV that is gone": {in: lost(v2, ""), want: []Action{adopt}},
		"where the Subscription was made anew": {in: with(lost("", ""), func(in *Input) {
			in.Cluster.Subscriptions[0].ResolutionFailed = "exists and is not referenced by a subscription"
		}), want: []Action{adopt}},
		"a finished upgrade is not withdrawn": {in: halfway("Succeeded"), want: []Action{serve}},
	} {
		t.Run(name, func(t *testing.T) {
			p, status := decide(tc.in)
			if diff := cmp.Diff(tc.want, p.Actions); diff != "" {
				t.Errorf("actions (-want +got):\n%s\n%v", diff, status.Conditions)
			}
			if p.Report.Complete {
				t.Error("reported as complete")
			}
		})
	}
}

// TestSubscriptionNamesWhatStays: OLM made a plan of the old view again while the upgrade was withdrawn, and forgot the
// current CSV when that plan was deleted.
func TestSubscriptionNamesWhatStays(t *testing.T) {
	in := running("Succeeded")
	in.Cluster.Subscriptions[0].InstalledCSV, in.Cluster.Subscriptions[0].CurrentCSV = v1, ""
	in.Cluster.Subscriptions[0].LastUpdated = now.Add(-retryResolutionMin)
	adopt := Action{Verb: Adopt, Kind: KindSubscription, Name: "echo", Value: v1}
	if diff := cmp.Diff([]Action{adopt}, Next(in).Actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	in.Cluster.Subscriptions[0].LastUpdated = now
	if got := Next(in).Actions; len(got) > 0 {
		t.Errorf("%v while OLM may be at it", got)
	}
}

// TestForwardAgain upgrades again to the version that was rolled back: the older CSV now names it in spec.replaces.
func TestForwardAgain(t *testing.T) {
	in := upgrading()
	in.Cluster.CSVs[0].Replaces = v2
	if got, want := Next(in).Actions, (Action{Verb: Detach, Kind: KindCSV, Name: v1}); !slices.Equal(got,
		[]Action{want}) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestAnUpgradeUnderWayIsNotComplete: a plan of an earlier admission will change the version that this admission
// rolls back to.
func TestAnUpgradeUnderWayIsNotComplete(t *testing.T) {
	stay := func() Input {
		in := goingBack("Succeeded")
		in.Offer.Next, in.Offer.Path, in.Offer.ViewHash = "", nil, "view-1"
		in.Cluster.Subscriptions[0].InstalledCSV = v1
		in.Cluster.CSVs = []CSV{{Name: v1, Phase: "Succeeded", IsOfPackage: true, Version: "1.0.0"}}
		return in
	}
	if p := Next(with(stay(), func(in *Input) { in.Cluster.Subscriptions[0].CurrentCSV = v1 })); !p.Report.Complete {
		t.Errorf("not complete at rest: %+v", p.Report.Progress)
	}
	if p := Next(with(stay(), func(in *Input) {
		in.Cluster.InstallPlans[1].Phase = "Installing"
	})); p.Report.Complete {
		t.Error("complete although OLM carries out the plan of the upgrade")
	}
	if p := Next(with(stay(), func(in *Input) {
		in.Cluster.CSVs = append(in.Cluster.CSVs, CSV{Name: v2, Phase: "Pending", Replaces: v1, IsOfPackage: true})
	})); p.Report.Complete {
		t.Error("complete although a CSV is there that replaces the target")
	}
}

func TestMayGoBack(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Input
		want bool
	}{
		"nothing installed": {in: served()},
		"Succeeded":         {in: goingBack("Succeeded"), want: true},
		"Failed":            {in: goingBack("Failed"), want: true},
		"installing":        {in: goingBack("Installing"), want: true},
		"halfway":           {in: halfway("Pending")},
		"by this very admission": {in: with(goingBack("Installing"),
			func(in *Input) { in.Cluster.InstallPlans[1].Revision = 3 })},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.in.Cluster.MayGoBack(3); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}
