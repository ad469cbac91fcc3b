// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backups decides when the custom resources of an operator are saved,
// which backup an upgrade or a rollback may rely on, and which ones are removed.
// It is pure: it knows OperatorBackups, and no store or cluster. The folders
// below it write, read and restore backups.
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
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

// Hop is an upgrade of an operator from one bundle to the next one.
type Hop struct {
	Operator v1alpha1.OperatorReference
	From, To string
	// Revision of the admission; 0 stands for any.
	Revision int64
}

// Verified returns the newest backup that was taken before a hop, was read back
// from its store and is complete; nil if there is none. The backups are those of
// one cluster.
//
// An upgrade that needs a backup goes on only if there is one. A rollback to
// hop.From that needs a backup is possible only if there is one.
func Verified(all []v1alpha1.OperatorBackup, hop Hop) *v1alpha1.OperatorBackup {
	var newest *v1alpha1.OperatorBackup
	for i := range all {
		if isOf(&all[i], hop) && IsVerified(&all[i]) && (newest == nil || isNewer(&all[i], newest)) {
			newest = &all[i]
		}
	}
	return newest
}

// Unverified returns the newest backup that was asked for before a hop and is not
// complete; nil if there is none.
func Unverified(all []v1alpha1.OperatorBackup, hop Hop) *v1alpha1.OperatorBackup {
	var newest *v1alpha1.OperatorBackup
	for i := range all {
		if isOf(&all[i], hop) && !IsVerified(&all[i]) && (newest == nil || isNewer(&all[i], newest)) {
			newest = &all[i]
		}
	}
	return newest
}

func isOf(b *v1alpha1.OperatorBackup, hop Hop) bool {
	upgrade := b.Spec.Upgrade
	return b.Spec.Operator == hop.Operator && upgrade != nil && upgrade.From == hop.From && upgrade.To == hop.To &&
		(hop.Revision == 0 || upgrade.Revision == hop.Revision)
}

// IsVerified tells whether a backup was read back and is complete.
func IsVerified(b *v1alpha1.OperatorBackup) bool {
	return conditions.IsTrue(b.Status.Conditions, v1alpha1.ConditionReady) && b.Status.VerifiedAt != nil
}

func isNewer(a, b *v1alpha1.OperatorBackup) bool { return byAge(a, b) > 0 }

// byAge orders backups from the oldest to the newest.
func byAge(a, b *v1alpha1.OperatorBackup) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// IsNeeded tells whether a policy asks for a backup before a hop. The class is
// empty where the catalog does not say how the hop can be rolled back: then a
// backup is needed.
func IsNeeded(policy *v1alpha1.BackupPolicy, class registryv1.RollbackClass) bool {
	if policy == nil {
		return false
	}
	switch policy.BeforeUpgrade {
	case v1alpha1.BeforeUpgradeAlways:
		return true
	case v1alpha1.BeforeUpgradeNever:
		return false
	default:
		return class != registryv1.RollbackInPlace
	}
}

// ForUpgrade returns the backup to take before a hop. It has the same name each
// time, unless the policy's settings have changed.
func ForUpgrade(install *v1alpha1.OperatorInstall, hop Hop) *v1alpha1.OperatorBackup {
	b := request(install, v1alpha1.BackupTriggerUpgrade)
	b.Spec.Upgrade = &v1alpha1.BackupUpgrade{Revision: hop.Revision, Hash: install.Spec.Admission.Hash,
		From: hop.From, To: hop.To}
	b.Name = name(install, hash(b.Spec))
	return b
}

// ForSchedule returns the backup to take at a time of the schedule.
func ForSchedule(install *v1alpha1.OperatorInstall, due time.Time) *v1alpha1.OperatorBackup {
	b := request(install, v1alpha1.BackupTriggerSchedule)
	b.Name = name(install, due.UTC().Format("20060102-150405"))
	return b
}

// ForPerson returns a backup that a person asks for.
func ForPerson(install *v1alpha1.OperatorInstall, now time.Time) *v1alpha1.OperatorBackup {
	b := request(install, v1alpha1.BackupTriggerManual)
	b.Name = name(install, "manual-"+now.UTC().Format("20060102-150405"))
	return b
}

func request(install *v1alpha1.OperatorInstall, trigger v1alpha1.BackupTrigger) *v1alpha1.OperatorBackup {
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

func name(install *v1alpha1.OperatorInstall, suffix string) string {
	return install.Name + "." + suffix
}

func hash(spec v1alpha1.OperatorBackupSpec) string {
	text, err := json.Marshal(spec)
	if err != nil { // plain data always marshals
		panic(fmt.Sprintf("marshal spec of backup: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:5])
}

// Validate returns what is wrong with a policy that the API cannot tell, with the
// name of the field; nil if nothing is.
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

// NextRun returns when the next backup of a schedule is due after the last one,
// or after the time from which the schedule counts. It may be in the past: then one
// backup is due now, however many were missed.
func NextRun(schedule string, last time.Time) (time.Time, error) {
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return time.Time{}, fmt.Errorf("parse schedule %q: %w", schedule, err)
	}
	return parsed.Next(last), nil
}

// LastScheduled returns when the newest scheduled backup was asked for; zero if
// there is none.
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

// defaultKeep is that of the API.
const defaultKeep = 5

// Expired returns the backups of an operator that are to be removed, the oldest
// first. It never returns one that a person asked for, the newest complete one, one
// that is being taken, or one for the revision that the cluster is admitted to.
func Expired(all []v1alpha1.OperatorBackup, install *v1alpha1.OperatorInstall,
	now time.Time) []v1alpha1.OperatorBackup {
	if install.Spec.Backup == nil {
		return nil
	}
	retention := install.Spec.Backup.Retention
	keep := defaultKeep
	if retention.Keep != nil {
		keep = int(*retention.Keep)
	}
	var expired []v1alpha1.OperatorBackup
	complete, kept := 0, 0
	for _, b := range newestFirst(all, install.Spec.Operator) {
		if IsVerified(&b) {
			complete++
		}
		tooOld := retention.MaxAge != nil && now.Sub(b.CreationTimestamp.Time) > retention.MaxAge.Duration
		isNeeded := complete <= 1 || isForAdmission(&b, install)
		if !isNeeded && (kept >= keep || tooOld) {
			expired = append(expired, b)
			continue
		}
		kept++
	}
	slices.Reverse(expired)
	return expired
}

// newestFirst are the backups of an operator that the agent asked for.
func newestFirst(all []v1alpha1.OperatorBackup, operator v1alpha1.OperatorReference) []v1alpha1.OperatorBackup {
	own := slices.DeleteFunc(slices.Clone(all), func(b v1alpha1.OperatorBackup) bool {
		return b.Spec.Operator != operator || b.Spec.Trigger == v1alpha1.BackupTriggerManual
	})
	slices.SortFunc(own, func(a, b v1alpha1.OperatorBackup) int { return byAge(&b, &a) })
	return own
}

func isForAdmission(b *v1alpha1.OperatorBackup, install *v1alpha1.OperatorInstall) bool {
	return b.Spec.Upgrade != nil && install.Spec.Admission != nil &&
		b.Spec.Upgrade.Revision == install.Spec.Admission.Revision
}

// waitingReasons are those of an upgrade that waits for a backup.
var waitingReasons = []string{
	v1alpha1.ReasonBackupPending, v1alpha1.ReasonBackupForbidden, v1alpha1.ReasonBackupStoreUnavailable,
	v1alpha1.ReasonBackupTooLarge, v1alpha1.ReasonBackupDamaged, v1alpha1.ReasonBackupFailed,
}

// PendingHop returns the hop that waits for a backup by the status of an install,
// and false if none does.
func PendingHop(install *v1alpha1.OperatorInstall) (Hop, bool) {
	planned := conditions.Get(install.Status.Conditions, v1alpha1.ConditionPlanApproved)
	isWaiting := planned.Status == metav1.ConditionFalse && planned.ObservedGeneration == install.Generation &&
		slices.Contains(waitingReasons, planned.Reason)
	if !isWaiting || install.Spec.Admission == nil || install.Status.Installed == nil || len(install.Status.Path) == 0 {
		return Hop{}, false
	}
	return Hop{Operator: install.Spec.Operator, From: install.Status.Installed.Bundle, To: install.Status.Path[0],
		Revision: install.Spec.Admission.Revision}, true
}
