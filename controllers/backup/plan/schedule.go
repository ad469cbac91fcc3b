// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides which backups an agent asks for and removes, and what the
// status of a backup says. It is pure: it has no client, clock or logger.
package plan

import (
	"slices"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups"
)

// Input is everything that the backups of one operator depend on.
type Input struct {
	Now     time.Time
	Install *v1alpha1.OperatorInstall
	// Backups are all of the cluster.
	Backups []v1alpha1.OperatorBackup
}

// Decision is what to do next about the backups of one operator.
type Decision struct {
	// Create are backups to ask for.
	Create []*v1alpha1.OperatorBackup
	// Remove are backups to remove, from the store too.
	Remove []v1alpha1.OperatorBackup
	// RecheckAfter is when to decide again; zero if only a change matters.
	RecheckAfter time.Duration
	// Problem is what is wrong with the policy; nil if nothing is.
	Problem error
}

// Next decides which backups to ask for and which to remove.
func Next(in Input) Decision {
	var d Decision
	policy := in.Install.Spec.Backup
	if policy == nil || !in.Install.DeletionTimestamp.IsZero() {
		return d
	}
	if hop, ok := backups.PendingHop(in.Install); ok && backups.Verified(in.Backups, hop) == nil {
		d.create(in, backups.ForUpgrade(in.Install, hop))
	}
	if policy.Schedule != "" && in.Install.Status.Installed != nil {
		d.schedule(in, policy.Schedule)
	}
	d.Remove = backups.Expired(in.Backups, in.Install, in.Now)
	return d
}

func (d *Decision) schedule(in Input, schedule string) {
	since := backups.LastScheduled(in.Backups, in.Install.Spec.Operator)
	if since.Before(in.Install.CreationTimestamp.Time) {
		since = in.Install.CreationTimestamp.Time
	}
	due, err := backups.NextRun(schedule, since)
	switch {
	case err != nil:
		d.Problem = err
	case due.After(in.Now):
		d.RecheckAfter = due.Sub(in.Now)
	default:
		d.create(in, backups.ForSchedule(in.Install, due))
	}
}

func (d *Decision) create(in Input, backup *v1alpha1.OperatorBackup) {
	exists := slices.ContainsFunc(in.Backups, func(b v1alpha1.OperatorBackup) bool { return b.Name == backup.Name })
	if !exists {
		d.Create = append(d.Create, backup)
	}
}
