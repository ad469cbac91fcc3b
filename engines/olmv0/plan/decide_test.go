// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
)

// TestPlanReadsTheCatalog checks that the catalog is read first, and that the other actions are planned only after
// the read.
func TestPlanReadsTheCatalog(t *testing.T) {
	t.Parallel()
	without := func(in Input) Input {
		in.Install.Spec.Admission.Release.Catalog.Digest = "sha256:1"
		in.Offer = Offer{}
		return in
	}
	leaving := with(running("Succeeded"), func(in *Input) {
		deleted := metav1.NewTime(in.Now)
		in.Install.DeletionTimestamp = &deleted
	})
	for name, test := range map[string]struct {
		in  Input
		why string // empty where no catalog is needed
	}{
		"nothing is installed":  {without(fresh()), "find the upgrade path to " + v1},
		"the target runs":       {without(running("Succeeded")), "serve " + v1 + ", which is installed"},
		"an upgrade":            {without(upgrading()), "find the upgrade path to " + v2},
		"an adoption":           {without(with(fresh(), adoptAsItIs)), "look for what is to be adopted"},
		"no OLM":                {with(without(fresh()), func(in *Input) { in.Cluster.OLM = false }), ""},
		"a removal":             {without(leaving), ""},
		"a template is invalid": {with(without(fresh()), func(in *Input) { in.Offer.Problem = &Problem{} }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			decide := func(catalog *Catalog) engines.Plan[Action] {
				facts := &Facts{Input: test.in, observed: &Observed{Answers: Answers{Catalog: catalog}}}
				return facts.Decide()
			}
			got := decide(nil)
			if test.why == "" {
				if diff := cmp.Diff(Next(test.in), got); diff != "" || got.NotReady {
					t.Errorf("not ready %t (-want +got):\n%s", got.NotReady, diff)
				}
				return
			}
			want := engines.Plan[Action]{NotReady: true, Actions: []Action{{Verb: Read, Kind: KindCatalog,
				Name: "sha256:1", Value: test.why}}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("before it was read (-want +got):\n%s", diff)
			}
			pending := &Catalog{IsPending: true, Since: test.in.Now}
			if diff := cmp.Diff(engines.Plan[Action]{NotReady: true}, decide(pending)); diff != "" {
				t.Errorf("while it is read (-want +got):\n%s", diff)
			}
			pending.Since = test.in.Now.Add(-pendingGrace)
			if got = decide(pending); got.NotReady || got.Report.Progress == nil ||
				!strings.HasPrefix(got.Report.Progress.Message, "Reading catalog ") {
				t.Errorf("while it is read for long: %+v", got)
			}
			read := test.in
			read.Offer = fresh().Offer
			if diff := cmp.Diff(Next(read), decide(&Catalog{Offer: read.Offer})); diff != "" {
				t.Errorf("after it was read (-want +got):\n%s", diff)
			}
		})
	}
}

func adoptAsItIs(in *Input) {
	in.Install.Spec.Admission.Release.Adopt, in.Install.Spec.Admission.Release.AsInstalled =
		&v1alpha1.OperatorAdoption{}, true
	in.Cluster.Found = &v1alpha1.OperatorScanStatus{}
}
