// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backups decides when the custom resources of an operator are saved, which backups an agent requests and
// removes, which backup an upgrade or a rollback may rely on, and the status of a backup. It is pure: it reads
// OperatorBackups, and no store or cluster. The folders below write, read and restore backups.
package backups

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
)

// Hop is an upgrade of an operator from one bundle to the next.
type Hop struct {
	Operator v1alpha1.OperatorReference
	From, To string
	// Revision is the revision of the admission; 0 means any revision.
	Revision int64
}

// FindVerified returns the newest backup that was taken before a hop, was read back from its store and is complete; nil
// if there is none. The backups are the backups of one cluster.
//
// An upgrade that needs a backup continues only if there is one. A rollback to hop.From that needs a backup is
// possible only if there is one.
func FindVerified(all []v1alpha1.OperatorBackup, hop Hop) *v1alpha1.OperatorBackup {
	var newest *v1alpha1.OperatorBackup
	for i := range all {
		if isForHop(&all[i], hop) && IsVerified(&all[i]) && (newest == nil || isNewer(&all[i], newest)) {
			newest = &all[i]
		}
	}
	return newest
}

// FindUnverified returns the newest backup that was requested before a hop and is not complete; nil if there is none.
func FindUnverified(all []v1alpha1.OperatorBackup, hop Hop) *v1alpha1.OperatorBackup {
	var newest *v1alpha1.OperatorBackup
	for i := range all {
		if isForHop(&all[i], hop) && !IsVerified(&all[i]) && (newest == nil || isNewer(&all[i], newest)) {
			newest = &all[i]
		}
	}
	return newest
}

// isForHop reports whether a backup was requested before a hop.
func isForHop(b *v1alpha1.OperatorBackup, hop Hop) bool {
	upgrade := b.Spec.Upgrade
	return b.Spec.Operator == hop.Operator && upgrade != nil && upgrade.From == hop.From && upgrade.To == hop.To &&
		(hop.Revision == 0 || upgrade.Revision == hop.Revision)
}

// IsVerified reports whether a backup was read back and is complete.
func IsVerified(b *v1alpha1.OperatorBackup) bool {
	return conditions.IsTrue(b.Status.Conditions, v1alpha1.ConditionReady) && b.Status.VerifiedAt != nil
}

// isNewer reports whether a is newer than b.
func isNewer(a, b *v1alpha1.OperatorBackup) bool { return compareAge(a, b) > 0 }

// compareAge orders backups from the oldest to the newest.
func compareAge(a, b *v1alpha1.OperatorBackup) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// IsNeeded reports whether a policy requires a backup before a hop. class is empty if the catalog does not say how
// the hop can be rolled back: then a backup is needed.
func IsNeeded(policy *v1alpha1.BackupPolicy, class bundles.RollbackClass) bool {
	if policy == nil {
		return false
	}
	switch policy.BeforeUpgrade {
	case v1alpha1.BeforeUpgradeAlways:
		return true
	case v1alpha1.BeforeUpgradeNever:
		return false
	default:
		return class != bundles.RollbackInPlace
	}
}

// NewUpgradeBackup returns the backup to take before a hop. It has the same name each time, unless the settings of the
// policy have changed: the name has a hash of the spec.
func NewUpgradeBackup(install *v1alpha1.OperatorInstall, hop Hop) *v1alpha1.OperatorBackup {
	b := newBackup(install, v1alpha1.BackupTriggerUpgrade)
	b.Spec.Upgrade = &v1alpha1.BackupUpgrade{Revision: hop.Revision, Hash: install.Spec.Admission.Hash,
		From: hop.From, To: hop.To}
	b.Name = formatName(install, hashSpec(b.Spec))
	return b
}

// NewScheduledBackup returns the backup to take at a time of the schedule.
func NewScheduledBackup(install *v1alpha1.OperatorInstall, due time.Time) *v1alpha1.OperatorBackup {
	b := newBackup(install, v1alpha1.BackupTriggerSchedule)
	b.Name = formatName(install, due.UTC().Format("20060102-150405"))
	return b
}

// NewManualBackup returns a backup that a person requests.
func NewManualBackup(install *v1alpha1.OperatorInstall, now time.Time) *v1alpha1.OperatorBackup {
	b := newBackup(install, v1alpha1.BackupTriggerManual)
	b.Name = formatName(install, "manual-"+now.UTC().Format("20060102-150405"))
	return b
}

// newBackup returns a backup without a name, with the settings of the install's policy.
func newBackup(install *v1alpha1.OperatorInstall, trigger v1alpha1.BackupTrigger) *v1alpha1.OperatorBackup {
	b := &v1alpha1.OperatorBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: install.Namespace, Labels: install.Spec.Operator.Labels()},
		Spec:       v1alpha1.OperatorBackupSpec{Operator: install.Spec.Operator, Trigger: trigger},
	}
	b.Labels[v1alpha1.LabelCluster] = install.Spec.Cluster
	if install.Spec.Backup != nil {
		b.Spec.BackupSettings = *install.Spec.Backup.BackupSettings.DeepCopy()
	}
	return b
}

// formatName returns the name of a backup.
func formatName(install *v1alpha1.OperatorInstall, suffix string) string {
	return install.Name + "." + suffix
}

// hashSpec returns a short hash of a spec.
func hashSpec(spec v1alpha1.OperatorBackupSpec) string {
	text, err := json.Marshal(spec)
	if err != nil { // plain data always marshals
		panic(fmt.Sprintf("marshal spec of backup: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:5])
}

// Validate returns an error, with the name of the field, for a value of a policy that the API does not check; nil if
// the policy is valid.
func Validate(policy *v1alpha1.BackupPolicy) error {
	if policy == nil {
		return nil
	}
	if policy.Schedule != "" {
		if _, err := NextRun(policy.Schedule, time.Time{}); err != nil {
			return fmt.Errorf("spec.backup.schedule: %w", err)
		}
	}
	if _, err := metav1.LabelSelectorAsSelector(policy.Secrets); err != nil {
		return fmt.Errorf("spec.backup.secrets: %w", err)
	}
	return nil
}

// NextRun returns when the next backup of a schedule is due. last is the time of the last backup, or the time from
// which the schedule counts. If the result is in the past, one backup is due now, even if several were missed.
func NextRun(schedule string, last time.Time) (time.Time, error) {
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return time.Time{}, fmt.Errorf("parse schedule %q: %w", schedule, err)
	}
	return parsed.Next(last), nil
}

// LastScheduled returns when the newest scheduled backup was requested; zero if there is none.
func LastScheduled(all []v1alpha1.OperatorBackup, operator v1alpha1.OperatorReference) time.Time {
	var last time.Time
	for i := range all {
		b := &all[i]
		if b.Spec.Operator == operator && b.Spec.Trigger == v1alpha1.BackupTriggerSchedule &&
			b.CreationTimestamp.After(last) {
			last = b.CreationTimestamp.Time
		}
	}
	return last
}

// defaultKeep is the default of the API.
const defaultKeep = 5

// ListExpired returns the backups of an operator that must be removed, the oldest first: backups beyond the number to
// keep, and backups that are too old. It never returns a backup that a person requested, the newest complete backup
// or a newer backup, or a backup for the admitted revision. It returns nil if the install has no policy.
func ListExpired(all []v1alpha1.OperatorBackup, install *v1alpha1.OperatorInstall,
	now time.Time) []v1alpha1.OperatorBackup {
	if install.Spec.Backup == nil {
		return nil
	}
	retention := install.Spec.Backup.Retention
	maxKept := defaultKeep
	if retention.Keep != nil {
		maxKept = int(*retention.Keep)
	}
	var expired []v1alpha1.OperatorBackup
	complete, kept := 0, 0
	for _, b := range listNewestFirst(all, install.Spec.Operator) {
		if IsVerified(&b) {
			complete++
		}
		isTooOld := retention.MaxAge != nil && now.Sub(b.CreationTimestamp.Time) > retention.MaxAge.Duration
		// Backups that are newer than the newest complete backup may be running.
		isNeeded := complete <= 1 || isForAdmission(&b, install)
		if !isNeeded && (kept >= maxKept || isTooOld) {
			expired = append(expired, b)
			continue
		}
		kept++
	}
	slices.Reverse(expired)
	return expired
}

// listNewestFirst returns the backups of an operator that the agent requested, the newest first.
func listNewestFirst(all []v1alpha1.OperatorBackup, operator v1alpha1.OperatorReference) []v1alpha1.OperatorBackup {
	own := slices.DeleteFunc(slices.Clone(all), func(b v1alpha1.OperatorBackup) bool {
		return b.Spec.Operator != operator || b.Spec.Trigger == v1alpha1.BackupTriggerManual
	})
	slices.SortFunc(own, func(a, b v1alpha1.OperatorBackup) int { return compareAge(&b, &a) })
	return own
}

// isForAdmission reports whether a backup was taken for an upgrade under the current admission.
func isForAdmission(b *v1alpha1.OperatorBackup, install *v1alpha1.OperatorInstall) bool {
	return b.Spec.Upgrade != nil && install.Spec.Admission != nil &&
		b.Spec.Upgrade.Revision == install.Spec.Admission.Revision
}

// backupReasons are the reasons of an upgrade that waits for a backup.
var backupReasons = []string{
	v1alpha1.ReasonBackupPending, v1alpha1.ReasonBackupForbidden, v1alpha1.ReasonBackupStoreUnavailable,
	v1alpha1.ReasonBackupTooLarge, v1alpha1.ReasonBackupDamaged, v1alpha1.ReasonBackupFailed,
}

// FindPendingHop returns the hop that waits for a backup, from the status of an install: from the installed bundle to
// the first bundle of the path. It returns false if no hop waits for a backup, or if the status is about an older
// spec.
func FindPendingHop(install *v1alpha1.OperatorInstall) (Hop, bool) {
	planned := conditions.Get(install.Status.Conditions, v1alpha1.ConditionPlanApproved)
	isWaiting := planned.Status == metav1.ConditionFalse && planned.ObservedGeneration == install.Generation &&
		slices.Contains(backupReasons, planned.Reason)
	if !isWaiting || install.Spec.Admission == nil || install.Status.Installed == nil || len(install.Status.Path) == 0 {
		return Hop{}, false
	}
	return Hop{Operator: install.Spec.Operator, From: install.Status.Installed.Bundle, To: install.Status.Path[0],
		Revision: install.Spec.Admission.Revision}, true
}
