// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migration decides which custom resources an agent rewrites in their storage version, and what the status of
// an OperatorInstall reports about this. It is pure: it has no client, clock or logger.
package migration

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

const (
	// recheckBlocked is the delay until the next check for a permission that a person must grant.
	recheckBlocked = time.Minute
	// recheckSteady is the delay until the next check of the definitions if there is nothing to migrate.
	recheckSteady = 30 * time.Minute
	// retryFailed is how long after the end of a pass failed objects are retried.
	retryFailed = 10 * time.Minute
	// maxProgress is the API's limit for the list in the status.
	maxProgress = 20
	// maxVersions is the API's limit for the versions of an entry in the list.
	maxVersions = 20
	maxMessage  = 1024
)

// Definition has the relevant data of a CustomResourceDefinition that the operator owns.
type Definition struct {
	Group, Plural string
	// Version is a served version: the storage version if it is served. It is empty if no version is served.
	Version string
	// Storage is the version in which objects are written. Stored are all versions in which objects might be stored.
	Storage    string
	Stored     []string
	Generation int64
}

// Name returns the name of the CustomResourceDefinition.
func (d Definition) Name() string { return d.Plural + "." + d.Group }

// IsMigrated reports whether all objects are stored in the storage version.
func (d Definition) IsMigrated() bool { return len(d.listOldVersions()) == 0 }

// listOldVersions returns the versions, other than the storage version, in which objects might be stored.
func (d Definition) listOldVersions() []string {
	return slices.DeleteFunc(slices.Clone(d.Stored), func(v string) bool { return v == d.Storage })
}

// Observe returns the relevant data of a definition.
func Observe(crd *apiextensionsv1.CustomResourceDefinition) Definition {
	d := Definition{Group: crd.Spec.Group, Plural: crd.Spec.Names.Plural, Stored: crd.Status.StoredVersions,
		Generation: crd.Generation}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			d.Storage = v.Name
		}
		if v.Served && (v.Storage || d.Version == "") {
			d.Version = v.Name
		}
	}
	return d
}

// Input has all data that a decision depends on.
type Input struct {
	Now     time.Time
	Install *v1alpha1.OperatorInstall
	// Installed is true if an operator is installed. Definitions are the definitions that the operator owns.
	Installed   bool
	Definitions []Definition
	// Forbidden are the definitions whose objects or status the agent may not write.
	Forbidden []string
	// Veto has the changes that the cluster's owner refuses; nil if there are none.
	Veto *v1alpha1.ClusterVeto
	// Freeze is the FleetFreeze of the cluster; nil if there is none.
	Freeze *v1alpha1.FleetFreeze
}

// Decision is the next step and the new status.
type Decision struct {
	// Migrate is the definition whose objects are migrated now; nil if there is none.
	Migrate *Definition
	// Progress is the progress of each definition, including Migrate.
	Progress []v1alpha1.StorageMigrationProgress
	// Condition is StorageMigrated; nil if no migration is requested.
	Condition *metav1.Condition
	// RecheckAfter is when to decide again; zero if only a change needs a new decision.
	RecheckAfter time.Duration
}

// IsRequested reports whether a migration is requested from the agent.
func IsRequested(install *v1alpha1.OperatorInstall) bool {
	return install.Spec.StorageMigration != nil && install.DeletionTimestamp.IsZero()
}

// Next returns the decision.
//
//	not requested ─▶ nothing
//	not installed, a permission is missing, all is migrated, vetoed ──────▶ report this
//	the rollout is not finished, or the release was reached by a rollback ─▶ report what must be migrated
//	otherwise ─▶ migrate the first definition that needs it
func Next(in Input) Decision {
	if !IsRequested(in.Install) {
		return Decision{}
	}
	d := Decision{Progress: slices.Clone(in.Install.Status.StorageMigrations)}
	pending := slices.DeleteFunc(slices.Clone(in.Definitions), Definition.IsMigrated)
	switch {
	case !in.Installed:
		d.setWaiting(v1alpha1.ReasonWaiting, "The operator is not installed.", recheckBlocked)
	case len(in.Forbidden) > 0:
		d.setForbidden(in)
	case len(pending) == 0:
		d.setCondition(true, v1alpha1.ReasonSucceeded, "All custom resources of the operator are stored in the "+
			"storage version of their definitions.")
		d.RecheckAfter = recheckSteady
	case in.Freeze != nil:
		d.setWaiting(v1alpha1.ReasonFrozen,
			describePending(pending)+" The migration does not continue: "+holds.FreezeMessage(in.Freeze)+".",
			recheckBlocked)
	case holds.VetoCovers(in.Veto, in.Install.Spec.Operator):
		d.setWaiting(v1alpha1.ReasonVetoed,
			describePending(pending)+" The migration does not begin: "+holds.VetoMessage(in.Veto)+".",
			recheckBlocked)
	case in.Install.Spec.Admission != nil && in.Install.Spec.Admission.Rollback != nil:
		d.setWaiting(v1alpha1.ReasonWaiting,
			describePending(pending)+" They stay as they are after a rollback, until another "+
				"release is rolled out.", 0)
	case !isRolledOut(in.Install):
		d.setWaiting(v1alpha1.ReasonWaiting,
			describePending(pending)+" The migration begins once the rollout of the installed release has "+
				"succeeded.", 0)
	default:
		d.chooseMigration(in, pending)
	}
	return d
}

// isRolledOut reports whether the rollout of exactly the installed release has succeeded.
func isRolledOut(install *v1alpha1.OperatorInstall) bool {
	hash := install.Spec.StorageMigration.ReleaseHash
	return hash != "" && install.Spec.Admission != nil && install.Spec.Admission.Hash == hash &&
		install.Status.SucceededHash == hash && len(install.Status.Path) == 0
}

// describePending says which definitions must be migrated.
func describePending(pending []Definition) string {
	d := pending[0]
	text := fmt.Sprintf("Objects of %s may be stored as %s", d.Name(), strings.Join(d.listOldVersions(), ", "))
	if more := len(pending) - 1; more > 0 {
		text += fmt.Sprintf(", and those of %s in old versions too", phrase.Count(more, "other definition"))
	}
	return text + fmt.Sprintf("; they must be stored again as %s.", d.Storage)
}

// setCondition sets the condition StorageMigrated.
func (d *Decision) setCondition(migrated bool, reason, message string) {
	status := metav1.ConditionFalse
	if migrated {
		status = metav1.ConditionTrue
	}
	d.Condition = &metav1.Condition{Type: v1alpha1.ConditionStorageMigrated, Status: status, Reason: reason,
		Message: phrase.Truncate(message, maxMessage)}
}

// setWaiting records that the migration waits, and when to check again.
func (d *Decision) setWaiting(reason, message string, recheck time.Duration) {
	d.setCondition(false, reason, message)
	d.RecheckAfter = recheck
}

// setFailed records an error, with advice on what a person can do.
func (d *Decision) setFailed(in Input, reason, message string) {
	advice := remedy.Advice(reason, remedy.Agent, remedy.Names{Operator: in.Install.Spec.Operator.Name})
	d.setCondition(false, reason, strings.TrimSpace(phrase.Truncate(message, maxMessage/2)+" "+advice))
}

// setForbidden records the missing permission, with the command that grants it.
func (d *Decision) setForbidden(in Input) {
	role := "bellwether-migrate-" + in.Install.Spec.Operator.Name
	d.setCondition(false, v1alpha1.ReasonStorageMigrationForbidden, fmt.Sprintf("The agent may not store objects "+
		"of %s again, or not write status.storedVersions of the definition. The owner of the cluster can permit it: "+
		"`kubectl create clusterrole %s --verb=list,patch "+
		"--resource=%s,customresourcedefinitions.apiextensions.k8s.io/status "+
		"&& kubectl label clusterrole %s %s=true`", phrase.First(in.Forbidden, 3), role,
		strings.Join(in.Forbidden, ","), role, v1alpha1.LabelAggregateToMigration))
	d.RecheckAfter = recheckBlocked
}

// chooseMigration sets Migrate to the first definition that has not failed recently. If all have failed recently, it
// records the failures, and when the first definition is retried.
func (d *Decision) chooseMigration(in Input, pending []Definition) {
	var failures []string
	for i := range pending {
		definition := pending[i]
		entry := d.findEntry(definition)
		switch failure, since := explainFailure(definition, entry, in.Now); {
		case failure != "":
			failures = append(failures, failure)
			if d.RecheckAfter == 0 || retryFailed-since < d.RecheckAfter {
				d.RecheckAfter = retryFailed - since
			}
			continue
		case entry == nil, entry.Failed > 0 && entry.EndTime != nil: // a new pass starts
			d.replaceEntry(newProgress(definition, in.Now))
		}
		d.Migrate, d.RecheckAfter = &definition, 0
		d.setCondition(false, v1alpha1.ReasonProgressing, describePending(pending)+" The agent does that now.")
		return
	}
	d.setFailed(in, v1alpha1.ReasonStorageMigrationFailed, strings.Join(failures, " "))
}

// findEntry returns the progress of the current generation of a definition. It returns nil if there is none.
func (d *Decision) findEntry(definition Definition) *v1alpha1.StorageMigrationProgress {
	for i := range d.Progress {
		p := &d.Progress[i]
		if p.Resource == definition.Name() && p.To == definition.Storage &&
			p.DefinitionGeneration == definition.Generation {
			return p
		}
	}
	return nil
}

// newProgress returns the progress of a migration that starts now.
func newProgress(d Definition, now time.Time) v1alpha1.StorageMigrationProgress {
	from := d.listOldVersions()
	return v1alpha1.StorageMigrationProgress{Resource: d.Name(), From: from[:min(len(from), maxVersions)],
		To: d.Storage, DefinitionGeneration: d.Generation, StartTime: metav1.NewTime(now)}
}

// replaceEntry sets the progress of a definition. If there are too many entries, the oldest are dropped: the
// definitions themselves show whether they are migrated.
func (d *Decision) replaceEntry(entry v1alpha1.StorageMigrationProgress) {
	d.Progress = slices.DeleteFunc(d.Progress,
		func(p v1alpha1.StorageMigrationProgress) bool { return p.Resource == entry.Resource })
	d.Progress = append(d.Progress, entry)
	if len(d.Progress) > maxProgress {
		d.Progress = slices.Delete(d.Progress, 0, len(d.Progress)-maxProgress)
	}
}

// explainFailure says why a definition cannot be migrated now, and returns the time since the failure. It returns "" if
// the definition can be migrated, which is also true retryFailed after a failed pass. p is nil if there was no pass.
func explainFailure(d Definition, p *v1alpha1.StorageMigrationProgress, now time.Time) (string, time.Duration) {
	switch {
	case d.Version == "":
		return fmt.Sprintf("No version of %s is served, so its objects cannot be stored again.", d.Name()), 0
	case p == nil || p.EndTime == nil || p.Failed == 0 || now.Sub(p.EndTime.Time) >= retryFailed:
		return "", 0
	}
	return fmt.Sprintf("%s of %s could not be stored again as %s: %s.", phrase.Count(p.Failed, "object"), d.Name(),
		d.Storage, strings.Join(p.Failures, "; ")), now.Sub(p.EndTime.Time)
}

// CurrentProgress returns the progress of the definition that is migrated.
func (d *Decision) CurrentProgress() *v1alpha1.StorageMigrationProgress {
	return d.findEntry(*d.Migrate)
}

// SetInterrupted records an error that interrupts the migration. The agent retries it.
func (d *Decision) SetInterrupted(in Input, err error) {
	d.setFailed(in, v1alpha1.ReasonStorageMigrationFailed, fmt.Sprintf("The migration of %s was interrupted: %v.",
		d.Migrate.Name(), err))
}
