// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
)

// deleted names what the install consisted of while it was Ready, and is gone. Somebody else has deleted it: the agent
// deletes nothing of an install that is Ready.
func (in Input) deleted() []engines.Deleted {
	if !conditions.IsTrue(in.Install.Status.Conditions, v1alpha1.ConditionReady) || !in.hasSucceeded() ||
		!in.Cluster.OLM || in.isAsInstalled() {
		return nil
	}
	release := in.Install.Spec.Admission.Release
	namespace := release.TargetNamespace()
	if ns := in.Cluster.Namespace; !ns.Exists || ns.Terminating {
		return []engines.Deleted{{Kind: KindNamespace, Name: namespace}}
	}
	_, subscribed := in.Cluster.subscription()
	csv, installed := in.Cluster.csv(in.target())
	var gone []engines.Deleted
	for _, object := range []struct {
		there bool
		what  engines.Deleted
	}{
		{len(in.Cluster.OperatorGroups) > 0, engines.Deleted{Kind: KindOperatorGroup, Namespace: namespace}},
		{in.Cluster.CatalogSource != nil, engines.Deleted{Kind: KindCatalogSource, Namespace: namespace}},
		{subscribed, engines.Deleted{Kind: KindSubscription, Namespace: namespace}},
		{installed && !csv.Deleting, engines.Deleted{Kind: KindCSV, Namespace: namespace, Name: in.target()}},
	} {
		if !object.there {
			gone = append(gone, object.what)
		}
	}
	return gone
}
