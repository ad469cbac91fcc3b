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
	"github.com/bellwether-dev/bellwether/engines"
)

// TestReportedStaysWhileACatalogIsRead: neither how OLM got what runs nor whether that differs changes by that.
func TestReportedStaysWhileACatalogIsRead(t *testing.T) {
	in := running("Succeeded")
	in.Install.Status.OLM = &v1alpha1.OLMStatus{Route: v1alpha1.RouteInline}
	conditions.Set(&in.Install.Status.Conditions, 3, v1alpha1.ConditionDrifted, false, v1alpha1.ReasonInSync, "")
	in.Offer = Offer{Pending: "Reading catalog c since noon."}
	_, status := decide(in)
	drifted := conditions.Get(status.Conditions, v1alpha1.ConditionDrifted)
	if status.OLM.Route != v1alpha1.RouteInline || drifted.Reason != v1alpha1.ReasonInSync {
		t.Errorf("the route is %q, Drifted is %+v", status.OLM.Route, drifted)
	}
	in.Offer = Offer{Problem: &Problem{Reason: v1alpha1.ReasonCatalogUnreachable, Message: "No route."}}
	_, status = decide(in)
	drifted = conditions.Get(status.Conditions, v1alpha1.ConditionDrifted)
	if status.OLM.Route != "" || drifted.Reason != "" {
		t.Errorf("of a catalog that cannot be read: the route is %q, Drifted is %+v", status.OLM.Route, drifted)
	}
}

func TestDrift(t *testing.T) {
	inCSV := DriftField{Kind: KindCSV, Name: v1, Path: "spec.install.spec.deployments[echo].spec.replicas"}
	inDeployment := DriftField{Kind: KindDeployment, Name: "echo", Path: "spec.replicas"}
	another := DriftField{Kind: KindDeployment, Name: "echo", Path: "spec.template.spec.serviceAccountName"}
	other := DriftField{Kind: KindDeployment, Name: "web", Path: "spec.replicas"}
	csv := Object{UID: "csv", ResourceVersion: "1"}
	echo, web := Object{UID: "echo", ResourceVersion: "2"}, Object{UID: "web", ResourceVersion: "3"}
	stopped := &v1alpha1.DriftCorrection{Count: engines.MaxCorrections,
		FirstTime: metav1.NewTime(now.Add(-time.Minute))}
	justNow := &v1alpha1.DriftCorrection{Count: 1, FirstTime: metav1.NewTime(now), LastTime: metav1.NewTime(now)}
	drifting := func(change func(*Input), fields ...DriftField) Input {
		in := running("Succeeded")
		in.Install.Spec.Drift = v1alpha1.DriftCorrect
		in.Offer.Expected = &ExpectedFields{Bundle: v1, Replicas: map[string]int32{"echo": 1, "web": 1}}
		in.Cluster.CSVs[0].Object = csv
		in.Cluster.Deployments = []Deployment{{Object: echo, Name: "echo", Configured: true, Replicas: 1},
			{Object: web, Name: "web", Configured: true, Replicas: 1}}
		in.Cluster.Compared, in.Cluster.Drifted = true, fields
		change(&in)
		return in
	}
	same := func(*Input) {}
	scaledDown := func(in *Input) { in.Cluster.Deployments[0].Replicas = 0 }
	for name, test := range map[string]struct {
		in      Input
		actions []Action
		drifted string // reason
		ready   string // reason
		stalled bool
		message string
	}{
		"nothing differs": {in: drifting(same), drifted: v1alpha1.ReasonInSync, ready: v1alpha1.ReasonSucceeded},
		"it is only reported": {
			in:      drifting(func(in *Input) { in.Install.Spec.Drift = "" }, inDeployment),
			drifted: v1alpha1.ReasonDrifted, ready: v1alpha1.ReasonSucceeded, message: "Set the fields back",
		},
		"scaled to zero, and it is only reported": {
			in: drifting(func(in *Input) {
				in.Install.Spec.Drift = v1alpha1.DriftReport
				scaledDown(in)
			}, inDeployment),
			drifted: v1alpha1.ReasonDrifted, ready: v1alpha1.ReasonScaledToZero, stalled: true,
		},
		"Deployments": {
			in: drifting(same, inDeployment, another, other),
			actions: []Action{{Verb: Correct, Kind: KindDeployment, Name: "echo", Object: echo},
				{Verb: Correct, Kind: KindDeployment, Name: "web", Object: web}},
			drifted: v1alpha1.ReasonCorrecting, ready: v1alpha1.ReasonSucceeded, message: inDeployment.String(),
		},
		"the CSV comes first": {
			in:      drifting(same, inCSV, inDeployment),
			actions: []Action{{Verb: Correct, Kind: KindCSV, Name: v1, Object: csv}},
			drifted: v1alpha1.ReasonCorrecting, ready: v1alpha1.ReasonSucceeded, message: inCSV.String(),
		},
		"scaled to zero": {
			in:      drifting(scaledDown, inDeployment),
			actions: []Action{{Verb: Correct, Kind: KindDeployment, Name: "echo", Object: echo}},
			drifted: v1alpha1.ReasonCorrecting, ready: v1alpha1.ReasonScaledToZero,
		},
		"scaled to zero right after it was put back": {
			in:      drifting(func(in *Input) { in.Install.Status.Correction = justNow; scaledDown(in) }, inDeployment),
			drifted: v1alpha1.ReasonCorrecting, ready: v1alpha1.ReasonScaledToZero,
		},
		"something keeps changing it": {
			in: drifting(func(in *Input) { in.Install.Status.Correction = stopped; scaledDown(in) }, inDeployment),

			drifted: v1alpha1.ReasonCorrectionStopped, ready: v1alpha1.ReasonScaledToZero, stalled: true,
			message: "changed again",
		},
		"the manifests are not known": {
			in: drifting(func(in *Input) { in.Cluster.Compared, in.Offer.Expected = false, nil }),

			drifted: v1alpha1.ReasonNotCompared, ready: v1alpha1.ReasonSucceeded, message: "unpacks",
		},
		"the catalog cannot be read": {
			in: drifting(func(in *Input) {
				in.Cluster.Compared = false
				in.Offer = Offer{Problem: &Problem{Reason: v1alpha1.ReasonCatalogUnreachable, Message: "No route."}}
			}),
			ready: v1alpha1.ReasonSucceeded,
		},
		"the catalog is being read": {
			in: drifting(func(in *Input) {
				in.Cluster.Compared, in.Offer = false, Offer{Pending: "Reading catalog c since noon."}
			}),
			ready: v1alpha1.ReasonSucceeded,
		},
		"OLM installs again what had succeeded": {
			in: drifting(func(in *Input) {
				in.Cluster.CSVs[0].Phase = "Installing"
				in.Install.Status.SucceededHash = in.Install.Spec.Admission.Hash
				scaledDown(in)
			}, inCSV, inDeployment),
			actions: []Action{{Verb: Correct, Kind: KindCSV, Name: v1, Object: csv}},
			drifted: v1alpha1.ReasonCorrecting, ready: v1alpha1.ReasonScaledToZero,
		},
		"OLM installs": {in: drifting(func(in *Input) { in.Cluster.CSVs[0].Phase = "Installing" }, inDeployment),
			ready: v1alpha1.ReasonProgressing},
	} {
		t.Run(name, func(t *testing.T) {
			next, status := decide(test.in)
			if diff := cmp.Diff(test.actions, next.Actions); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			drifted := conditions.Get(status.Conditions, v1alpha1.ConditionDrifted)
			if drifted.Reason != test.drifted || !strings.Contains(drifted.Message, test.message) {
				t.Errorf("Drifted is %+v, want reason %q with %q", drifted, test.drifted, test.message)
			}
			if ready := conditions.Get(status.Conditions, v1alpha1.ConditionReady); ready.Reason != test.ready {
				t.Errorf("Ready is %+v, want reason %s", ready, test.ready)
			}
			if stalled := conditions.IsTrue(status.Conditions, v1alpha1.ConditionStalled); stalled != test.stalled {
				t.Errorf("stalled is %t", stalled)
			}
			if after := next.RecheckAfter; test.drifted == v1alpha1.ReasonCorrecting &&
				(after <= 0 || after > engines.CorrectionPause) {
				t.Errorf("looks again after %s", after)
			}
			if due := test.actions != nil; due != (status.Correction != test.in.Install.Status.Correction) {
				t.Errorf("the record is %+v after %v", status.Correction, next.Actions)
			}
		})
	}
}
