// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
)

// ready runs the admitted release and has the status Ready.
func ready() Input {
	in := running("Succeeded")
	in.Install.Status.SucceededHash = in.Install.Spec.Admission.Hash
	conditions.Set(&in.Install.Status.Conditions, 1, v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded, "")
	return in
}

// TestDeleted checks that deleted objects of a Ready install are listed, but not objects that did not exist yet or
// that the agent removes itself for another release.
func TestDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		in   Input
		want []engines.Deleted
	}{
		"nothing": {in: ready()},
		"Subscription": {with(ready(), func(in *Input) { in.Cluster.Subscriptions = nil }),
			[]engines.Deleted{{Kind: KindSubscription, Namespace: "echo"}}},
		"OperatorGroup and CatalogSource": {with(ready(), func(in *Input) {
			in.Cluster.OperatorGroups, in.Cluster.CatalogSource = nil, nil
		}), []engines.Deleted{{Kind: KindOperatorGroup, Namespace: "echo"},
			{Kind: KindCatalogSource, Namespace: "echo"}}},
		"ClusterServiceVersion": {with(ready(), func(in *Input) { in.Cluster.CSVs = nil }),
			[]engines.Deleted{{Kind: KindCSV, Namespace: "echo", Name: v1}}},
		"ClusterServiceVersion that OLM still cleans up after": {
			with(ready(), func(in *Input) { in.Cluster.CSVs[0].Deleting = true }),
			[]engines.Deleted{{Kind: KindCSV, Namespace: "echo", Name: v1}}},
		"namespace, with all that is in it": {with(ready(), func(in *Input) {
			in.Cluster.Namespace, in.Cluster.CSVs, in.Cluster.CatalogSource = Namespace{}, nil, nil
		}), []engines.Deleted{{Kind: KindNamespace, Name: "echo"}}},
		"namespace on its way out": {with(ready(), func(in *Input) { in.Cluster.Namespace.Terminating = true }),
			[]engines.Deleted{{Kind: KindNamespace, Name: "echo"}}},
		"another release is admitted": {in: with(ready(), func(in *Input) {
			in.Install.Spec.Admission.Hash, in.Cluster.Subscriptions = "hash-2", nil
		})},
		"it was not there yet": {in: fresh()},
		"it was told already": {in: with(ready(), func(in *Input) {
			conditions.Set(&in.Install.Status.Conditions, 1, v1alpha1.ConditionReady, false,
				v1alpha1.ReasonProgressing, "")
			in.Cluster.CSVs = nil
		})},
		"OLM is gone": {in: with(ready(), func(in *Input) { in.Cluster = Cluster{} })},
	} {
		t.Run(name, func(t *testing.T) {
			p := Next(test.in)
			if diff := cmp.Diff(test.want, p.Report.Deleted); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
			if frozen := p.Report.WhileFrozen(test.in.Install, "frozen"); frozen.Deleted != nil {
				t.Errorf("nothing is made again while the cluster is frozen, and %v is reported", frozen.Deleted)
			}
		})
	}
}
