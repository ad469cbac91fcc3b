// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
)

// listDeleted returns the objects of a Ready install that do not exist. Another user or program has deleted them,
// because the agent deletes no object of a Ready install. If the namespace is missing, the result has only the
// namespace. The result is nil if the release has not succeeded yet, if OLM is missing, or if the release only adopts
// an operator, because the agent then creates no object again.
func (in Input) listDeleted() []engines.Deleted {
	if !conditions.IsTrue(in.Install.Status.Conditions, v1alpha1.ConditionReady) || !in.hasSucceeded() ||
		!in.Cluster.OLM || in.isAsInstalled() {
		return nil
	}
	release := in.Install.Spec.Admission.Release
	namespace := release.TargetNamespace()
	if ns := in.Cluster.Namespace; !ns.Exists || ns.Terminating {
		return []engines.Deleted{{Kind: KindNamespace, Name: namespace}}
	}
	_, hasSubscription := in.Cluster.findSubscription()
	csv, hasCSV := in.Cluster.findCSV(in.findTarget())
	var deleted []engines.Deleted
	for _, object := range []struct {
		exists  bool
		deleted engines.Deleted
	}{
		{len(in.Cluster.OperatorGroups) > 0, engines.Deleted{Kind: KindOperatorGroup, Namespace: namespace}},
		{in.Cluster.CatalogSource != nil, engines.Deleted{Kind: KindCatalogSource, Namespace: namespace}},
		{hasSubscription, engines.Deleted{Kind: KindSubscription, Namespace: namespace}},
		{hasCSV && !csv.Deleting, engines.Deleted{Kind: KindCSV, Namespace: namespace, Name: in.findTarget()}},
	} {
		if !object.exists {
			deleted = append(deleted, object.deleted)
		}
	}
	return deleted
}
