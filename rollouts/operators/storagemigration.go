// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// setStorageMigration writes to the OperatorInstalls the hash of the release whose custom resources agents may
// migrate. This is not part of the release, so a change of it installs nothing.
func (p *pass) setStorageMigration() {
	if len(p.decision.Recover)+len(p.decision.SetBlocks)+len(p.decision.SetDrift)+
		len(p.decision.SetBackup) > 0 {
		return // the next pass does this, because each write needs the current object
	}
	if p.Operator.Spec.StorageMigration == v1alpha1.StorageMigrationAutomatic {
		p.decision.StorageMigration = &v1alpha1.StorageMigration{ReleaseHash: p.findRolledOutHash()}
	}
	for _, i := range p.Installs {
		if !i.Deleting && !equality.Semantic.DeepEqual(i.StorageMigration, p.decision.StorageMigration) {
			p.decision.SetStorageMigration = append(p.decision.SetStorageMigration,
				types.NamespacedName{Namespace: i.Namespace, Name: i.Name})
		}
	}
}

// findRolledOutHash returns the hash of the newest release whose rollout succeeded. It returns "" if there is none.
// While a newer release is rolled out, the earlier release counts, because clusters that still run it may finish.
// Take-overs do not count, because they bring no version that migrates objects.
func (p *pass) findRolledOutHash() string {
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
