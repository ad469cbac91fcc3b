// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/adoption"
)

// foreign runs v1 with a Subscription of another owner, and was admitted to adopt it as it is.
func foreign() Input {
	in := running("Succeeded")
	in.Install.Spec.Operator = v1alpha1.OperatorReference{Namespace: "fleet", Name: "echo"}
	release := &in.Install.Spec.Admission.Release
	release.Version, release.Bundle = "1.1.0", v2
	release.Adopt, release.AsInstalled = &v1alpha1.OperatorAdoption{}, true
	in.View, in.Cluster.CatalogSource = View{}, nil
	in.Cluster.Namespace = Namespace{Exists: true}
	in.Cluster.OperatorGroups = []OperatorGroup{{Name: "theirs"}}
	in.Cluster.Subscriptions = []Subscription{{Name: "my-echo", Package: "echo", InstalledCSV: v1, CurrentCSV: v1}}
	in.Offer.Package = &adoption.Package{Catalog: "example.com/catalog", Admitted: true, Name: "echo",
		Complete: true,
		Channels: []adoption.Channel{{Name: "stable", Head: "1.1.0"}},
		Bundles:  []adoption.Bundle{{Name: v1, Version: "1.0.0"}, {Name: v2, Version: "1.1.0"}}}
	in.Cluster.Found = &v1alpha1.OperatorScanStatus{
		Operators: []v1alpha1.FoundOperator{{Namespace: "echo",
			Subscription: &v1alpha1.FoundSubscription{Name: "my-echo", Package: "echo", Channel: "stable",
				Source: "community", SourceNamespace: "olm", Approval: "Automatic", InstalledCSV: v1, CurrentCSV: v1},
			CSV: &v1alpha1.FoundCSV{Name: v1, Version: "1.0.0", Phase: "Succeeded"}}},
		Namespaces: []v1alpha1.FoundNamespace{{Name: "echo",
			OperatorGroups: []v1alpha1.FoundOperatorGroup{{Name: "theirs"}}}},
	}
	return in
}

// found is the operator that is to be adopted.
func found(in *Input) *v1alpha1.FoundOperator { return &in.Cluster.Found.Operators[0] }

// taken is foreign after the Subscription was taken over.
func taken() Input {
	in := foreign()
	in.Cluster.Found = nil
	sub := &in.Cluster.Subscriptions[0]
	sub.IsOwn, sub.Keeps, sub.AwaitsView = true, true, true
	sub.Adopted = &v1alpha1.AdoptedSubscription{Name: "my-echo", Since: metav1.NewTime(now.Add(-time.Minute)),
		Bundle: v1}
	return in
}

// connected is taken after the view was served and OLM has connected to it.
func connected() Input {
	in := taken()
	in.View = View{Hash: "view-1", Address: "127.0.0.1:50100"}
	in.Cluster.CatalogSource = &CatalogSource{Name: "bellwether-echo", Managed: true, InSync: true, State: "READY"}
	return in
}

// adopted is connected after the Subscription was given the view.
func adopted() Input {
	in := connected()
	in.Cluster.Subscriptions[0].InSync, in.Cluster.Subscriptions[0].AwaitsView = true, false
	return in
}

// nothingThere was admitted to adopt an existing operator, and there is none.
func nothingThere() Input {
	in := foreign()
	in.Cluster = Cluster{OLM: true, Found: &v1alpha1.OperatorScanStatus{}}
	in.Offer = Offer{Package: in.Offer.Package, Versions: in.Offer.Versions}
	return in
}

// pendingPlan adds an InstallPlan of others without an approval.
func pendingPlan(in *Input) {
	in.Cluster.Subscriptions[0].CurrentCSV, in.Cluster.Subscriptions[0].Awaits = v2, "install-2"
	in.Cluster.InstallPlans = append(in.Cluster.InstallPlans, InstallPlan{Name: "install-2", Phase: "RequiresApproval",
		CSVs: []string{v2}, Created: now.Add(-time.Hour), Compared: true,
		Sources: []StepSource{{CSV: v2, Namespace: "olm", Name: "community"}}})
}

func TestTakeOver(t *testing.T) {
	t.Parallel()
	takeOver := []Action{act(TakeOver, KindSubscription, "my-echo")}
	pending, refused := v1alpha1.ReasonAdoptionPending, v1alpha1.ReasonNotAdoptable
	served, resolvedStage := v1alpha1.ConditionCatalogServed, v1alpha1.ConditionResolved
	accept := func(in *Input, reasons ...v1alpha1.AcceptedFinding) {
		in.Install.Spec.Admission.Release.Adopt = &v1alpha1.OperatorAdoption{Accept: reasons}
	}
	for name, test := range map[string]struct {
		in   Input
		want want
		says string
	}{
		"it is taken over first, and nothing else is done": {foreign(),
			want{Actions: takeOver, Reason: pending, Failing: served}, "my-echo is being taken over"},
		"not by a release that does not ask for it": {with(foreign(), func(in *Input) {
			in.Install.Spec.Admission.Release.Adopt, in.Install.Spec.Admission.Release.AsInstalled = nil, false
			in.Cluster.Found, in.Offer.Package = nil, nil
			in.View, in.Cluster.CatalogSource = connected().View, connected().Cluster.CatalogSource
		}), want{Reason: v1alpha1.ReasonSubscriptionConflict, Stalled: true, Failing: resolvedStage}, "spec.adopt"},
		"what stands in the way is said, with what to do": {with(foreign(), func(in *Input) {
			in.Cluster.Found.Namespaces[0].OperatorGroups = nil
		}), want{Reason: refused, Stalled: true, Failing: served}, "Create the OperatorGroup that was there"},
		"a finding that needs a decision": {with(foreign(), func(in *Input) {
			found(in).Subscription.GitOps = "Argo CD (echo)"
		}), want{Reason: refused, Stalled: true, Failing: served}, "Or add GitOps to spec.adopt.accept"},
		"a finding that was accepted": {with(foreign(), func(in *Input) {
			found(in).Subscription.GitOps = "Argo CD (echo)"
			accept(in, adoption.GitOps)
		}), want{Actions: takeOver, Reason: pending, Failing: served}, ""},
		"while OLM is at work": {with(foreign(), func(in *Input) { found(in).CSV.Phase = "Installing" }),
			want{Reason: pending, Failing: served}, "OLM is at work"},
		"settings that differ": {with(foreign(), func(in *Input) {
			in.Install.Spec.Admission.Release.Install.Config = &v1alpha1.OperatorConfig{
				NodeSelector: map[string]string{"a": "b"}}
		}), want{Reason: refused, Stalled: true, Failing: served}, "spec.config.nodeSelector"},
		"another install mode": {with(foreign(), func(in *Input) {
			in.Install.Spec.Admission.Release.Install.Mode = v1alpha1.InstallOwnNamespace
		}), want{Reason: refused, Stalled: true, Failing: served}, "spec.install.mode"},
		"a version that the catalog does not have": {with(foreign(), func(in *Input) {
			found(in).CSV.Name, found(in).CSV.Version = "echo.v1.0.5", "1.0.5"
			in.Offer.Problem = &Problem{Reason: refused, Message: "echo.v1.0.5 is installed."}
		}), want{Reason: refused, Stalled: true, Failing: served}, "Add version 1.0.5 to the ladder"},
		"the package was renamed": {with(foreign(), func(in *Input) {
			found(in).Subscription.Package, in.Cluster.Subscriptions[0].Package = "old-echo", "old-echo"
		}), want{Reason: refused, Stalled: true, Failing: served}, "It is package old-echo, and the cluster is " +
			"admitted to package echo of the catalog example.com/catalog. Package echo in the catalog " +
			"example.com/catalog has the bundle"},
		"managed for another ManagedOperator": {with(foreign(), func(in *Input) {
			found(in).Managed, found(in).Operator = true, &v1alpha1.OperatorReference{Namespace: "team", Name: "zoo"}
		}), want{Reason: refused, Stalled: true, Failing: served}, "ManagedOperator team/zoo"},
		"the catalog cannot be read": {with(foreign(), func(in *Input) {
			in.Offer = Offer{Problem: &Problem{Reason: v1alpha1.ReasonCatalogUnreachable, Message: "no route"}}
		}), want{Reason: v1alpha1.ReasonCatalogUnreachable, Stalled: true, Failing: served}, ""},
		"the view cannot be made": {with(foreign(), func(in *Input) {
			in.Offer.Problem = &Problem{Reason: v1alpha1.ReasonBundleTooLarge, Message: "too large"}
		}), want{Reason: v1alpha1.ReasonBundleTooLarge, Stalled: true, Failing: served}, ""},
		"the next version is blocked: later": {with(foreign(), func(in *Input) {
			in.Install.Spec.Admission.Release.AsInstalled, in.Offer.Blocked = false, "It loses data."
		}), want{Reason: v1alpha1.ReasonVersionBlocked, Stalled: true, Failing: served}, ""},
		"by a release that goes on": {with(foreign(), func(in *Input) {
			in.Install.Spec.Admission.Release.AsInstalled = false
			in.Offer.Path, in.Offer.Next, in.Offer.Admitted = []string{v2}, v2, []string{v2}
		}), want{Actions: takeOver, Reason: pending, Failing: served}, ""},

		"OLM may have begun to resolve": {with(taken(), func(in *Input) {
			in.Cluster.Subscriptions[0].Adopted.Since = metav1.NewTime(now.Add(-time.Second))
		}), want{Reason: pending, Failing: served}, "once OLM has noticed"},
		"OLM carries a plan out": {with(taken(), func(in *Input) {
			pendingPlan(in)
			in.Cluster.InstallPlans[1].Phase, in.Cluster.InstallPlans[1].Approved = "Installing", true
		}), want{Reason: pending, Failing: served}, "InstallPlan install-2"},
		"OLM has made a plan that is approved": {with(taken(), func(in *Input) {
			pendingPlan(in)
			p := &in.Cluster.InstallPlans[1]
			p.Phase, p.Approved, p.Created = "", true, now.Add(-time.Second)
		}), want{Reason: pending, Failing: served}, "it is new"},
		"a plan that never starts is not waited for": {with(taken(), func(in *Input) {
			pendingPlan(in)
			in.Cluster.InstallPlans[1].Phase, in.Cluster.InstallPlans[1].Approved = "", true
		}), want{Actions: []Action{{Verb: Serve}}, Reason: v1alpha1.ReasonProgressing, Failing: served}, ""},
		"OLM installs": {with(taken(), func(in *Input) { in.Cluster.CSVs[0].Phase = "Installing" }),
			want{Reason: pending, Failing: served}, "it is Installing"},
		"what OLM had begun has failed": {with(taken(), func(in *Input) {
			in.Cluster.CSVs[0].Phase, in.Cluster.CSVs[0].Since = "Failed", now.Add(-time.Hour)
		}), want{Reason: v1alpha1.ReasonCSVFailed, Stalled: true, Failing: served}, ""},
		"its CSV was deleted": {with(taken(), func(in *Input) { in.Cluster.CSVs = nil }),
			want{Reason: refused, Stalled: true, Failing: served}, "has no ClusterServiceVersion"},
		"then the view is served": {taken(), want{Actions: []Action{{Verb: Serve}}, Reason: v1alpha1.ReasonProgressing,
			Failing: served}, ""},
		"and the CatalogSource made": {with(connected(), func(in *Input) { in.Cluster.CatalogSource = nil }),
			want{Actions: []Action{act(Apply, KindCatalogSource, "")}, Reason: v1alpha1.ReasonProgressing,
				Failing: served}, ""},
		"the Subscription keeps its catalog until OLM is connected to the view": {with(connected(), func(in *Input) {
			in.Cluster.CatalogSource.State = "CONNECTING"
		}), want{Reason: v1alpha1.ReasonCatalogNotReady, Failing: served}, ""},
		"also while it cannot be reached": {with(connected(), viewUnreachable),
			want{Reason: v1alpha1.ReasonViewUnreachable, Stalled: true, Failing: served}, ""},
		"then it is given the view": {connected(), want{Actions: []Action{act(Apply, KindSubscription, "")},
			Reason: v1alpha1.ReasonProgressing}, ""},
		"and is adopted": {adopted(), want{Reason: v1alpha1.ReasonSucceeded},
			v1 + " runs, as it was installed by others"},

		"a plan that nobody approved stays": {with(adopted(), pendingPlan), want{Reason: v1alpha1.ReasonSucceeded}, ""},
		"a plan that failed is not tried again": {with(adopted(), func(in *Input) {
			pendingPlan(in)
			in.Cluster.InstallPlans[1].Phase, in.Cluster.InstallPlans[1].FailedAt = "Failed", now.Add(-time.Hour)
		}), want{Reason: v1alpha1.ReasonSucceeded}, ""},
		"somebody approved an upgrade since": {with(adopted(), func(in *Input) {
			in.Cluster.CSVs[0].Name, in.Cluster.CSVs[0].Version = v2, "1.1.0"
			in.Cluster.Subscriptions[0].InstalledCSV, in.Cluster.Subscriptions[0].CurrentCSV = v2, v2
		}), want{Reason: v1alpha1.ReasonSucceeded}, v2 + " runs"},
		"or one that the catalog does not have": {with(adopted(), func(in *Input) {
			in.Cluster.CSVs[0].Phase = "Installing"
			in.Offer.Problem = &Problem{Reason: refused, Message: "echo.v9 is installed."}
		}), want{Reason: refused, Stalled: true, Failing: served}, ""},
		"what differs from the bundle stays": {with(adopted(), func(in *Input) {
			in.Install.Spec.Drift = v1alpha1.DriftCorrect
			in.Cluster.Compared, in.Cluster.Drifted = true, []DriftField{{Kind: KindCSV, Name: v1,
				Path: "spec.install.spec.deployments[echo].spec.template.spec.containers[manager].image"}}
		}), want{Reason: v1alpha1.ReasonSucceeded}, ""},
		"scaled to 0, which was accepted": {with(adopted(), func(in *Input) {
			accept(in, adoption.ScaledToZero)
			in.Cluster.Deployments[0].Replicas = 0
		}), want{Reason: v1alpha1.ReasonSucceeded}, ""},
		"scaled to 0 since": {with(adopted(), func(in *Input) { in.Cluster.Deployments[0].Replicas = 0 }),
			want{Reason: v1alpha1.ReasonScaledToZero, Stalled: true}, ""},
		"the CSV was deleted, and is not installed again": {with(adopted(), func(in *Input) { in.Cluster.CSVs = nil }),
			want{Reason: refused, Stalled: true, Failing: v1alpha1.ConditionInstalled}, ""},
		"somebody writes the Subscription back: it is given the view again": {with(adopted(), func(in *Input) {
			in.Cluster.Subscriptions[0].InSync, in.Cluster.Subscriptions[0].AwaitsView = false, true
		}), want{Actions: []Action{act(Apply, KindSubscription, "")}, Reason: v1alpha1.ReasonProgressing}, ""},
		"the next release deletes the plan of others": {with(adopted(), func(in *Input) {
			pendingPlan(in)
			in.Install.Spec.Admission.Release.AsInstalled = false
			in.Offer.Path, in.Offer.Next, in.Offer.Admitted = []string{v2}, v2, []string{v2}
		}), want{Actions: []Action{act(Delete, KindInstallPlan, "install-2")}, Reason: v1alpha1.ReasonProgressing,
			Failing: resolvedStage}, ""},

		"nothing is there": {nothingThere(), want{Reason: v1alpha1.ReasonSucceeded}, "there is nothing to adopt"},
		"nothing is there, and it runs elsewhere": {with(nothingThere(), func(in *Input) {
			in.Cluster.OtherNamespaces = []string{"other/" + v1}
		}), want{Reason: v1alpha1.ReasonInstalledElsewhere, Stalled: true, Failing: served}, "other/" + v1},
		"nothing is there, and a release that goes on installs it": {with(nothingThere(), func(in *Input) {
			in.Install.Spec.Admission.Release.AsInstalled = false
			in.Offer.Next, in.Offer.ViewHash = v2, "view-2"
		}), want{Actions: []Action{{Verb: Serve}}, Reason: v1alpha1.ReasonProgressing, Failing: served}, ""},

		"a CSV without a Subscription gets one": {with(connected(), func(in *Input) {
			*in = with(*in, func(in *Input) { in.Cluster.Subscriptions = nil })
			in.Cluster.Found = foreign().Cluster.Found
			found(in).Subscription = nil
		}), want{Actions: []Action{act(Apply, KindSubscription, "")}, Reason: v1alpha1.ReasonProgressing,
			Failing: resolvedStage}, ""},
		"which adopts it": {with(connected(), func(in *Input) {
			in.Cluster.Subscriptions = []Subscription{{Name: "echo", Package: "echo", IsOwn: true, InSync: true}}
			in.Cluster.InstallPlans = nil
		}), want{Actions: []Action{adopt(v1)}, Reason: v1alpha1.ReasonProgressing, Failing: resolvedStage}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, status := decide(test.in)
			if diff := cmp.Diff(test.want, got(d, status)); diff != "" {
				t.Errorf("Next (-want +got):\n%s\nReady: %+v", diff,
					conditions.Get(status.Conditions, v1alpha1.ConditionReady))
			}
			if message := conditions.Get(status.Conditions, v1alpha1.ConditionReady).Message; !strings.Contains(message,
				test.says) {
				t.Errorf("%q does not say %q", message, test.says)
			}
			if sub, ok := test.in.Cluster.findSubscription(); ok && status.Adopted != sub.Adopted {
				t.Errorf("status.adopted is %+v, want %+v", status.Adopted, sub.Adopted)
			}
			checkDecision(t, test.in, d, status)
		})
	}
}

// TestNoAdoptionDeletes checks that an adoption deletes no objects of others, except InstallPlans of a release that
// continues, which OLM would not replace.
func TestNoAdoptionDeletes(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]Input{"foreign": foreign(), "taken": taken(), "connected": connected(),
		"adopted": adopted()} {
		for change, do := range map[string]func(*Input){
			"nothing": func(*Input) {}, "plan": pendingPlan, "no CSV": func(in *Input) { in.Cluster.CSVs = nil },
			"failed":  func(in *Input) { in.Cluster.CSVs[0].Phase = "Failed" },
			"pending": func(in *Input) { in.Cluster.CSVs[0].Phase = "Pending" },
			"replaced": func(in *Input) {
				in.Cluster.CSVs = append(in.Cluster.CSVs,
					CSV{Name: v2, Replaces: v1, Phase: "Installing", IsOfPackage: true})
			},
			"no group": func(in *Input) { in.Cluster.OperatorGroups = nil },
		} {
			t.Run(name+", "+change, func(t *testing.T) {
				t.Parallel()
				in := in
				in.Install = in.Install.DeepCopy()
				in.Cluster.CSVs = append([]CSV(nil), in.Cluster.CSVs...)
				in.Cluster.Subscriptions = append([]Subscription(nil), in.Cluster.Subscriptions...)
				in.Cluster.InstallPlans = append([]InstallPlan(nil), in.Cluster.InstallPlans...)
				do(&in)
				for _, a := range Next(in).Actions {
					if a.Verb != Serve && a.Verb != Apply && a.Verb != TakeOver {
						t.Errorf("%+v", a)
					}
				}
			})
		}
	}
}

func TestRestore(t *testing.T) {
	t.Parallel()
	going := func(in Input, changes ...func(*Input)) Input {
		in.Install.DeletionTimestamp = &metav1.Time{Time: now}
		in.Install.Spec.RemovalPolicy = v1alpha1.RemovalRestore
		for _, change := range changes {
			change(&in)
		}
		return in
	}
	stop := []Action{{Verb: StopServing}}
	viewPlan := func(in *Input) {
		pendingPlan(in)
		in.Cluster.InstallPlans[1].Sources = []StepSource{{CSV: v2, Namespace: "echo", Name: "bellwether-echo"}}
	}
	for name, test := range map[string]struct {
		in      Input
		want    []Action
		removed bool
		says    string
	}{
		"the Subscription is given back": {going(adopted()), []Action{act(GiveBack, KindSubscription, "my-echo")},
			false, "my-echo is being given back"},
		"then the CatalogSource goes, and the view": {going(adopted(), func(in *Input) {
			in.Cluster.Subscriptions[0] = foreign().Cluster.Subscriptions[0]
		}), append([]Action{act(Delete, KindCatalogSource, "bellwether-echo")}, stop...), true, ""},
		"a CatalogSource that others made stays": {going(adopted(), func(in *Input) {
			in.Cluster.Subscriptions[0], in.Cluster.CatalogSource.Managed = foreign().Cluster.Subscriptions[0], false
		}), stop, true, ""},
		"a plan that OLM carries out is waited for": {going(adopted(), func(in *Input) {
			viewPlan(in)
			in.Cluster.InstallPlans[1].Phase, in.Cluster.InstallPlans[1].Approved = "Installing", true
		}), nil, false, "once InstallPlan install-2 has ended"},
		"a plan of the view goes first": {going(adopted(), viewPlan),
			[]Action{act(Delete, KindInstallPlan, "install-2")}, false, ""},
		"and OLM forgets it": {going(adopted(), func(in *Input) { in.Cluster.Subscriptions[0].Awaits = "install-2" }),
			[]Action{{Verb: Reset, Kind: KindSubscription, Name: "my-echo", Value: v1}}, false, ""},
		"a plan of others stays": {going(adopted(), pendingPlan), []Action{act(GiveBack, KindSubscription, "my-echo")},
			false, ""},
		"before it had the view":  {going(taken()), []Action{act(GiveBack, KindSubscription, "my-echo")}, false, ""},
		"it was never taken over": {going(foreign()), stop, true, ""},
		"what others did not install stays, as with Orphan": {going(running("Succeeded"), func(in *Input) {
			in.Cluster.Subscriptions[0].Keeps = true
		}), append([]Action{act(Forget, KindSubscription, "echo")}, stop...), true, ""},
		"OLM is gone": {going(adopted(), func(in *Input) { in.Cluster = Cluster{} }), stop, true, ""},
		"never admitted": {going(adopted(), func(in *Input) { in.Install.Spec.Admission = nil }),
			append([]Action{act(Forget, KindSubscription, "my-echo")}, stop...), true, ""},
		"Uninstall keeps the CSV of an operator that was not taken over": {
			going(foreign(), func(in *Input) {
				in.Install.Spec.RemovalPolicy = v1alpha1.RemovalUninstall
				in.Cluster.Subscriptions = nil
			}), stop, true, ""},
		"Uninstall deletes what was adopted, and not the namespace and OperatorGroup of others": {
			going(adopted(), func(in *Input) {
				in.Install.Spec.RemovalPolicy = v1alpha1.RemovalUninstall
				in.Cluster.Subscriptions, in.Cluster.CSVs = nil, nil
			}), append([]Action{act(Delete, KindCatalogSource, "bellwether-echo")}, stop...), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, status := decide(test.in)
			if diff := cmp.Diff(test.want, d.Actions); diff != "" || d.Report.Removed != test.removed {
				t.Errorf("removed %t, want %t; actions (-want +got):\n%s", d.Report.Removed, test.removed, diff)
			}
			if message := conditions.Get(status.Conditions, v1alpha1.ConditionReady).Message; !strings.Contains(message,
				test.says) {
				t.Errorf("%q does not say %q", message, test.says)
			}
		})
	}
}
