// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// setBackup passes the backup policy on. It is not part of the release, so that a
// change of it installs nothing.
func (p *pass) setBackup() {
	if len(p.decision.Recover)+len(p.decision.SetBlocks)+len(p.decision.SetDrift) > 0 {
		return // the next pass does it, since each write needs the object as it is then
	}
	for _, i := range p.Installs {
		if !i.Deleting && !equality.Semantic.DeepEqual(i.Backup, p.Operator.Spec.Backup) {
			p.decision.SetBackup = append(p.decision.SetBackup,
				types.NamespacedName{Namespace: i.Namespace, Name: i.Name})
		}
	}
}
