// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Input is the data that the backups of one operator depend on.
type Input struct {
	Now     time.Time
	Install *v1alpha1.OperatorInstall
	// Backups are all OperatorBackups of the cluster.
	Backups []v1alpha1.OperatorBackup
}

// Decision is what to do next about the backups of one operator.
type Decision struct {
	// Create are the backups to request.
	Create []*v1alpha1.OperatorBackup
	// Remove are the backups to remove, also from the store.
	Remove []v1alpha1.OperatorBackup
	// RecheckAfter is the time until the next decision; zero if only a change needs a new decision.
	RecheckAfter time.Duration
	// Problem is what is wrong with the policy; nil if the policy is valid.
	Problem error
}

// Next decides which backups to request and which to remove. It decides nothing for an install without a policy or
// under deletion.
func Next(in Input) Decision {
	var d Decision
	policy := in.Install.Spec.Backup
	if policy == nil || !in.Install.DeletionTimestamp.IsZero() {
		return d
	}
	if hop, ok := FindPendingHop(in.Install); ok && FindVerified(in.Backups, hop) == nil {
		d.addBackup(in, NewUpgradeBackup(in.Install, hop))
	}
	if policy.Schedule != "" && in.Install.Status.Installed != nil {
		d.addScheduled(in, policy.Schedule)
	}
	d.Remove = ListExpired(in.Backups, in.Install, in.Now)
	return d
}

// addScheduled adds the scheduled backup if it is due, and otherwise sets RecheckAfter to the time until it is due. The
// schedule counts from the last scheduled backup, or from the creation of the install if that is later. An invalid
// schedule becomes the problem of the decision.
func (d *Decision) addScheduled(in Input, schedule string) {
	since := LastScheduled(in.Backups, in.Install.Spec.Operator)
	if since.Before(in.Install.CreationTimestamp.Time) {
		since = in.Install.CreationTimestamp.Time
	}
	due, err := NextRun(schedule, since)
	switch {
	case err != nil:
		d.Problem = err
	case due.After(in.Now):
		d.RecheckAfter = due.Sub(in.Now)
	default:
		d.addBackup(in, NewScheduledBackup(in.Install, due))
	}
}

// addBackup adds a backup to request, unless it already exists.
func (d *Decision) addBackup(in Input, backup *v1alpha1.OperatorBackup) {
	exists := slices.ContainsFunc(in.Backups, func(b v1alpha1.OperatorBackup) bool { return b.Name == backup.Name })
	if !exists {
		d.Create = append(d.Create, backup)
	}
}
