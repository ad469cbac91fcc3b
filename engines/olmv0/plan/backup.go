// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups"
)

// backedUp holds an upgrade back until the custom resources are saved, where the
// policy asks for that. Nothing has changed in the cluster until the InstallPlan is
// approved; once it is, a backup would come too late.
//
// The agent's backup controller asks for the backup because of the finding's
// reason: see backups.PendingHop. Where the backup fails, its own reason is reported.
func (d *decision) backedUp(in Input) *finding {
	p := in.pending()
	from, isUpgrade := in.Cluster.Installed()
	if p == nil || p.Approved || p.Differs != "" || !isUpgrade || in.Offer.Next == "" || from.Name == in.Offer.Next ||
		!backups.IsNeeded(in.Install.Spec.Backup, in.Offer.Rollback) {
		return nil
	}
	hop := backups.Hop{Operator: in.Install.Spec.Operator, From: from.Name, To: in.Offer.Next,
		Revision: in.Install.Spec.Admission.Revision}
	if backups.Verified(in.Backups, hop) != nil {
		return nil
	}
	f := &finding{reason: v1alpha1.ReasonBackupPending, recheck: recheckProblem, message: fmt.Sprintf(
		"The upgrade from %s to %s waits for a backup of the custom resources.", hop.From, hop.To)}
	if b := backups.Unverified(in.Backups, hop); b != nil {
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
