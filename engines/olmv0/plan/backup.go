// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups"
)

// awaitBackup blocks an upgrade until a backup of the custom resources is verified, if the backup policy requires it.
// A backup after the approval of the InstallPlan would be too late, because the approval starts the changes.
//
// The reason of the finding makes the agent's backup controller create the backup; see backups.FindPendingHop. If the
// backup fails, the finding has the reason of the backup. Without a plan that is to be approved now, there is nothing
// to block.
func (d *decision) awaitBackup(in Input) *finding {
	p := in.findPendingPlan()
	from, isUpgrade := in.Cluster.Installed()
	if p == nil || p.Approved || p.Difference != "" || !isUpgrade || in.Offer.Next == "" ||
		from.Name == in.Offer.Next || !backups.IsNeeded(in.Install.Spec.Backup, in.Offer.Rollback) {
		return nil
	}
	hop := backups.Hop{Operator: in.Install.Spec.Operator, From: from.Name, To: in.Offer.Next,
		Revision: in.Install.Spec.Admission.Revision}
	if backups.FindVerified(in.Backups, hop) != nil {
		return nil
	}
	f := &finding{reason: v1alpha1.ReasonBackupPending, recheck: recheckProblem, message: fmt.Sprintf(
		"The upgrade from %s to %s waits for a backup of the custom resources.", hop.From, hop.To)}
	if b := backups.FindUnverified(in.Backups, hop); b != nil {
		stalled := conditions.Get(b.Status.Conditions, v1alpha1.ConditionStalled)
		f.stalled = conditions.IsTrue(b.Status.Conditions, v1alpha1.ConditionStalled)
		f.message += fmt.Sprintf(" OperatorBackup %s is being taken.", b.Name)
		if f.stalled {
			f.reason = stalled.Reason
			f.message = fmt.Sprintf("The upgrade from %s to %s waits for OperatorBackup %s, which fails with %s: %s",
				hop.From, hop.To, b.Name, stalled.Reason, stalled.Message)
		}
	}
	return f
}
