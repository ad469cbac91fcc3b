// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// deleted names what the install consisted of while it was Ready, and is gone. Somebody else has deleted it: the agent
// deletes nothing of an install that is Ready.
func (in Input) deleted() []string {
	if !conditions.IsTrue(in.Install.Status.Conditions, v1alpha1.ConditionReady) || !in.hasSucceeded() ||
		!in.Cluster.OLM {
		return nil
	}
	release := in.Install.Spec.Admission.Release
	namespace := release.TargetNamespace()
	if ns := in.Cluster.Namespace; !ns.Exists || ns.Terminating {
		return []string{"Namespace " + namespace}
	}
	_, subscribed := in.Cluster.subscription()
	_, installed := in.Cluster.csv(release.Bundle)
	var gone []string
	for _, object := range []struct {
		there bool
		name  string
	}{
		{len(in.Cluster.OperatorGroups) > 0, "the OperatorGroup of namespace " + namespace},
		{in.Cluster.CatalogSource != nil, "the CatalogSource in namespace " + namespace},
		{subscribed, "the Subscription in namespace " + namespace},
		{installed, "ClusterServiceVersion " + namespace + "/" + release.Bundle},
	} {
		if !object.there {
			gone = append(gone, object.name)
		}
	}
	return gone
}
