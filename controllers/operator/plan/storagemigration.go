// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// setStorageMigration says to the agents for which release custom resources may be
// stored anew. It is not part of the release, so that a change of it installs
// nothing.
func (p *pass) setStorageMigration() {
	if len(p.decision.Recover)+len(p.decision.SetBlocks)+len(p.decision.SetDrift)+
		len(p.decision.SetBackup) > 0 {
		return // the next pass does it, since each write needs the object as it is then
	}
	if p.Operator.Spec.StorageMigration == v1alpha1.StorageMigrationAutomatic {
		p.decision.StorageMigration = &v1alpha1.StorageMigration{ReleaseHash: p.rolledOut()}
	}
	for _, i := range p.Installs {
		if !i.Deleting && !equality.Semantic.DeepEqual(i.StorageMigration, p.decision.StorageMigration) {
			p.decision.SetStorageMigration = append(p.decision.SetStorageMigration,
				types.NamespacedName{Namespace: i.Namespace, Name: i.Name})
		}
	}
}

// rolledOut returns the hash of the newest release whose rollout has succeeded;
// empty if there is none. While a newer release is rolled out, the one before counts:
// clusters that still run it may finish. A rollout that takes over what is installed
// brings no version that stores objects anew.
func (p *pass) rolledOut() string {
	var newest *v1alpha1.OperatorRollout
	for i := range p.Rollouts {
		r := &p.Rollouts[i]
		if r.Status.Phase == v1alpha1.RolloutSucceeded && r.Spec.Rollback == nil && !r.Spec.Release.AsInstalled &&
			(newest == nil || r.Spec.Revision > newest.Spec.Revision) {
			newest = r
		}
	}
	if newest == nil {
		return ""
	}
	return newest.Spec.Release.Hash()
}
