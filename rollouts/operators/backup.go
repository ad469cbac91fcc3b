// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// setBackup writes the backup policy to the OperatorInstalls. The policy is not part of the release, so a change of it
// installs nothing.
func (p *pass) setBackup() {
	if len(p.decision.Recover)+len(p.decision.SetBlocks)+len(p.decision.SetDrift) > 0 {
		return // the next pass does this, because each write needs the current object
	}
	for _, i := range p.Installs {
		if !i.Deleting && !equality.Semantic.DeepEqual(i.Backup, p.Operator.Spec.Backup) {
			p.decision.SetBackup = append(p.decision.SetBackup,
				types.NamespacedName{Namespace: i.Namespace, Name: i.Name})
		}
	}
}
